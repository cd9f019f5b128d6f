//! A storage engine in memory. What it has persisted outlives a crash whole, as if on a device of its own; its redo log is on the
//! simulated disk, and so are the small files of the default engine, by its own code. Rows are those of the newest version; who wrote them is kept beside, so that the oracle can tell
//! what is in there.

use crate::disk::SimDisk;
use crate::mutant::Mutant;
use crate::names::{branch_of, id_of, who};
use crate::random::Random;
use bytes::Bytes;
use omnibus_disk::Disk;
use omnibus_engine::{
    CommitNo, Engine, EngineError, EngineStats, Lent, ReadAt, Snapshot, SnapshotIter, SortedWrites, SpaceId,
    TrxId, Write, WriteSet,
};
use omnibus_engine_lsm::StateFiles;
use omnibus_redo::Participant;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The engines of slots 0 and 1.
pub(crate) const FIRST: &str = "SIM";
pub(crate) const SECOND: &str = "SIM2";

/// Small, so that there are many of them.
const SEGMENT: u64 = 4096;

/// Rows, and the numbers of the transactions that made them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    pub(crate) rows: Arc<BTreeMap<Bytes, Bytes>>,
    /// The transactions in commit order, with their requests.
    pub(crate) order: Arc<Vec<(CommitNo, u64)>>,
    pub(crate) applied: CommitNo,
    /// The commit number that the engine's file is known to have.
    written: CommitNo,
}

impl Tables {
    fn apply(&mut self, no: CommitNo, writes: WriteSet) {
        let id = who(no, &writes);
        let rows = Arc::make_mut(&mut self.rows);
        for write in writes.into_sorted() {
            let (key, write) = write.expect("its files can be read");
            match write {
                Some(value) => rows.insert(key, value),
                None => rows.remove(&key),
            };
        }
        Arc::make_mut(&mut self.order).push((no, id));
    }

    fn drop_space(&mut self, space: SpaceId) {
        Arc::make_mut(&mut self.rows).retain(|key, _| id_of(key) != Some(u64::from(space.number())));
    }

    /// Takes everything up to `no` for persisted, at least what its file says.
    pub(crate) fn claim(&mut self, no: CommitNo) {
        self.applied = no.max(self.written);
    }

    /// The newest transaction leaves no row but those that others write as well.
    fn forget_newest(&mut self) {
        let newest = self.order.last().map(|(_, id)| *id);
        Arc::make_mut(&mut self.rows).retain(|key, _| id_of(key).is_none_or(|id| Some(id) != newest));
    }
}

/// The changes of each key by number, the oldest first; the initial contents of a life have its first number.
type Versions = BTreeMap<Bytes, Vec<(CommitNo, Write)>>;

struct SimSnapshot {
    versions: Arc<RwLock<Versions>>,
    at: CommitNo,
}

impl SimSnapshot {
    fn pairs(&self, from: Bound<&[u8]>, to: Bound<&[u8]>, reverse: bool) -> SnapshotIter<'static> {
        let versions = self.versions.read();
        let range = versions.range::<[u8], _>((from, to));
        let found = range.filter_map(|(key, all)| Some(Ok((key.clone(), visible(all, self.at)?.1))));
        let pairs: Vec<_> = found.collect();
        if reverse { Box::new(pairs.into_iter().rev()) } else { Box::new(pairs.into_iter()) }
    }
}

fn visible(versions: &[(CommitNo, Write)], at: CommitNo) -> Option<(CommitNo, Bytes)> {
    let (no, write) = versions.iter().rev().find(|(no, _)| *no <= at)?;
    write.clone().map(|value| (*no, value))
}

impl Snapshot for SimSnapshot {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        Ok(self.get_version(key)?.map(|(_, value)| value))
    }

    fn get_version(&self, key: &[u8]) -> Result<Option<(CommitNo, Bytes)>, EngineError> {
        Ok(self.versions.read().get(key).and_then(|versions| visible(versions, self.at)))
    }

    fn scan<'a>(&'a self, from: Bound<&[u8]>, to: Bound<&[u8]>, reverse: bool) -> SnapshotIter<'a> {
        self.pairs(from, to, reverse)
    }
}

struct EngineState {
    committed: Tables,
    installed: VecDeque<(CommitNo, WriteSet)>,
    newest: CommitNo,
    /// Spaces that are gone, and since when.
    dropped: Vec<(SpaceId, CommitNo)>,
    /// While the log is replayed: when what is replayed is persisted.
    replay: Option<Random>,
}

/// See the module.
pub(crate) struct SimEngine {
    name: &'static str,
    applied: CommitNo,
    redo: Participant,
    state: Mutex<EngineState>,
    versions: Arc<RwLock<Versions>>,
    kept: Arc<Mutex<Tables>>,
    files: omnibus_sync::Mutex<StateFiles>,
    process: SimDisk,
    mutant: Option<Mutant>,
}

impl SimEngine {
    /// Its directory on the disk has its name, in small letters.
    pub(crate) fn open(
        name: &'static str,
        disk: &Disk,
        root: &Path,
        kept: Arc<Mutex<Tables>>,
        mutant: Option<Mutant>,
        process: SimDisk,
    ) -> std::io::Result<SimEngine> {
        let directory = root.join(name.to_ascii_lowercase());
        let tables = kept.lock().clone();
        let applied = tables.applied;
        let files = StateFiles::new(disk.clone(), directory.clone());
        disk.create_dir_all(&directory)?;
        let written = CommitNo(files.open().map_err(std::io::Error::other)?);
        if written < tables.written || written > applied {
            let (least, what) = (tables.written, "the engine's file says that is applied");
            return Err(std::io::Error::other(format!("{what}: {written}, of {least} to {applied}")));
        }
        disk.create_dir_all(&directory.join("tree"))?;
        let redo = Participant::open(disk, &directory.join("redo"), SEGMENT, applied)?;
        let (installed, dropped) = (VecDeque::new(), Vec::new());
        let old = tables.rows.iter().map(|(key, value)| (key.clone(), vec![(applied, Some(value.clone()))]));
        let versions = Arc::new(RwLock::new(old.collect()));
        let state = EngineState {
            committed: tables,
            installed,
            newest: applied,
            dropped,
            replay: Some(process.fork_random()),
        };
        Ok(SimEngine {
            name,
            applied,
            redo,
            state: Mutex::new(state),
            versions,
            kept,
            files: omnibus_sync::Mutex::new(files),
            process,
            mutant,
        })
    }

    /// Persists what there is, unless the process has ended.
    fn keep(&self, tables: &Tables) {
        if !self.process.is_dead() {
            let mut kept = self.kept.lock();
            let written = kept.written;
            *kept = Tables { written, ..tables.clone() };
            if self.mutant == Some(Mutant::ForgetPart) && self.name == SECOND {
                kept.forget_newest();
            }
            if self.mutant == Some(Mutant::ForgetBranches) {
                Arc::make_mut(&mut kept.rows).retain(|key, _| branch_of(key).is_none());
            }
        }
    }

    /// The log is replayed.
    pub(crate) fn is_recovered(&self) {
        self.state.lock().replay = None;
    }

    /// Returns everything up to the durable number.
    pub(crate) fn tables(&self) -> Tables {
        self.state.lock().committed.clone()
    }

    fn io(&self, source: std::io::Error) -> EngineError {
        EngineError::Io { engine: self.name, source }
    }
}

impl EngineState {
    /// Removes rows whose drop is durable.
    fn reclaim(&mut self) {
        let EngineState { committed, dropped, .. } = self;
        let applied = committed.applied;
        dropped.extract_if(.., |(_, at)| *at <= applied).for_each(|(space, _)| committed.drop_space(space));
    }

    fn commit(&mut self, up_to: CommitNo) {
        while self.installed.front().is_some_and(|(no, _)| *no <= up_to)
            && let Some((no, writes)) = self.installed.pop_front()
        {
            self.committed.apply(no, writes);
        }
        self.committed.applied = self.committed.applied.max(up_to);
    }
}

impl Engine for SimEngine {
    fn name(&self) -> &'static str {
        self.name
    }

    fn applied(&self) -> CommitNo {
        self.applied
    }

    fn prepare_ordered(&self, no: CommitNo, writes: WriteSet) {
        let mut state = self.state.lock();
        assert!(state.newest < no, "COMMIT-1: {no} was installed after {}", state.newest);
        state.newest = no;
        let mut versions = self.versions.write();
        for pending in writes.iter() {
            let pending = pending.expect("its files can be read");
            let key = Bytes::copy_from_slice(pending.key());
            versions.entry(key).or_default().push((no, pending.write()));
        }
        drop(versions);
        state.installed.push_back((no, writes));
    }

    fn commit_ordered(&self, up_to: CommitNo) {
        let mut state = self.state.lock();
        // Replay begins at the engine that is furthest behind.
        let late = state.committed.applied > up_to && state.replay.is_none();
        assert!(!late, "ENGINE-1: told of {up_to} too late");
        state.commit(up_to);
        if state.replay.as_mut().is_some_and(|random| random.one_in(8)) {
            self.keep(&state.committed);
        }
    }

    fn snapshot(&self, at: CommitNo) -> Box<dyn Snapshot> {
        Box::new(self.at(at))
    }

    fn install_sorted(&self, no: CommitNo, writes: &mut SortedWrites<'_>) -> Result<(), EngineError> {
        let mut set = WriteSet::default();
        for write in writes {
            match write.map_err(|error| self.io(error))? {
                (key, Some(value)) => set.put(key, value),
                (key, None) => set.delete(key),
            }
        }
        self.prepare_ordered(no, set);
        let mut state = self.state.lock();
        state.commit(no);
        self.keep(&state.committed);
        Ok(())
    }

    fn load(&self, at: CommitNo, pairs: &mut dyn Iterator<Item = (Bytes, Bytes)>) -> Result<(), EngineError> {
        let mut state = self.state.lock();
        let (mut versions, rows) = (self.versions.write(), Arc::make_mut(&mut state.committed.rows));
        for (key, value) in pairs {
            versions.entry(key.clone()).or_default().push((at, Some(value.clone())));
            rows.insert(key, value);
        }
        self.keep(&state.committed);
        Ok(())
    }

    fn drop_space(&self, space: SpaceId, at: CommitNo) {
        let mut state = self.state.lock();
        state.dropped.push((space, at));
        if self.mutant == Some(Mutant::HastyDrop) {
            self.kept.lock().drop_space(space);
        }
    }

    fn gc_watermark(&self, _: CommitNo) {}

    fn write_stall(&self) -> Duration {
        Duration::ZERO
    }

    fn checkpoint(&self) -> Result<CommitNo, EngineError> {
        // One thread does this.
        let files = self.files.lock();
        let applied = {
            let mut state = self.state.lock();
            if self.mutant == Some(Mutant::HastyEngine) {
                let newest = state.newest;
                state.commit(newest);
            }
            state.reclaim();
            self.keep(&state.committed);
            state.committed.applied
        };
        files.write_applied(applied.0).map_err(|error| self.io(error))?;
        if !self.process.is_dead() {
            self.kept.lock().written = applied;
        }
        drop(files);
        self.redo.checkpoint(applied).map_err(|error| self.io(error))?;
        Ok(applied)
    }

    fn persisted(&self) -> CommitNo {
        self.kept.lock().applied
    }

    fn failure(&self) -> Option<String> {
        None
    }

    fn stats(&self) -> EngineStats {
        EngineStats::default()
    }

    fn two_phase(&self) -> bool {
        true
    }

    fn prepare(&self, trx: TrxId, writes: &WriteSet) -> Result<(), EngineError> {
        self.redo.prepare(trx, writes, self.persisted()).map_err(|error| self.io(error))
    }

    fn flush_logs(&self) -> Result<(), EngineError> {
        self.redo.flush().map_err(|error| self.io(error))
    }

    fn prepared(&self) -> Vec<TrxId> {
        self.redo.prepared()
    }

    fn commit_prepared(&self, trx: TrxId, no: CommitNo) {
        if let Some(writes) = self.redo.commit(trx, no)
            && no > self.state.lock().newest
        {
            self.prepare_ordered(no, writes);
        }
    }

    fn rollback(&self, trx: TrxId) {
        self.redo.rollback(trx);
    }
}

impl SimEngine {
    fn at(&self, at: CommitNo) -> SimSnapshot {
        SimSnapshot { versions: Arc::clone(&self.versions), at }
    }
}

impl ReadAt for SimEngine {
    fn get_at(&self, at: CommitNo, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        self.at(at).get(key)
    }

    fn get_version_at(&self, at: CommitNo, key: &[u8]) -> Result<Option<(CommitNo, Bytes)>, EngineError> {
        self.at(at).get_version(key)
    }

    fn scan_at(
        &self,
        at: CommitNo,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        reverse: bool,
    ) -> SnapshotIter<'static> {
        self.at(at).pairs(from, to, reverse)
    }

    fn visit_at(
        &self,
        at: CommitNo,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        each: &mut dyn FnMut(Lent<'_>, Lent<'_>) -> bool,
    ) -> Result<bool, EngineError> {
        self.at(at).visit(from, to, each)
    }
}
