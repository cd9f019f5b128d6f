//! PROXY: who may act as whom. It acts where `check_proxy_users` and the plugin's own variable say that the server itself finds the
//! account to act as.

use super::manage::resolve;
use super::privilege::Privileges;
use super::roles::AccountName;
use super::store::Record;
use super::table::{AccessTable, Account};
use crate::errors;
use omnibus_parser::ast::{Grant, Revoke, UserName};
use omnibus_sql::SqlResult;
use std::sync::Arc;

/// An account that another one may act as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyGrant {
    /// Its name; empty is anybody.
    pub user: String,
    /// And its host part.
    pub host: String,
    /// WITH GRANT OPTION.
    pub grant_option: bool,
}

impl ProxyGrant {
    fn is(&self, (user, host): &AccountName) -> bool {
        self.user == *user && self.host == *host
    }
}

/// One's own account, what one has with GRANT OPTION, and for administrators all.
fn check_grantor(grantor: &Account, proxied: &AccountName) -> SqlResult<()> {
    let given = |own: &&ProxyGrant| own.grant_option && (own.is(proxied) || own.user.is_empty());
    let administrator = Privileges::SUPER.with(Privileges::GRANT_OPTION);
    if grantor.is(&proxied.0, &proxied.1)
        || grantor.proxies.iter().any(|own| given(&own))
        || grantor.privileges.has(administrator)
    {
        return Ok(());
    }
    Err(errors::access_denied_to(&grantor.user, grantor.host.as_str()))
}

/// GRANT PROXY ON an account.
pub fn grant(
    table: &AccessTable,
    grantor: &Account,
    proxied: &UserName,
    statement: &Grant,
) -> SqlResult<Vec<Record>> {
    let proxied = resolve(proxied, grantor);
    check_grantor(grantor, &proxied)?;
    let mut changes = Vec::new();
    for spec in &statement.users {
        let (user, host) = resolve(&spec.user, grantor);
        let old = table.exact(&user, &host).ok_or_else(errors::cant_create_user_with_grant)?;
        grantor.may_change(&old)?;
        let mut account = Account::clone(&old);
        account.proxies.retain(|own| !own.is(&proxied));
        let (user, host) = proxied.clone();
        account.proxies.push(ProxyGrant { user, host, grant_option: statement.grant_option });
        account.proxies.sort_by(|a, b| (&a.user, &a.host).cmp(&(&b.user, &b.host)));
        changes.push(Record::Put(Box::new(account)));
    }
    Ok(changes)
}

/// REVOKE PROXY ON an account.
pub fn revoke(
    table: &AccessTable,
    grantor: &Account,
    proxied: &UserName,
    statement: &Revoke,
) -> SqlResult<Vec<Record>> {
    let proxied = resolve(proxied, grantor);
    check_grantor(grantor, &proxied)?;
    let mut changes = Vec::new();
    for name in &statement.users {
        let (user, host) = resolve(name, grantor);
        let Some(old) = table.exact(&user, &host) else {
            match statement.ignore_unknown_user {
                true => continue,
                false => return Err(errors::nonexisting_grant(user, host)),
            }
        };
        grantor.may_change(&old)?;
        let mut account = Account::clone(&old);
        account.proxies.retain(|own| !own.is(&proxied));
        if account.proxies.len() == old.proxies.len() && !statement.if_exists {
            return Err(errors::nonexisting_grant(user, host));
        }
        changes.push(Record::Put(Box::new(account)));
    }
    Ok(changes)
}

impl AccessTable {
    /// The account that this one acts as: the first that is there.
    #[must_use]
    pub fn proxied_by(&self, account: &Account) -> Option<Arc<Account>> {
        account
            .proxies
            .iter()
            .find_map(|own| self.exact(&own.user, &own.host).filter(|_| !own.user.is_empty()))
    }
}
