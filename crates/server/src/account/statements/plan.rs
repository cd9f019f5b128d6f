//! The changes of a statement about accounts, whoever runs it, a session or an applier: the new records, and the statement for the
//! log, which holds hashes and no clear password.

use super::options::clauses_of;
use super::roles::RoleContext;
use super::users::{NewPassword, SetPassword, has_discarded, has_retained};
use super::{grant, roles as role_statements, users as user_statements};
use crate::account::credentials::PasswordDefaults;
use crate::account::roles::RoleRules;
use crate::account::store::Record;
use crate::account::table::{AccessTable, Account};
use omnibus_parser::ast::{CreateUser, GrantWhat, PasswordValue, RoleSet, SetItem, Statement, UserName};
use omnibus_sql::{KillFlag, SqlError, SqlResult};
use omnibus_value::literal::doubled as quote;

/// On whose behalf accounts are changed.
pub struct By<'a> {
    /// The account whose privileges count.
    pub me: &'a Account,
    /// The plugin of new accounts.
    pub plugin: &'a str,
    /// The variables about passwords.
    pub passwords: PasswordDefaults,
    /// The default database.
    pub database: Option<&'a str>,
    /// The variables about roles.
    pub rules: &'a RoleRules,
    /// Whether statements mean what they mean to a MariaDB.
    pub mariadb: bool,
    /// Ends it.
    pub kill: &'a KillFlag,
}

/// Plans a statement about accounts: the new records, and its text for the log.
pub fn plan_users(
    table: &AccessTable,
    statement: &Statement,
    text: &[u8],
    by: &By<'_>,
    notes: &mut Vec<SqlError>,
) -> SqlResult<(Vec<Record>, Vec<u8>)> {
    let By { me, plugin, passwords, database, rules, mariadb, kill } = *by;
    let roles = RoleContext { table, me, rules, mariadb };
    let records = match statement {
        Statement::CreateUser(s) => {
            let mut records = user_statements::create_user(table, me, s, plugin, &passwords, notes)?;
            put_default_roles(&roles, s, &mut records)?;
            let mut text = with_hashes("CREATE USER", &records, table);
            text.extend_from_slice(clauses_of(s, true).as_bytes());
            return Ok((records, text));
        }
        Statement::AlterUser(s) => {
            let mut records = user_statements::alter_user(table, me, s, plugin, &passwords, notes)?;
            put_default_roles(&roles, s, &mut records)?;
            let mut text = altered(s, &records, table);
            text.extend_from_slice(clauses_of(s, false).as_bytes());
            return Ok((records, text));
        }
        Statement::DropUser { if_exists, users } => {
            user_statements::drop_user(table, me, users, *if_exists, notes)?
        }
        Statement::RenameUser(pairs) => user_statements::rename_user(table, me, pairs)?,
        Statement::Set(items) if let Some((user, hash)) = password_hash(items) => {
            let statement = SetPassword { user, ..SetPassword::default() };
            let records =
                user_statements::set_password(table, me, &statement, &NewPassword::Hash(hash), &passwords)?;
            let text = with_hashes("ALTER USER", &records, table);
            return Ok((records, text));
        }
        Statement::CreateRole(s) => role_statements::create_role(&roles, s, plugin, notes)?,
        Statement::DropRole { if_exists, roles: names } => {
            role_statements::drop_role(&roles, names, *if_exists, notes)?
        }
        Statement::SetDefaultRole(s) => {
            let records = role_statements::set_default_role(&roles, s)?;
            let text = role_statements::default_role_text(&records, mariadb);
            return Ok((records, text.into_bytes()));
        }
        Statement::Grant(s) => match &s.what {
            GrantWhat::Roles(names) => role_statements::grant_roles(&roles, names, s, kill)?,
            _ => grant::grant(table, me, s, database)?,
        },
        Statement::Revoke(s) => match &s.what {
            GrantWhat::Roles(names) => role_statements::revoke_roles(&roles, names, s, kill)?,
            _ => {
                let partial = rules.partial_revokes || !passwords.enforced;
                grant::revoke(table, me, s, database, partial)?
            }
        },
        _ => return Err(SqlError::internal("a statement that is not about accounts")),
    };
    Ok((records, text.to_vec()))
}

/// DEFAULT ROLE of CREATE USER and ALTER USER. A new account gets the roles, too.
fn put_default_roles(
    roles: &RoleContext<'_>,
    statement: &CreateUser,
    records: &mut [Record],
) -> SqlResult<()> {
    let Some(set) = &statement.default_roles else { return Ok(()) };
    for record in records {
        let Record::Put(account) = record else { continue };
        if let (RoleSet::List(names), None) = (set, roles.table.exact(&account.user, account.host.as_str())) {
            role_statements::give_roles(roles, account, names)?;
        }
        let chosen = role_statements::choose(roles, account, set)?;
        role_statements::put_defaults(account, chosen);
    }
    Ok(())
}

/// The statement SET PASSWORD of a MariaDB source, which has the hash.
pub fn password_hash(items: &[SetItem]) -> Option<(Option<&UserName>, &[u8])> {
    match items {
        [SetItem::Password { user, value: PasswordValue::Text(hash), .. }] => Some((user.as_ref(), hash)),
        _ => None,
    }
}

/// ALTER USER for the log: with the hashes of those whose password it says or changes. A password that nobody spoke of must not be one more in the
/// history of replicas.
fn altered(statement: &CreateUser, records: &[Record], before: &AccessTable) -> Vec<u8> {
    let says_all = statement.users.iter().all(|spec| spec.auth.is_some());
    with_some_hashes("ALTER USER", records, before, &|old, account| {
        let said = statement.users.iter().any(|spec| {
            let UserName::Named { user, host } = &spec.user else { return false };
            let named = user.as_str() == account.user && host.as_str() == account.host.as_str();
            named && spec.auth.is_some()
        });
        says_all
            || said
            || old.credentials.auth != account.credentials.auth
            || old.credentials.plugin != account.credentials.plugin
    })
}

/// The statement that makes these accounts, for the log.
pub fn with_hashes(verb: &str, records: &[Record], before: &AccessTable) -> Vec<u8> {
    with_some_hashes(verb, records, before, &|_, _| true)
}

/// As `with_hashes`; of accounts that exist already only `wanted` ones have their hashes in it.
fn with_some_hashes(
    verb: &str,
    records: &[Record],
    before: &AccessTable,
    wanted: &dyn Fn(&Account, &Account) -> bool,
) -> Vec<u8> {
    let mut text = String::new();
    for record in records {
        let Record::Put(account) = record else { continue };
        let separator = if text.is_empty() { verb.to_owned() + " " } else { ", ".into() };
        let old = before.exact(&account.user, account.host.as_str());
        text.push_str(&format!("{separator}{}", account.quoted()));
        if old.as_ref().is_some_and(|old| has_discarded(old, account)) {
            text.push_str(" DISCARD OLD PASSWORD");
            continue;
        }
        if old.as_ref().is_some_and(|old| !wanted(old, account)) {
            continue;
        }
        let hash = quote(&String::from_utf8_lossy(&account.credentials.auth));
        text.push_str(&format!(" IDENTIFIED WITH '{}' AS '{hash}'", account.credentials.plugin));
        if old.is_some_and(|old| has_retained(&old, account)) {
            text.push_str(" RETAIN CURRENT PASSWORD");
        }
    }
    text.into_bytes()
}
