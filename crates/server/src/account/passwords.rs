//! Which password an account may get: none of those that it had before (PASSWORD HISTORY, REUSE INTERVAL), and by its own hand only with
//! proof of the present one (REQUIRE CURRENT). And passwords that the server makes up.
//!
//! An account keeps the stored forms of passwords that still count. The empty password is never among them: it may always come back.

use super::manage::is_password;
use super::privilege::Privileges;
use super::table::Account;
use omnibus_sql::{SqlError, SqlResult};
use std::fmt::Write;

/// What an account says of its passwords; `None` is what the variables say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PasswordRules {
    /// PASSWORD HISTORY: so many are not used again.
    pub history: Option<u32>,
    /// PASSWORD REUSE INTERVAL: nor those of so many days.
    pub reuse_days: Option<u32>,
    /// PASSWORD REQUIRE CURRENT, or OPTIONAL.
    pub require_current: Option<bool>,
}

/// What `password_history` and kin say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PasswordDefaults {
    /// `password_history`.
    pub history: u32,
    /// `password_reuse_interval`.
    pub reuse_days: u32,
    /// `password_require_current`.
    pub require_current: bool,
    /// Whether rules are asked at all: not those of a replica for what its source has done.
    pub enforced: bool,
}

/// A password that an account had or has.
#[derive(Clone, PartialEq, Eq)]
pub struct OldPassword {
    /// When it was set, microseconds since 1970.
    pub set_us: i64,
    /// Its stored form.
    pub auth: Vec<u8>,
}

const DAY_US: i64 = 86_400_000_000;

impl PasswordRules {
    /// PASSWORD HISTORY and kin, as clauses; with what is the default, too, where `all` of them are shown.
    #[must_use]
    pub fn clauses(&self, all: bool) -> String {
        let mut text = String::new();
        let _ = match self.history {
            Some(count) => write!(text, " PASSWORD HISTORY {count}"),
            None if all => write!(text, " PASSWORD HISTORY DEFAULT"),
            None => Ok(()),
        };
        let _ = match self.reuse_days {
            Some(days) => write!(text, " PASSWORD REUSE INTERVAL {days} DAY"),
            None if all => write!(text, " PASSWORD REUSE INTERVAL DEFAULT"),
            None => Ok(()),
        };
        text.push_str(match self.require_current {
            Some(true) => " PASSWORD REQUIRE CURRENT",
            Some(false) => " PASSWORD REQUIRE CURRENT OPTIONAL",
            None if all => " PASSWORD REQUIRE CURRENT DEFAULT",
            None => "",
        });
        text
    }
}

/// The account has just got the password that it has; `clear` is its text, where the statement gave that.
///
/// # Errors
/// 3638 if it is one that still counts.
pub fn remember(account: &mut Account, clear: Option<&[u8]>, defaults: &PasswordDefaults) -> SqlResult<()> {
    let rules = account.options.passwords;
    let count = rules.history.unwrap_or(defaults.history) as usize;
    let days = i64::from(rules.reuse_days.unwrap_or(defaults.reuse_days));
    if count == 0 && days == 0 {
        account.passwords.clear();
        return Ok(());
    }
    let now_us = crate::clock::now_us();
    let known = account.passwords.len();
    let counts = |at: usize, old: &OldPassword| {
        at + count >= known || (days > 0 && now_us - old.set_us < days.saturating_mul(DAY_US))
    };
    let is_new = |old: &OldPassword| match clear {
        Some(clear) => is_password(&old.auth, clear),
        None => old.auth == account.auth,
    };
    let used = account.passwords.iter().enumerate().any(|(at, old)| counts(at, old) && is_new(old));
    if defaults.enforced && used && !account.auth.is_empty() {
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
    if !account.auth.is_empty() {
        account.passwords.push(OldPassword { set_us: now_us, auth: account.auth.clone() });
    }
    let known = account.passwords.len();
    let mut at = 0;
    account.passwords.retain(|old| {
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
        let trusted = current.privileges.has(Privileges::CREATE_USER)
            || current.on_database("mysql").has(Privileges::UPDATE);
        let asked = old.options.passwords.require_current.unwrap_or(defaults.require_current);
        if sets && own && asked && !trusted && defaults.enforced && !old.auth.is_empty() {
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
    let right = if old.auth.is_empty() { password.is_empty() } else { is_password(&old.auth, password) };
    if right {
        return Ok(());
    }
    let message = "Incorrect current password. Specify the correct password which has to be replaced.";
    Err(SqlError::new(3891, b"HY000", message))
}

/// What IDENTIFIED BY RANDOM PASSWORD gives: characters that need no care in a shell's or a statement's quotes.
#[must_use]
pub fn random(len: usize) -> String {
    const CHARACTERS: &[u8] =
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789(){}[]<>,.;:+-*/=@#%^&|_?!~";
    let mut bytes = vec![0; len * 4];
    crate::random::random_bytes(&mut bytes);
    let pick = |four: &[u8]| {
        let number = four.iter().fold(0usize, |number, byte| number << 8 | usize::from(*byte));
        char::from(CHARACTERS[number % CHARACTERS.len()])
    };
    bytes.chunks_exact(4).map(pick).collect()
}
