//! The table of accounts that sessions check against. Immutable; shared by `Arc`.

use super::host::{HostPattern, covers, like};
use super::objects::{RoleGrant, RoutineGrant, TableGrant};
use super::options::AccountOptions;
use super::passwords::OldPassword;
use super::privilege::{self, Privileges};
use super::proxies::ProxyGrant;
use super::requirement::Requirement;
use super::restrictions::Restrictions;
use crate::errors;
use crate::net::ClientHost;
use omnibus_sql::SqlResult;
use omnibus_wire::auth::{CACHING_SHA2, NATIVE};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;

/// Privileges on a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DbGrant {
    /// Name, or a pattern with `%` and `_`.
    pub pattern: String,
    /// What is granted there.
    pub privileges: Privileges,
}

impl DbGrant {
    fn matches(&self, db: &str, literal: bool) -> bool {
        self.pattern == db || (!literal && like(db.as_bytes(), self.pattern.as_bytes()))
    }

    fn has_wildcard(&self) -> bool {
        self.pattern.contains(['%', '_'])
    }
}

/// One account.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// Name; empty is anybody.
    pub user: String,
    /// Where from.
    pub host: HostPattern,
    /// Authentication plugin.
    pub plugin: String,
    /// What the plugin checks against; empty is no password.
    pub auth: Vec<u8>,
    /// A second password of the same plugin, which is good as well: RETAIN CURRENT PASSWORD keeps it. Empty is none.
    pub second_auth: Vec<u8>,
    /// Passwords that still count for PASSWORD HISTORY and REUSE INTERVAL, the newest last.
    pub passwords: Vec<OldPassword>,
    /// Global privileges.
    pub privileges: Privileges,
    /// Databases in which some of them do not hold; of a session's account, those in which its roles do not give them either.
    pub restrictions: Restrictions,
    /// Database privileges.
    pub databases: Vec<DbGrant>,
    /// Whether the names of databases there are no patterns, as `partial_revokes` has it.
    pub literal: bool,
    /// Accounts that it may act as.
    pub proxies: Vec<ProxyGrant>,
    /// Privileges on tables, views and columns.
    pub tables: Vec<TableGrant>,
    /// Privileges on routines.
    pub routines: Vec<RoutineGrant>,
    /// The roles that it has.
    pub roles: Vec<RoleGrant>,
    /// Made by CREATE ROLE.
    pub is_role: bool,
    /// The roles in force, and those that they have: of a session's account, never of one in the table. `privileges` has theirs.
    pub active: Vec<Arc<Account>>,
    /// May not connect.
    pub locked: bool,
    /// What its connections have to be like.
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
            plugin: omnibus_wire::auth::CACHING_SHA2.to_owned(),
            auth: Vec::new(),
            privileges: Privileges::NONE,
            restrictions: Restrictions::default(),
            databases: Vec::new(),
            literal: false,
            proxies: Vec::new(),
            tables: Vec::new(),
            routines: Vec::new(),
            roles: Vec::new(),
            is_role: false,
            active: Vec::new(),
            locked: false,
            require: Requirement::Nothing,
            attribute: None,
            second_auth: Vec::new(),
            passwords: Vec::new(),
            options: AccountOptions::default(),
        }
    }

    /// The one account of a new server: everything, from this machine, without a password.
    #[must_use]
    pub fn root() -> Account {
        Account { privileges: privilege::all(), ..Account::new("root", "localhost") }
    }

    /// Whoever comes in under --skip-grant-tables, by MySQL's name for it. No table has it.
    #[must_use]
    pub fn anybody() -> Account {
        Account { privileges: privilege::all(), ..Account::new("skip-grants user", "skip-grants host") }
    }

    /// Whether this is that one.
    #[must_use]
    pub fn is_anybody(&self) -> bool {
        self.is("skip-grants user", "skip-grants host")
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

    /// `user@host`, as CURRENT_USER() has it.
    #[must_use]
    pub fn plain(&self) -> String {
        format!("{}@{}", self.user, self.host.as_str())
    }

    /// Privileges on a database: the global ones and those of the most specific grant, the account's and each role's.
    #[must_use]
    pub fn on_database(&self, db: &str) -> Privileges {
        let granted = self.most_specific(db, |grant| grant.matches(db, self.literal));
        let own = self.privileges.without(self.restrictions.of(db)).with(granted);
        self.active.iter().fold(own, |set, role| set.with(role.on_database(db)))
    }

    /// Privileges on every database that a pattern may mean: whoever gives them away must have them on all of these.
    #[must_use]
    pub fn on_databases_of(&self, pattern: &str) -> Privileges {
        let covering =
            |grant: &DbGrant| grant.pattern == pattern || (!self.literal && covers(&grant.pattern, pattern));
        let own = self.privileges.without(self.restrictions.of(pattern));
        let own = own.with(self.most_specific(pattern, covering));
        self.active.iter().fold(own, |set, role| set.with(role.on_databases_of(pattern)))
    }

    fn most_specific(&self, name: &str, matches: impl Fn(&DbGrant) -> bool) -> Privileges {
        let found = self.databases.iter().filter(|grant| matches(grant));
        let first =
            found.min_by_key(|g| (g.pattern != name, g.has_wildcard(), std::cmp::Reverse(g.pattern.len())));
        first.map_or(Privileges::NONE, |grant| grant.privileges)
    }

    /// Fails with 1227 if `other` is an administrator's account (SYSTEM_USER) and this one is not: the privilege to make
    /// accounts is not the one to take over the server.
    pub fn may_change(&self, other: &Account) -> SqlResult<()> {
        if other.privileges.has(Privileges::SYSTEM_USER) && !self.privileges.has(Privileges::SYSTEM_USER) {
            return Err(errors::specific_access_denied("SYSTEM_USER"));
        }
        Ok(())
    }

    /// Whether the account may know that a database exists.
    #[must_use]
    pub fn sees_database(&self, db: &str) -> bool {
        let restricted = self.restrictions.of(db).with(Privileges::GRANT_OPTION);
        let anything = self.privileges.without(restricted);
        let global = Privileges(privilege::DB_PRIVILEGES.0).with(Privileges::SHOW_DATABASES);
        anything.any(global) || self.on_database(db).any(privilege::DB_PRIVILEGES) || self.has_objects_in(db)
    }

    /// Whether the account may know that a table is there, and what it looks like.
    #[must_use]
    pub fn sees_table(&self, db: &str, table: &str) -> bool {
        let any = privilege::DB_PRIVILEGES.without(Privileges::GRANT_OPTION);
        self.on_any_column(db, table).any(any)
    }
}

/// Doubles quotes and backslashes, for `'...'`.
#[must_use]
pub fn quote(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "''")
}

/// All accounts, most specific first.
#[derive(Debug, Default)]
pub struct AccessTable {
    by_user: HashMap<String, Vec<Arc<Account>>>,
    count: usize,
    /// How many have the native plugin.
    native: usize,
    /// What nobody outside knows and a restart does not change: a password's hash.
    secret: Vec<u8>,
}

impl AccessTable {
    /// Sorts accounts into a table. `literal`: names of databases are no patterns; they never are while something is restricted.
    #[must_use]
    pub fn build(mut accounts: Vec<Account>, literal: bool) -> AccessTable {
        let literal = literal || accounts.iter().any(|account| !account.restrictions.is_empty());
        accounts.iter_mut().for_each(|account| account.literal = literal);
        let native = accounts.iter().filter(|account| account.plugin == NATIVE).count();
        let secret = accounts
            .iter()
            .map(|account| account.auth.clone())
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
        self.by_user.values().flatten().any(|account| !account.restrictions.is_empty())
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
