//! Accounts in `mysql.user` and `mysql.db`.
//!
//! The columns are the SQL layer's (its bootstrap makes the tables): global privileges are a list of
//! names, as are those of a database. Rows whose `Table_name` is not empty belong to a later version
//! and are left alone.

use super::options;
use super::privilege::{self, Privileges};
use super::store::{AccountStore, Record};
use super::table::{Account, DbGrant};
use bytes::Bytes;
use omnibus_engine::CommitNo;
use omnibus_sql::{
    Database, ExecResult, Interrupt, KillFlag, Mode, SqlError, SqlResult, SqlSession, SystemTables,
};
use omnibus_value::Value;
use omnibus_value::temporal::{DateTime, Instant, Zone};

const UTC: Zone = Zone::Offset(0);
use std::sync::Arc;

/// Columns of `mysql.user`, by position.
mod user {
    pub const HOST: usize = 0;
    pub const USER: usize = 1;
    pub const PRIVILEGES: usize = 2;
    pub const GRANT_OPTION: usize = 3;
    pub const SSL_TYPE: usize = 5;
    pub const AT_ONCE: usize = 6;
    pub const PLUGIN: usize = 7;
    pub const AUTH: usize = 8;
    pub const EXPIRED: usize = 9;
    pub const LOCKED: usize = 10;
    pub const CHANGED: usize = 11;
    pub const ATTRIBUTES: usize = 12;
}

/// Columns of `mysql.db`, by position.
mod db {
    pub const HOST: usize = 0;
    pub const DB: usize = 1;
    pub const USER: usize = 2;
    pub const TABLE: usize = 3;
    pub const PRIVILEGES: usize = 4;
    pub const GRANT_OPTION: usize = 5;
}

/// Accounts kept in the database itself.
pub struct SystemStore(pub Arc<Database>);

fn text(row: &[Value], column: usize) -> String {
    match row.get(column) {
        Some(Value::Bytes(b)) => String::from_utf8_lossy(b).into_owned(),
        _ => String::new(),
    }
}

fn number(row: &[Value], column: usize) -> i64 {
    match row.get(column) {
        Some(Value::Int(n)) => *n,
        Some(Value::UInt(n)) => *n as i64,
        _ => 0,
    }
}

fn value(s: &str) -> Value {
    Value::Bytes(Bytes::copy_from_slice(s.as_bytes()))
}

/// Names this version does not know are passed over, as a newer version may have written them.
fn parse(names: &str, grant_option: bool) -> Privileges {
    let known = names.split(',').filter_map(|n| privilege::by_name(n.trim()));
    let set = known.fold(Privileges::NONE, Privileges::with);
    if grant_option { set.with(Privileges::GRANT_OPTION) } else { set }
}

fn names(set: Privileges) -> String {
    set.without(Privileges::GRANT_OPTION).names().collect::<Vec<_>>().join(",")
}

fn grant_option(set: Privileges) -> Value {
    Value::Int(i64::from(set.has(Privileges::GRANT_OPTION)))
}

fn account_of(row: &[Value]) -> Account {
    let mut account = Account::new(&text(row, user::USER), &text(row, user::HOST));
    account.privileges = parse(&text(row, user::PRIVILEGES), number(row, user::GRANT_OPTION) != 0);
    account.require_ssl = !matches!(text(row, user::SSL_TYPE).as_str(), "" | "NONE");
    account.plugin = text(row, user::PLUGIN);
    account.auth = text(row, user::AUTH).into_bytes();
    account.locked = number(row, user::LOCKED) != 0;
    options::read_attributes(&mut account, &text(row, user::ATTRIBUTES));
    account.options.resources.at_once = u32::try_from(number(row, user::AT_ONCE)).unwrap_or(0);
    account.options.expired = number(row, user::EXPIRED) != 0;
    account.options.changed = match row.get(user::CHANGED) {
        Some(Value::DateTime(utc)) => utc.instant(UTC).map(Instant::unix),
        _ => None,
    };
    account
}

fn user_row(account: &Account) -> Vec<Value> {
    let changed = account.options.changed.and_then(|seconds| DateTime::from_unix(seconds, 0));
    vec![
        value(account.host.as_str()),
        value(&account.user),
        value(&names(account.privileges)),
        grant_option(account.privileges),
        Value::Int(0),
        value(if account.require_ssl { "ANY" } else { "" }),
        Value::UInt(account.options.resources.at_once.into()),
        value(&account.plugin),
        Value::Bytes(account.auth.clone().into()),
        Value::Int(i64::from(account.options.expired)),
        Value::Int(i64::from(account.locked)),
        changed.map_or(Value::Null, Value::DateTime),
        options::attributes(account).map_or(Value::Null, |text| value(&text)),
    ]
}

fn db_row(account: &Account, grant: &DbGrant) -> Vec<Value> {
    vec![
        value(account.host.as_str()),
        value(&grant.pattern),
        value(&account.user),
        value(""),
        value(&names(grant.privileges)),
        grant_option(grant.privileges),
    ]
}

impl SystemStore {
    /// Whether there is no account at all.
    pub fn is_empty(&self) -> SqlResult<bool> {
        Ok(self.0.system_rows("user")?.is_empty())
    }

    /// In a session that is nobody's.
    fn change(&self, changes: &[Record], statement: &[u8], logged: bool) -> SqlResult<()> {
        let mut session = SqlSession::new(self.0.clone(), 0, Arc::new(KillFlag::default()));
        session.state.settings.sql_log_bin = logged;
        // Known to every tool that reads the log, also to those of other servers.
        session.state.settings.collation_connection = 45;
        session.state.settings.collation_client = 45;
        change(&mut session, changes, statement).map(drop)
    }

    /// Puts the first account into a new data directory; not for replicas, which have their own.
    pub fn create_root(&self, plugin: &str) -> SqlResult<()> {
        let root = Account { plugin: plugin.into(), ..Account::root() };
        self.change(&[Record::Put(Box::new(root))], b"", false)
    }
}

/// Makes changes durable in a transaction of `session`, logged as `statement`. Blocks.
pub(super) fn change(
    session: &mut SqlSession,
    changes: &[Record],
    statement: &[u8],
) -> SqlResult<Option<CommitNo>> {
    let text = Bytes::copy_from_slice(statement);
    let done = session.change_system_tables(&text, Mode::Blocking, |tables| {
        changes.iter().try_for_each(|change| apply(tables, change))
    });
    let outcome = done.map_err(|interrupt| match interrupt {
        Interrupt::Error(error) => error,
        _ => SqlError::internal("account tables could not be changed"),
    })?;
    outcome.wait.map(|ticket| ticket.wait().map_err(SqlError::of_commit)).transpose()
}

/// The database rows of an account go first, so that what is put is all there is.
fn apply(tables: &mut SystemTables<'_>, change: &Record) -> ExecResult<()> {
    let (name, host) = match change {
        Record::Put(account) => (account.user.as_str(), account.host.as_str()),
        Record::Delete { user, host } => (user.as_str(), host.as_str()),
    };
    for row in tables.rows("db")? {
        let own = text(&row, db::USER) == name && text(&row, db::HOST) == host;
        if own && text(&row, db::TABLE).is_empty() {
            tables.delete("db", &row)?;
        }
    }
    match change {
        Record::Put(account) => {
            tables.put("user", &user_row(account))?;
            account.databases.iter().try_for_each(|grant| tables.put("db", &db_row(account, grant)))
        }
        Record::Delete { .. } => {
            tables.delete("user", &user_row(&Account::new(name, host)))?;
            Ok(())
        }
    }
}

impl AccountStore for SystemStore {
    fn load(&self) -> SqlResult<Vec<Account>> {
        let mut accounts: Vec<Account> =
            self.0.system_rows("user")?.iter().map(|row| account_of(row)).collect();
        for row in self.0.system_rows("db")? {
            let (name, host) = (text(&row, db::USER), text(&row, db::HOST));
            let owner = accounts.iter_mut().find(|a| a.is(&name, &host));
            if let Some(account) = owner.filter(|_| text(&row, db::TABLE).is_empty()) {
                account.databases.push(DbGrant {
                    pattern: text(&row, db::DB),
                    privileges: parse(&text(&row, db::PRIVILEGES), number(&row, db::GRANT_OPTION) != 0),
                });
            }
        }
        Ok(accounts)
    }

    fn apply(&self, changes: &[Record], statement: &[u8]) -> SqlResult<()> {
        self.change(changes, statement, true)
    }
}
