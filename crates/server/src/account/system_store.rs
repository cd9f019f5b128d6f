//! Accounts in `mysql.user`, `mysql.db` and `mysql.object_grants`.
//!
//! The columns are the SQL layer's (its bootstrap makes the tables): global privileges are a list of
//! names, as are those of a database, a table or a routine.

use super::attributes::{attributes, read_attributes};
use super::credentials::{Credentials, OldPassword};
use super::grants::{self, DbGrant, Privileges, ProxyGrant, RoleGrant, RoutineGrant, TableGrant};
use super::store::{AccountStore, Record};
use super::table::Account;
use bytes::Bytes;
use omnibus_engine::CommitNo;
use omnibus_parser::ast::ProgramKind;
use omnibus_sql::{
    Database, ExecResult, Interrupt, KillFlag, Mode, SqlError, SqlResult, SqlSession, SystemTables,
};
use omnibus_value::Value;
use omnibus_value::json::Json;
use omnibus_value::temporal::{DateTime, Instant, Zone};

const UTC: Zone = Zone::Offset(0);
use std::collections::HashMap;
use std::sync::Arc;

/// Columns of `mysql.user`, by position.
mod user {
    pub const HOST: usize = 0;
    pub const USER: usize = 1;
    pub const PRIVILEGES: usize = 2;
    pub const GRANT_OPTION: usize = 3;
    pub const IS_ROLE: usize = 4;
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

/// Columns of `mysql.object_grants`, by position.
mod object {
    pub const HOST: usize = 0;
    pub const USER: usize = 1;
    pub const KIND: usize = 2;
    pub const DB: usize = 3;
    pub const NAME: usize = 4;
    pub const PRIVILEGES: usize = 5;
    pub const GRANT_OPTION: usize = 6;
    pub const COLUMNS: usize = 7;
}

/// Kinds of `mysql.object_grants`.
const TABLE: &str = "TABLE";
const ROLE: &str = "ROLE";
const PASSWORD: &str = "PASSWORD";
const PROXY: &str = "PROXY";
/// The word for a role of an account, where privileges would be.
const GRANTED: &str = "GRANTED";
const DEFAULT: &str = "DEFAULT";

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
    let known = names.split(',').filter_map(|n| grants::by_name(n.trim()));
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
    account.grants.privileges = parse(&text(row, user::PRIVILEGES), number(row, user::GRANT_OPTION) != 0);
    account.is_role = number(row, user::IS_ROLE) != 0;
    account.credentials.plugin = text(row, user::PLUGIN);
    account.credentials.auth = text(row, user::AUTH).into_bytes();
    account.locked = number(row, user::LOCKED) != 0;
    let kind = text(row, user::SSL_TYPE);
    read_attributes(&mut account, &text(row, user::ATTRIBUTES), &kind);
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
        value(&names(account.grants.privileges)),
        grant_option(account.grants.privileges),
        Value::Int(i64::from(account.is_role)),
        value(account.require.kind()),
        Value::UInt(account.options.resources.at_once.into()),
        value(&account.credentials.plugin),
        Value::Bytes(account.credentials.auth.clone().into()),
        Value::Int(i64::from(account.options.expired)),
        Value::Int(i64::from(account.locked)),
        changed.map_or(Value::Null, Value::DateTime),
        attributes(account).map_or(Value::Null, |text| value(&text)),
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

/// The rows of what an account has on tables, routines and roles.
fn object_rows(account: &Account) -> Vec<Vec<Value>> {
    let row = |kind: &str, db: &str, name: &str, what: &str, option: Value, columns: Value| {
        let head = [account.host.as_str(), &account.user, kind, db, name, what].map(value);
        head.into_iter().chain([option, columns]).collect()
    };
    let tables = account.grants.tables.iter().map(|grant| {
        let columns =
            Json::object(grant.columns.iter().map(|(name, own)| (name.clone(), Json::String(names(*own)))));
        let mut text = Vec::new();
        columns.write_text(&mut text);
        let columns = if grant.columns.is_empty() { Value::Null } else { Value::Bytes(text.into()) };
        let own = grant.privileges;
        row(TABLE, &grant.db, &grant.table, &names(own), grant_option(own), columns)
    });
    let routines = account.grants.routines.iter().map(|grant| {
        let own = grant.privileges;
        row(grant.kind.name(), &grant.db, &grant.name, &names(own), grant_option(own), Value::Null)
    });
    let roles = account.grants.roles.iter().map(|role| {
        let what = [(role.granted, GRANTED), (role.default, DEFAULT)];
        let what: Vec<_> = what.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect();
        let admin = Value::Int(i64::from(role.admin));
        row(ROLE, &role.host, &role.user, &what.join(","), admin, Value::Null)
    });
    let passwords = account.credentials.passwords.iter().enumerate().map(|(at, old)| {
        let auth = Value::Bytes(old.auth.clone().into());
        row(PASSWORD, &old.set_us.to_string(), &at.to_string(), "", Value::Int(0), auth)
    });
    let proxies =
        account.grants.proxies.iter().map(|own| {
            row(PROXY, &own.host, &own.user, "", Value::Int(own.grant_option.into()), Value::Null)
        });
    tables.chain(routines).chain(roles).chain(passwords).chain(proxies).collect()
}

/// Puts a row of `mysql.object_grants` into its account. Kinds that this version does not know are passed over.
fn add_object(account: &mut Account, row: &[Value]) {
    let (db, name, what) = (text(row, object::DB), text(row, object::NAME), text(row, object::PRIVILEGES));
    let option = number(row, object::GRANT_OPTION) != 0;
    let mut routine = |kind, db, name| {
        account.grants.routines.push(RoutineGrant { kind, db, name, privileges: parse(&what, option) });
    };
    match text(row, object::KIND).as_str() {
        TABLE => {
            let columns = match Json::parse(text(row, object::COLUMNS).as_bytes()) {
                Ok(Json::Object(members)) => members,
                _ => Vec::new(),
            };
            let column = |(name, own): (String, Json)| match own {
                Json::String(own) => Some((name, parse(&own, false))),
                _ => None,
            };
            let mut columns: Vec<_> = columns.into_iter().filter_map(column).collect();
            columns.sort();
            account.grants.tables.push(TableGrant {
                db,
                table: name,
                privileges: parse(&what, option),
                columns,
            });
        }
        "PROCEDURE" => routine(ProgramKind::Procedure, db, name),
        "FUNCTION" => routine(ProgramKind::Function, db, name),
        ROLE => {
            let is = |word| what.split(',').any(|own| own == word);
            let (default, granted) = (is(DEFAULT), is(GRANTED));
            account.grants.roles.push(RoleGrant { user: name, host: db, admin: option, default, granted });
        }
        PROXY => account.grants.proxies.push(ProxyGrant { user: name, host: db, grant_option: option }),
        PASSWORD => {
            let (set_us, auth) = (db.parse().unwrap_or(0), text(row, object::COLUMNS).into_bytes());
            account.credentials.passwords.push(OldPassword { set_us, auth });
            account.credentials.passwords.sort_by_key(|old| old.set_us);
        }
        _ => {}
    }
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
        let root = Account { credentials: Credentials::new(plugin), ..Account::root() };
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
    let done = session.change_system_tables(&text, Mode::Blocking, |tables| apply(tables, changes));
    let outcome = done.map_err(|interrupt| match interrupt {
        Interrupt::Error(error) => error,
        _ => SqlError::internal("account tables could not be changed"),
    })?;
    outcome.wait.map(|ticket| ticket.wait().map_err(SqlError::of_commit)).transpose()
}

/// The name of an account whose rows change, and its host.
fn key_of(change: &Record) -> (&str, &str) {
    match change {
        Record::Put(account) => (&account.user, account.host.as_str()),
        Record::Delete { user, host } => (user, host),
    }
}

/// The other rows of the accounts go first, so that what is put is all there is. They are looked for once, however many accounts change.
fn apply(tables: &mut SystemTables<'_>, changes: &[Record]) -> ExecResult<()> {
    let last: HashMap<_, _> = changes.iter().enumerate().map(|(at, change)| (key_of(change), at)).collect();
    for row in tables.rows("db")? {
        let (name, host) = (text(&row, db::USER), text(&row, db::HOST));
        if last.contains_key(&(&*name, &*host)) && text(&row, db::TABLE).is_empty() {
            tables.delete("db", &row)?;
        }
    }
    for row in tables.rows("object_grants")? {
        let (name, host) = (text(&row, object::USER), text(&row, object::HOST));
        if last.contains_key(&(&*name, &*host)) {
            tables.delete("object_grants", &row)?;
        }
    }
    // Of several changes of an account the last one is what is left.
    let of_last = changes.iter().enumerate().filter(|(at, change)| last.get(&key_of(change)) == Some(at));
    of_last.map(|(_, change)| change).try_for_each(|change| apply_one(tables, change))
}

fn apply_one(tables: &mut SystemTables<'_>, change: &Record) -> ExecResult<()> {
    match change {
        Record::Put(account) => {
            tables.put("user", &user_row(account))?;
            object_rows(account).iter().try_for_each(|row| tables.put("object_grants", row))?;
            account.grants.databases.iter().try_for_each(|grant| tables.put("db", &db_row(account, grant)))
        }
        Record::Delete { user, host } => {
            tables.delete("user", &user_row(&Account::new(user, host)))?;
            Ok(())
        }
    }
}

impl AccountStore for SystemStore {
    fn load(&self) -> SqlResult<Vec<Account>> {
        let mut accounts: Vec<Account> =
            self.0.system_rows("user")?.iter().map(|row| account_of(row)).collect();
        let place =
            |(at, account): (usize, &Account)| (Account::key(&account.user, account.host.as_str()), at);
        let places: HashMap<_, _> = accounts.iter().enumerate().map(place).collect();
        for row in self.0.system_rows("db")? {
            let owner = places.get(&Account::key(&text(&row, db::USER), &text(&row, db::HOST)));
            if let Some(at) = owner.filter(|_| text(&row, db::TABLE).is_empty()) {
                accounts[*at].grants.databases.push(DbGrant {
                    pattern: text(&row, db::DB),
                    privileges: parse(&text(&row, db::PRIVILEGES), number(&row, db::GRANT_OPTION) != 0),
                });
            }
        }
        for row in self.0.system_rows("object_grants")? {
            if let Some(at) = places.get(&Account::key(&text(&row, object::USER), &text(&row, object::HOST)))
            {
                add_object(&mut accounts[*at], &row);
            }
        }
        Ok(accounts)
    }

    fn apply(&self, changes: &[Record], statement: &[u8]) -> SqlResult<()> {
        self.change(changes, statement, true)
    }
}
