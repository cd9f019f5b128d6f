//! Options of an account in CREATE USER and ALTER USER besides its password and its rights: limits, when a password ends, how many
//! wrong ones lock it, notes. From statements, to statements, and to the columns of `mysql.user`.
//!
//! Other options are refused by name, so that nobody relies on a rule that is not kept.

use crate::account::attributes::text_of;
use crate::account::credentials::{AccountOptions, Lifetime, Requirement};
use crate::account::table::Account;
use omnibus_parser::ast::{CreateUser, PasswordExpire, RoleSet, UserName};
use omnibus_sql::{SqlError, SqlResult};
use omnibus_value::json::Json;
use omnibus_value::literal::doubled as quote;
use std::fmt::Write;

/// The options of a statement, into the account.
pub fn apply(account: &mut Account, statement: &CreateUser) -> SqlResult<()> {
    if let Some(require) = &statement.require {
        account.require = Requirement::of(require);
    }
    if let Some(locked) = statement.account_locked {
        account.locked = locked;
    }
    account.options.apply_resources(&statement.resources)?;
    account.options.apply_password_rules(statement)?;
    if let Some(patch) = note(statement)? {
        let old = account.attribute.as_deref().and_then(|old| Json::parse(old.as_bytes()).ok());
        let merged = old.unwrap_or(Json::Object(Vec::new())).merge_patch(patch);
        account.attribute = Some(text_of(&merged)).filter(|text| text != "{}");
    }
    Ok(())
}

/// COMMENT or ATTRIBUTE, as what is laid over the attribute that is there.
fn note(statement: &CreateUser) -> SqlResult<Option<Json>> {
    let text = |bytes: &bytes::Bytes| String::from_utf8_lossy(bytes).into_owned();
    if let Some(comment) = &statement.comment {
        return Ok(Some(Json::object([("comment".to_owned(), Json::String(text(comment)))])));
    }
    let Some(attribute) = &statement.attribute else { return Ok(None) };
    match Json::parse(attribute) {
        Ok(object @ Json::Object(_)) => Ok(Some(object)),
        _ => Err(SqlError::new(
            3140,
            b"22032",
            "Invalid JSON text: the attribute of an account is a JSON object.",
        )),
    }
}

/// The clauses of a statement as the log has them; one that makes accounts says more, as MySQL's does.
#[must_use]
pub fn clauses_of(statement: &CreateUser, makes: bool) -> String {
    let mut text = String::new();
    if let Some(roles) = &statement.default_roles {
        text.push_str(" DEFAULT ROLE ");
        text.push_str(&match roles {
            RoleSet::None | RoleSet::Default => "NONE".to_owned(),
            RoleSet::All => "ALL".to_owned(),
            RoleSet::AllExcept(names) => format!("ALL EXCEPT {}", names_of(names)),
            RoleSet::List(names) => names_of(names),
        });
    }
    let require = statement.require.as_ref().map(Requirement::of);
    if let Some(require) = require.or(makes.then_some(Requirement::Nothing)) {
        let _ = write!(text, " REQUIRE {}", require.clause(false));
    }
    let limits: String =
        statement.resources.iter().map(|(name, value)| format!(" {} {value}", name.as_str())).collect();
    if !limits.is_empty() {
        let _ = write!(text, " WITH{limits}");
    }
    if let Some(expire) = statement.password.expire {
        text.push_str(" PASSWORD EXPIRE");
        let _ = match expire {
            PasswordExpire::Now => Ok(()),
            PasswordExpire::Default => write!(text, " DEFAULT"),
            PasswordExpire::Never => write!(text, " NEVER"),
            PasswordExpire::Days(days) => write!(text, " INTERVAL {days} DAY"),
        };
    }
    for (name, value) in &statement.password.others {
        let _ = match (name.as_str(), value) {
            ("PASSWORD_LOCK_TIME", None) => write!(text, " PASSWORD_LOCK_TIME UNBOUNDED"),
            (lock @ ("PASSWORD_LOCK_TIME" | "FAILED_LOGIN_ATTEMPTS"), Some(value)) => {
                write!(text, " {lock} {value}")
            }
            _ => Ok(()),
        };
    }
    text.push_str(&password_clauses(statement));
    match statement.account_locked {
        Some(true) => text.push_str(" ACCOUNT LOCK"),
        None if !makes => {}
        _ => text.push_str(" ACCOUNT UNLOCK"),
    }
    for (name, value) in [("COMMENT", &statement.comment), ("ATTRIBUTE", &statement.attribute)] {
        if let Some(value) = value {
            let _ = write!(text, " {name} '{}'", quote(&String::from_utf8_lossy(value)));
        }
    }
    text
}

/// PASSWORD HISTORY and kin, as a statement has them: DEFAULT is said, too, as it takes a rule away.
fn password_clauses(statement: &CreateUser) -> String {
    let mut text = String::new();
    for (name, value) in &statement.password.others {
        let clause = match (name.as_str(), value) {
            ("PASSWORD_HISTORY", None) => " PASSWORD HISTORY DEFAULT".to_owned(),
            ("PASSWORD_HISTORY", Some(count)) => format!(" PASSWORD HISTORY {count}"),
            ("PASSWORD_REUSE_INTERVAL", None) => " PASSWORD REUSE INTERVAL DEFAULT".to_owned(),
            ("PASSWORD_REUSE_INTERVAL", Some(days)) => format!(" PASSWORD REUSE INTERVAL {days} DAY"),
            ("PASSWORD_REQUIRE_CURRENT", None) => " PASSWORD REQUIRE CURRENT DEFAULT".to_owned(),
            ("PASSWORD_REQUIRE_CURRENT", Some(0)) => " PASSWORD REQUIRE CURRENT OPTIONAL".to_owned(),
            ("PASSWORD_REQUIRE_CURRENT", Some(_)) => " PASSWORD REQUIRE CURRENT".to_owned(),
            _ => continue,
        };
        text.push_str(&clause);
    }
    text
}

fn names_of(names: &[UserName]) -> String {
    let name = |name: &UserName| match name {
        UserName::CurrentUser => "CURRENT_USER".to_owned(),
        UserName::CurrentRole => "CURRENT_ROLE".to_owned(),
        UserName::Named { user, host } => Account::new(user, host).quoted(),
    };
    names.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// The options of an account as SHOW CREATE USER has them, behind REQUIRE.
#[must_use]
pub fn shown(account: &Account) -> String {
    let AccountOptions { resources, expired, lifetime, .. } = &account.options;
    let mut text = String::new();
    let limits = [
        ("MAX_QUERIES_PER_HOUR", resources.queries),
        ("MAX_UPDATES_PER_HOUR", resources.updates),
        ("MAX_CONNECTIONS_PER_HOUR", resources.connections),
        ("MAX_USER_CONNECTIONS", resources.at_once),
    ];
    let limits: String = limits
        .iter()
        .filter(|(_, limit)| *limit > 0)
        .map(|(name, limit)| format!(" {name} {limit}"))
        .collect();
    if !limits.is_empty() {
        let _ = write!(text, " WITH{limits}");
    }
    let _ = match (expired, lifetime) {
        (true, _) => write!(text, " PASSWORD EXPIRE"),
        (false, Lifetime::Default) => write!(text, " PASSWORD EXPIRE DEFAULT"),
        (false, Lifetime::Never) => write!(text, " PASSWORD EXPIRE NEVER"),
        (false, Lifetime::Days(days)) => write!(text, " PASSWORD EXPIRE INTERVAL {days} DAY"),
    };
    text.push_str(if account.locked { " ACCOUNT LOCK" } else { " ACCOUNT UNLOCK" });
    text.push_str(&account.options.passwords.clauses(true));
    text.push_str(&lock_clauses(account));
    text
}

/// The clauses that no MariaDB has.
pub(super) fn own_clauses(account: &Account) -> String {
    account.options.passwords.clauses(false) + &lock_clauses(account)
}

fn lock_clauses(account: &Account) -> String {
    let lock = &account.options.lock;
    let mut text = String::new();
    if lock.attempts > 0 {
        let _ = write!(text, " FAILED_LOGIN_ATTEMPTS {}", lock.attempts);
    }
    let _ = match lock.days {
        0 => Ok(()),
        -1 => write!(text, " PASSWORD_LOCK_TIME UNBOUNDED"),
        days => write!(text, " PASSWORD_LOCK_TIME {days}"),
    };
    if let Some(attribute) = &account.attribute {
        let _ = write!(text, " ATTRIBUTE '{}'", quote(attribute));
    }
    text
}
