//! The passwords that an account may get: none of those that it had before (PASSWORD HISTORY, REUSE INTERVAL), and by its own hand only with
//! proof of the present one (REQUIRE CURRENT).
//!
//! An account keeps the stored forms of passwords that still count. The empty password is never among them: it may always come back.

use crate::account::credentials::{OldPassword, PasswordDefaults, is_password};
use crate::account::grants::Privileges;
use crate::account::table::Account;
use omnibus_sql::{SqlError, SqlResult};

const DAY_US: i64 = 86_400_000_000;

/// The account has just got the password that it has; `clear` is its text, where the statement gave that.
///
/// # Errors
/// 3638 if it is one that still counts.
pub fn remember(account: &mut Account, clear: Option<&[u8]>, defaults: &PasswordDefaults) -> SqlResult<()> {
    let rules = account.options.passwords;
    let count = rules.history.unwrap_or(defaults.history) as usize;
    let days = i64::from(rules.reuse_days.unwrap_or(defaults.reuse_days));
    if count == 0 && days == 0 {
        account.credentials.passwords.clear();
        return Ok(());
    }
    let now_us = crate::clock::now_us();
    let known = account.credentials.passwords.len();
    let counts = |at: usize, old: &OldPassword| {
        at + count >= known || (days > 0 && now_us - old.set_us < days.saturating_mul(DAY_US))
    };
    let is_new = |old: &OldPassword| match clear {
        Some(clear) => is_password(&old.auth, clear),
        None => old.auth == account.credentials.auth,
    };
    let used =
        account.credentials.passwords.iter().enumerate().any(|(at, old)| counts(at, old) && is_new(old));
    if defaults.enforced && used && !account.credentials.auth.is_empty() {
        return Err(SqlError::new(
            3638,
            b"HY000",
            format!(
                "Cannot use these credentials for '{}@{}' because they contradict the password history policy",
                account.user,
                account.host.as_str()
            ),
        ));
    }
    if !account.credentials.auth.is_empty() {
        account
            .credentials
            .passwords
            .push(OldPassword { set_us: now_us, auth: account.credentials.auth.clone() });
    }
    let known = account.credentials.passwords.len();
    let mut at = 0;
    account.credentials.passwords.retain(|old| {
        at += 1;
        at - 1 + count >= known || (days > 0 && now_us - old.set_us < days.saturating_mul(DAY_US))
    });
    Ok(())
}

/// REPLACE 'current password': whoever changes his own may prove that he knows it, or must. `sets` is whether the statement
/// gives a password at all.
///
/// # Errors
/// 3891 if it is another one, 3892 if it is missing, 3893 if it is said of somebody else's.
pub fn check_current(
    current: &Account,
    old: &Account,
    replaced: Option<&[u8]>,
    sets: bool,
    defaults: &PasswordDefaults,
) -> SqlResult<()> {
    let own = current.is(&old.user, old.host.as_str());
    let Some(password) = replaced else {
        let trusted = current.grants.privileges.has(Privileges::CREATE_USER)
            || current.rights().on_database("mysql").has(Privileges::UPDATE);
        let asked = old.options.passwords.require_current.unwrap_or(defaults.require_current);
        if sets && own && asked && !trusted && defaults.enforced && !old.credentials.auth.is_empty() {
            let message =
                "Current password needs to be specified in the REPLACE clause in order to change it.";
            return Err(SqlError::new(3892, b"HY000", message));
        }
        return Ok(());
    };
    if !own {
        let message = "Do not specify the current password while changing it for other users.";
        return Err(SqlError::new(3893, b"HY000", message));
    }
    let right = if old.credentials.auth.is_empty() {
        password.is_empty()
    } else {
        is_password(&old.credentials.auth, password)
    };
    if right {
        return Ok(());
    }
    let message = "Incorrect current password. Specify the correct password which has to be replaced.";
    Err(SqlError::new(3891, b"HY000", message))
}
