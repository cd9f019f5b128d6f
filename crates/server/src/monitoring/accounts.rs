//! Counts by account, user and host: `accounts`, `users`, `hosts`, and statements by each of them.

use super::{Row, picoseconds, text, text_or_null};
use crate::by_account::{Use, Who};
use crate::server::Server;
use omnibus_value::Value;
use std::collections::BTreeMap;

fn sums(server: &Server, columns: &[&'static str]) -> Vec<(Row, Use)> {
    let mut sums = BTreeMap::<Vec<String>, Use>::new();
    for ((user, host), done) in server.by_account.all(&server.processes) as BTreeMap<Who, Use> {
        let of = |column: &&str| if *column == "HOST" { host.clone() } else { user.clone() };
        sums.entry(columns.iter().map(of).collect()).or_default().add(done);
    }
    let row = |(key, done): (Vec<String>, Use)| {
        (columns.iter().copied().zip(key.iter().map(|part| text_or_null(part))).collect(), done)
    };
    sums.into_iter().map(row).collect()
}

/// `accounts`, `users`, `hosts`.
pub(super) fn connections(server: &Server, columns: &[&'static str]) -> Vec<Row> {
    let row = |(mut row, done): (Row, Use)| {
        row.push(("CURRENT_CONNECTIONS", Value::Int(done.current as i64)));
        row.push(("TOTAL_CONNECTIONS", Value::Int(done.connections as i64)));
        row
    };
    sums(server, columns).into_iter().map(row).collect()
}

/// `events_statements_summary_by_account_by_event_name` and its kin: all statements are one event.
pub(super) fn statements(server: &Server, columns: &[&'static str]) -> Vec<Row> {
    let row = |(mut row, done): (Row, Use)| {
        row.extend([
            ("EVENT_NAME", text("statement/sql")),
            ("COUNT_STAR", Value::UInt(done.statements)),
            ("SUM_TIMER_WAIT", picoseconds(done.took_us)),
            ("AVG_TIMER_WAIT", picoseconds(done.took_us / done.statements.max(1))),
            ("SUM_NO_INDEX_USED", Value::UInt(done.unindexed)),
        ]);
        row
    };
    sums(server, columns).into_iter().map(row).collect()
}
