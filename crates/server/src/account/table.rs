//! The table of accounts that sessions check against. Immutable; shared by `Arc`.

use super::credentials::{AccountOptions, Credentials, Requirement};
use super::grants::{Grants, Privileges};
use super::host::HostPattern;
use crate::errors;
use crate::net::ClientHost;
use omnibus_sql::SqlResult;
use omnibus_value::literal::{doubled as quote, name as backquoted};
use omnibus_wire::auth::{CACHING_SHA2, NATIVE};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;

/// One account.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// Name; empty is anybody.
    pub user: String,
    /// Where from.
    pub host: HostPattern,
    /// Plugin and secret of a login.
    pub credentials: Credentials,
    /// Its own grants.
    pub grants: Grants,
    /// Made by CREATE ROLE.
    pub is_role: bool,
    /// The roles in force, and those that they have: of a session's account, never of one in the table. The global privileges have theirs.
    pub active: Vec<Arc<Account>>,
    /// May not connect.
    pub locked: bool,
    /// The condition that its connections meet.
    pub require: Requirement,
    /// Comment and attribute, as the text of a JSON object, if any.
    pub attribute: Option<String>,
    /// Limits, and rules of its password.
    pub options: AccountOptions,
}

/// Without the authentication string (ACCOUNT-1).
impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Account('{}'@'{}')", self.user, self.host.as_str())
    }
}

impl Account {
    /// An account without password or privileges.
    #[must_use]
    pub fn new(user: &str, host: &str) -> Account {
        Account {
            user: user.to_owned(),
            host: HostPattern::new(host),
            credentials: Credentials::new(CACHING_SHA2),
            grants: Grants::default(),
            is_role: false,
            active: Vec::new(),
            locked: false,
            require: Requirement::Nothing,
            attribute: None,
            options: AccountOptions::default(),
        }
    }

    /// The one account of a new server: everything, from this machine, without a password.
    #[must_use]
    pub fn root() -> Account {
        Account { grants: Grants::of_everything(), ..Account::new("root", "localhost") }
    }

    /// The account of everyone under --skip-grant-tables, by MySQL's name for it. No table has it.
    #[must_use]
    pub fn anybody() -> Account {
        Account { grants: Grants::of_everything(), ..Account::new("skip-grants user", "skip-grants host") }
    }

    /// Whether this is that one.
    #[must_use]
    pub fn is_anybody(&self) -> bool {
        self.is("skip-grants user", "skip-grants host")
    }

    /// A name as `is` compares it, for a map of many accounts.
    #[must_use]
    pub fn key(user: &str, host: &str) -> (String, String) {
        (user.to_owned(), if host.is_empty() { "%".to_owned() } else { host.to_ascii_lowercase() })
    }

    /// Whether this is the account of exactly that name.
    #[must_use]
    pub fn is(&self, user: &str, host: &str) -> bool {
        self.user == user && self.host.as_str().eq_ignore_ascii_case(if host.is_empty() { "%" } else { host })
    }

    /// `'user'@'host'`, quoted for statements.
    #[must_use]
    pub fn quoted(&self) -> String {
        format!("'{}'@'{}'", quote(&self.user), quote(self.host.as_str()))
    }

    /// The same in backticks.
    #[must_use]
    pub fn backquoted(&self) -> String {
        format!("{}@{}", backquoted(&self.user), backquoted(self.host.as_str()))
    }

    /// `user@host`, as CURRENT_USER() has it.
    #[must_use]
    pub fn plain(&self) -> String {
        format!("{}@{}", self.user, self.host.as_str())
    }

    /// Fails with 1227 if `other` is an administrator's account (SYSTEM_USER) and this one is not: the privilege to make
    /// accounts is not the one to take over the server.
    pub fn may_change(&self, other: &Account) -> SqlResult<()> {
        if other.grants.privileges.has(Privileges::SYSTEM_USER)
            && !self.grants.privileges.has(Privileges::SYSTEM_USER)
        {
            return Err(errors::specific_access_denied("SYSTEM_USER"));
        }
        Ok(())
    }
}

/// All accounts, most specific first.
#[derive(Debug, Default)]
pub struct AccessTable {
    by_user: HashMap<String, Vec<Arc<Account>>>,
    count: usize,
    /// How many have the native plugin.
    native: usize,
    /// A secret that a restart does not change: a password's hash.
    secret: Vec<u8>,
}

impl AccessTable {
    /// Sorts accounts into a table. `literal`: names of databases are no patterns; they never are while something is restricted.
    #[must_use]
    pub fn build(mut accounts: Vec<Account>, literal: bool) -> AccessTable {
        let literal = literal || accounts.iter().any(|account| !account.grants.restrictions.is_empty());
        accounts.iter_mut().for_each(|account| account.grants.literal = literal);
        let native = accounts.iter().filter(|account| account.credentials.plugin == NATIVE).count();
        let secret = accounts
            .iter()
            .map(|account| account.credentials.auth.clone())
            .min_by_key(|auth| (auth.is_empty(), auth.clone()));
        let secret = secret.unwrap_or_default();
        let mut table = AccessTable { count: accounts.len(), native, secret, ..AccessTable::default() };
        for account in accounts {
            table.by_user.entry(account.user.clone()).or_default().push(Arc::new(account));
        }
        for list in table.by_user.values_mut() {
            list.sort_by_key(|a| a.host.rank());
        }
        table
    }

    /// The account that a client logs in to: the most specific host wins, then a name over anybody.
    #[must_use]
    pub fn find(&self, user: &str, client: &ClientHost) -> Option<Arc<Account>> {
        let first = |name: &str| {
            let list = self.by_user.get(name).map_or(&[][..], |l| l);
            list.iter().find(|a| a.host.matches(client))
        };
        let (named, anybody) = (first(user), first("").filter(|_| !user.is_empty()));
        match (named, anybody) {
            (Some(n), Some(a)) if a.host.rank() < n.host.rank() => Some(a.clone()),
            (Some(n), _) => Some(n.clone()),
            (None, a) => a.cloned(),
        }
    }

    /// The plugin of an account that is not there: always the same for a name, and among names as often as accounts have it, so
    /// that the exchange tells nobody which names are accounts (AUTH-1).
    #[must_use]
    pub fn decoy_plugin(&self, user: &str) -> &'static str {
        let digest = Sha256::new().chain_update(&self.secret).chain_update(user).finalize();
        let draw = digest.iter().take(8).fold(0u128, |number, byte| number << 8 | u128::from(*byte));
        if ((draw * self.count as u128) >> 64) < self.native as u128 { NATIVE } else { CACHING_SHA2 }
    }

    /// Whether any account could let this client in: otherwise it is turned away before a login.
    #[must_use]
    pub fn knows_host(&self, client: &ClientHost) -> bool {
        self.by_user.values().flatten().any(|a| a.host.matches(client))
    }

    /// The account of exactly this name.
    #[must_use]
    pub fn exact(&self, user: &str, host: &str) -> Option<Arc<Account>> {
        self.by_user.get(user)?.iter().find(|a| a.is(user, host)).cloned()
    }

    /// The account that CURRENT_USER() names so.
    #[must_use]
    pub fn by_plain_name(&self, name: &str) -> Option<Arc<Account>> {
        let (user, host) = name.rsplit_once('@')?;
        self.exact(user, host)
    }

    /// All of them, by name.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Account>> {
        let mut all: Vec<_> = self.by_user.values().flatten().cloned().collect();
        all.sort_by(|a, b| (&a.user, a.host.as_str()).cmp(&(&b.user, b.host.as_str())));
        all
    }

    /// Whether some account has less in a database than everywhere.
    #[must_use]
    pub fn has_restrictions(&self) -> bool {
        self.by_user.values().flatten().any(|account| !account.grants.restrictions.is_empty())
    }

    /// The account that this one acts as: the first that is there.
    #[must_use]
    pub fn proxied_by(&self, account: &Account) -> Option<Arc<Account>> {
        account
            .grants
            .proxies
            .iter()
            .find_map(|own| self.exact(&own.user, &own.host).filter(|_| !own.user.is_empty()))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}
