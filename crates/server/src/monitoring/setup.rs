//! `setup_consumers`, `setup_instruments` and their kin: what is collected here, by the names of the events that the other tables have.

use super::{Row, text};
use crate::consumers::Consumers;
use omnibus_value::Value;

/// The instruments, and whether they measure times, if that can be said of them. `consumers` knows which of them can be switched off.
const INSTRUMENTS: [(&str, Option<bool>); 15] = [
    ("wait/io/file/sql/binlog", Some(true)),
    ("wait/io/file/sql/binlog_index", Some(true)),
    ("wait/io/file/sql/misc", Some(true)),
    ("wait/io/file/lsm/file", Some(true)),
    ("wait/io/file/btree/file", Some(true)),
    ("wait/io/table/sql/handler", Some(false)),
    ("wait/lock/metadata/sql/mdl", Some(false)),
    ("stage/innodb/alter table (read PK and internal sort)", Some(false)),
    ("stage/innodb/alter table (insert)", Some(false)),
    ("stage/innodb/alter table (log apply index)", Some(false)),
    ("stage/sql/copy to tmp table", Some(false)),
    ("statement/sql", Some(true)),
    ("transaction", Some(true)),
    ("memory/sql/statements", None),
    ("memory/sql/definitions", None),
];
/// Schemas of whose tables nothing is counted.
const UNCOUNTED: [&str; 3] = ["mysql", "performance_schema", "information_schema"];

fn yes(on: bool) -> Value {
    text(if on { "YES" } else { "NO" })
}

/// `setup_consumers`.
pub(super) fn consumers(consumers: &Consumers) -> Vec<Row> {
    consumers.all().map(|(name, on)| vec![("NAME", text(name)), ("ENABLED", yes(on))]).collect()
}

/// `setup_instruments`.
pub(super) fn instruments(consumers: &Consumers) -> Vec<Row> {
    let row = |(name, timed): (&str, Option<bool>)| {
        vec![
            ("NAME", text(name)),
            ("ENABLED", yes(consumers.is_instrument_on(name))),
            ("TIMED", timed.map_or(Value::Null, yes)),
            ("PROPERTIES", text("")),
            ("VOLATILITY", Value::Int(0)),
        ]
    };
    INSTRUMENTS.into_iter().map(row).collect()
}

/// `setup_actors`: everybody.
pub(super) fn actors() -> Vec<Row> {
    let mut row: Row = ["HOST", "USER", "ROLE"].map(|column| (column, text("%"))).into();
    row.extend([("ENABLED", yes(true)), ("HISTORY", yes(true))]);
    vec![row]
}

/// `setup_objects`: all tables but the server's own.
pub(super) fn objects() -> Vec<Row> {
    let row = |(schema, on)| {
        vec![
            ("OBJECT_TYPE", text("TABLE")),
            ("OBJECT_SCHEMA", text(schema)),
            ("OBJECT_NAME", text("%")),
            ("ENABLED", yes(on)),
            ("TIMED", yes(false)),
        ]
    };
    UNCOUNTED.map(|schema| (schema, false)).into_iter().chain([("%", true)]).map(row).collect()
}

/// `setup_threads`: those that `threads` has.
pub(super) fn threads() -> Vec<Row> {
    let row = |name| {
        vec![
            ("NAME", text(name)),
            ("ENABLED", yes(true)),
            ("HISTORY", yes(true)),
            ("PROPERTIES", text("")),
            ("VOLATILITY", Value::Int(0)),
        ]
    };
    ["thread/sql/one_connection", "thread/sql/replica"].into_iter().map(row).collect()
}
