//! Numbers out of sequences: NEXTVAL and SETVAL, and the rows of sequences that a source logged.
//!
//! A block of numbers is taken by a transaction of its own, which is durable before the first of them is told to anybody; so
//! no number comes twice, whatever becomes of the transaction that asked. It is in the log as MariaDB logs it: a row written
//! to the sequence. What is left of the block is in memory and goes with the process.
//!
//! One at a time per sequence: the block's mutex is held while the row is read, changed and committed, on a thread that may
//! block. Definitions are kept away by the table lock that every asker takes. Who changes the row otherwise (ALTER SEQUENCE,
//! a replica) counts the version up when that has its place, and never takes the mutex: it may be the log's own thread.

use super::events::{Logging, StatementEvents, StatementInfo};
use super::trx::{Trx, set_cache_context};
use crate::catalog::sequence::{SequenceBlock, SequenceRow, Step};
use crate::catalog::{Table, TableState};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::storage::SequenceAsk;
use bytes::Bytes;
use omnibus_commit::CommitRequest;
use omnibus_engine::WriteSet;
use omnibus_sync::MutexGuard;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Numbers that a statement which is run again finds again; of those behind them it takes new ones.
const KEPT: usize = 4096;

/// The id of the row.
const ROW: u64 = 1;

/// Where a sequence's row is.
pub(crate) fn row_key(table: &Table) -> Bytes {
    table.keys[0].hidden(ROW)
}

fn step_of(ask: &SequenceAsk<'_>) -> Step {
    Step {
        increment: ask.settings.auto_increment_increment as i64,
        offset: ask.settings.auto_increment_offset as i64,
    }
}

/// NEXTVAL.
///
/// # Errors
/// 4084; lock waits; the log.
pub(crate) fn next_value(trx: &mut Trx, table: &Arc<Table>, ask: &SequenceAsk<'_>) -> ExecResult<i64> {
    start_sequence(trx, table, ask)?;
    if let Some((_, number)) = trx.statement.numbers.take_again(|(id, _)| *id == table.def.id) {
        return Ok(number);
    }
    let number = new_number(trx, table, ask)?;
    if trx.statement.numbers.count() < KEPT {
        trx.statement.numbers.push((table.def.id, number));
    }
    Ok(number)
}

fn new_number(trx: &mut Trx, table: &Arc<Table>, ask: &SequenceAsk<'_>) -> ExecResult<i64> {
    let state = table.state.clone();
    let mut slot = own_block(trx, &state)?;
    let version = state.sequence.version.load(Ordering::Acquire);
    if let Some((block, of)) = slot.as_mut()
        && *of == version
        && let Some(number) = block.take()
    {
        return Ok(number);
    }
    trx.statement.waits().may_block()?;
    let mut row = sequence_row(trx, table)?;
    let run_out = || {
        let message = format!("Sequence '{}.{}' has run out", table.def.db, table.def.name);
        SqlError::new(4084, b"HY000", message)
    };
    let mut block = row.reserve(step_of(ask)).ok_or_else(run_out)?;
    write_sequence(trx, table, &row, ask)?;
    let number = block.take().ok_or_else(run_out)?;
    *slot = Some((block, version));
    Ok(number)
}

/// SETVAL; false if the sequence has come further already.
///
/// # Errors
/// As `next_value`, but for 4084.
pub(crate) fn set_value(
    trx: &mut Trx,
    table: &Arc<Table>,
    (value, used, round): (i64, bool, i64),
    ask: &SequenceAsk<'_>,
) -> ExecResult<bool> {
    start_sequence(trx, table, ask)?;
    trx.statement.waits().may_block()?;
    let state = table.state.clone();
    let mut slot = own_block(trx, &state)?;
    let version = state.sequence.version.load(Ordering::Acquire);
    let mut row = sequence_row(trx, table)?;
    let free = slot.filter(|(_, of)| *of == version).map_or(row.next, |(block, _)| block.peek());
    if !row.set(value, used, round, free, step_of(ask)) {
        return Ok(false);
    }
    write_sequence(trx, table, &row, ask)?;
    *slot = None;
    Ok(true)
}

/// Checks and locks before a number is taken.
fn start_sequence(trx: &mut Trx, table: &Arc<Table>, ask: &SequenceAsk<'_>) -> ExecResult<()> {
    if ask.settings.server_read_only {
        return Err(SqlError::option_prevents_statement("--read-only").into());
    }
    if ask.settings.sql_log_bin && ask.settings.binlog_format == crate::api::BinlogFormat::Statement {
        let message = "Cannot execute statement: impossible to write to binary log since BINLOG_FORMAT = STATEMENT \
                       and at least one table uses a storage engine limited to row-based logging.";
        return Err(SqlError::new(1665, b"HY000", message).into());
    }
    trx.start_write(table)
}

/// The block, which others may have for as long as a write to the device takes.
fn own_block<'s>(trx: &Trx, state: &'s TableState) -> ExecResult<MutexGuard<'s, SequenceBlock>> {
    if let Some(block) = state.sequence.block.try_lock() {
        return Ok(block);
    }
    trx.statement.waits().may_block()?;
    Ok(state.sequence.block.lock())
}

/// The row as it is now.
///
/// # Errors
/// It is not there: damage.
pub(crate) fn sequence_row(trx: &Trx, table: &Table) -> SqlResult<SequenceRow> {
    let stored = trx.shared.port.latest().get(&row_key(table))?;
    let stored = stored.ok_or_else(|| {
        let (db, name) = (&table.def.db, &table.def.name);
        SqlError::new(4086, b"HY000", format!("Sequence '{db}.{name}' table structure is invalid (No row)"))
    })?;
    SequenceRow::of(&table.decode(&stored)?)
}

/// Commits the row by itself, and waits until that is durable.
fn write_sequence(trx: &Trx, table: &Table, row: &SequenceRow, ask: &SequenceAsk<'_>) -> SqlResult<()> {
    let image = table.rows.encode(&row.values())?;
    let info = StatementInfo {
        settings: ask.settings,
        database: ask.database,
        sql: ask.sql,
        timestamp: ask.timestamp,
        now_us: i64::from(ask.timestamp) * 1_000_000,
        connection_id: ask.connection_id,
    };
    let mut cache = trx.shared.port.new_cache();
    set_cache_context(&mut cache, &info);
    let mut events = StatementEvents::default();
    let mut logging = Logging::of(ask.settings);
    events.begin(&info);
    events.insert(&mut logging, &mut cache, table, Some(ROW), &image)?;
    events.finish(&mut cache)?;
    let mut writes = WriteSet::default();
    writes.put(row_key(table), image);
    if let Some(error) = trx.shared.port.engine().refuses(&writes) {
        return Err(error.into());
    }
    let xid = trx.shared.xid.fetch_add(1, Ordering::Relaxed);
    let logged = events.commit(&logging, &mut cache, &writes, xid, &[])?;
    let request = CommitRequest {
        xid: logged.then_some(xid),
        ..CommitRequest::new(cache, writes, logged, omnibus_commit::now_us())
    };
    let kill = trx.budget.kill();
    let ticket = trx.shared.port.commit_seen(kill, request);
    kill.settle(ticket).map(|_| ())
}

/// A row that a source wrote to a sequence takes the place of ours.
///
/// # Errors
/// Lock waits, a full trx cache.
pub(crate) fn put_sequence(trx: &mut Trx, table: &Arc<Table>, row: Bytes) -> ExecResult<()> {
    trx.transaction.touch(&trx.statement, &trx.locks.rows)?;
    let key = row_key(table);
    trx.locks.rows.lock_new_key(&mut trx.statement, &key)?;
    trx.log.events.insert(&mut trx.statement.attempt.logging, &mut trx.log.cache, table, Some(ROW), &row)?;
    trx.transaction.writes.put(key, row);
    trx.transaction.sequences.push(table.state.clone());
    Ok(())
}
