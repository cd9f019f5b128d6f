//! A statement's context: set for it and restored behind it, all of it here and nowhere else.
//!
//! Settings that the statement's form leaves out are those of the applier's session, the server's defaults.

use crate::catalog::charset::known_collation;
use crate::error::{SqlError, SqlResult};
use crate::session::SqlSession;
use crate::state::{NewInsertId, SessionState};
use omnibus_format::events::{UserVar, UserVarValue};
use omnibus_replication::model::StatementView;
use omnibus_value::decimal::Decimal;
use omnibus_value::temporal::Zone;
use omnibus_value::{ColumnKind, ColumnType, Value, collation, locale};
use std::sync::Arc;

/// The session as it was.
pub(super) struct Saved {
    settings: crate::api::SessionSettings,
    database: Option<Arc<str>>,
    connection_id: u32,
    rand: (u64, u64),
    last_insert_id: u64,
    new_insert_id: NewInsertId,
    now_us: i64,
    account: String,
}

/// Sets everything that a statement says about its context.
///
/// # Errors
/// A time zone, a collation or a variable that cannot be had; nothing is changed then.
pub(super) fn enter(session: &mut SqlSession, view: &dyn StatementView) -> SqlResult<Saved> {
    let state = &mut session.state;
    let zone = view.time_zone().map(zone_of).transpose()?;
    let mut variables = Vec::new();
    let mut bad = None;
    view.user_variables(&mut |variable| match user_variable(&variable) {
        Ok(pair) => variables.push(pair),
        Err(error) => bad = Some(error),
    });
    if let Some(error) = bad {
        return Err(error);
    }
    check_collations(view)?;
    let saved = Saved {
        settings: state.settings.clone(),
        database: state.database.take(),
        connection_id: state.connection.id,
        rand: state.connection.rand,
        last_insert_id: state.results.last_insert_id,
        new_insert_id: state.results.new_insert_id,
        now_us: state.statement.now_us,
        account: state.login.account.clone(),
    };
    set_settings(state, view);
    if let (Some(name), Some(zone)) = (view.time_zone(), zone) {
        state.settings.time_zone = String::from_utf8_lossy(name).into_owned();
        state.settings.zone = zone;
    }
    if !view.database().is_empty() {
        state.database = Some(String::from_utf8_lossy(view.database()).into());
    }
    if let Some((user, host)) = view.invoker() {
        state.login.account = format!("{}@{}", String::from_utf8_lossy(user), String::from_utf8_lossy(host));
    }
    state.connection.id = view.thread_id();
    state.results.last_insert_id = view.last_insert_id().unwrap_or(0);
    // The log has it only for statements that ask.
    state.results.new_insert_id = view.last_insert_id().map_or(NewInsertId::None, |_| NewInsertId::Fresh);
    if let Some(seeds) = view.rand_seeds() {
        state.connection.rand = seeds;
    }
    state.values.replace(Arc::new(variables.into_iter().collect()), &state.settings);
    Ok(saved)
}

fn set_settings(state: &mut SessionState, view: &dyn StatementView) {
    let settings = &mut state.settings;
    settings.replicated = true;
    settings.timestamp_us = Some(view.timestamp_us());
    settings.sql_mode = view.sql_mode().unwrap_or(settings.sql_mode);
    settings.foreign_key_checks = view.foreign_key_checks().unwrap_or(true);
    settings.check_constraint_checks = view.check_constraint_checks().unwrap_or(true);
    settings.unique_checks = view.unique_checks().unwrap_or(true);
    // Only for what our own events say of it: the transaction is ended by its last event.
    settings.transactions.autocommit = view.autocommit().unwrap_or(true);
    if let Some([client, connection, server]) = view.collations() {
        settings.collation_client = stand_in(client);
        settings.collation_connection = stand_in(connection);
        settings.collation_results = settings.collation_client;
        // Only a new database takes it.
        if collation::by_id(server).is_some() {
            settings.collation_server = server;
        }
    }
    let (increment, offset) = view.auto_increment().unwrap_or((1, 1));
    settings.auto_increment_increment = u64::from(increment).max(1);
    settings.auto_increment_offset = u64::from(offset).max(1);
    settings.insert_id = view.insert_id();
    settings.sql_auto_is_null = view.sql_auto_is_null().unwrap_or(false);
    settings.lc_time_names = view.lc_time_names().and_then(locale::by_number).unwrap_or(&locale::ENGLISH);
    settings.collation_database = view.database_collation();
    if let Some(id) = view.default_collation_for_utf8mb4() {
        settings.default_collation_for_utf8mb4 = id;
    }
}

/// A statement that makes something of a collation that is not known here cannot be executed: it would store something else.
/// Where only literals have it, another one of their character set stands in: columns decide how they are compared.
fn check_collations(view: &dyn StatementView) -> SqlResult<()> {
    let [client, connection, server] = view.collations().map_or([None; 3], |ids| ids.map(Some));
    let server = server.filter(|_| makes(view.sql(), &["DATABASE", "SCHEMA"]));
    let connection = if makes(view.sql(), &["SELECT"]) { connection } else { connection.map(stand_in) };
    let client = client.map(stand_in);
    let used = [client, connection, server, view.database_collation(), view.default_collation_for_utf8mb4()];
    used.into_iter().flatten().try_for_each(|id| known_collation(u64::from(id)).map(drop))?;
    // Here only utf8mb4 may have another default.
    let others = [(8, "latin1"), (11, "ascii"), (33, "utf8mb3"), (33, "utf8")];
    let differs = |(default, name): &(u16, &str)| {
        let mapped = view.charset_collations().iter().find(|(from, to)| from == default && to != default);
        mapped.filter(|_| makes(view.sql(), &[name])).map(|(_, to)| *to)
    };
    match others.iter().find_map(differs) {
        Some(id) => {
            let name = collation::by_id(id).map_or_else(|| format!("#{id}"), |found| found.name.to_owned());
            Err(SqlError::unknown_collation(format!("{name} as the default of its character set")))
        }
        None => Ok(()),
    }
}

/// Whether a text is a CREATE or ALTER with one of these words in it.
fn makes(text: &[u8], wanted: &[&str]) -> bool {
    let words = text.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
    let mut words = words.filter(|word| !word.is_empty());
    let is = |word: &[u8], one: &&str| word.eq_ignore_ascii_case(one.as_bytes());
    words.next().is_some_and(|first| ["CREATE", "ALTER"].iter().any(|one| is(first, one)))
        && words.any(|word| wanted.iter().any(|one| is(word, one)))
}

/// The general collation of the character set that an unknown one of MariaDB's uca1400 family is of, by the ranges
/// of their ids; any other as it is.
fn stand_in(id: u16) -> u16 {
    const UTF8MB3_GENERAL: u16 = 33;
    const UTF8MB4_GENERAL: u16 = 45;
    match id {
        known if collation::by_id(known).is_some() => known,
        2048..=2303 => UTF8MB3_GENERAL,
        2304..=2559 => UTF8MB4_GENERAL,
        other => other,
    }
}

/// Sets the session back to what it was.
pub(super) fn leave(session: &mut SqlSession, saved: Saved) {
    let state = &mut session.state;
    state.settings = saved.settings;
    state.database = saved.database;
    state.connection.id = saved.connection_id;
    state.connection.rand = saved.rand;
    state.results.last_insert_id = saved.last_insert_id;
    state.results.new_insert_id = saved.new_insert_id;
    state.statement.now_us = saved.now_us;
    state.login.account = saved.account;
    state.values.replace(Arc::default(), &state.settings);
    state.diagnostics.clear();
}

/// SYSTEM is the zone of this machine.
fn zone_of(name: &[u8]) -> SqlResult<Zone> {
    let name = String::from_utf8_lossy(name);
    Zone::by_name(&name).ok_or_else(|| SqlError::unknown_time_zone(&name))
}

/// A user variable's name, value and type.
fn user_variable(variable: &UserVar<'_>) -> SqlResult<(String, (Value, ColumnType))> {
    let name = String::from_utf8_lossy(variable.name).to_lowercase();
    let damaged = || SqlError::new(1594, b"HY000", format!("Relay log read failure: user variable @{name}"));
    let string = |id: u16| ColumnType::string(ColumnKind::LongText, 0, id);
    let pair = match variable.value {
        // That it is NULL says nothing of a collation.
        UserVarValue::Null => {
            let id = known_collation(u64::from(variable.collation));
            (Value::Null, string(id.unwrap_or_else(|_| crate::catalog::charset::server_default())))
        }
        UserVarValue::String(text) => {
            let id = known_collation(u64::from(variable.collation))?;
            (Value::Bytes(bytes::Bytes::copy_from_slice(text)), string(id))
        }
        UserVarValue::Real(number) => (Value::Double(number), ColumnType::of(ColumnKind::Double)),
        UserVarValue::Int { bits, unsigned: true } => {
            (Value::UInt(bits), ColumnType::of(ColumnKind::BigInt).unsigned())
        }
        UserVarValue::Int { bits, unsigned: false } => {
            (Value::Int(bits as i64), ColumnType::of(ColumnKind::BigInt))
        }
        UserVarValue::Decimal(bytes) => {
            let [precision, scale, digits @ ..] = bytes else { return Err(damaged()) };
            let (value, _) = Decimal::from_binlog(*precision, *scale, digits).map_err(|_| damaged())?;
            (Value::Decimal(value), ColumnType::decimal(*precision, *scale))
        }
    };
    Ok((name, pair))
}
