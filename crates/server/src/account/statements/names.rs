//! The accounts that a statement names, and the errors and notes about them.

use crate::account::table::Account;
use crate::errors;
use omnibus_parser::ast::UserName;
use omnibus_sql::{SqlError, SqlResult};

/// Longest user name, in characters.
const MAX_USER: usize = 32;

/// The account that a name in a statement means.
#[must_use]
pub fn resolve(name: &UserName, current: &Account) -> (String, String) {
    match name {
        // Statements that may have it name the role before they run.
        UserName::CurrentRole => ("CURRENT_ROLE".to_owned(), "%".to_owned()),
        UserName::CurrentUser => (current.user.clone(), current.host.as_str().to_owned()),
        UserName::Named { user, host } => (user.as_str().to_owned(), host.to_ascii_lowercase()),
    }
}

/// Refuses a name that is too long.
pub(super) fn check_name(user: &str, host: &str) -> SqlResult<()> {
    if user.chars().count() > MAX_USER {
        return Err(SqlError {
            code: 1470,
            state: *b"HY000",
            message: format!(
                "String '{user}' is too long for user name (should be no longer than {MAX_USER})"
            ),
        });
    }
    if host.chars().count() > 255 {
        return Err(SqlError {
            code: 1470,
            state: *b"HY000",
            message: format!("String '{host}' is too long for host name (should be no longer than 255)"),
        });
    }
    Ok(())
}

/// The error of a statement that could not do something to these accounts, if there are any.
pub(super) fn failed(operation: &str, names: &[String]) -> SqlResult<()> {
    if names.is_empty() { Ok(()) } else { Err(errors::cannot_user(operation, names.join(","))) }
}

/// The note of IF NOT EXISTS.
pub(super) fn exists_note(account: &Account) -> SqlError {
    SqlError {
        code: 3163,
        state: *b"HY000",
        message: format!("Authorization ID {} already exists.", account.quoted()),
    }
}

/// The note of IF EXISTS.
pub(super) fn absent_note(user: &str, host: &str) -> SqlError {
    SqlError {
        code: 3162,
        state: *b"HY000",
        message: format!("Authorization ID '{user}'@'{host}' does not exist."),
    }
}
