//! Filling new indexes, or a table that is written anew, while others write the table.
//!
//! 1. The table is locked exclusively: every transaction that wrote it has ended, and those that begin afterwards leave the keys of the
//!    rows that they change (`store::building`). A snapshot is taken, the lock becomes one beside which others read and write.
//! 2. The indexes are filled from that snapshot: loaded into the engine (`copy`), or, with the rows themselves among them, by commits that
//!    no replica sees.
//! 3. In rounds, a snapshot later each: of every row that was changed since the one before, the entries that it had are deleted and those
//!    that it has are put, by such commits. The rounds become short, as writers get less time for changes.
//! 4. The table is locked exclusively again, which waits for open transactions as step 1; one round more, and the indexes are right.
//!    The definition that has them follows.
//!
//! Nobody but the build writes to these spaces, and no definition knows them before the last commit: a crash in between leaves what the
//! next start drops, and recovery of the last commit makes indexes from the rows (BuildIndex) where the engine does not have them yet. Rows written
//! anew are in the log as they were committed, because recovery converts none. What fails, or is taken back at its commit, drops its spaces
//! itself (`loaded`).
//!
//! Rejected: publishing an index that writers maintain and readers do not see. Each writer would pay for each build, a unique one
//! could fail writers instead of the build, and a crash would leave a definition to repair.

use super::copy::{self, ColumnSource, Copying, Rows};
use super::exec::{Change, Ddl};
use crate::api::Work;
use crate::catalog::codec::Entry;
use crate::catalog::{Table, TableDef};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::Context;
use crate::sort::{ExternalSort, KeyForm, Sorted};
use crate::store::{Build, HeldSnapshot, Names, duplicate_error, write_set_event};
use bytes::Bytes;
use omnibus_commit::CommitRequest;
use omnibus_engine::{CommitNo, Snapshot, WriteSet};
use omnibus_locks::TableMode;
use std::sync::Arc;

/// Rows between two looks at what writers have left.
const PAUSE: u64 = 1024;
/// Changed rows that are few enough to be followed while nobody may use the table.
const FEW: u64 = 500;
/// Rounds after which it is tried anyhow: writers that are faster than the build must wait for it once.
const ROUNDS: u32 = 16;
/// Memory in which keys, and entries, of changed rows are sorted.
const SORT_BYTES: u64 = 4 << 20;
/// Bytes of writes in one commit.
const CHUNK: usize = 512 << 10;

/// The indexes that are built, and the table that they belong to.
struct BuildTarget<'a> {
    /// The table with its new indexes.
    new: Arc<Table>,
    /// The places of the new ones among them: all, if rows are copied.
    built: Vec<usize>,
    /// How rows are written anew.
    copying: Option<Copying<'a>>,
}

/// The rows that writers have changed since the last round.
struct Changes {
    build: Build,
    keys: ExternalSort,
    count: u64,
    /// Calls until the next look.
    left: u64,
}

impl Changes {
    fn new(build: Build, exec: &Context<'_>) -> Changes {
        Changes { build, keys: sort(exec), count: 0, left: PAUSE }
    }

    /// Takes over what commits up to `last` have left.
    fn gather(&mut self, last: CommitNo, exec: &mut Context<'_>) -> ExecResult<()> {
        for key in self.build.take(last) {
            self.count += 1;
            self.keys.add(&key, &[], exec)?;
        }
        Ok(())
    }

    /// The same, now and then.
    fn look(&mut self, published: impl FnOnce() -> CommitNo, exec: &mut Context<'_>) -> ExecResult<()> {
        self.left -= 1;
        if self.left > 0 {
            return Ok(());
        }
        self.left = PAUSE;
        self.gather(published(), exec)
    }

    /// All keys in order, for a round.
    fn take(&mut self, exec: &mut Context<'_>) -> ExecResult<Sorted> {
        self.count = 0;
        std::mem::replace(&mut self.keys, sort(exec)).finish(exec)
    }
}

fn sort(exec: &Context<'_>) -> ExternalSort {
    ExternalSort::with_budget(KeyForm::new(Vec::new()), SORT_BYTES, exec)
}

/// Fills indexes `built` of the new definition, beside writers. On return the table is locked exclusively again, and `change` is one on
/// the catalog of then.
pub(super) fn build_beside_writers(
    ddl: &mut Ddl<'_>,
    change: &mut Change,
    names: Names<'_>,
    table: &Arc<Table>,
    def: &TableDef,
    built: &[usize],
) -> ExecResult<()> {
    let new = Arc::new(Table::new(def.clone(), table.state.clone()));
    let target = BuildTarget { new, built: built.to_vec(), copying: None };
    build(ddl, change, names, table, &target).map(drop)
}

/// Writes all rows anew, as `sources` say, into the spaces of the new definition; the rest is as there. Returns how many rows there were.
pub(super) fn copy_beside_writers(
    ddl: &mut Ddl<'_>,
    change: &mut Change,
    names: Names<'_>,
    table: &Arc<Table>,
    def: &TableDef,
    sources: &[ColumnSource],
) -> ExecResult<u64> {
    let new = Arc::new(Table::new(def.clone(), table.state.clone()));
    let copying = Some(Copying::new(ddl, table, &new, sources)?);
    let target = BuildTarget { built: (0..def.indexes.len()).collect(), new, copying };
    let rows = build(ddl, change, names, table, &target)?;
    copy::renumber(table, def);
    Ok(rows)
}

fn build(
    ddl: &mut Ddl<'_>,
    change: &mut Change,
    names: Names<'_>,
    table: &Arc<Table>,
    target: &BuildTarget<'_>,
) -> ExecResult<u64> {
    let port = ddl.trx.shared.port.clone();
    let build = Build::begin(&ddl.trx.shared, table.def.indexes[0].space);
    // Locks may go before a commit is published: the snapshot must have all that was done under them.
    ddl.trx.shared.await_snapshot_of(port.numbered(), ddl.state.budget.kill())?;
    let mut before = HeldSnapshot::newest(&*port);
    ddl.trx.locks.step_aside(ddl.trx.statement.waits(), table.def.id, TableMode::IntentShared)?;
    let mut changes = Changes::new(build, &exec(ddl));
    let progress = ddl.state.budget.progress.clone();
    let rows = Rows::at(&*before.snapshot, table);
    let mut count = 0;
    if target.copying.is_some() {
        count = fill_copy(ddl, target, &rows, &mut changes)?;
    } else {
        for &at in &target.built {
            let mut exec = Context::new(ddl.state, ddl.trx, &[]);
            copy::fill_index(&*port, &rows, &target.new, at, &mut exec, &mut |exec| {
                changes.look(|| port.published(), exec)
            })?;
        }
    }
    for round in 0.. {
        let after = HeldSnapshot::newest(&*port);
        changes.gather(after.no, &mut exec(ddl))?;
        progress.begin(Work::Follow, changes.count);
        let last = changes.count <= FEW || round == ROUNDS;
        let keys = changes.take(&mut exec(ddl))?;
        follow(ddl, target, (&*before.snapshot, &*after.snapshot), keys, &mut changes)?;
        before = after;
        if last {
            break;
        }
    }
    lock_again(ddl, change, names, table)?;
    changes.gather(CommitNo::MAX, &mut exec(ddl))?;
    let keys = changes.take(&mut exec(ddl))?;
    follow(ddl, target, (&*before.snapshot, &*port.latest()), keys, &mut changes)?;
    Ok(count)
}

/// Writes the rows anew as they were when the build began.
fn fill_copy(
    ddl: &mut Ddl<'_>,
    target: &BuildTarget<'_>,
    rows: &Rows<'_>,
    changes: &mut Changes,
) -> ExecResult<u64> {
    let port = ddl.trx.shared.port.clone();
    let progress = ddl.state.budget.progress.clone();
    progress.begin(Work::Copy, 2 * target.new.rows_estimate());
    let (mut chunk, mut puts, mut count) = (WriteSet::default(), sort(&exec(ddl)), 0);
    rows.each(|key, row| {
        count += 1;
        progress.add(1);
        ddl.state.budget.tick()?;
        changes.look(|| port.published(), &mut exec(ddl))?;
        follow_row(ddl, target, &key, (None, Some(&row)), &mut chunk, &mut puts)
    })?;
    let puts = puts.finish(&mut exec(ddl))?;
    put_entries(ddl, target, rows.snapshot, puts, changes)?;
    Ok(count)
}

/// Locks the table exclusively again. `change` becomes one on the catalog of now.
fn lock_again(
    ddl: &mut Ddl<'_>,
    change: &mut Change,
    names: Names<'_>,
    table: &Arc<Table>,
) -> ExecResult<()> {
    *change = ddl.begin(names)?;
    ddl.trx.locks.step_back();
    match change.next.table(&table.def.db, &table.def.name) {
        Ok(now) if Arc::ptr_eq(now, table) => Ok(()),
        _ => Err(SqlError::internal("a table was defined anew while its rows were read").into()),
    }
}

/// Runs `read`, which needs the table's rows to stay as they are, while others read them.
pub(super) fn beside_readers<T>(
    ddl: &mut Ddl<'_>,
    change: &mut Change,
    names: Names<'_>,
    table: &Arc<Table>,
    read: impl FnOnce(&mut Ddl<'_>) -> ExecResult<T>,
) -> ExecResult<T> {
    ddl.trx.locks.step_aside(ddl.trx.statement.waits(), table.def.id, TableMode::Shared)?;
    let done = read(ddl)?;
    lock_again(ddl, change, names, table)?;
    Ok(done)
}

/// Changes the entries of rows with these keys, some of which may be the same, from what they were to what they are.
fn follow(
    ddl: &mut Ddl<'_>,
    target: &BuildTarget<'_>,
    (before, after): (&dyn Snapshot, &dyn Snapshot),
    mut keys: Sorted,
    changes: &mut Changes,
) -> ExecResult<()> {
    let mut chunk = WriteSet::default();
    // Put when all that goes is gone: a value may have moved from one row to another.
    let mut puts = sort(&exec(ddl));
    let mut last = Bytes::new();
    while let Some((key, _)) = keys.next_record()? {
        ddl.state.budget.tick()?;
        ddl.state.budget.progress.add(1);
        if key == last {
            continue;
        }
        let (old, new) = (before.get(&key)?, after.get(&key)?);
        if old != new {
            follow_row(ddl, target, &key, (old.as_ref(), new.as_ref()), &mut chunk, &mut puts)?;
        }
        last = key;
        commit_chunk(ddl, &mut chunk, CHUNK)?;
    }
    commit_chunk(ddl, &mut chunk, 1)?;
    let puts = puts.finish(&mut exec(ddl))?;
    put_entries(ddl, target, after, puts, changes)
}

/// Makes a row's entries in the built indexes, in their order.
fn entries(
    ddl: &mut Ddl<'_>,
    target: &BuildTarget<'_>,
    key: &Bytes,
    row: Option<&Bytes>,
) -> ExecResult<Vec<Entry>> {
    let (Some(row), new) = (row, &target.new) else { return Ok(Vec::new()) };
    let Some(copying) = &target.copying else {
        let values = new.decode(row)?;
        return Ok(target.built.iter().map(|at| new.keys[*at].entry(&values, key)).collect());
    };
    let (values, value) = copying.row(row, ddl.state, ddl.trx)?;
    let key = match new.def.hidden_key {
        true => Bytes::from([&new.def.indexes[0].space.prefix()[..], &key[4..]].concat()),
        false => new.keys[0].entry(&values, &[]).key,
    };
    let rest = new.keys.iter().skip(1).map(|codec| codec.entry(&values, &key));
    Ok([Entry { key: key.clone(), value, unique: true }].into_iter().chain(rest).collect())
}

fn follow_row(
    ddl: &mut Ddl<'_>,
    target: &BuildTarget<'_>,
    key: &Bytes,
    (old, new): (Option<&Bytes>, Option<&Bytes>),
    chunk: &mut WriteSet,
    puts: &mut ExternalSort,
) -> ExecResult<()> {
    let (old, new) = (entries(ddl, target, key, old)?, entries(ddl, target, key, new)?);
    for at in 0..target.built.len() {
        let (old, new) = (old.get(at), new.get(at));
        if old == new {
            continue;
        }
        let replaces = old.is_some_and(|old| new.is_some_and(|new| new.key == old.key));
        if let Some(old) = old.filter(|_| !replaces) {
            chunk.delete(old.key.clone());
        }
        if let Some(new) = new {
            let record = [&[u8::from(new.unique && !replaces)], &new.value[..]].concat();
            puts.add(&new.key, &record, &mut exec(ddl))?;
        }
    }
    Ok(())
}

/// Puts entries: whether nothing may be there with their keys, then their values.
///
/// # Errors
/// 1062 for an entry of a unique index that another row has at `after`, too.
fn put_entries(
    ddl: &mut Ddl<'_>,
    target: &BuildTarget<'_>,
    after: &dyn Snapshot,
    mut puts: Sorted,
    changes: &mut Changes,
) -> ExecResult<()> {
    let port = ddl.trx.shared.port.clone();
    let latest = ddl.trx.shared.port.latest();
    let mut chunk = WriteSet::default();
    let mut last = Bytes::new();
    while let Some((key, record)) = puts.next_record()? {
        ddl.state.budget.tick()?;
        ddl.state.budget.progress.add(1);
        changes.look(|| port.published(), &mut exec(ddl))?;
        let value = record.slice(1.min(record.len())..);
        let rows = target.copying.is_some() && key.starts_with(&target.new.def.indexes[0].space.prefix());
        let taken = |other: &Bytes| rows || *other != value;
        if key == last || record.first() == Some(&1) && latest.get(&key)?.is_some_and(|other| taken(&other)) {
            commit_chunk(ddl, &mut chunk, 1)?;
            return Err(duplicate(target, (after, &*port.latest()), &key, &value)?.into());
        }
        last = key.clone();
        chunk.put(key, value);
        commit_chunk(ddl, &mut chunk, CHUNK)?;
    }
    commit_chunk(ddl, &mut chunk, 1)
}

/// Commits writes if they are `least` bytes, and waits until they are there.
fn commit_chunk(ddl: &mut Ddl<'_>, chunk: &mut WriteSet, least: usize) -> ExecResult<()> {
    if chunk.memory() < least || chunk.is_empty() {
        return Ok(());
    }
    let writes = std::mem::take(chunk);
    ddl.trx.budget.look(0)?;
    ddl.trx.write_aside(|trx| {
        let port = trx.shared.port.clone();
        std::thread::sleep(port.engine().write_stall());
        if let Some(error) = port.engine().refuses(&writes) {
            return Err(SqlError::from(error).into());
        }
        let mut cache = port.new_cache();
        write_set_event(&mut cache, &writes)?;
        let request = CommitRequest::new(cache, writes, false, omnibus_commit::now_us());
        port.commit(request.inline()).wait().map_err(SqlError::of_commit)?;
        Ok(())
    })
}

fn exec<'a>(ddl: &'a mut Ddl<'_>) -> Context<'a> {
    Context::new(ddl.state, ddl.trx, &[])
}

/// The error for an entry that a row of the table has, as `after` shows it, and another one too. Of a copy, rows are in `latest`.
fn duplicate(
    target: &BuildTarget<'_>,
    (after, latest): (&dyn Snapshot, &dyn Snapshot),
    key: &Bytes,
    value: &Bytes,
) -> SqlResult<SqlError> {
    let new = &target.new;
    let of_space = |at: &&usize| key.starts_with(&new.def.indexes[**at].space.prefix());
    let at = target.built.iter().find(of_space).copied().unwrap_or_default();
    let row = match (at, &target.copying) {
        (0, _) => value.clone(),
        (_, Some(_)) => latest.get(&new.clustered_of_entry(at, key, value)?)?.unwrap_or_default(),
        (_, None) => after.get(&new.clustered_of_entry(at, key, value)?)?.unwrap_or_default(),
    };
    Ok(duplicate_error(new, at, &new.decode(&row)?))
}
