//! INNODB_TRX.

use super::locks::lock_id;
use super::{OpenTrx, open};
use crate::monitoring::{Row, text, text_or_null, time};
use crate::server::Server;
use omnibus_sql::Isolation;
use omnibus_value::Value;

/// The name of a level, as MySQL has it in tables.
pub(super) fn isolation(level: Isolation) -> &'static str {
    match level {
        Isolation::ReadUncommitted => "READ UNCOMMITTED",
        Isolation::ReadCommitted => "READ COMMITTED",
        Isolation::RepeatableRead => "REPEATABLE READ",
        Isolation::Serializable => "SERIALIZABLE",
    }
}

/// The operation that waits, in InnoDB's words.
pub(super) fn operation(trx: &OpenTrx) -> &'static str {
    match trx.seen.waits_for_row() {
        Some(wait) if wait.mode == "X,INSERT_INTENTION" => "inserting",
        Some(_) => "starting index read",
        None => "",
    }
}

/// Tables whose rows it locks or changes: a consistent read has a table, and no lock of InnoDB's.
pub(super) fn tables_locked(trx: &OpenTrx) -> usize {
    let held = trx.seen.held;
    if held.written == 0 && held.rows > 0 { held.tables } else { held.written }
}

/// Objects that InnoDB would have of its locks: one for each table, for the records of an index, and for what it waits for.
pub(super) fn lock_structs(trx: &OpenTrx) -> usize {
    let held = trx.seen.held;
    let more = trx.seen.waits_for_row().is_some() && held.rows > held.spaces;
    tables_locked(trx) + held.spaces + usize::from(more)
}

/// The rows, oldest transaction first.
pub(crate) fn rows(server: &Server) -> Vec<Row> {
    let now = u64::try_from(crate::clock::now_us()).unwrap_or(0);
    let mut rows: Vec<Row> = open(server).iter().map(|trx| row(trx, now)).collect();
    if server.is_mariadb() {
        let states = rows.iter_mut().flatten().filter(|(name, _)| *name == "trx_operation_state");
        states.filter(|(_, value)| value.is_null()).for_each(|(_, value)| *value = text(""));
    }
    rows
}

fn row(trx: &OpenTrx, now: u64) -> Row {
    let (seen, wait) = (&trx.seen, trx.seen.waits_for_row());
    let number = |n: usize| Value::UInt(n as u64);
    let flag = |set: bool| Value::Int(i64::from(set));
    let waits_since =
        wait.map(|wait| now.saturating_sub(u64::try_from(wait.waited.as_micros()).unwrap_or(0)));
    let structs = lock_structs(trx);
    let in_use = if trx.running { seen.held.tables.max(1) } else { 0 };
    vec![
        ("trx_id", Value::UInt(seen.id)),
        ("trx_state", text(if wait.is_some() { "LOCK WAIT" } else { "RUNNING" })),
        ("trx_started", time(seen.began_us)),
        ("trx_requested_lock_id", wait.map_or(Value::Null, |wait| text(lock_id(seen.id, &wait.target)))),
        ("trx_wait_started", waits_since.map_or(Value::Null, time)),
        ("trx_weight", Value::UInt(structs as u64 + seen.rows_changed)),
        ("trx_mysql_thread_id", Value::UInt(trx.connection())),
        ("trx_query", trx.query().map_or(Value::Null, text)),
        ("trx_operation_state", text_or_null(operation(trx))),
        ("trx_tables_in_use", number(in_use)),
        ("trx_tables_locked", number(tables_locked(trx))),
        ("trx_lock_structs", number(structs)),
        ("trx_lock_memory_bytes", number(seen.lock_bytes)),
        ("trx_rows_locked", number(seen.held.rows)),
        ("trx_rows_modified", Value::UInt(seen.rows_changed)),
        ("trx_concurrency_tickets", Value::UInt(0)),
        ("trx_isolation_level", text(isolation(seen.kind.isolation))),
        ("trx_unique_checks", flag(seen.checks.0)),
        ("trx_foreign_key_checks", flag(seen.checks.1)),
        ("trx_is_read_only", flag(seen.kind.read_only || seen.only_reads())),
        ("trx_autocommit_non_locking", flag(seen.only_reads())),
        ("trx_adaptive_hash_latched", Value::Int(0)),
        ("trx_adaptive_hash_timeout", Value::UInt(0)),
        ("trx_schedule_weight", if wait.is_some() { Value::UInt(1) } else { Value::Null }),
    ]
}
