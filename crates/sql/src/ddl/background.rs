//! Filling new indexes while others write the table.
//!
//! 1. The table is locked exclusively: every transaction that wrote it has ended, and those that begin afterwards leave the keys of the
//!    rows that they change (`store::building`). A snapshot is taken, the lock becomes one beside which others read and write.
//! 2. The indexes are filled from that snapshot (`copy`).
//! 3. In rounds, a snapshot later each: of every row that was changed since the one before, the entries that it had are deleted and those
//!    that it has are put, as commits that no replica sees. The rounds become short, as writers get less time for changes.
//! 4. The table is locked exclusively again, which waits for open transactions as step 1; one round more, and the indexes are right.
//!    The definition that has them follows.
//!
//! Nobody but the build writes to these spaces, and no definition knows them before the last commit: a crash in between leaves what the
//! next start drops, and recovery of the last commit makes the indexes from the rows (BuildIndex) where the engine does not have them yet. What
//! fails drops them itself.
//!
//! Rejected: publishing an index that writers maintain and readers do not see. Each writer would pay for each build, a unique one
//! could fail writers instead of the build, and a crash would leave a definition to repair.

use super::copy::{self, Rows};
use super::exec::{Change, Ddl};
use crate::api::Work;
use crate::catalog::{Table, TableDef};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::Exec;
use crate::sort::{ExternalSort, KeyForm, Sorted};
use crate::store::{Build, HeldSnapshot, Names, duplicate_error, write_set_event};
use bytes::Bytes;
use omnibus_commit::CommitRequest;
use omnibus_engine::{CommitNo, Snapshot, WriteSet};
use omnibus_locks::TableMode;
use omnibus_value::Value;
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

/// What is built.
struct Target<'a> {
    /// The table with its new indexes.
    new: Table,
    /// Which of them are new.
    built: &'a [usize],
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
    fn new(build: Build, exec: &Exec<'_>) -> Changes {
        Changes { build, keys: sort(exec), count: 0, left: PAUSE }
    }

    /// Takes over what commits up to `last` have left.
    fn gather(&mut self, last: CommitNo, exec: &mut Exec<'_>) -> ExecResult<()> {
        for key in self.build.take(last) {
            self.count += 1;
            self.keys.add(&key, &[], exec)?;
        }
        Ok(())
    }

    /// The same, now and then.
    fn look(&mut self, published: impl FnOnce() -> CommitNo, exec: &mut Exec<'_>) -> ExecResult<()> {
        self.left -= 1;
        if self.left > 0 {
            return Ok(());
        }
        self.left = PAUSE;
        self.gather(published(), exec)
    }

    /// All keys in order, for a round.
    fn take(&mut self, exec: &mut Exec<'_>) -> ExecResult<Sorted> {
        self.count = 0;
        std::mem::replace(&mut self.keys, sort(exec)).finish(exec)
    }
}

fn sort(exec: &Exec<'_>) -> ExternalSort {
    ExternalSort::with_budget(KeyForm::new(Vec::new()), SORT_BYTES, exec)
}

impl Ddl<'_> {
    /// Fills indexes `built` of the new definition, beside writers. On return the table is locked exclusively again, and `change` is one on
    /// the catalog of then.
    pub(super) fn build_beside_writers(
        &mut self,
        change: &mut Change,
        names: Names<'_>,
        table: &Arc<Table>,
        def: &TableDef,
        built: &[usize],
    ) -> ExecResult<()> {
        let work = Target { new: Table::new(def.clone(), table.state.clone()), built };
        let done = self.build_in_rounds(change, names, table, &work);
        if done.is_err() {
            self.drop_built(&work);
        }
        done
    }

    /// Drops what was put into the new spaces so far.
    fn drop_built(&self, work: &Target<'_>) {
        let port = &self.trx.shared().port;
        for &at in work.built {
            port.engine().drop_space(work.new.def.indexes[at].space, port.numbered());
        }
    }

    fn build_in_rounds(
        &mut self,
        change: &mut Change,
        names: Names<'_>,
        table: &Arc<Table>,
        work: &Target<'_>,
    ) -> ExecResult<()> {
        let port = self.trx.shared().port.clone();
        let build = Build::begin(self.trx.shared(), table.def.indexes[0].space);
        // Locks may go before a commit is published: the snapshot must have all that was done under them.
        self.trx.await_snapshot_of(port.numbered())?;
        let mut before = HeldSnapshot::newest(&*port);
        self.trx.step_aside(table.def.id, TableMode::IntentShared)?;
        let mut changes = Changes::new(build, &self.exec());
        let progress = self.state.budget.progress.clone();
        for &at in work.built {
            let rows = Rows::at(&*before.snapshot, table);
            let mut exec = Exec::new(self.state, self.trx, &[]);
            copy::fill_index(&*port, &rows, &work.new, at, &mut exec, &mut |exec| {
                changes.look(|| port.published(), exec)
            })?;
        }
        for round in 0.. {
            let after = HeldSnapshot::newest(&*port);
            changes.gather(after.no, &mut self.exec())?;
            progress.begin(Work::Follow, changes.count);
            let last = changes.count <= FEW || round == ROUNDS;
            let keys = changes.take(&mut self.exec())?;
            self.follow(work, &*before.snapshot, &*after.snapshot, keys)?;
            before = after;
            if last {
                break;
            }
        }
        self.lock_again(change, names, table)?;
        changes.gather(CommitNo::MAX, &mut self.exec())?;
        let keys = changes.take(&mut self.exec())?;
        self.follow(work, &*before.snapshot, &*port.latest(), keys)
    }

    /// Locks the table exclusively again. `change` becomes one on the catalog of now.
    fn lock_again(&mut self, change: &mut Change, names: Names<'_>, table: &Arc<Table>) -> ExecResult<()> {
        *change = self.begin(names)?;
        self.trx.step_back();
        match change.next.table(&table.def.db, &table.def.name) {
            Ok(now) if Arc::ptr_eq(now, table) => Ok(()),
            _ => Err(SqlError::internal("a table was defined anew while its rows were read").into()),
        }
    }

    /// Runs `read`, which needs the table's rows to stay as they are, while others read them.
    pub(super) fn beside_readers<T>(
        &mut self,
        change: &mut Change,
        names: Names<'_>,
        table: &Arc<Table>,
        read: impl FnOnce(&mut Self) -> ExecResult<T>,
    ) -> ExecResult<T> {
        self.trx.step_aside(table.def.id, TableMode::Shared)?;
        let done = read(self)?;
        self.lock_again(change, names, table)?;
        Ok(done)
    }

    /// Changes the entries of rows with these keys, some of which may be the same, from what they were to what they are.
    fn follow(
        &mut self,
        work: &Target<'_>,
        before: &dyn Snapshot,
        after: &dyn Snapshot,
        mut keys: Sorted,
    ) -> ExecResult<()> {
        let mut chunk = WriteSet::default();
        // Put when all that goes is gone: a value may have moved from one row to another.
        let mut puts = sort(&self.exec());
        let mut last = Bytes::new();
        while let Some((key, _)) = keys.next_record()? {
            self.state.budget.tick()?;
            self.state.budget.progress.add(1);
            if key == last {
                continue;
            }
            let (old, new) = (before.get(&key)?, after.get(&key)?);
            if old != new {
                let values = |row: &Option<Bytes>| row.as_ref().map(|row| work.new.decode(row)).transpose();
                let (old, new) = (values(&old)?, values(&new)?);
                self.follow_row(work, &key, (old.as_deref(), new.as_deref()), &mut chunk, &mut puts)?;
            }
            last = key;
            self.commit_chunk(&mut chunk, CHUNK)?;
        }
        self.commit_chunk(&mut chunk, 1)?;
        let puts = puts.finish(&mut self.exec())?;
        self.put_entries(work, after, puts)
    }

    fn follow_row(
        &mut self,
        work: &Target<'_>,
        key: &Bytes,
        (old, new): (Option<&[Value]>, Option<&[Value]>),
        chunk: &mut WriteSet,
        puts: &mut ExternalSort,
    ) -> ExecResult<()> {
        for &at in work.built {
            let codec = &work.new.keys[at];
            let (old, new) = (old.map(|row| codec.entry(row, key)), new.map(|row| codec.entry(row, key)));
            if old == new {
                continue;
            }
            if let Some(old) = old
                && new.as_ref().is_none_or(|new| new.key != old.key)
            {
                chunk.delete(old.key);
            }
            if let Some(new) = new {
                let record = [&[u8::from(new.unique)], &new.value[..]].concat();
                puts.add(&new.key, &record, &mut self.exec())?;
            }
        }
        Ok(())
    }

    /// Puts entries: whether each is the only one of its key, then its value.
    ///
    /// # Errors
    /// 1062 for an entry of a unique index that another row has at `after`, too.
    fn put_entries(&mut self, work: &Target<'_>, after: &dyn Snapshot, mut puts: Sorted) -> ExecResult<()> {
        let latest = self.trx.shared().port.latest();
        let mut chunk = WriteSet::default();
        let mut last = Bytes::new();
        while let Some((key, record)) = puts.next_record()? {
            self.state.budget.tick()?;
            let value = record.slice(1.min(record.len())..);
            if record.first() == Some(&1)
                && (key == last || latest.get(&key)?.is_some_and(|other| other != value))
            {
                return Err(duplicate(work, after, &key, &value)?.into());
            }
            last = key.clone();
            chunk.put(key, value);
            self.commit_chunk(&mut chunk, CHUNK)?;
        }
        self.commit_chunk(&mut chunk, 1)
    }

    /// Commits writes if they are `least` bytes, and waits until they are there.
    fn commit_chunk(&mut self, chunk: &mut WriteSet, least: usize) -> ExecResult<()> {
        if chunk.memory() < least || chunk.is_empty() {
            return Ok(());
        }
        let writes = std::mem::take(chunk);
        self.trx.look()?;
        self.trx.write_aside(|trx| {
            let port = trx.shared().port.clone();
            std::thread::sleep(port.engine().write_stall());
            if let Some(error) = port.engine().refuses(&writes) {
                return Err(SqlError::from(error).into());
            }
            let mut cache = port.new_cache();
            write_set_event(&mut cache, &writes)?;
            let request = CommitRequest::new(cache, writes, false, omnibus_commit::now_us());
            port.commit(request).wait().map_err(SqlError::of_commit)?;
            Ok(())
        })
    }

    fn exec(&mut self) -> Exec<'_> {
        Exec::new(self.state, self.trx, &[])
    }
}

/// The error for an entry that a row of `rows` has and another one too.
fn duplicate(work: &Target<'_>, rows: &dyn Snapshot, key: &Bytes, value: &Bytes) -> SqlResult<SqlError> {
    let of_space = |at: &&usize| key.starts_with(&work.new.def.indexes[**at].space.prefix());
    let at = work.built.iter().find(of_space).copied().unwrap_or_default();
    let row = rows.get(&work.new.clustered_of_entry(at, key, value)?)?.unwrap_or_default();
    Ok(duplicate_error(&work.new, at, &work.new.decode(&row)?))
}
