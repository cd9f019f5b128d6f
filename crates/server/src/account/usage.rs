//! The use of resources by account, and its refusals: connections, statements an hour, wrong passwords in a row. In memory, as
//! MySQL keeps it: a restart, FLUSH PRIVILEGES and ALTER USER .. ACCOUNT UNLOCK begin anew. One short mutex.

use super::credentials::{LoginLock, Resources};
use super::table::Account;
use crate::errors;
use omnibus_sql::SqlResult;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

const HOUR_US: i64 = 3_600_000_000;
const DAY_US: i64 = 24 * HOUR_US;

/// By `user@host` of the account.
#[derive(Debug, Default)]
pub struct Usage(Mutex<HashMap<String, Used>>);

#[derive(Debug, Default)]
struct Used {
    at_once: u32,
    hour_began_us: i64,
    connections: u32,
    queries: u32,
    updates: u32,
    failures: u16,
    /// When the last wrong password locked it.
    locked_us: Option<i64>,
}

impl Used {
    fn follow_hour(&mut self, now_us: i64) {
        if now_us - self.hour_began_us >= HOUR_US {
            (self.hour_began_us, self.connections, self.queries, self.updates) = (now_us, 0, 0, 0);
        }
    }

    fn is_idle(&self) -> bool {
        self.at_once == 0 && self.failures == 0 && self.locked_us.is_none() && self.hour_began_us == 0
    }
}

/// One of an account's connections; given back when it goes.
#[derive(Debug)]
pub struct OwnConnection {
    usage: Arc<Usage>,
    account: String,
}

impl Drop for OwnConnection {
    fn drop(&mut self) {
        self.usage.with(&self.account, |used| used.at_once = used.at_once.saturating_sub(1));
    }
}

fn take(used: &mut u32, limit: u32, account: &Account, name: &str) -> SqlResult<()> {
    if limit > 0 && *used >= limit {
        return Err(errors::user_limit_reached(&account.user, name, limit));
    }
    *used += 1;
    Ok(())
}

impl Usage {
    fn with<T>(&self, account: &str, change: impl FnOnce(&mut Used) -> T) -> T {
        let mut all = self.0.lock();
        let used = all.entry(account.to_owned()).or_default();
        let result = change(used);
        if used.is_idle() {
            all.remove(account);
        }
        result
    }

    /// One more connection. `max` is `max_user_connections`, for accounts that have no limit of their own.
    ///
    /// # Errors
    /// 1203, 1226.
    pub fn connect(self: &Arc<Self>, account: &Account, max: u64, now_us: i64) -> SqlResult<OwnConnection> {
        let own = &account.options.resources;
        self.with(&account.plain(), |used| {
            if own.at_once == 0 && max > 0 && u64::from(used.at_once) >= max {
                return Err(errors::too_many_user_connections(&account.user));
            }
            if own.at_once > 0 && used.at_once >= own.at_once {
                return Err(errors::user_limit_reached(&account.user, "max_user_connections", own.at_once));
            }
            if own.connections > 0 {
                used.follow_hour(now_us);
                take(&mut used.connections, own.connections, account, "max_connections_per_hour")?;
            }
            used.at_once += 1;
            Ok(())
        })?;
        Ok(OwnConnection { usage: self.clone(), account: account.plain() })
    }

    /// One more statement, of those that change something or of the others.
    ///
    /// # Errors
    /// 1226.
    pub fn statement(&self, account: &Account, changes: bool, now_us: i64) -> SqlResult<()> {
        let Resources { queries, updates, .. } = account.options.resources;
        if queries == 0 && (updates == 0 || !changes) {
            return Ok(());
        }
        self.with(&account.plain(), |used| {
            used.follow_hour(now_us);
            take(&mut used.queries, queries, account, "max_questions")?;
            if changes { take(&mut used.updates, updates, account, "max_updates") } else { Ok(()) }
        })
    }

    /// Fails with 3955 while wrong passwords have locked the account.
    pub fn check_lock(&self, account: &Account, host: &str, now_us: i64) -> SqlResult<()> {
        let LoginLock { attempts, days } = account.options.lock;
        if attempts == 0 || days == 0 {
            return Ok(());
        }
        self.with(&account.plain(), |used| {
            let Some(since) = used.locked_us else { return Ok(()) };
            let end_us = since + i64::from(days) * DAY_US;
            if days > 0 && now_us >= end_us {
                (used.locked_us, used.failures) = (None, 0);
                return Ok(());
            }
            // Rounded up: the last day counts.
            let left = (days > 0).then(|| (end_us - now_us + DAY_US - 1) / DAY_US);
            Err(errors::blocked_by_failures(&account.user, host, days, left, attempts))
        })
    }

    /// A login was right or wrong. The wrong one that is one too many tells so.
    pub fn login(&self, account: &Account, good: bool, host: &str, now_us: i64) -> SqlResult<()> {
        let LoginLock { attempts, days } = account.options.lock;
        if attempts == 0 || days == 0 {
            return Ok(());
        }
        self.with(&account.plain(), |used| {
            used.failures = if good { 0 } else { used.failures.saturating_add(1) };
            if used.failures >= attempts {
                used.locked_us = Some(now_us);
            }
        });
        self.check_lock(account, host, now_us)
    }

    /// The account was changed: what it was locked for, and what it has used up, are forgotten.
    pub fn begin_anew(&self, account: &str) {
        self.with(account, |used| *used = Used { at_once: used.at_once, ..Used::default() });
    }

    /// FLUSH PRIVILEGES and FLUSH USER_RESOURCES; wrong passwords are forgotten by the first only.
    pub fn begin_all_anew(&self, locks: bool) {
        let mut all = self.0.lock();
        for used in all.values_mut() {
            let Used { at_once, failures, locked_us, .. } = *used;
            let (failures, locked_us) = if locks { (0, None) } else { (failures, locked_us) };
            *used = Used { at_once, failures, locked_us, ..Used::default() };
        }
        all.retain(|_, used| !used.is_idle());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn limits_are_an_hour_s_and_locks_end() {
        let usage = Arc::new(Usage::default());
        let mut account = Account::new("u", "%");
        account.options.resources = Resources { queries: 2, updates: 1, connections: 2, at_once: 1 };
        account.options.lock = LoginLock { attempts: 2, days: 1 };
        let code = |result: SqlResult<()>| result.map_or_else(|error| error.code, |()| 0);
        let held = usage.connect(&account, 0, HOUR_US).unwrap();
        assert_eq!(code(usage.connect(&account, 0, HOUR_US).map(drop)), 1226);
        drop(held);
        drop(usage.connect(&account, 0, HOUR_US).unwrap());
        assert_eq!(code(usage.connect(&account, 0, HOUR_US).map(drop)), 1226);
        drop(usage.connect(&account, 0, 2 * HOUR_US).unwrap());
        assert_eq!(code(usage.statement(&account, true, 2 * HOUR_US)), 0);
        assert_eq!(code(usage.statement(&account, true, 2 * HOUR_US)), 1226);
        assert_eq!(code(usage.statement(&account, true, 3 * HOUR_US)), 0);
        assert_eq!(code(usage.login(&account, false, "h", 0)), 0);
        assert_eq!(code(usage.login(&account, true, "h", 0)), 0, "in a row");
        assert_eq!(code(usage.login(&account, false, "h", 0)), 0);
        assert_eq!(code(usage.login(&account, false, "h", 0)), 3955);
        assert_eq!(code(usage.check_lock(&account, "h", DAY_US - 1)), 3955);
        assert_eq!(code(usage.check_lock(&account, "h", DAY_US)), 0);
        usage.begin_all_anew(true);
        assert!(usage.0.lock().is_empty());
    }
}
