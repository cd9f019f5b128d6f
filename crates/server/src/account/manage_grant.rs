//! GRANT and REVOKE at the global and the database level. Table level and roles are not there.

use super::manage::resolve;
use super::privilege::{self, DB_PRIVILEGES, Privileges};
use super::store::Record;
use super::table::{AccessTable, Account, DbGrant};
use crate::errors;
use omnibus_parser::ast::{
    Auth, AuthSecret, Grant, GrantTarget, GrantWhat, Privilege, Require, Revoke, UserName,
};
use omnibus_sql::{SqlError, SqlResult};

/// Where privileges apply.
enum Place {
    Global,
    Database(String),
}

fn place(target: &GrantTarget, database: Option<&str>) -> SqlResult<Place> {
    match target {
        GrantTarget::Global => Ok(Place::Global),
        GrantTarget::Schema(name) => Ok(Place::Database(name.as_str().to_owned())),
        GrantTarget::CurrentSchema => {
            database.map(|d| Place::Database(d.to_owned())).ok_or_else(SqlError::no_db)
        }
        GrantTarget::Table(_) => Err(SqlError::not_supported_yet("GRANT on a table")),
        GrantTarget::Procedure(_) | GrantTarget::Function(_) => {
            Err(SqlError::not_supported_yet("GRANT on a routine"))
        }
    }
}

/// The bits of a privilege list at a place.
///
/// ALL is every static privilege, and those of the dynamic ones that the grantor has: a server may know more of them than when
/// its administrators were made.
fn bits(list: &[Privilege], place: &Place, grantor: &Account) -> SqlResult<Privileges> {
    let allowed = match place {
        Place::Global => privilege::all(),
        Place::Database(_) => DB_PRIVILEGES,
    };
    let mut set = Privileges::NONE;
    for item in list {
        if !item.columns.is_empty() {
            return Err(SqlError::not_supported_yet("column privileges"));
        }
        if item.name.is("ALL") || item.name.is("ALL PRIVILEGES") {
            let missing = privilege::all_dynamic().without(grantor.privileges);
            set = set.with(allowed.without(missing.with(Privileges::GRANT_OPTION)));
            continue;
        }
        let bit = privilege::by_name(&item.name).ok_or_else(|| SqlError {
            code: 3619,
            state: *b"HY000",
            message: format!("Illegal privilege level specified for {}", item.name.as_str()),
        })?;
        if !allowed.has(bit) {
            return Err(SqlError {
                code: 1221,
                state: *b"HY000",
                message: "Incorrect usage of DB GRANT and GLOBAL PRIVILEGES".into(),
            });
        }
        set = set.with(bit);
    }
    Ok(set)
}

/// Nobody may give away what they do not have, or without GRANT OPTION.
fn check_grantor(grantor: &Account, place: &Place, set: Privileges) -> SqlResult<()> {
    let own = match place {
        Place::Global => grantor.privileges,
        Place::Database(pattern) => grantor.on_databases_of(pattern),
    };
    if own.has(set.with(Privileges::GRANT_OPTION)) {
        return Ok(());
    }
    match place {
        Place::Global => Err(errors::access_denied(&grantor.user, grantor.host.as_str(), true)),
        Place::Database(db) => Err(SqlError::dbaccess_denied(&grantor.user, grantor.host.as_str(), db)),
    }
}

fn change(account: &mut Account, place: &Place, f: impl Fn(Privileges) -> Privileges) -> bool {
    match place {
        Place::Global => {
            account.privileges = f(account.privileges);
            true
        }
        Place::Database(db) => {
            let at = account.databases.iter().position(|g| g.pattern == *db);
            let old = at.map_or(Privileges::NONE, |i| account.databases[i].privileges);
            let new = f(old);
            match at {
                Some(i) if new == Privileges::NONE => drop(account.databases.remove(i)),
                Some(i) => account.databases[i].privileges = new,
                None if new != Privileges::NONE => {
                    account.databases.push(DbGrant { pattern: db.clone(), privileges: new });
                }
                None => {}
            }
            at.is_some()
        }
    }
}

/// GRANT.
pub fn grant(
    table: &AccessTable,
    grantor: &Account,
    statement: &Grant,
    database: Option<&str>,
) -> SqlResult<Vec<Record>> {
    let GrantWhat::Privileges { privileges, target } = &statement.what else {
        return Err(SqlError::not_supported_yet("GRANT of roles or PROXY"));
    };
    let place = place(target, database)?;
    let mut set = bits(privileges, &place, grantor)?;
    if statement.grant_option {
        set = set.with(Privileges::GRANT_OPTION);
    }
    check_grantor(grantor, &place, set)?;
    let mut changes = Vec::new();
    for spec in &statement.users {
        let (user, host) = resolve(&spec.user, grantor);
        // An account named with a password would be created or changed; 8.x forbids both.
        let old = table.exact(&user, &host).ok_or_else(errors::cant_create_user_with_grant)?;
        grantor.may_change(&old)?;
        if let Some(auth) = &spec.auth
            && !is_own(auth, &old)?
        {
            return Err(SqlError::not_supported_yet("GRANT .. IDENTIFIED BY"));
        }
        let mut account = Account::clone(&old);
        change(&mut account, &place, |old| old.with(set));
        account.options.apply_resources(&statement.resources)?;
        match &statement.require {
            None => {}
            Some(Require::Ssl) => account.require_ssl = true,
            Some(Require::None) => account.require_ssl = false,
            Some(_) => return Err(SqlError::not_supported_yet("REQUIRE X509")),
        }
        changes.push(Record::Put(Box::new(account)));
    }
    Ok(changes)
}

/// Whether it says what the account has, as MariaDB's SHOW GRANTS does.
fn is_own(auth: &Auth, old: &Account) -> SqlResult<bool> {
    if !matches!(auth.secret, AuthSecret::Stored(_)) {
        return Ok(false);
    }
    let mut said = Account::clone(old);
    super::manage::apply_auth(&mut said, auth, "mysql_native_password")?;
    Ok((said.plugin, said.auth) == (old.plugin.clone(), old.auth.clone()))
}

/// REVOKE.
pub fn revoke(
    table: &AccessTable,
    grantor: &Account,
    statement: &Revoke,
    database: Option<&str>,
) -> SqlResult<Vec<Record>> {
    let mut changes = Vec::new();
    for name in &statement.users {
        let Some(old) = find(table, grantor, name, statement.ignore_unknown_user)? else { continue };
        grantor.may_change(&old)?;
        let mut account = Account::clone(&old);
        match &statement.what {
            GrantWhat::Everything => {
                if !grantor.privileges.any(Privileges::CREATE_USER) {
                    return Err(errors::specific_access_denied("CREATE USER"));
                }
                account.privileges = Privileges::NONE;
                account.databases.clear();
            }
            GrantWhat::Privileges { privileges, target } => {
                let place = place(target, database)?;
                let mut set = bits(privileges, &place, grantor)?;
                check_grantor(grantor, &place, set)?;
                if statement.grant_option {
                    set = set.with(Privileges::GRANT_OPTION);
                }
                if !change(&mut account, &place, |old| old.without(set)) && !statement.if_exists {
                    return Err(errors::nonexisting_grant(&account.user, account.host.as_str()));
                }
            }
            GrantWhat::Roles(_) | GrantWhat::Proxy(_) => {
                return Err(SqlError::not_supported_yet("REVOKE of roles or PROXY"));
            }
        }
        changes.push(Record::Put(Box::new(account)));
    }
    Ok(changes)
}

fn find(
    table: &AccessTable,
    grantor: &Account,
    name: &UserName,
    ignore_unknown: bool,
) -> SqlResult<Option<std::sync::Arc<Account>>> {
    let (user, host) = resolve(name, grantor);
    match table.exact(&user, &host) {
        Some(account) => Ok(Some(account)),
        None if ignore_unknown => Ok(None),
        None => Err(errors::nonexisting_grant(user, host)),
    }
}
