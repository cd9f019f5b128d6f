//! ANALYZE TABLE .. UPDATE HISTOGRAM and DROP HISTOGRAM.
//!
//! The statement is a transaction of its own: the histograms' rows beside the catalog and its text, for replicas that make their
//! own. The table's rows are read in one snapshot, without locks; the table cannot be changed meanwhile, its rows can.

use super::dispatch::statement_text;
use super::{Call, StatementContext};
use crate::api::VariableScope;
use crate::catalog::histogram::{self, Collector, MOST_BUCKETS};
use crate::catalog::{Column, Histogram, Table, first_double, histogram_data};
use crate::ddl::log_ddl;
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::store::kept_statistics::histogram_key;
use crate::store::{HeldSnapshot, by_ref, whole_index};
use omnibus_commit::Ticket;
use omnibus_locks::TableMode;
use omnibus_parser::ast::{HistogramChange, Histograms, Ident};
use omnibus_value::json::{Json, JsonError};
use omnibus_value::temporal::DateTime;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A message's type and text.
pub(super) type Message = (&'static str, String);

/// Rows between two looks at KILL.
const PAUSE: u64 = 4096;

/// New histograms of a table's columns; `None` drops one.
pub(super) struct Changes {
    table: Arc<Table>,
    columns: Vec<(String, Option<Arc<Histogram>>)>,
}

/// Fails for what is wrong with the statement whatever the table is.
pub(super) fn check(histograms: &Histograms) -> SqlResult<()> {
    if let Some(at) = first_double(histograms.columns.iter().map(|column| &**column)) {
        return Err(SqlError::dup_fieldname(&histograms.columns[at]));
    }
    match &histograms.change {
        HistogramChange::Update { buckets: Some(buckets), .. } if !(1..=MOST_BUCKETS).contains(buckets) => {
            let message = "Number of buckets value is out of range in 'ANALYZE TABLE'";
            Err(SqlError::new(1690, b"22003", message))
        }
        _ => Ok(()),
    }
}

/// Why a column can have no histogram.
fn refused(table: &Table, name: &Ident) -> Result<usize, String> {
    let Some(at) = table.column_index(name) else {
        return Err(format!("The column '{name}' does not exist."));
    };
    let alone = |index: &crate::catalog::Index| {
        index.unique()
            && index.parts.len() == 1
            && index.parts[0].column == at
            && index.parts[0].prefix.is_none()
    };
    if table.indexes().iter().any(alone) {
        return Err(format!("The column '{name}' is covered by a single-part unique index."));
    }
    if !histogram::supports(&table.columns()[at]) {
        return Err(format!("The column '{name}' has an unsupported data type."));
    }
    Ok(at)
}

impl Changes {
    fn found(&mut self, at: usize, found: Histogram) -> Message {
        let name = self.table.columns()[at].name.clone();
        self.columns.push((name.to_lowercase(), Some(Arc::new(found))));
        ("status", format!("Histogram statistics created for column '{name}'."))
    }
}

/// Changes histograms of one table, and says what became of each. What changes is durable then.
pub(super) fn change_histograms(
    cx: &mut StatementContext<'_>,
    table: &Arc<Table>,
    wanted: &Histograms,
    local: bool,
    call: &Call<'_>,
) -> ExecResult<(Vec<Message>, Option<Ticket>)> {
    let (mut messages, mut counted) = (Vec::new(), Vec::new());
    let mut changes = Changes { table: table.clone(), columns: Vec::new() };
    for name in &wanted.columns {
        let key = name.to_lowercase();
        if wanted.change == HistogramChange::Drop {
            if table.state.histograms.read().contains_key(&key) {
                changes.columns.push((key, None));
                messages.push(("status", format!("Histogram statistics removed for column '{name}'.")));
            } else {
                messages.push(("Error", format!("No histogram statistics found for column '{name}'.")));
            }
            continue;
        }
        match refused(table, name) {
            Ok(at) => counted.push(at),
            Err(message) => messages.push(("Error", message)),
        }
    }
    match &wanted.change {
        HistogramChange::Drop => {}
        HistogramChange::Given(document) => {
            if wanted.columns.len() > 1 {
                let message =
                    "Only one column can be specified while modifying histogram statistics with JSON data.";
                return Ok((vec![("Error", message.into())], None));
            }
            for at in counted {
                match given(document, table, &table.columns()[at]) {
                    Ok(found) => messages.push(changes.found(at, found)),
                    Err(mut refused) => messages.append(&mut refused),
                }
            }
        }
        HistogramChange::Update { buckets, auto } => {
            let wanted: Vec<_> =
                counted.iter().map(|at| (*at, buckets.unwrap_or(histogram::BUCKETS), *auto)).collect();
            for (at, found) in count_histograms(cx, table, &wanted)? {
                messages.push(changes.found(at, found));
            }
        }
    }
    if changes.columns.is_empty() {
        return Ok((messages, None));
    }
    let ticket = keep_histograms(cx, vec![changes], local, call)?;
    Ok((messages, Some(ticket)))
}

/// Makes histograms of columns anew, each with so many buckets.
fn count_histograms(
    cx: &mut StatementContext<'_>,
    table: &Arc<Table>,
    wanted: &[(usize, u64, bool)],
) -> ExecResult<Vec<(usize, Histogram)>> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let memory =
        cx.state.connection.host.variable(VariableScope::Session, "histogram_generation_max_mem_size");
    let memory = memory.ok().and_then(|(value, _)| value.to_f64().value.into()).unwrap_or(2e7) as usize;
    let each = memory / wanted.len();
    let mut collectors: Vec<_> =
        wanted.iter().map(|(at, ..)| Collector::new(&table.columns()[*at], each)).collect();
    let snapshot = HeldSnapshot::newest(&**cx.database.port());
    let range = whole_index(table, 0);
    let (mut rows, mut result) = (0u64, Ok(()));
    snapshot.snapshot.visit(by_ref(&range.from), by_ref(&range.to), &mut |_, row| {
        rows += 1;
        if rows.is_multiple_of(PAUSE) {
            result = cx.state.budget.look(0);
        }
        let row = row.to_bytes();
        for ((at, ..), collector) in wanted.iter().zip(&mut collectors) {
            match table.decode_column(&row, *at) {
                Ok(value) => collector.add(&value),
                Err(error) => result = Err(error.into()),
            }
        }
        result.is_ok()
    })?;
    result?;
    let now = DateTime::from_unix(
        cx.state.statement.now_us / 1_000_000,
        (cx.state.statement.now_us % 1_000_000) as u32,
    );
    let now = now.unwrap_or(DateTime::ZERO);
    let made = wanted.iter().zip(collectors).filter_map(|((at, buckets, auto), collector)| {
        let document = collector.finish(*buckets, *auto, now);
        Some((*at, Histogram::of_document(document, &table.columns()[*at])?))
    });
    Ok(made.collect())
}

/// Makes those anew that ANALYZE TABLE is to make anew.
pub(super) fn renew_histograms(
    cx: &mut StatementContext<'_>,
    table: &Arc<Table>,
) -> ExecResult<Option<Changes>> {
    let auto = |(at, _): (usize, &Column)| {
        let known = table.histogram(at)?;
        known.is_auto().then(|| (at, known.asked_buckets(), true))
    };
    let wanted: Vec<_> = table.columns().iter().enumerate().filter_map(auto).collect();
    if wanted.is_empty() {
        return Ok(None);
    }
    let mut changes = Changes { table: table.clone(), columns: Vec::new() };
    for (at, found) in count_histograms(cx, table, &wanted)? {
        changes.found(at, found);
    }
    Ok(Some(changes))
}

/// Commits changes of histograms, and the statement's text unless it is `local`. The ticket is done.
pub(super) fn keep_histograms(
    cx: &mut StatementContext<'_>,
    changes: Vec<Changes>,
    local: bool,
    call: &Call<'_>,
) -> ExecResult<Ticket> {
    for Changes { table, columns } in &changes {
        cx.trx.lock_table(table, TableMode::IntentShared)?;
        for (name, histogram) in columns {
            let key = histogram_key(table.def.id, name);
            match histogram.as_ref().and_then(|found| found.document().encode().ok()) {
                Some(document) => cx.trx.transaction.writes.put(key, document),
                None => cx.trx.transaction.writes.delete(key),
            }
        }
    }
    let shared = cx.database.shared.clone();
    let effect = move |_| {
        for Changes { table, columns } in changes {
            let mut histograms = table.state.histograms.write();
            for (name, histogram) in columns {
                match histogram {
                    Some(found) => drop(histograms.insert(name, found)),
                    None => drop(histograms.remove(&name)),
                }
            }
        }
        shared.statistics.fetch_add(1, Ordering::Release);
    };
    let logged = cx.state.settings.sql_log_bin && !local;
    let was = std::mem::replace(&mut cx.state.settings.sql_log_bin, logged);
    let taken = cx.trx.log.take_along_applied(&cx.trx.statement, &mut cx.trx.transaction);
    let done = taken.and_then(|()| {
        let text = statement_text(call.text);
        let text = omnibus_parser::set_histograms_aside(text, &cx.state.settings.parse_options());
        log_ddl(cx.trx, &cx.state.info(&text), &[])
    });
    cx.state.settings.sql_log_bin = was;
    if let Err(error) = done {
        cx.trx.rollback();
        return Err(error.into());
    }
    let ticket = cx.trx.commit_ddl(logged, omnibus_commit::now_us(), Vec::new(), effect);
    Ok(Ticket::done(Ok(cx.settle(ticket)?)))
}

/// A document that a statement has, or what is wrong with it.
fn given(document: &[u8], table: &Table, column: &Column) -> Result<Histogram, Vec<Message>> {
    let (db, table) = (&table.def.db, &table.def.name);
    let unable = format!(
        "Unable to build histogram statistics for column '{}' in table '{db}'.'{table}'",
        column.name
    );
    let document = Json::parse(document).map_err(|error| {
        let offset = if let JsonError::Syntax { offset, .. } = &error { *offset } else { 0 };
        let text = format!(
            "Invalid JSON text in argument 1 to function UPDATE HISTOGRAM: \"{error}\" at position {offset}."
        );
        vec![("Error", text), ("Error", unable.clone()), ("Error", "JSON format error.".to_owned())]
    })?;
    histogram_data::check(&document, column).map_err(|refusal| {
        let warning = refusal.warning.map(|warning| ("Warning", warning));
        warning.into_iter().chain([("Error", unable.clone()), ("Error", refusal.error)]).collect::<Vec<_>>()
    })?;
    let format = || vec![("Error", unable.clone()), ("Error", "JSON format error.".to_owned())];
    Histogram::of_document(document, column).ok_or_else(format)
}
