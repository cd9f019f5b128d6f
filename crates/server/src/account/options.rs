//! What CREATE USER and ALTER USER say of an account besides its password and its rights: limits, when a password ends, how many
//! wrong ones lock it, notes. From statements, to statements, and to the columns of `mysql.user`.
//!
//! What is not here is refused by name, so that nobody relies on a rule that is not kept.

use super::passwords::PasswordRules;
use super::requirement::Requirement;
use super::restrictions::Restrictions;
use super::table::{Account, quote};
use omnibus_parser::ast::{CreateUser, Ident, PasswordExpire, RoleSet, UserName};
use omnibus_sql::{SqlError, SqlResult};
use omnibus_value::json::Json;
use std::fmt::Write;

/// What an account may use up; 0 is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// MAX_QUERIES_PER_HOUR.
    pub queries: u32,
    /// MAX_UPDATES_PER_HOUR.
    pub updates: u32,
    /// MAX_CONNECTIONS_PER_HOUR.
    pub connections: u32,
    /// MAX_USER_CONNECTIONS.
    pub at_once: u32,
}

impl Resources {
    /// Whether statements need not be counted.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        self.queries == 0 && self.updates == 0
    }
}

/// How long a password is good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// `default_password_lifetime`.
    #[default]
    Default,
    /// For ever.
    Never,
    /// So many days.
    Days(u16),
}

/// What locks an account for a while; neither is in force while one is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoginLock {
    /// FAILED_LOGIN_ATTEMPTS.
    pub attempts: u16,
    /// PASSWORD_LOCK_TIME in days; -1 is UNBOUNDED.
    pub days: i32,
}

/// The options of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountOptions {
    /// Limits.
    pub resources: Resources,
    /// PASSWORD EXPIRE: the password must be changed first.
    pub expired: bool,
    /// PASSWORD EXPIRE INTERVAL and kin.
    pub lifetime: Lifetime,
    /// FAILED_LOGIN_ATTEMPTS and PASSWORD_LOCK_TIME.
    pub lock: LoginLock,
    /// PASSWORD HISTORY, REUSE INTERVAL and REQUIRE CURRENT.
    pub passwords: PasswordRules,
    /// When the password was set, seconds since 1970, if that is known.
    pub changed: Option<i64>,
}

const DAY_S: i64 = 86_400;

impl AccountOptions {
    /// Whether the password has to be changed before anything else.
    #[must_use]
    pub fn password_is_over(&self, now_s: i64, default_days: u64) -> bool {
        let days = match self.lifetime {
            Lifetime::Never => 0,
            Lifetime::Default => i64::try_from(default_days).unwrap_or(0),
            Lifetime::Days(days) => days.into(),
        };
        self.expired || (days > 0 && self.changed.is_some_and(|changed| now_s - changed >= days * DAY_S))
    }

    /// The password was set just now.
    pub fn password_was_set(&mut self) {
        self.expired = false;
        self.changed = Some(crate::clock::now_us() / 1_000_000);
    }

    /// WITH MAX_QUERIES_PER_HOUR and kin.
    ///
    /// # Errors
    /// 1235 for one that is not here.
    pub fn apply_resources(&mut self, list: &[(Ident, u64)]) -> SqlResult<()> {
        for (name, value) in list {
            let limit = u32::try_from(*value).map_err(|_| SqlError::wrong_arguments(name.as_str()))?;
            let place = match name.as_str() {
                "MAX_QUERIES_PER_HOUR" => &mut self.resources.queries,
                "MAX_UPDATES_PER_HOUR" => &mut self.resources.updates,
                "MAX_CONNECTIONS_PER_HOUR" => &mut self.resources.connections,
                "MAX_USER_CONNECTIONS" => &mut self.resources.at_once,
                _ if limit == 0 => continue,
                other => return Err(SqlError::not_supported_yet(other)),
            };
            *place = limit;
        }
        Ok(())
    }

    fn apply_password_rules(&mut self, statement: &CreateUser) -> SqlResult<()> {
        match statement.password.expire {
            None => {}
            Some(PasswordExpire::Now) => self.expired = true,
            Some(PasswordExpire::Default) => self.lifetime = Lifetime::Default,
            Some(PasswordExpire::Never) => self.lifetime = Lifetime::Never,
            Some(PasswordExpire::Days(days)) => {
                let days = u16::try_from(days).ok().filter(|days| *days > 0);
                self.lifetime = Lifetime::Days(
                    days.ok_or_else(|| SqlError::wrong_arguments("PASSWORD EXPIRE INTERVAL"))?,
                );
            }
        }
        for (name, value) in &statement.password.others {
            let bounded = |value: u64| {
                u16::try_from(value)
                    .ok()
                    .filter(|value| *value <= 32_767)
                    .ok_or_else(|| SqlError::wrong_arguments(name.as_str()))
            };
            let count =
                |value: u64| u32::try_from(value).map_err(|_| SqlError::wrong_arguments(name.as_str()));
            match (name.as_str(), *value) {
                ("FAILED_LOGIN_ATTEMPTS", Some(value)) => self.lock.attempts = bounded(value)?,
                ("PASSWORD_LOCK_TIME", Some(value)) => self.lock.days = bounded(value)?.into(),
                ("PASSWORD_LOCK_TIME", None) => self.lock.days = -1,
                ("PASSWORD_HISTORY", value) => self.passwords.history = value.map(count).transpose()?,
                ("PASSWORD_REUSE_INTERVAL", value) => {
                    self.passwords.reuse_days = value.map(count).transpose()?;
                }
                ("PASSWORD_REQUIRE_CURRENT", value) => {
                    self.passwords.require_current = value.map(|value| value != 0);
                }
                (other, _) => return Err(SqlError::not_supported_yet(other.replace('_', " "))),
            }
        }
        Ok(())
    }

    /// For the `Attributes` column: what has no column of its own.
    fn members(&self) -> Vec<(String, Json)> {
        let number = |name: &str, value: i64| (name.to_owned(), Json::Int(value));
        let mut members = Vec::new();
        if self.lock != LoginLock::default() {
            let lock = [
                number("failed_login_attempts", self.lock.attempts.into()),
                number("password_lock_time_days", self.lock.days.into()),
            ];
            members.push(("Password_locking".to_owned(), Json::object(lock)));
        }
        match self.lifetime {
            Lifetime::Default => {}
            Lifetime::Never => members.push(number("password_lifetime", 0)),
            Lifetime::Days(days) => members.push(number("password_lifetime", days.into())),
        }
        let rules = &self.passwords;
        let given = [
            rules.history.map(|count| number("history", count.into())),
            rules.reuse_days.map(|days| number("reuse_interval", days.into())),
            rules.require_current.map(|asked| number("require_current", asked.into())),
        ];
        let given: Vec<_> = given.into_iter().flatten().collect();
        if !given.is_empty() {
            members.push(("Password_rules".to_owned(), Json::object(given)));
        }
        let own = &self.resources;
        if *own != (Resources { at_once: own.at_once, ..Resources::default() }) {
            let limits = [
                number("max_queries", own.queries.into()),
                number("max_updates", own.updates.into()),
                number("max_connections", own.connections.into()),
            ];
            members.push(("Resource_limits".to_owned(), Json::object(limits)));
        }
        members
    }
}

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

fn text_of(json: &Json) -> String {
    let mut text = Vec::new();
    json.write_text(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

const OWN_MEMBERS: [&str; 8] = [
    "metadata",
    "Password_locking",
    "additional_password",
    "password_lifetime",
    "Resource_limits",
    "Password_rules",
    "Tls_names",
    "Restrictions",
];

/// The `Attributes` column: MySQL's form, with the account's attribute under `metadata`.
#[must_use]
pub fn attributes(account: &Account) -> Option<String> {
    let mut members = account.options.members();
    if !account.second_auth.is_empty() {
        let second = String::from_utf8_lossy(&account.second_auth).into_owned();
        members.push(("additional_password".to_owned(), Json::String(second)));
    }
    if let Some(restrictions) = account.restrictions.to_json() {
        members.push(("Restrictions".to_owned(), restrictions));
    }
    if let Some(names) = account.require.names() {
        members.push(("Tls_names".to_owned(), names));
    }
    if let Some(attribute) = account.attribute.as_deref().and_then(|text| Json::parse(text.as_bytes()).ok()) {
        members.push(("metadata".to_owned(), attribute));
    }
    (!members.is_empty()).then(|| text_of(&Json::object(members)))
}

/// Reads that column into the account, whose `Ssl_type` is `require`. A version before this one kept the attribute there by itself.
pub fn read_attributes(account: &mut Account, text: &str, require: &str) {
    account.require = Requirement::read(require, None);
    let Ok(json @ Json::Object(_)) = Json::parse(text.as_bytes()) else { return };
    if !OWN_MEMBERS.iter().any(|name| json.get(name).is_some()) {
        account.attribute = Some(text.to_owned());
        return;
    }
    account.require = Requirement::read(require, json.get("Tls_names"));
    account.restrictions = json.get("Restrictions").map(Restrictions::of_json).unwrap_or_default();
    account.attribute = json.get("metadata").map(text_of);
    if let Some(Json::String(second)) = json.get("additional_password") {
        account.second_auth = second.as_bytes().to_vec();
    }
    let number = |part: &str, name: &str| match json.get(part).and_then(|part| part.get(name)) {
        Some(Json::Int(value)) => *value,
        _ => 0,
    };
    let limit = |name| u32::try_from(number("Resource_limits", name)).unwrap_or(0);
    let options = &mut account.options;
    options.resources.queries = limit("max_queries");
    options.resources.updates = limit("max_updates");
    options.resources.connections = limit("max_connections");
    options.lock.attempts = u16::try_from(number("Password_locking", "failed_login_attempts")).unwrap_or(0);
    options.lock.days = i32::try_from(number("Password_locking", "password_lock_time_days")).unwrap_or(0);
    let rule = |name| match json.get("Password_rules").and_then(|rules| rules.get(name)) {
        Some(Json::Int(value)) => u32::try_from(*value).ok(),
        _ => None,
    };
    options.passwords = PasswordRules {
        history: rule("history"),
        reuse_days: rule("reuse_interval"),
        require_current: rule("require_current").map(|asked| asked != 0),
    };
    options.lifetime = match json.get("password_lifetime") {
        Some(Json::Int(0)) => Lifetime::Never,
        Some(Json::Int(days)) => u16::try_from(*days).map_or(Lifetime::Default, Lifetime::Days),
        _ => Lifetime::Default,
    };
}

/// What a statement gave, as a statement for the log says it; one that makes accounts says more, as MySQL's does.
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

/// What no other server of MariaDB's kind has.
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
