//! PROXY: who may act as whom. It acts where `check_proxy_users` and the plugin's own variable say that the server itself finds the
//! account to act as.

use super::names::resolve;
use crate::account::grants::{Privileges, ProxyGrant};
use crate::account::roles::AccountName;
use crate::account::store::Record;
use crate::account::table::{AccessTable, Account};
use crate::errors;
use omnibus_parser::ast::{Grant, Revoke, UserName};
use omnibus_sql::SqlResult;

/// One's own account, what one has with GRANT OPTION, and for administrators all.
fn check_grantor(grantor: &Account, proxied: &AccountName) -> SqlResult<()> {
    let given = |own: &&ProxyGrant| own.grant_option && (own.is(proxied) || own.user.is_empty());
    let administrator = Privileges::SUPER.with(Privileges::GRANT_OPTION);
    if grantor.is(&proxied.0, &proxied.1)
        || grantor.grants.proxies.iter().any(|own| given(&own))
        || grantor.grants.privileges.has(administrator)
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
        account.grants.proxies.retain(|own| !own.is(&proxied));
        let (user, host) = proxied.clone();
        account.grants.proxies.push(ProxyGrant { user, host, grant_option: statement.grant_option });
        account.grants.proxies.sort_by(|a, b| (&a.user, &a.host).cmp(&(&b.user, &b.host)));
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
        account.grants.proxies.retain(|own| !own.is(&proxied));
        if account.grants.proxies.len() == old.grants.proxies.len() && !statement.if_exists {
            return Err(errors::nonexisting_grant(user, host));
        }
        changes.push(Record::Put(Box::new(account)));
    }
    Ok(changes)
}
