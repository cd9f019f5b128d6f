//! `@@name`: the few variables that live in the session itself, the rest asked of the server.

use super::context::Context;
use super::types::{ExprType, string_column};
use crate::api::VariableScope;
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::state::SessionState;
use omnibus_value::{ColumnType, Value};

/// Reads a system variable.
///
/// # Errors
/// 1193 when there is none of that name.
pub fn read(session: &SessionState, scope: VariableScope, name: &str) -> SqlResult<(Value, ColumnType)> {
    let number = |n: u64| Ok((Value::UInt(n), ExprType::ubigint().column));
    // A statement that uses tables has forgotten what the one before left.
    let before = session.statement.conditions_before.filter(|_| session.programs.tables.is_empty());
    match name {
        "warning_count" => {
            let (all, _) = before.unwrap_or_else(|| session.diagnostics.counts());
            number(all)
        }
        "error_count" => {
            let (_, errors) = before.unwrap_or_else(|| session.diagnostics.counts());
            number(errors)
        }
        "last_insert_id" | "identity" => number(session.results.last_insert_id),
        "pseudo_thread_id" => number(u64::from(session.thread_id())),
        // A program runs under its own, whatever the session has.
        "sql_mode" if scope != VariableScope::Global && !session.programs.running.is_empty() => {
            let text = session.connection.host.sql_mode_text(session.settings.sql_mode);
            let collation = session.settings.collation_connection;
            Ok((Value::Bytes(text.clone().into()), string_column(text.len() as u32, collation)))
        }
        "timestamp" if scope != VariableScope::Global => {
            Ok((Value::Double(session.statement.now_us as f64 / 1e6), ExprType::double().column))
        }
        _ => {
            let (value, ty) = session.connection.host.variable_under(&session.settings, scope, name)?;
            match &value {
                Value::Bytes(text) => {
                    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
                    let collation = session.settings.collation_connection;
                    Ok((value, string_column(length, collation)))
                }
                _ => Ok((value, ty)),
            }
        }
    }
}

/// Functions that may wait.
const WAITING: [&str; 6] = [
    "BINLOG_GTID_POS",
    "WAIT_FOR_EXECUTED_GTID_SET",
    "WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS",
    "MASTER_POS_WAIT",
    "SOURCE_POS_WAIT",
    "MASTER_GTID_WAIT",
];

/// The most bytes of a set of ids that a text names: of a server and its tag, and of an interval in a list that has grown by doubling.
fn memory_of_ids(text: &[u8]) -> usize {
    let count = |sign: u8| text.iter().filter(|byte| **byte == sign).count();
    3 * text.len() + 256 * count(b',') + 48 * count(b':')
}

/// Calls a function that the server implements.
///
/// # Errors
/// 1305 when there is none of that name; `NeedBlocking` for those that may wait.
pub fn call(cx: &mut Context<'_>, name: &str, args: &[Value]) -> ExecResult<Value> {
    if WAITING.contains(&name) {
        cx.storage.need_blocking()?;
    }
    for arg in args {
        if let Value::Bytes(text) = arg {
            cx.ask(memory_of_ids(text))?;
            cx.bytes(text.len())?;
        }
    }
    match cx.session.connection.host.call(cx.session.connection.id, name, args) {
        Some(result) => Ok(result?),
        None => {
            let db = cx.session.database.as_deref().unwrap_or_default();
            Err(SqlError::sp_does_not_exist("FUNCTION", format!("{db}.{name}")).into())
        }
    }
}
