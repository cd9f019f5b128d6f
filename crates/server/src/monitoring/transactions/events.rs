//! `events_transactions_current` and `_history`: what each thread's transaction is, or was. Times are picoseconds since the server began.

use super::rows::isolation;
use crate::monitoring::{Row, text};
use crate::process::{Process, ProcessLine};
use crate::server::Server;
use omnibus_sql::{EndedTrx, TrxSeen};
use omnibus_value::Value;
use std::sync::Arc;
use std::sync::atomic::Ordering;

type Sees<'a> = &'a dyn Fn(&ProcessLine) -> bool;

fn seen_processes(server: &Server, sees: Sees<'_>) -> Vec<Arc<Process>> {
    let now = crate::clock::now_us();
    server.processes.all().into_iter().filter(|process| sees(&process.line(now))).collect()
}

fn start_of(server: &Server) -> u64 {
    u64::try_from(server.counters.started_us.load(Ordering::Relaxed)).unwrap_or(0)
}

/// The transaction of each thread that has one or had one.
pub(crate) fn current(server: &Server, sees: Sees<'_>) -> Vec<Row> {
    let (now, start) = (u64::try_from(crate::clock::now_us()).unwrap_or(0), start_of(server));
    let row = |process: Arc<Process>| {
        let watch = process.transaction()?;
        let seen = watch.look();
        let active = seen.kind.open || seen.uses_tables() && process.is_running();
        match active {
            true => Some(active_row(process.id, &seen, start, now)),
            false => watch.past().first().map(|ended| ended_row(process.id, ended, start)),
        }
    };
    seen_processes(server, sees).into_iter().filter_map(row).collect()
}

/// The last ten of each thread that are over.
pub(crate) fn history(server: &Server, sees: Sees<'_>) -> Vec<Row> {
    let start = start_of(server);
    let rows = |process: Arc<Process>| {
        let past = process.transaction().map(|watch| watch.past()).unwrap_or_default();
        past.iter().rev().map(|ended| ended_row(process.id, ended, start)).collect::<Vec<_>>()
    };
    seen_processes(server, sees).into_iter().flat_map(rows).collect()
}

/// The number of a transaction among its session's, twice: those between are its statements'.
fn event_id(id: u64) -> u64 {
    (id & u64::from(u32::MAX)) * 2
}

fn picoseconds(us: u64) -> Value {
    Value::UInt(us.saturating_mul(1_000_000))
}

fn modes(read_only: bool, open: bool) -> [(&'static str, Value); 2] {
    [
        ("ACCESS_MODE", text(if read_only { "READ ONLY" } else { "READ WRITE" })),
        ("AUTOCOMMIT", text(if open { "NO" } else { "YES" })),
    ]
}

fn active_row(thread: u32, seen: &TrxSeen, start: u64, now: u64) -> Row {
    let mut row = vec![
        ("THREAD_ID", Value::UInt(thread.into())),
        ("EVENT_ID", Value::UInt(event_id(seen.id))),
        ("END_EVENT_ID", Value::Null),
        ("EVENT_NAME", text("transaction")),
        ("STATE", text("ACTIVE")),
        ("TRX_ID", if seen.uses_tables() { Value::UInt(seen.id) } else { Value::Null }),
        ("GTID", text("AUTOMATIC")),
        ("TIMER_START", picoseconds(seen.opened_us.saturating_sub(start))),
        ("TIMER_END", picoseconds(now.saturating_sub(start))),
        ("TIMER_WAIT", picoseconds(now.saturating_sub(seen.opened_us))),
        ("ISOLATION_LEVEL", text(isolation(seen.kind.isolation))),
    ];
    row.extend(modes(seen.kind.read_only, seen.kind.open));
    row
}

fn ended_row(thread: u32, ended: &EndedTrx, start: u64) -> Row {
    let mut row = vec![
        ("THREAD_ID", Value::UInt(thread.into())),
        ("EVENT_ID", Value::UInt(event_id(ended.id))),
        ("END_EVENT_ID", Value::UInt(event_id(ended.id) + 1)),
        ("EVENT_NAME", text("transaction")),
        ("STATE", text(if ended.rolled_back { "ROLLED BACK" } else { "COMMITTED" })),
        ("TRX_ID", Value::UInt(ended.id)),
        ("GTID", text("AUTOMATIC")),
        ("TIMER_START", picoseconds(ended.began_us.saturating_sub(start))),
        ("TIMER_END", picoseconds(ended.ended_us.saturating_sub(start))),
        ("TIMER_WAIT", picoseconds(ended.ended_us.saturating_sub(ended.began_us))),
        ("ISOLATION_LEVEL", text(isolation(ended.kind.isolation))),
    ];
    row.extend(modes(ended.kind.read_only, ended.kind.open));
    row
}
