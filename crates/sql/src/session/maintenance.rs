//! ANALYZE, CHECK, CHECKSUM, OPTIMIZE and REPAIR TABLE.
//!
//! ANALYZE counts rows and the different values of every index's leading parts; what it found is kept beside the
//! catalog, survives restarts, and is what row lookup and SHOW INDEX go by. CHECK reads every row and compares every
//! index with the rows. CHECKSUM adds up the rows' own sums ([`RowSum`]), so that the order does not matter. OPTIMIZE and REPAIR have nothing to do here.
//! Each reads one snapshot, without locks, on a thread that may block. All but CHECK and CHECKSUM are in the binary log, as
//! MySQL has them, unless they are LOCAL or the server is read-only; a replica passes over those that change no histogram.

use super::histograms::{self, Changes, Message};
use super::row_sum::RowSum;
use super::show::answer_column;
use super::{Call, StatementContext};
use crate::api::{Mode, Outcome, Priv};
use crate::bind;
use crate::catalog::Table;
use crate::error::{ExecResult, Interrupt, Level, SqlError, SqlResult};
use crate::state::SessionState;
use crate::store::kept_statistics;
use crate::store::{HeldSnapshot, by_ref, samples, whole_index};
use omnibus_commit::Ticket;
use omnibus_engine::Snapshot;
use omnibus_parser::ast::{Histograms, Maintenance, MaintenanceKind, ObjectName};
use omnibus_value::{ColumnKind, Value};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The number of an engine's error as clients get it.
const ENGINE_FAILED: u16 = 1030;

/// Entries read between two looks at KILL.
const PAUSE: u64 = 4096;

pub(super) fn maintain(
    cx: &mut StatementContext<'_>,
    what: &Maintenance,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    if call.mode == Mode::Inline {
        return Err(Interrupt::NeedBlocking);
    }
    if what.kind == MaintenanceKind::Checksum {
        return checksum_tables(cx, what, call);
    }
    if let Some(wanted) = &what.histograms {
        histograms::check(wanted)?;
    }
    for name in &what.tables {
        let db = cx.schema_of(name)?;
        check(cx, Priv::Select, &db, name, call)?;
        if what.kind != MaintenanceKind::Check {
            check(cx, Priv::Insert, &db, name, call)?;
        }
    }
    cx.trx.branch.check_none()?;
    for name in &what.tables {
        cx.state.held.handlers.close_table(&cx.schema_of(name)?, &name.name);
    }
    let ticket = cx.commit_now()?;
    cx.finish_commit(ticket)?;
    call.sink.columns(&[
        answer_column("Table", ColumnKind::VarChar, 128),
        answer_column("Op", ColumnKind::VarChar, 10),
        answer_column("Msg_type", ColumnKind::VarChar, 10),
        answer_column("Msg_text", ColumnKind::VarChar, 131_072),
    ])?;
    let op = match what.kind {
        MaintenanceKind::Analyze if what.histograms.is_some() => "histogram",
        MaintenanceKind::Analyze => "analyze",
        MaintenanceKind::Check => "check",
        MaintenanceKind::Optimize => "optimize",
        _ => "repair",
    };
    let text = |text: &str| Value::Bytes(bytes::Bytes::copy_from_slice(text.as_bytes()));
    if let Some(wanted) = &what.histograms {
        let (full, messages, wait) = histograms_of(cx, what, wanted, call)?;
        for (kind, message) in messages {
            call.sink.row(&[text(&full), text(op), text(kind), text(&message)])?;
        }
        return Ok(Outcome { wait, ..Outcome::rows() });
    }
    let mut changes = Vec::new();
    for name in &what.tables {
        let db = cx.schema_of(name)?;
        let full = format!("{db}.{}", name.name);
        for (kind, message) in maintain_one(cx, what.kind, &db, name, &mut changes)? {
            call.sink.row(&[text(&full), text(op), text(kind), text(&message)])?;
        }
    }
    let local = what.local || what.kind == MaintenanceKind::Check || cx.state.settings.server_read_only;
    if local && changes.is_empty() {
        return Ok(Outcome::rows());
    }
    let ticket = histograms::keep_histograms(cx, changes, local, call)?;
    Ok(Outcome { wait: Some(ticket), ..Outcome::rows() })
}

/// UPDATE HISTOGRAM and DROP HISTOGRAM: the table's name, what became of each column, and the commit, which is done.
fn histograms_of(
    cx: &mut StatementContext<'_>,
    what: &Maintenance,
    wanted: &Histograms,
    call: &Call<'_>,
) -> ExecResult<(String, Vec<Message>, Option<Ticket>)> {
    let error = |full: String, text: String| Ok((full, vec![("Error", text)], None));
    let [name] = &what.tables[..] else {
        let message = "Only one table can be specified while modifying histogram statistics.";
        return error(String::new(), message.into());
    };
    let db = cx.schema_of(name)?;
    let full = format!("{db}.{}", name.name);
    if cx.state.settings.server_read_only {
        return error(full, "The server is in read-only mode.".into());
    }
    if cx.catalog().find_view(&db, &name.name).is_some() {
        return error(full, "Cannot create histogram statistics for a view.".into());
    }
    if cx.trx.temp.table(&db, &name.name).is_some() {
        return error(full, "Cannot create histogram statistics for a temporary table.".into());
    }
    let table = match cx.catalog().table(&db, &name.name) {
        Ok(table) => table.clone(),
        Err(error) => {
            return Ok((full, vec![("Error", error.message), ("status", "Operation failed".into())], None));
        }
    };
    let (messages, ticket) = histograms::change_histograms(cx, &table, wanted, what.local, call)?;
    Ok((full, messages, ticket))
}

/// Checks the rights on a table; who made a temporary one may do anything with it.
fn check(
    cx: &StatementContext<'_>,
    privilege: Priv,
    db: &str,
    name: &ObjectName,
    call: &Call<'_>,
) -> SqlResult<()> {
    if cx.trx.temp.table(db, &name.name).is_some() {
        return Ok(());
    }
    call.access.check(db, Some(&name.name), privilege)
}

/// The messages about one table: type and text.
fn maintain_one(
    cx: &mut StatementContext<'_>,
    kind: MaintenanceKind,
    db: &str,
    name: &ObjectName,
    changes: &mut Vec<Changes>,
) -> ExecResult<Vec<Message>> {
    if let Some(view) = cx.catalog().find_view(db, &name.name).filter(|_| kind == MaintenanceKind::Check) {
        let found = bind::outline(view, cx.state, &cx.catalog(), cx.database.virtual_tables());
        return Ok(match found {
            Ok(_) => vec![("status", "OK".into())],
            Err(error) if error.is_of_the_statement() => return Err(error.into()),
            Err(error) => vec![("Error", error.message), ("error", "Corrupt".into())],
        });
    }
    let table = match cx.catalog().table(db, &name.name) {
        Ok(table) => table.clone(),
        Err(error) => return Ok(vec![("Error", error.message), ("status", "Operation failed".into())]),
    };
    let ok = |text: &str| vec![("status", text.to_owned())];
    if table.temporary {
        // In the session's memory: nothing to count for others, nothing that a disk could have damaged.
        return Ok(ok("OK"));
    }
    match kind {
        MaintenanceKind::Analyze => {
            analyze(cx, &table)?;
            changes.extend(histograms::renew_histograms(cx, &table)?);
            Ok(ok("OK"))
        }
        MaintenanceKind::Check => {
            let problems = match check_table(cx, &table) {
                // What is asked for, and no reason to leave out the tables behind it.
                Err(Interrupt::Error(error)) if error.code == ENGINE_FAILED => vec![error.message],
                done => done?,
            };
            let mut found: Vec<_> = problems.into_iter().map(|problem| ("error", problem)).collect();
            match found.is_empty() {
                true => Ok(ok("OK")),
                false => {
                    found.push(("error", "Corrupt".into()));
                    Ok(found)
                }
            }
        }
        MaintenanceKind::Optimize => {
            let note = "Table does not support optimize, doing recreate + analyze instead";
            Ok(vec![("note", note.to_owned()), ("status", "OK".into())])
        }
        _ => Ok(vec![("note", "The storage engine for the table doesn't support repair".into())]),
    }
}

/// A snapshot of everything that is published now.
fn newest(cx: &StatementContext<'_>) -> HeldSnapshot {
    HeldSnapshot::newest(&**cx.database.port())
}

fn analyze(cx: &mut StatementContext<'_>, table: &Arc<Table>) -> ExecResult<()> {
    let snapshot = newest(cx);
    let found = kept_statistics::count(&*snapshot.snapshot, table, &mut || cx.state.budget.kill().check())?;
    kept_statistics::store(&**cx.database.port(), table.def.id, &found)?;
    table.state.set_statistics(found);
    samples::refresh(&*snapshot.snapshot, table).map_err(SqlError::from)?;
    cx.database.shared.statistics.fetch_add(1, Ordering::Release);
    Ok(())
}

/// Looks for faults of a table; damage that keeps it from being read is the engine's error. A few findings are enough.
fn check_table(cx: &mut StatementContext<'_>, table: &Arc<Table>) -> ExecResult<Vec<String>> {
    const ENOUGH: usize = 10;
    let snapshot = newest(cx);
    let mut problems = Vec::new();
    let mut rows = 0u64;
    let range = whole_index(table, 0);
    for pair in snapshot.snapshot.scan(by_ref(&range.from), by_ref(&range.to), false) {
        let (key, row) = pair?;
        rows += 1;
        if problems.len() >= ENOUGH {
            return Ok(problems);
        }
        if rows.is_multiple_of(PAUSE) {
            cx.state.budget.look(0)?;
        }
        let values = match table.decode(&row) {
            Ok(values) => values,
            Err(error) => {
                problems.push(format!("row {rows}: {}", error.message));
                continue;
            }
        };
        for (codec, index) in table.keys.iter().zip(&table.def.indexes).skip(1) {
            let entry = codec.entry(&values, &key);
            if snapshot.snapshot.get(&entry.key)?.as_deref() != Some(&entry.value[..]) {
                problems.push(format!("index '{}' has no entry for row {rows}", index.name));
            }
        }
    }
    for (at, index) in table.def.indexes.iter().enumerate().skip(1) {
        let entries = count_entries(cx.state, &*snapshot.snapshot, table, at)?;
        if entries != rows {
            problems.push(format!("index '{}' has {entries} entries for {rows} rows", index.name));
        }
    }
    Ok(problems)
}

fn checksum_tables(
    cx: &mut StatementContext<'_>,
    what: &Maintenance,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    call.sink.columns(&[
        answer_column("Table", ColumnKind::VarChar, 128),
        answer_column("Checksum", ColumnKind::BigInt, 21),
    ])?;
    let quick = what.options.iter().any(|option| option.is("quick"));
    for name in &what.tables {
        let db = cx.schema_of(name)?;
        check(cx, Priv::Select, &db, name, call)?;
        let full = format!("{db}.{}", name.name);
        let sum = match cx.catalog().table(&db, &name.name) {
            // There is no live checksum to be quick with.
            Ok(_) if quick => Value::Null,
            Ok(table) => {
                let table = table.clone();
                Value::UInt(u64::from(checksum(cx, &table)?))
            }
            Err(error) => {
                cx.state.diagnostics.push(Level::Error, error);
                Value::Null
            }
        };
        call.sink.row(&[Value::Bytes(full.into()), sum])?;
    }
    Ok(Outcome::rows())
}

fn checksum(cx: &mut StatementContext<'_>, table: &Arc<Table>) -> ExecResult<u32> {
    let (sums, mut buffer, mut sum) = (RowSum::new(table), Vec::new(), 0u32);
    let mut add = |row: &bytes::Bytes| -> SqlResult<()> {
        sum = sum.wrapping_add(sums.of(&table.decode(row)?, &mut buffer)?);
        Ok(())
    };
    if table.temporary {
        for row in cx.trx.temp.all_rows(table, cx.trx.budget.kill())? {
            add(&row.row)?;
        }
        return Ok(sum);
    }
    let range = whole_index(table, 0);
    let snapshot = newest(cx);
    let mut rows = 0u64;
    let mut result: ExecResult<()> = Ok(());
    snapshot.snapshot.visit(by_ref(&range.from), by_ref(&range.to), &mut |_, row| {
        rows += 1;
        let row = row.to_bytes();
        result = match rows.is_multiple_of(PAUSE) {
            true => cx.state.budget.look(0).and_then(|()| Ok(add(&row)?)),
            false => add(&row).map_err(Interrupt::from),
        };
        result.is_ok()
    })?;
    result?;
    Ok(sum)
}

/// Entries of an index.
fn count_entries(state: &SessionState, snapshot: &dyn Snapshot, table: &Table, at: usize) -> ExecResult<u64> {
    let range = whole_index(table, at);
    let mut entries = 0u64;
    let mut result = Ok(());
    snapshot.visit(by_ref(&range.from), by_ref(&range.to), &mut |_, _| {
        entries += 1;
        if entries.is_multiple_of(PAUSE) {
            result = state.budget.look(0);
        }
        result.is_ok()
    })?;
    result?;
    Ok(entries)
}
