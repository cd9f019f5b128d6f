//! GRANT and REVOKE of privileges: global ones, and those of databases, tables, columns and routines.

use super::names::resolve;
use super::{proxies, users};
use crate::account::credentials::Requirement;
use crate::account::grants::{
    self, COLUMN_PRIVILEGES, DB_PRIVILEGES, DbGrant, Privileges, ROUTINE_PRIVILEGES, Restrictions,
    RoutineGrant, TABLE_PRIVILEGES, TableGrant,
};
use crate::account::store::Record;
use crate::account::table::{AccessTable, Account};
use crate::errors;
use omnibus_parser::ast::{
    Auth, AuthSecret, Grant, GrantTarget, GrantWhat, ObjectName, Privilege, ProgramKind, Revoke, UserName,
};
use omnibus_sql::{SqlError, SqlResult};

/// GRANT to one account. What it has everywhere but in the database that is named holds there, too, from now on.
fn give(account: &mut Account, place: &GrantLevel, mut listed: Listed, grantor: &Account) {
    match place {
        GrantLevel::Global => {
            account.grants.restrictions.granted(
                account.grants.privileges,
                listed.set,
                &grantor.grants.restrictions,
            );
        }
        GrantLevel::Database(db) => {
            let back = listed.set;
            listed.set = back.without(account.grants.restrictions.of(db));
            account.grants.restrictions.change(db, |own| own.without(back));
        }
        _ => {}
    }
    if listed.set != Privileges::NONE || !matches!(place, GrantLevel::Database(_)) {
        change(account, place, &listed, Privileges::with);
    }
}

/// REVOKE from one account; whether it had anything there. With `partial`, what it has everywhere is taken away in one database.
fn take(account: &mut Account, place: &GrantLevel, listed: &Listed, partial: bool) -> bool {
    match place {
        GrantLevel::Global => account.grants.restrictions.revoked(listed.set),
        GrantLevel::Database(db) if partial => {
            let held = account.grants.privileges.without(account.grants.restrictions.of(db));
            let everywhere = Privileges(held.0 & listed.set.0 & DB_PRIVILEGES.0);
            if everywhere != Privileges::NONE {
                account.grants.restrictions.change(db, |own| own.with(everywhere));
                change(account, place, listed, Privileges::without);
                return true;
            }
        }
        _ => {}
    }
    change(account, place, listed, Privileges::without)
}

/// Where privileges apply.
enum GrantLevel {
    Global,
    Database(String),
    Table(String, String),
    Routine(ProgramKind, String, String),
}

fn place(target: &GrantTarget, database: Option<&str>) -> SqlResult<GrantLevel> {
    let named = |name: &ObjectName| -> SqlResult<(String, String)> {
        let db = name.schema.as_deref().or(database).ok_or_else(SqlError::no_db)?;
        Ok((db.to_owned(), name.name.as_str().to_owned()))
    };
    Ok(match target {
        GrantTarget::Global => GrantLevel::Global,
        GrantTarget::Schema(name) => GrantLevel::Database(name.as_str().to_owned()),
        GrantTarget::CurrentSchema => GrantLevel::Database(database.ok_or_else(SqlError::no_db)?.to_owned()),
        GrantTarget::Table(name) => named(name).map(|(db, table)| GrantLevel::Table(db, table))?,
        GrantTarget::Procedure(name) => {
            named(name).map(|(db, name)| GrantLevel::Routine(ProgramKind::Procedure, db, name))?
        }
        GrantTarget::Function(name) => {
            named(name).map(|(db, name)| GrantLevel::Routine(ProgramKind::Function, db, name))?
        }
    })
}

/// A list of privileges: those of all of a place, and those of columns of it.
#[derive(Clone, Default)]
struct Listed {
    set: Privileges,
    columns: Vec<(String, Privileges)>,
}

/// The bits of a privilege list at a place.
///
/// ALL is every static privilege, and those of the dynamic ones that the grantor has: a server may know more of them than when
/// its administrators were made.
fn listed(list: &[Privilege], place: &GrantLevel, grantor: &Account) -> SqlResult<Listed> {
    let allowed = match place {
        GrantLevel::Global => grants::all(),
        GrantLevel::Database(_) => DB_PRIVILEGES,
        GrantLevel::Table(..) => TABLE_PRIVILEGES,
        GrantLevel::Routine(..) => ROUTINE_PRIVILEGES,
    };
    let mut listed = Listed::default();
    for item in list {
        if item.name.is("ALL") || item.name.is("ALL PRIVILEGES") {
            let missing = grants::all_dynamic().without(grantor.grants.privileges);
            listed.set = listed.set.with(allowed.without(missing.with(Privileges::GRANT_OPTION)));
            continue;
        }
        let bit = grants::by_name(&item.name).ok_or_else(|| SqlError {
            code: 3619,
            state: *b"HY000",
            message: format!("Illegal privilege level specified for {}", item.name.as_str()),
        })?;
        if !allowed.has(bit) {
            return Err(match place {
                GrantLevel::Table(..) | GrantLevel::Routine(..) => errors::illegal_grant_for_table(),
                _ => errors::incorrect_usage("DB GRANT", "GLOBAL PRIVILEGES"),
            });
        }
        if item.columns.is_empty() {
            listed.set = listed.set.with(bit);
        } else if !matches!(place, GrantLevel::Table(..)) || !COLUMN_PRIVILEGES.has(bit) {
            return Err(errors::illegal_grant_for_table());
        }
        listed.columns.extend(item.columns.iter().map(|column| (column.as_str().to_owned(), bit)));
    }
    Ok(listed)
}

/// Nobody may give away what they do not have, or without GRANT OPTION.
fn check_grantor(grantor: &Account, place: &GrantLevel, listed: &Listed) -> SqlResult<()> {
    let needed = listed.set.with(Privileges::GRANT_OPTION);
    let (user, host) = (&grantor.user, grantor.host.as_str());
    match place {
        GrantLevel::Global if !grantor.grants.privileges.has(needed) => {
            Err(errors::access_denied(user, host, true))
        }
        GrantLevel::Database(pattern) if !grantor.rights().on_databases_of(pattern).has(needed) => {
            Err(SqlError::dbaccess_denied(user, host, pattern))
        }
        GrantLevel::Table(db, table) => {
            let own = |(column, bit): &(String, Privileges)| {
                grantor.rights().on_column(db, table, column).has(*bit)
            };
            if grantor.rights().on_table(db, table).has(needed) && listed.columns.iter().all(own) {
                return Ok(());
            }
            Err(SqlError::tableaccess_denied("GRANT", user, host, table))
        }
        GrantLevel::Routine(kind, db, name) if !grantor.rights().on_routine(*kind, db, name).has(needed) => {
            Err(errors::routine_denied("grant", user, host, db, name))
        }
        _ => Ok(()),
    }
}

/// The change that GRANT or REVOKE makes to a set.
type Change = fn(Privileges, Privileges) -> Privileges;

/// Changes the rights of an account at a level, and says whether it had any there.
fn change(account: &mut Account, place: &GrantLevel, listed: &Listed, f: Change) -> bool {
    let set = listed.set;
    match place {
        GrantLevel::Global => {
            account.grants.privileges = f(account.grants.privileges, set);
            true
        }
        GrantLevel::Database(db) => {
            let at = account.grants.databases.iter().position(|g| g.pattern == *db);
            let had = at.is_some();
            let at = at.unwrap_or_else(|| {
                account.grants.databases.push(DbGrant { pattern: db.clone(), privileges: Privileges::NONE });
                account.grants.databases.len() - 1
            });
            let grant = &mut account.grants.databases[at];
            grant.privileges = f(grant.privileges, set);
            account.grants.databases.retain(|grant| grant.privileges != Privileges::NONE);
            had
        }
        GrantLevel::Table(db, table) => change_table(account, (db, table), listed, f),
        GrantLevel::Routine(kind, db, name) => {
            let at = account.grants.routines.iter().position(|grant| grant.is(*kind, db, name));
            let had = at.is_some();
            let at = at.unwrap_or_else(|| {
                let (db, name) = (db.clone(), name.clone());
                account.grants.routines.push(RoutineGrant {
                    kind: *kind,
                    db,
                    name,
                    privileges: Privileges::NONE,
                });
                account.grants.routines.len() - 1
            });
            let grant = &mut account.grants.routines[at];
            grant.privileges = f(grant.privileges, set);
            account.grants.routines.retain(|grant| grant.privileges != Privileges::NONE);
            had
        }
    }
}

fn change_table(account: &mut Account, (db, table): (&str, &str), listed: &Listed, f: Change) -> bool {
    let at = account.grants.tables.iter().position(|grant| grant.db == db && grant.table == table);
    // Each column that is named has to have something, too.
    let has = |grant: &TableGrant, column: &str| grant.columns.iter().any(|(name, _)| name == column);
    let had =
        at.is_some_and(|at| listed.columns.iter().all(|(column, _)| has(&account.grants.tables[at], column)));
    let at = at.unwrap_or_else(|| {
        let (db, table) = (db.to_owned(), table.to_owned());
        account.grants.tables.push(TableGrant {
            db,
            table,
            privileges: Privileges::NONE,
            columns: Vec::new(),
        });
        account.grants.tables.len() - 1
    });
    let grant = &mut account.grants.tables[at];
    grant.privileges = f(grant.privileges, listed.set);
    for (column, bit) in &listed.columns {
        grant.change_column(column, |own| f(own, *bit));
    }
    // What is taken from a table is taken from each of its columns.
    for (_, own) in &mut grant.columns {
        *own = Privileges(own.0 & f(*own, listed.set).0);
    }
    grant.columns.retain(|(_, own)| *own != Privileges::NONE);
    account.grants.tables.retain(|grant| !grant.is_empty());
    had
}

/// Adds what another account has on databases, tables and routines.
pub(super) fn add_grants(account: &mut Account, other: &Account) {
    let all = |set| Listed { set, columns: Vec::new() };
    for grant in &other.grants.databases {
        change(
            account,
            &GrantLevel::Database(grant.pattern.clone()),
            &all(grant.privileges),
            Privileges::with,
        );
    }
    for grant in &other.grants.tables {
        let listed = Listed { set: grant.privileges, columns: grant.columns.clone() };
        change(account, &GrantLevel::Table(grant.db.clone(), grant.table.clone()), &listed, Privileges::with);
    }
    for grant in &other.grants.routines {
        let place = GrantLevel::Routine(grant.kind, grant.db.clone(), grant.name.clone());
        change(account, &place, &all(grant.privileges), Privileges::with);
    }
}

/// REVOKE of what is not there.
fn absent(account: &Account, place: &GrantLevel) -> SqlError {
    let (user, host) = (&account.user, account.host.as_str());
    match place {
        GrantLevel::Table(_, table) => errors::nonexisting_table_grant(user, host, table),
        GrantLevel::Routine(_, _, name) => errors::nonexisting_routine_grant(user, host, name),
        _ => errors::nonexisting_grant(user, host),
    }
}

/// GRANT.
pub fn grant(
    table: &AccessTable,
    grantor: &Account,
    statement: &Grant,
    database: Option<&str>,
) -> SqlResult<Vec<Record>> {
    let (privileges, target) = match &statement.what {
        GrantWhat::Privileges { privileges, target } => (privileges, target),
        GrantWhat::Proxy(proxied) => return proxies::grant(table, grantor, proxied, statement),
        GrantWhat::Everything | GrantWhat::Roles(_) => {
            return Err(SqlError::internal("a GRANT of no privileges"));
        }
    };
    let place = place(target, database)?;
    let mut listed = listed(privileges, &place, grantor)?;
    if statement.grant_option {
        listed.set = listed.set.with(Privileges::GRANT_OPTION);
    }
    check_grantor(grantor, &place, &listed)?;
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
        give(&mut account, &place, listed.clone(), grantor);
        account.options.apply_resources(&statement.resources)?;
        if let Some(require) = &statement.require {
            account.require = Requirement::of(require);
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
    users::apply_auth(&mut said, auth, "mysql_native_password")?;
    Ok((said.credentials.plugin, said.credentials.auth)
        == (old.credentials.plugin.clone(), old.credentials.auth.clone()))
}

/// REVOKE.
pub fn revoke(
    table: &AccessTable,
    grantor: &Account,
    statement: &Revoke,
    database: Option<&str>,
    partial: bool,
) -> SqlResult<Vec<Record>> {
    if let GrantWhat::Proxy(proxied) = &statement.what {
        return proxies::revoke(table, grantor, proxied, statement);
    }
    let mut changes = Vec::new();
    for name in &statement.users {
        let Some(old) = find(table, grantor, name, statement.ignore_unknown_user)? else { continue };
        grantor.may_change(&old)?;
        let mut account = Account::clone(&old);
        match &statement.what {
            GrantWhat::Everything => {
                if !grantor.grants.privileges.any(Privileges::CREATE_USER) {
                    return Err(errors::specific_access_denied("CREATE USER"));
                }
                account.grants.privileges = Privileges::NONE;
                account.grants.restrictions = Restrictions::default();
                account.grants.databases.clear();
                account.grants.tables.clear();
                account.grants.routines.clear();
            }
            GrantWhat::Privileges { privileges, target } => {
                let place = place(target, database)?;
                let mut listed = listed(privileges, &place, grantor)?;
                check_grantor(grantor, &place, &listed)?;
                if statement.grant_option {
                    listed.set = listed.set.with(Privileges::GRANT_OPTION);
                }
                if !take(&mut account, &place, &listed, partial) && !statement.if_exists {
                    return Err(absent(&account, &place));
                }
            }
            GrantWhat::Roles(_) | GrantWhat::Proxy(_) => {
                return Err(SqlError::internal("a REVOKE of no privileges"));
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
