//! `LsmEngine`: opening, and the contract's methods.

use crate::barrier::TableBarrier;
use crate::compaction::FilterFactory;
use crate::config::LsmConfig;
use crate::files::OnDisk;
use crate::format::StateFiles;
use crate::shared::{Counters, Files, Shared, Space};
use crate::signals::Signals;
use crate::snapshot::{LsmSnapshot, Reads};
use crate::space;
use crate::spaces::DeadSpaces;
use crate::table::TableFiles;
use crate::tables::Tables;
use crate::view::Views;
use crate::{NAME, backup, compaction, flush, format, io_error, load, manifest, staged, stall, tree_error};
use bytes::Bytes;
use lsm_tree::config::{BlockSizePolicy, HashRatioPolicy, PartitioningPolicy, RestartIntervalPolicy};
use lsm_tree::{AbstractTree, AnyTree, Cache, Config, DescriptorTable, SequenceNumberCounter, Tree};
use omnibus_disk::Disk;
use omnibus_engine::interruptible::GoOn;
use omnibus_engine::{
    CommitNo, Engine, EngineError, EngineStats, Kept, Lent, ReadAt, Snapshot, SnapshotIter, SortedWrites,
    SpaceId, Staged, TrxId, WriteSet,
};
use omnibus_redo::Participant;
use parking_lot::Mutex;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The default storage engine. Dropping it stops its threads without a checkpoint.
pub struct LsmEngine {
    shared: Arc<Shared>,
    applied: u64,
    threads: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for LsmEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LsmEngine").field("directory", &self.shared.config.directory).finish_non_exhaustive()
    }
}

impl LsmEngine {
    /// The number that the directory's own files say was written last, once they are found whole. Makes those of a new
    /// engine, and an older format's anew.
    ///
    /// # Errors
    /// One of them is damaged, missing or of a later version.
    pub fn applied(directory: &Path) -> Result<u64, EngineError> {
        LsmEngine::applied_on(&StateFiles::new(Disk::default(), directory.to_path_buf()), directory)
    }

    fn applied_on(files: &StateFiles, directory: &Path) -> Result<u64, EngineError> {
        let written = files.open()?;
        manifest::check(directory, written)?;
        Ok(written)
    }

    /// Opens or creates the engine's directory. The caller owns the data directory's lock.
    pub fn open(config: LsmConfig) -> Result<LsmEngine, EngineError> {
        config.disk.create_dir_all(&config.directory).map_err(io_error)?;
        // The log is purged on the strength of what is in there: the folder's own name must be durable.
        config.directory.parent().map_or(Ok(()), |above| config.disk.sync_dir(above)).map_err(io_error)?;
        sync_names(&config)?;
        let state_files = StateFiles::new(config.disk.clone(), config.directory.clone());
        let written = LsmEngine::applied_on(&state_files, &config.directory)?;
        backup::clean(&config.directory).map_err(io_error)?;
        let factory = Arc::new(FilterFactory::default());
        let versions = SequenceNumberCounter::default();
        let (tree, files) = open_tree(&config, &versions, &factory)?;
        let in_tables = tree.get_highest_persisted_seqno().unwrap_or(0);
        let applied = written.max(in_tables);
        let redo = Participant::open(
            &config.rows,
            &config.directory.join("redo"),
            omnibus_redo::SEGMENT_SIZE,
            CommitNo(applied),
        );
        let redo = redo.map_err(|error| omnibus_redo::open_error(NAME, error))?;
        let shared = Arc::new(Shared {
            views: Views::new(Tables::first(&tree, files), applied, config.memtable_size),
            config,
            state_files,
            tree,
            versions,
            spaces: DeadSpaces::default(),
            space: Space::default(),
            damaged: AtomicBool::new(false),
            redo,
            barrier: TableBarrier::default(),
            sweeping: AtomicBool::new(false),
            files: Files::default(),
            signals: Signals::default(),
            committed: AtomicU64::new(applied),
            persisted: AtomicU64::new(applied),
            checkpoint_to: AtomicU64::new(0),
            // No snapshot from before the start is left.
            watermark: AtomicU64::new(applied),
            highest_in_tables: AtomicU64::new(applied),
            counters: Counters::default(),
            stall_us: AtomicU64::new(0),
            failure: Mutex::new(None),
        });
        factory.connect(&shared);
        let mut engine = LsmEngine { shared, applied, threads: Vec::new() };
        if engine.shared.config.read_only {
            return Ok(engine);
        }
        engine.spawn("lsm-flush", flush::run)?;
        engine.spawn("lsm-compaction", compaction::run)?;
        Ok(engine)
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    #[inline]
    pub(crate) fn reads(&self, at: CommitNo) -> Reads<'_> {
        Reads { shared: &self.shared, at: at.0 }
    }

    fn spawn(&mut self, name: &str, body: fn(&Arc<Shared>)) -> Result<(), EngineError> {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || body(&shared));
        self.threads.push(thread.map_err(io_error)?);
        Ok(())
    }
}

/// Bytes of a table's block, which is read and cached as a whole.
const BLOCK_SIZE: u32 = 16 << 10;

/// Bytes of a block's hash index for each of its rows: a search by a complete key finds three rows in four there, and looks at one of them
/// where a binary search looks at seven, each another cache miss. Blocks of more than 254 entries, of secondary indexes, have none.
const HASH_BYTES: f32 = 4.0;

/// Asserts RECOVER-3: the tree removes what its current version does not name, and a kill may have come before that version's name
/// was durable.
fn sync_names(config: &LsmConfig) -> Result<(), EngineError> {
    let tree = config.directory.join(format::TREE_DIRECTORY);
    for directory in [config.directory.clone(), tree.clone(), tree.join("tables")] {
        if config.disk.exists(&directory).map_err(io_error)? {
            config.disk.sync_dir(&directory).map_err(io_error)?;
        }
    }
    Ok(())
}

fn open_tree(
    config: &LsmConfig,
    versions: &SequenceNumberCounter,
    factory: &Arc<FilterFactory>,
) -> Result<(Tree, TableFiles), EngineError> {
    let factory: Arc<FilterFactory> = Arc::clone(factory);
    let cache = Arc::new(Cache::with_capacity_bytes(config.block_cache_size));
    let directory = config.directory.join(format::TREE_DIRECTORY);
    let files = Arc::new(OnDisk(config.rows.clone()));
    let open = Arc::new(DescriptorTable::new(config.open_tables).with_files(files));
    let tree = Config::new(directory, versions.clone(), SequenceNumberCounter::default())
        .use_cache(Arc::clone(&cache))
        .use_descriptor_table(Some(Arc::clone(&open)))
        // Keys are short and rows are not: keys that share no prefix cost little space, and a read makes no
        // copy to put them together. Larger blocks suit ranges.
        .data_block_restart_interval_policy(RestartIntervalPolicy::all(1))
        .data_block_hash_ratio_policy(HashRatioPolicy::all(HASH_BYTES))
        .data_block_size_policy(BlockSizePolicy::all(BLOCK_SIZE))
        // While a merge writes, a last key that is not in the file's index yet keeps its whole block in memory, uncompressed: with an
        // index in one piece that is every block of the table, gigabytes if they compress well.
        .index_block_partitioning_policy(PartitioningPolicy::all(true))
        .with_compaction_filter_factory(Some(factory))
        .open()
        .map_err(tree_error)?;
    match tree {
        AnyTree::Standard(tree) => {
            let files = TableFiles::new(tree.id(), open, cache);
            Ok((tree, files))
        }
        AnyTree::Blob(_) => {
            Err(EngineError::Corrupt { engine: NAME, detail: "the tree keeps its values apart".to_owned() })
        }
    }
}

impl Drop for LsmEngine {
    fn drop(&mut self) {
        self.shared.signals.stop();
        for thread in self.threads.drain(..) {
            // A panic in it has been reported as the engine's failure.
            let _ = thread.join();
        }
    }
}

impl LsmEngine {
    /// Makes the commits so far persistent and waits for that. A full disk is an error once `gives_up` returns true.
    fn checkpoint_or(&self, gives_up: impl Fn() -> bool) -> Result<CommitNo, EngineError> {
        let shared = &self.shared;
        let target = shared.committed.load(Ordering::Acquire);
        let is_there = || shared.persisted.load(Ordering::Acquire) >= target;
        if !is_there() {
            shared.seal_for_checkpoint();
            shared.checkpoint_to.fetch_max(target, Ordering::AcqRel);
            shared.signals.ask_flush();
            shared.wait_until(|_| is_there() || gives_up())?;
            if !is_there() {
                return Err(io_error(std::io::ErrorKind::StorageFull.into()));
            }
        }
        shared.redo.checkpoint(self.persisted()).map_err(io_error)?;
        Ok(self.persisted())
    }
}

impl Engine for LsmEngine {
    fn name(&self) -> &'static str {
        "InnoDB"
    }

    fn comment(&self) -> &'static str {
        "The log-structured merge tree (LSM) of Omnibus"
    }

    fn applied(&self) -> CommitNo {
        CommitNo(self.applied)
    }

    fn prepare_ordered(&self, no: CommitNo, writes: WriteSet) {
        if writes.is_spilled() {
            return self.prepare_staged(no, self.stage(writes));
        }
        // Only what is durable replaces an older version for good: without a sync a commit, a flush may
        // have to stop between the two (ENGINE-1).
        let durable = self.shared.committed.load(Ordering::Acquire);
        let watermark = self.shared.watermark.load(Ordering::Acquire).min(durable);
        let mut writer = self.shared.views.writer.lock();
        let mut writing = writer.active.write(watermark);
        writing.insert_all(no.0, writes.into_writes().expect("what is in files was staged above"));
        drop(writing);
        writer.prepared = writer.prepared.max(no.0);
        if writer.active.bytes() >= self.shared.config.memtable_size {
            self.shared.seal(&mut writer);
        }
    }

    fn stage(&self, writes: WriteSet) -> Staged {
        staged::stage(writes)
    }

    fn prepare_staged(&self, no: CommitNo, staged: Staged) {
        match staged::built(staged) {
            Ok(memtable) => staged::attach(&self.shared, no.0, memtable),
            Err(Staged::Writes(writes)) => self.prepare_ordered(no, writes),
            Err(Staged::Built(_)) => unreachable!("what another engine staged is not given to this one"),
        }
    }

    fn install_sorted(&self, no: CommitNo, writes: &mut SortedWrites<'_>) -> Result<(), EngineError> {
        self.checkpoint()?;
        space::attempt(&self.shared, || flush::install(&self.shared, no.0, writes))
    }

    fn commit_ordered(&self, up_to: CommitNo) {
        self.shared.committed.fetch_max(up_to.0, Ordering::AcqRel);
    }

    fn snapshot(&self, at: CommitNo) -> Box<dyn Snapshot> {
        Box::new(LsmSnapshot { shared: Arc::clone(&self.shared), at: at.0 })
    }

    fn load(&self, at: CommitNo, pairs: &mut dyn Iterator<Item = (Bytes, Bytes)>) -> Result<(), EngineError> {
        load::load(&self.shared, at.0, pairs)
    }

    fn drop_space(&self, space: SpaceId, at: CommitNo) {
        self.shared.spaces.add(space.0, at.0);
    }

    fn gc_watermark(&self, oldest: CommitNo) {
        let before = self.shared.watermark.fetch_max(oldest.0, Ordering::AcqRel);
        if before < oldest.0 {
            self.shared.advance_spaces();
        }
    }

    fn write_stall(&self) -> Duration {
        let us = self.shared.stall_us.load(Ordering::Relaxed);
        if us > 0 {
            self.shared.counters.stalls.fetch_add(1, Ordering::Relaxed);
        }
        stall::delay(us)
    }

    fn checkpoint(&self) -> Result<CommitNo, EngineError> {
        self.checkpoint_or(|| false)
    }

    fn checkpoint_if_room(&self) -> Result<CommitNo, EngineError> {
        // One that failed just now may have begun before there was room.
        let before = self.shared.space.failures.load(Ordering::Acquire);
        self.checkpoint_or(|| self.shared.space.failures.load(Ordering::Acquire) > before + 1)
    }

    fn persisted(&self) -> CommitNo {
        CommitNo(self.shared.persisted.load(Ordering::Acquire))
    }

    fn failure(&self) -> Option<String> {
        self.shared.failure()
    }

    fn backup_to(&self, root: &Path, go_on: GoOn<'_>) -> Result<CommitNo, EngineError> {
        backup::backup(&self.shared, root, go_on)
    }

    fn two_phase(&self) -> bool {
        true
    }

    fn prepare(&self, trx: TrxId, writes: &WriteSet) -> Result<(), EngineError> {
        self.shared.redo.prepare(trx, writes, self.persisted()).map_err(io_error)
    }

    fn flush_logs(&self) -> Result<(), EngineError> {
        self.shared.redo.flush().map_err(io_error)
    }

    fn prepared(&self) -> Vec<TrxId> {
        self.shared.redo.prepared()
    }

    fn commit_prepared(&self, trx: TrxId, no: CommitNo) {
        if let Some(writes) = self.shared.redo.commit(trx, no)
            && no.0 > self.shared.views.writer.lock().prepared
        {
            self.prepare_ordered(no, writes);
        }
    }

    fn rollback(&self, trx: TrxId) {
        self.shared.redo.rollback(trx);
    }

    fn kept_since(&self, at: CommitNo) -> Kept {
        let prepared = self.shared.views.writer.lock().prepared;
        let view = self.shared.views.current();
        let mut from = self.persisted().0;
        let mut in_memory = 0;
        let sealed = view.sealed.iter().map(|memtable| (memtable, memtable.covers.load(Ordering::Acquire)));
        for (memtable, to) in sealed.chain([(&view.active, prepared)]) {
            in_memory += Kept::part(memtable.bytes(), from, to, at.0);
            from = from.max(to);
        }
        Kept { bytes: in_memory, files: 0 } + view.tables.kept_since(at.0)
    }

    fn stats(&self) -> EngineStats {
        let (view, counters) = (self.shared.views.current(), &self.shared.counters);
        EngineStats {
            memtable_bytes: view.memtable_bytes(),
            flushes: counters.flushes.load(Ordering::Relaxed),
            compactions: counters.compactions.load(Ordering::Relaxed),
            write_stalls: counters.stalls.load(Ordering::Relaxed),
            disk_bytes: view.tables.disk_bytes,
            redo_syncs: self.shared.redo.syncs(),
        }
    }
}

impl ReadAt for LsmEngine {
    fn get_at(&self, at: CommitNo, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        self.reads(at).get(key)
    }

    fn get_version_at(&self, at: CommitNo, key: &[u8]) -> Result<Option<(CommitNo, Bytes)>, EngineError> {
        self.reads(at).get_version(key)
    }

    fn scan_at(
        &self,
        at: CommitNo,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        reverse: bool,
    ) -> SnapshotIter<'static> {
        self.reads(at).scan(from, to, reverse)
    }

    fn visit_at(
        &self,
        at: CommitNo,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        each: &mut dyn FnMut(Lent<'_>, Lent<'_>) -> bool,
    ) -> Result<bool, EngineError> {
        self.reads(at).visit(from, to, each)
    }
}
