//! Limits of an account, how long its password is good for, and how many wrong ones lock it.

use super::passwords::PasswordRules;
use omnibus_parser::ast::{CreateUser, Ident, PasswordExpire};
use omnibus_sql::{SqlError, SqlResult};
use omnibus_value::json::Json;

/// Limits of an account; 0 is none.
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

/// The rule that locks an account for a while; neither number is in force while one is 0.
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

    /// PASSWORD EXPIRE and kin.
    ///
    /// # Errors
    /// 1210 and 1235 for what is no rule here.
    pub fn apply_password_rules(&mut self, statement: &CreateUser) -> SqlResult<()> {
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
    #[must_use]
    pub fn members(&self) -> Vec<(String, Json)> {
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
