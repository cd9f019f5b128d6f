//! Rows of `performance_schema` that the server makes: statements by digest, threads, what they run, lock waits, locks of tables, files, memory,
//! SET PERSIST.
//!
//! A row is the columns that there is something to say of; the SQL layer fills in the others. Times are picoseconds there.

mod accounts;
mod files;
mod memory;
mod setup;
pub(crate) mod transactions;

use crate::digests::{Figure, Kind};
use crate::held_locks::TableLocked;
use crate::process::ProcessLine;
use crate::server::Server;
use bytes::Bytes;
use omnibus_parser::Digest;
use omnibus_sql::Progressed;
use omnibus_value::Value;
use omnibus_value::temporal::DateTime;
use sha2::{Digest as _, Sha256};
use std::fmt::Write;
use std::sync::atomic::Ordering;

pub(crate) type Row = Vec<(&'static str, Value)>;

/// `performance_schema_max_sql_text_length`.
const SQL_TEXT_MAX: usize = 1024;

pub(crate) fn text(text: impl AsRef<str>) -> Value {
    Value::Bytes(Bytes::copy_from_slice(text.as_ref().as_bytes()))
}

pub(crate) fn text_or_null(value: &str) -> Value {
    if value.is_empty() { Value::Null } else { text(value) }
}

fn picoseconds(us: u64) -> Value {
    Value::UInt(us.saturating_mul(1_000_000))
}

fn stamp(us: u64) -> Value {
    let (seconds, micros) = (us / 1_000_000, us % 1_000_000);
    let at = DateTime::from_unix(i64::try_from(seconds).unwrap_or(0), micros as u32);
    at.map_or(Value::Null, Value::DateTime)
}

/// A time in whole seconds; the SQL layer makes it one of the session's zone.
pub(crate) fn time(us: u64) -> Value {
    stamp(us - us % 1_000_000)
}

/// The rows of a table. `sees` says which threads the account may see.
pub(crate) fn rows(server: &Server, table: &str, sees: &dyn Fn(&ProcessLine) -> bool) -> Vec<Row> {
    let now = crate::clock::now_us();
    let lines = || {
        let lines =
            server.processes.all().into_iter().map(|process| (process.is_system(), process.line(now)));
        lines.filter(|(_, line)| sees(line)).collect::<Vec<_>>()
    };
    match table {
        "threads" => lines().iter().map(|(system, line)| thread(*system, line)).collect(),
        "events_statements_current" => lines().iter().filter_map(|(_, line)| running(line)).collect(),
        "events_statements_summary_by_digest" => {
            let mut rows = Vec::new();
            server.digests.for_each(|kind| rows.push(by_digest(kind)));
            rows
        }
        "setup_actors" => setup::actors(),
        "setup_consumers" => setup::consumers(server.digests.consumers()),
        "setup_instruments" => setup::instruments(server.digests.consumers()),
        "setup_objects" => setup::objects(),
        "setup_threads" => setup::threads(),
        "INNODB_TRX" => transactions::rows(server),
        "OMNIBUS_OLD_VERSIONS" => transactions::old_versions(server),
        "INNODB_LOCKS" => transactions::mariadb_locks(server),
        "INNODB_LOCK_WAITS" => transactions::mariadb_lock_waits(server),
        "events_transactions_current" | "events_transactions_history"
            if !server.digests.consumers().is_instrument_on("transaction") =>
        {
            Vec::new()
        }
        "events_transactions_current" => transactions::current(server, sees),
        "events_transactions_history" => transactions::history(server, sees),
        "data_lock_waits" => transactions::lock_waits(server),
        "data_locks" => transactions::locks(server),
        "accounts" => accounts::connections(server, &["USER", "HOST"]),
        "users" => accounts::connections(server, &["USER"]),
        "hosts" => accounts::connections(server, &["HOST"]),
        "events_statements_summary_by_account_by_event_name" => {
            accounts::statements(server, &["USER", "HOST"])
        }
        "events_statements_summary_by_user_by_event_name" => accounts::statements(server, &["USER"]),
        "events_statements_summary_by_host_by_event_name" => accounts::statements(server, &["HOST"]),
        "binary_log_transaction_compression_stats" => compression(server).into_iter().collect(),
        "metadata_locks" => {
            crate::held_locks::table_locks(&server.database).into_iter().map(table_lock).collect()
        }
        "events_stages_current" => lines().iter().filter_map(|(_, line)| stage(line)).collect(),
        "file_summary_by_instance" => files::by_instance(server),
        "file_summary_by_event_name" => files::by_event_name(server),
        "events_waits_summary_global_by_event_name" => files::waits(server),
        "memory_summary_by_thread_by_event_name" => memory::by_thread(&server.processes),
        "memory_summary_by_account_by_event_name" => memory::by(&server.processes, &["USER", "HOST"]),
        "memory_summary_by_user_by_event_name" => memory::by(&server.processes, &["USER"]),
        "memory_summary_by_host_by_event_name" => memory::by(&server.processes, &["HOST"]),
        "memory_summary_global_by_event_name" => memory::global(server.database.memory()),
        "session_connect_attrs" | "session_account_connect_attrs" => {
            lines().iter().flat_map(|(_, line)| attributes(line)).collect()
        }
        "persisted_variables" => {
            let row = |(name, kept): (String, crate::sysvars::persisted::Kept)| {
                vec![("VARIABLE_NAME", text(name)), ("VARIABLE_VALUE", text(kept.value))]
            };
            server.persisted.all().into_iter().map(row).collect()
        }
        _ => Vec::new(),
    }
}

fn attributes(line: &ProcessLine) -> Vec<Row> {
    let row = |(at, (name, value)): (usize, &(String, String))| {
        vec![
            ("PROCESSLIST_ID", Value::UInt(line.id.into())),
            ("ATTR_NAME", text(name)),
            ("ATTR_VALUE", text(value)),
            ("ORDINAL_POSITION", Value::Int(at as i64)),
        ]
    };
    line.identity.attributes.iter().enumerate().map(row).collect()
}

fn thread(system: bool, line: &ProcessLine) -> Row {
    let (kind, name) = match system {
        true => ("BACKGROUND", "thread/sql/replica"),
        false => ("FOREGROUND", "thread/sql/one_connection"),
    };
    let host = line.identity.host.rsplit_once(':').map_or(&*line.identity.host, |(host, _)| host);
    vec![
        ("THREAD_ID", Value::UInt(line.id.into())),
        ("NAME", text(name)),
        ("TYPE", text(kind)),
        ("PROCESSLIST_ID", Value::UInt(line.id.into())),
        ("PROCESSLIST_USER", text_or_null(&line.identity.user)),
        ("PROCESSLIST_HOST", text_or_null(host)),
        ("PROCESSLIST_DB", text_or_null(line.identity.db.as_deref().unwrap_or_default())),
        ("PROCESSLIST_COMMAND", text(line.command)),
        ("PROCESSLIST_TIME", Value::Int(line.seconds)),
        ("PROCESSLIST_STATE", text_or_null(line.state)),
        ("PROCESSLIST_INFO", line.info.as_ref().map_or(Value::Null, text)),
        ("INSTRUMENTED", text("YES")),
        ("HISTORY", text("YES")),
    ]
}

fn running(line: &ProcessLine) -> Option<Row> {
    let sql = line.info.as_ref()?;
    let digest = Digest::of(sql.as_bytes()).text(omnibus_sql::is_keyword);
    Some(vec![
        ("THREAD_ID", Value::UInt(line.id.into())),
        ("EVENT_ID", Value::UInt(1)),
        ("EVENT_NAME", text("statement/sql")),
        ("TIMER_WAIT", picoseconds(u64::try_from(line.seconds).unwrap_or(0) * 1_000_000)),
        ("SQL_TEXT", text(&sql[..sql.floor_char_boundary(SQL_TEXT_MAX)])),
        ("DIGEST", text(sha256(&digest))),
        ("DIGEST_TEXT", text(digest)),
        ("CURRENT_SCHEMA", text_or_null(line.identity.db.as_deref().unwrap_or_default())),
    ])
}

/// The row about `binlog_transaction_compression`.
fn compression(server: &Server) -> Option<Row> {
    let stats = &server.log.coordinator()?.cache_settings().compressed;
    let [count, before, after] =
        [&stats.transactions, &stats.before, &stats.after].map(|cell| cell.load(Ordering::Relaxed));
    let percentage = 100 - i64::try_from(after.saturating_mul(100) / before.max(1)).unwrap_or(0);
    (count > 0).then(|| {
        vec![
            ("LOG_TYPE", text("BINARY")),
            ("COMPRESSION_TYPE", text("ZSTD")),
            ("TRANSACTION_COUNTER", Value::UInt(count)),
            ("COMPRESSED_BYTES_COUNTER", Value::UInt(after)),
            ("UNCOMPRESSED_BYTES_COUNTER", Value::UInt(before)),
            ("COMPRESSION_PERCENTAGE", Value::Int(percentage)),
        ]
    })
}

/// The stage of a statement, and its progress if it tells.
fn stage(line: &ProcessLine) -> Option<Row> {
    line.info.as_ref().filter(|_| !line.state.is_empty())?;
    let name =
        line.progress.map_or_else(|| format!("stage/sql/{}", line.state), |now| now.work.event_name().into());
    let mut row = vec![
        ("THREAD_ID", Value::UInt(line.id.into())),
        ("EVENT_ID", Value::UInt(2)),
        ("EVENT_NAME", text(name)),
        ("NESTING_EVENT_ID", Value::UInt(1)),
        ("NESTING_EVENT_TYPE", text("STATEMENT")),
    ];
    if let Some(Progressed { done, estimated, .. }) = line.progress {
        row.push(("WORK_COMPLETED", Value::UInt(done)));
        row.push(("WORK_ESTIMATED", Value::UInt(estimated.max(done))));
    }
    Some(row)
}

/// A table's lock by MySQL's words for such.
fn table_lock(lock: TableLocked) -> Row {
    let (kind, (db, name)) = match lock.table {
        Some((db, name)) => ("TABLE", (text(db), text(name))),
        None => ("GLOBAL", (Value::Null, Value::Null)),
    };
    let mode = match (lock.mode, kind) {
        ("S", "GLOBAL") => "SHARED",
        (_, "GLOBAL") => "INTENTION_EXCLUSIVE",
        ("IS", _) => "SHARED_READ",
        ("IX", _) => "SHARED_WRITE",
        ("S", _) => "SHARED_READ_ONLY",
        ("SIX", _) => "SHARED_NO_WRITE",
        ("SU", _) => "SHARED_UPGRADABLE",
        _ => "EXCLUSIVE",
    };
    vec![
        ("OBJECT_TYPE", text(kind)),
        ("OBJECT_SCHEMA", db),
        ("OBJECT_NAME", name),
        ("LOCK_TYPE", text(mode)),
        ("LOCK_DURATION", text("TRANSACTION")),
        ("LOCK_STATUS", text(if lock.granted { "GRANTED" } else { "PENDING" })),
        ("OWNER_THREAD_ID", Value::UInt(lock.owner)),
    ]
}

fn sha256(digest: &str) -> String {
    let hash = Sha256::digest(digest.as_bytes());
    hash.iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn by_digest(kind: &Kind) -> Row {
    let get = |figure| kind.get(figure);
    let number = |figure| Value::UInt(get(figure));
    let count = get(Figure::Count);
    let (sample, seen, took) = kind.sample();
    let others = kind.text.is_empty();
    let or_null = |value: Value| if others { Value::Null } else { value };
    vec![
        ("SCHEMA_NAME", text_or_null(&kind.schema)),
        ("DIGEST", or_null(text(sha256(&kind.text)))),
        ("DIGEST_TEXT", text_or_null(&kind.text)),
        ("COUNT_STAR", Value::UInt(count)),
        ("SUM_TIMER_WAIT", picoseconds(get(Figure::Time))),
        ("MIN_TIMER_WAIT", picoseconds(if count == 0 { 0 } else { get(Figure::Min) })),
        ("AVG_TIMER_WAIT", picoseconds(get(Figure::Time) / count.max(1))),
        ("MAX_TIMER_WAIT", picoseconds(get(Figure::Max))),
        ("SUM_LOCK_TIME", picoseconds(get(Figure::Lock))),
        ("SUM_ERRORS", number(Figure::Errors)),
        ("SUM_WARNINGS", number(Figure::Warnings)),
        ("SUM_ROWS_AFFECTED", number(Figure::Affected)),
        ("SUM_ROWS_SENT", number(Figure::Sent)),
        ("SUM_ROWS_EXAMINED", number(Figure::Examined)),
        ("SUM_NO_INDEX_USED", number(Figure::Unindexed)),
        ("FIRST_SEEN", stamp(get(Figure::First))),
        ("LAST_SEEN", stamp(get(Figure::Last))),
        ("QUANTILE_95", picoseconds(kind.quantile(0.95))),
        ("QUANTILE_99", picoseconds(kind.quantile(0.99))),
        ("QUANTILE_999", picoseconds(kind.quantile(0.999))),
        ("QUERY_SAMPLE_TEXT", or_null(text(String::from_utf8_lossy(&sample)))),
        ("QUERY_SAMPLE_SEEN", or_null(stamp(seen.unsigned_abs()))),
        ("QUERY_SAMPLE_TIMER_WAIT", or_null(picoseconds(took))),
    ]
}
