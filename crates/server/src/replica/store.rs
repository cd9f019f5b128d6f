//! Channels' settings as rows of `mysql.replica_channel`. Passwords are in there, as a replica must send them; no log
//! gets them (ACCOUNT-1): the rows are changed without row events and without a statement's text.

use bytes::Bytes;
use omnibus_replication::replica::ChannelConfig;
use omnibus_sql::{
    Database, ExecResult, Interrupt, KillFlag, Mode, SqlError, SqlResult, SqlSession, SystemTables,
};
use omnibus_value::Value;
use std::sync::Arc;

const TABLE: &str = "replica_channel";

fn text(row: &[Value], column: usize) -> String {
    match row.get(column) {
        Some(Value::Bytes(b)) => String::from_utf8_lossy(b).into_owned(),
        _ => String::new(),
    }
}

fn value(s: &str) -> Value {
    Value::Bytes(Bytes::copy_from_slice(s.as_bytes()))
}

/// All of them.
pub(super) fn load(database: &Database) -> SqlResult<Vec<(String, ChannelConfig)>> {
    let rows = database.system_rows(TABLE)?;
    Ok(rows.iter().map(|row| (text(row, 0), ChannelConfig::decode(&text(row, 1)))).collect())
}

/// Stores a channel's; durable when it returns. Blocks.
pub(super) fn put(database: &Arc<Database>, name: &str, config: &ChannelConfig) -> SqlResult<()> {
    let row = [value(name), value(&config.encode())];
    change(database, |tables| tables.put(TABLE, &row))
}

/// Forgets a channel's; durable when it returns. Blocks.
pub(super) fn delete(database: &Arc<Database>, name: &str) -> SqlResult<()> {
    let row = [value(name), value("")];
    change(database, |tables| tables.delete(TABLE, &row).map(drop))
}

fn change(
    database: &Arc<Database>,
    change: impl FnOnce(&mut SystemTables<'_>) -> ExecResult<()>,
) -> SqlResult<()> {
    let mut session = SqlSession::new(database.clone(), 0, Arc::new(KillFlag::default()));
    session.state.settings.sql_log_bin = false;
    let done = session.change_system_tables(&Bytes::new(), Mode::Blocking, change);
    let outcome = done.map_err(|interrupt| match interrupt {
        Interrupt::Error(error) => error,
        _ => SqlError::internal("the settings of a replication channel could not be stored"),
    })?;
    match outcome.wait {
        Some(ticket) => ticket.wait().map(drop).map_err(SqlError::error_during_commit),
        None => Ok(()),
    }
}
