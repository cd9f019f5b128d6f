//! CREATE USER, ALTER USER, DROP USER, RENAME USER, SET PASSWORD: from a statement and the present
//! table to the changes to store. Pure, apart from random salts.

use super::holders::{follow, follow_dropped};
use super::names::{absent_note, check_name, exists_note, failed, resolve};
use super::{options, passwords};
use crate::account::credentials::{PasswordDefaults, stored_form};
use crate::account::host::HostPattern;
use crate::account::store::Record;
use crate::account::table::{AccessTable, Account};
use crate::errors;
use omnibus_parser::ast::{Auth, AuthSecret, CreateUser, UserName};
use omnibus_sql::{SqlError, SqlResult};
use omnibus_wire::auth::{CACHING_SHA2, NATIVE, caching_sha2, native};
use std::sync::Arc;

/// Checks a password's plugin and makes the stored form.
pub(super) fn apply_auth(account: &mut Account, auth: &Auth, default_plugin: &str) -> SqlResult<()> {
    account.options.password_was_set();
    let changing = auth.plugin.as_ref().map(|p| p.to_ascii_lowercase());
    if let Some(plugin) = changing {
        if plugin != CACHING_SHA2 && plugin != NATIVE {
            return Err(errors::plugin_not_loaded(plugin));
        }
        account.credentials.plugin = plugin;
    } else if account.credentials.plugin.is_empty() {
        account.credentials.plugin = default_plugin.to_owned();
    }
    match &auth.secret {
        AuthSecret::None => account.credentials.auth.clear(),
        AuthSecret::Clear(password) => {
            account.credentials.auth = stored_form(&account.credentials.plugin, password)?
        }
        AuthSecret::Stored(text) => {
            // MariaDB's IDENTIFIED BY PASSWORD '*...' names no plugin and means the native one.
            if auth.plugin.is_none() && native::parse_hash(text).is_some() {
                account.credentials.plugin = NATIVE.to_owned();
            }
            let fits = match account.credentials.plugin.as_str() {
                NATIVE => native::parse_hash(text).is_some(),
                _ => caching_sha2::is_hash(text),
            };
            if !fits && !text.is_empty() {
                return Err(errors::bad_password_hash());
            }
            account.credentials.auth = text.to_vec();
        }
        // Whoever runs the statement has put the password in its place.
        AuthSecret::Random => return Err(SqlError::internal("a random password that nobody made")),
    }
    Ok(())
}

/// Changes the second password when the first one changes; `retain` makes the old first one the second.
///
/// # Errors
/// 3878, 3894 and 3895 where it cannot be retained.
pub fn follow_password(old: &Account, new: &mut Account, retain: bool) -> SqlResult<()> {
    let cannot = |code, why: &str| {
        let message =
            format!("Current password can not be retained for user {} because {why}.", old.quoted());
        Err(SqlError::new(code, b"HY000", message))
    };
    if retain {
        if new.credentials.plugin != old.credentials.plugin {
            return cannot(3894, "authentication plugin is being changed");
        }
        if new.credentials.auth.is_empty() {
            return cannot(3895, "new password is empty");
        }
        if old.credentials.auth.is_empty() {
            let message =
                format!("Empty password can not be retained as second password for user {}.", old.quoted());
            return Err(SqlError::new(3878, b"HY000", message));
        }
        new.credentials.second_auth.clone_from(&old.credentials.auth);
    } else if new.credentials.plugin != old.credentials.plugin || new.credentials.auth.is_empty() {
        new.credentials.second_auth.clear();
    }
    Ok(())
}

/// Whether a change has made the old password the second one.
pub fn has_retained(old: &Account, new: &Account) -> bool {
    !new.credentials.second_auth.is_empty()
        && new.credentials.second_auth == old.credentials.auth
        && new.credentials.second_auth != old.credentials.second_auth
}

/// Whether a change has taken the second password away, and nothing else of how one logs in.
pub fn has_discarded(old: &Account, new: &Account) -> bool {
    new.credentials.second_auth.is_empty()
        && !old.credentials.second_auth.is_empty()
        && (&new.credentials.auth, &new.credentials.plugin)
            == (&old.credentials.auth, &old.credentials.plugin)
}

/// The text of a password, where a statement has it.
fn clear_text(auth: &Auth) -> Option<&[u8]> {
    match &auth.secret {
        AuthSecret::Clear(password) => Some(password),
        _ => None,
    }
}

/// CREATE USER. Notes for accounts that exist under IF NOT EXISTS go to `notes`.
pub fn create_user(
    table: &AccessTable,
    current: &Account,
    statement: &CreateUser,
    default_plugin: &str,
    defaults: &PasswordDefaults,
    notes: &mut Vec<SqlError>,
) -> SqlResult<Vec<Record>> {
    let mut changes = Vec::new();
    let mut bad = Vec::new();
    for spec in &statement.users {
        let (user, host) = resolve(&spec.user, current);
        check_name(&user, &host)?;
        let mut account = Account::new(&user, &host);
        let old = table.exact(&user, &host);
        old.as_ref().map_or(Ok(()), |old| current.may_change(old))?;
        let twice = changes.iter().any(|change| {
            matches!(change, Record::Put(other) if other.user == account.user && other.host == account.host)
        });
        if (old.is_some() || twice) && !statement.or_replace {
            if statement.if_clause {
                notes.push(exists_note(&account));
            } else {
                bad.push(account.quoted());
            }
            continue;
        }
        account.credentials.plugin = default_plugin.to_owned();
        account.options.password_was_set();
        if let Some(auth) = &spec.auth {
            apply_auth(&mut account, auth, default_plugin)?;
        }
        options::apply(&mut account, statement)?;
        if let Some(auth) = &spec.auth {
            passwords::remember(&mut account, clear_text(auth), defaults)?;
        }
        changes.push(Record::Put(Box::new(account)));
    }
    failed("CREATE USER", &bad)?;
    Ok(changes)
}

/// ALTER USER.
pub fn alter_user(
    table: &AccessTable,
    current: &Account,
    statement: &CreateUser,
    default_plugin: &str,
    defaults: &PasswordDefaults,
    notes: &mut Vec<SqlError>,
) -> SqlResult<Vec<Record>> {
    let mut changes = Vec::new();
    let mut bad = Vec::new();
    for spec in &statement.users {
        let (user, host) = resolve(&spec.user, current);
        match table.exact(&user, &host) {
            Some(old) => {
                current.may_change(&old)?;
                let replaces = spec.replaces.as_deref();
                passwords::check_current(current, &old, replaces, spec.auth.is_some(), defaults)?;
                let mut account = Account::clone(&old);
                if let Some(auth) = &spec.auth {
                    apply_auth(&mut account, auth, default_plugin)?;
                    follow_password(&old, &mut account, spec.retain_current)?;
                }
                if spec.discard_old {
                    account.credentials.second_auth.clear();
                }
                options::apply(&mut account, statement)?;
                if let Some(auth) = &spec.auth {
                    passwords::remember(&mut account, clear_text(auth), defaults)?;
                }
                changes.push(Record::Put(Box::new(account)));
            }
            None if statement.if_clause => notes.push(absent_note(&user, &host)),
            None => bad.push(format!("'{user}'@'{host}'")),
        }
    }
    failed("ALTER USER", &bad)?;
    Ok(changes)
}

/// DROP USER.
pub fn drop_user(
    table: &AccessTable,
    current: &Account,
    users: &[UserName],
    if_exists: bool,
    notes: &mut Vec<SqlError>,
) -> SqlResult<Vec<Record>> {
    let mut changes = Vec::new();
    let mut bad = Vec::new();
    for name in users {
        let (user, host) = resolve(name, current);
        match table.exact(&user, &host) {
            Some(old) => {
                current.may_change(&old)?;
                changes.push(Record::Delete { user, host });
            }
            None if if_exists => notes.push(absent_note(&user, &host)),
            None => bad.push(format!("'{user}'@'{host}'")),
        }
    }
    failed("DROP USER", &bad)?;
    follow_dropped(table, &mut changes);
    Ok(changes)
}

/// RENAME USER.
pub fn rename_user(
    table: &AccessTable,
    current: &Account,
    pairs: &[(UserName, UserName)],
) -> SqlResult<Vec<Record>> {
    let mut changes = Vec::new();
    let mut bad = Vec::new();
    for (from, to) in pairs {
        let (user, host) = resolve(from, current);
        let (new_user, new_host) = resolve(to, current);
        check_name(&new_user, &new_host)?;
        match (table.exact(&user, &host), table.exact(&new_user, &new_host)) {
            (Some(old), None) => {
                current.may_change(&old)?;
                let renamed = Account {
                    user: new_user.clone(),
                    host: HostPattern::new(&new_host),
                    ..Account::clone(&old)
                };
                changes.push(Record::Delete { user, host });
                changes.push(Record::Put(Box::new(renamed)));
                follow(table, &mut changes, &old, Some(&(new_user, new_host)));
            }
            _ => bad.push(format!("'{user}'@'{host}'")),
        }
    }
    failed("RENAME USER", &bad)?;
    Ok(changes)
}

/// The new password of SET PASSWORD.
pub enum NewPassword<'a> {
    /// Its text.
    Clear(&'a [u8]),
    /// A hash, as MariaDB means and logs it: the account logs in with `mysql_native_password` from then on.
    Hash(&'a [u8]),
}

/// The other clauses of SET PASSWORD.
#[derive(Default)]
pub struct SetPassword<'a> {
    /// FOR an account.
    pub user: Option<&'a UserName>,
    /// REPLACE 'current password'.
    pub replaces: Option<&'a [u8]>,
    /// RETAIN CURRENT PASSWORD.
    pub retain: bool,
}

/// SET PASSWORD.
pub fn set_password(
    table: &AccessTable,
    current: &Account,
    statement: &SetPassword<'_>,
    password: &NewPassword<'_>,
    defaults: &PasswordDefaults,
) -> SqlResult<Vec<Record>> {
    let old = account_of(table, current, statement.user)?;
    passwords::check_current(current, &old, statement.replaces, true, defaults)?;
    let mut account = Account::clone(&old);
    let clear = match password {
        NewPassword::Clear(password) => {
            account.credentials.auth = if password.is_empty() {
                Vec::new()
            } else {
                stored_form(&old.credentials.plugin, password)?
            };
            Some(*password)
        }
        NewPassword::Hash(hash) => {
            if native::parse_hash(hash).is_none() && !hash.is_empty() {
                let message = "Password hash should be a 41-digit hexadecimal number";
                return Err(SqlError::new(1372, b"HY000", message));
            }
            (account.credentials.plugin, account.credentials.auth) =
                (NATIVE.into(), hash.to_ascii_uppercase());
            None
        }
    };
    follow_password(&old, &mut account, statement.retain)?;
    account.options.password_was_set();
    passwords::remember(&mut account, clear, defaults)?;
    Ok(vec![Record::Put(Box::new(account))])
}

fn account_of(table: &AccessTable, current: &Account, user: Option<&UserName>) -> SqlResult<Arc<Account>> {
    let (user, host) = resolve(user.unwrap_or(&UserName::CurrentUser), current);
    let message = "Can't find any matching row in the user table";
    let found = table.exact(&user, &host);
    let found = found.ok_or_else(|| SqlError { code: 1133, state: *b"42000", message: message.into() })?;
    current.may_change(&found)?;
    Ok(found)
}
