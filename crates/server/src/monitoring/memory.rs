//! Memory that statements, transactions and definitions hold, as the accountant has it: by thread, by account, and of the server. Only what is held now is
//! known, not how often memory was taken.

use super::{Row, text, text_or_null};
use crate::process::{Process, Processes};
use omnibus_sql::memory::ServerMemory;
use omnibus_value::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The event that statements and transactions are counted under.
const EVENT: &str = "memory/sql/statements";
/// That of the catalog.
const DEFINITIONS: &str = "memory/sql/definitions";

fn held(bytes: u64) -> (&'static str, Value) {
    ("CURRENT_NUMBER_OF_BYTES_USED", Value::Int(i64::try_from(bytes).unwrap_or(i64::MAX)))
}

/// `memory_summary_by_thread_by_event_name`.
pub(super) fn by_thread(processes: &Processes) -> Vec<Row> {
    let row = |process: Arc<Process>| {
        vec![
            ("THREAD_ID", Value::UInt(process.id.into())),
            ("EVENT_NAME", text(EVENT)),
            held(process.memory()),
        ]
    };
    processes.all().into_iter().map(row).collect()
}

/// `memory_summary_by_account_by_event_name`, `_by_user_`, `_by_host_`: those of open connections, by these columns.
pub(super) fn by(processes: &Processes, columns: &[&'static str]) -> Vec<Row> {
    let mut sums = BTreeMap::<Vec<String>, u64>::new();
    for process in processes.clients() {
        let identity = process.identity.lock().clone();
        let host = identity.host.rsplit_once(':').map_or(&*identity.host, |(host, _)| host).to_owned();
        let of = |column: &&'static str| if *column == "HOST" { host.clone() } else { identity.user.clone() };
        *sums.entry(columns.iter().map(of).collect()).or_default() += process.memory();
    }
    let row = |(key, bytes): (Vec<String>, u64)| {
        let mut row: Row = columns.iter().copied().zip(key.iter().map(|part| text_or_null(part))).collect();
        row.extend([("EVENT_NAME", text(EVENT)), held(bytes)]);
        row
    };
    sums.into_iter().map(row).collect()
}

/// `memory_summary_global_by_event_name`.
pub(super) fn global(memory: &ServerMemory) -> Vec<Row> {
    let row = |event, bytes| vec![("EVENT_NAME", text(event)), held(bytes)];
    vec![row(EVENT, memory.used()), row(DEFINITIONS, memory.definitions())]
}
