//! The list of the log's files while the server runs. The writer adds to it, purge removes from it, and everybody else
//! lists and reads.
//!
//! Two locks, taken in this order: `index` is held while the index file is replaced, by rotation and purge; `files` is
//! held for memory operations only, so that listing never waits for a disk.

use crate::config::{FlushMethod, LogConfig};
use crate::dir::{LogDir, prepared_dir};
use crate::durable::{DurableEnd, Shared};
use crate::error::{IoFailure, OpenError, ReadError, WriteError, failed};
use crate::file::LogFile;
use crate::finish::cut_tail;
use crate::index::Index;
use crate::position::{FileNames, FileSeq, LogOffset, LogPosition};
use crate::prealloc::{PreparedFiles, Preparer};
use crate::reserve::Reserve;
use crate::scan::ReadFile;
use omnibus_disk::{Disk, FullDisk};
use omnibus_sync::Mutex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::SystemTime;

/// One line of SHOW BINARY LOGS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// The file's number.
    pub file: FileSeq,
    /// The file's name.
    pub name: String,
    /// The length in bytes; for the active file its durable part, without the space prepared behind it.
    pub size: u64,
    /// The time when the file was finished; for the active file, now.
    pub modified: SystemTime,
    /// Whether the file is the active one.
    pub active: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct FileState {
    pub(crate) seq: FileSeq,
    /// Final size in bytes and time of completion; `None` for the active file.
    pub(crate) finished: Option<(u64, SystemTime)>,
}

#[derive(Debug, Default)]
pub(crate) struct FileList {
    pub(crate) files: Vec<FileState>,
    /// The number of readers per pinned file.
    pub(crate) pins: BTreeMap<FileSeq, usize>,
}

/// The shared state behind [`LogHandle`]; see the module.
#[derive(Debug)]
pub(crate) struct Catalog {
    pub(crate) path: PathBuf,
    pub(crate) names: FileNames,
    pub(crate) config: LogConfig,
    pub(crate) method: FlushMethod,
    pub(crate) shared: Arc<Shared>,
    pub(crate) prepared: PreparedFiles,
    pub(crate) max_size: AtomicU64,
    pub(crate) files: Mutex<FileList>,
    /// The index and the files that left it and are not deleted yet. Its lock serialises changes of the index.
    pub(crate) index: Mutex<(Index, Vec<FileSeq>)>,
    pub(crate) background: Mutex<Vec<JoinHandle<()>>>,
    /// The number of resets so far. A reader of an earlier generation must not read on.
    pub(crate) generation: AtomicU64,
    preparer: OnceLock<Preparer>,
}

impl Catalog {
    pub(crate) fn new(dir: LogDir, method: FlushMethod, first: FileSeq) -> Result<Catalog, OpenError> {
        let mut files = Vec::with_capacity(dir.files.len() + 1);
        for &seq in &dir.files {
            let path = dir.path_of(seq);
            let about = dir.config.disk.metadata(&path).map_err(failed("read the size of", &path))?;
            files.push(FileState { seq, finished: Some((about.len, about.modified)) });
        }
        let durable = DurableEnd::new(LogPosition::new(first, 0));
        Ok(Catalog {
            prepared: PreparedFiles {
                dir: prepared_dir(&dir.path),
                disk: dir.config.disk.clone(),
                faults: dir.config.faults.clone(),
                reserve: Arc::new(Reserve::new(
                    &prepared_dir(&dir.path),
                    dir.config.disk.clone(),
                    dir.config.room.full_disk.clone(),
                    dir.config.room.reserve,
                )),
            },
            path: dir.path,
            names: dir.names,
            method,
            shared: Arc::new(Shared::new(durable, dir.config.room.full_disk.clone())),
            max_size: AtomicU64::new(dir.config.max_size),
            files: Mutex::new(FileList { files, pins: BTreeMap::new() }),
            index: Mutex::new((dir.index, dir.leftovers)),
            config: dir.config,
            background: Mutex::new(Vec::new()),
            generation: AtomicU64::new(0),
            preparer: OnceLock::new(),
        })
    }

    pub(crate) fn path_of(&self, seq: FileSeq) -> PathBuf {
        self.path.join(self.names.log(seq))
    }

    /// Adds a new file to the index, durably, and makes it the active one.
    pub(crate) fn add(&self, seq: FileSeq) -> Result<(), IoFailure> {
        let index = self.index.lock();
        let mut named: Vec<FileSeq> = self.files.lock().files.iter().map(|file| file.seq).collect();
        named.push(seq);
        index.0.replace(&named)?;
        self.files.lock().files.push(FileState { seq, finished: None });
        Ok(())
    }

    /// Records the final size of a file.
    pub(crate) fn finished(&self, seq: FileSeq, size: u64) {
        let mut list = self.files.lock();
        if let Some(file) = list.files.iter_mut().find(|file| file.seq == seq) {
            file.finished = Some((size, SystemTime::now()));
        }
    }

    /// The final size of a file; `None` while it is active.
    pub(crate) fn finished_size(&self, seq: FileSeq) -> Result<Option<u64>, ReadError> {
        let list = self.files.lock();
        let file = list.files.iter().find(|file| file.seq == seq).ok_or(ReadError::NoSuchFile(seq))?;
        Ok(file.finished.map(|(size, _)| size))
    }

    pub(crate) fn start_background(self: &Arc<Self>, active: Arc<LogFile>) {
        if self.config.preallocate {
            let size = self.config.max_size;
            let preparer = Preparer::start(self.prepared.clone(), self.config.clone(), size, active);
            let _ = self.preparer.set(preparer);
        }
    }

    /// Runs `work` on a low-priority thread of its own. If no thread can be started, the next start of the server does
    /// the work; every kind of work passed here permits that.
    pub(crate) fn in_background(&self, name: &'static str, work: impl FnOnce() + Send + 'static) {
        let arrive = self.config.disk.announce();
        let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            arrive();
            work();
        });
        match spawned {
            Ok(thread) => {
                let mut threads = self.background.lock();
                threads.retain(|thread| !thread.is_finished());
                threads.push(thread);
            }
            Err(error) => tracing::warn!(%error, name, "no background thread; the next start does its work"),
        }
    }

    pub(crate) fn preparer(&self) -> Option<&Preparer> {
        self.preparer.get()
    }

    /// Cuts a finished file's tail down to `end` in the background.
    pub(crate) fn cut_in_background(self: &Arc<Self>, seq: FileSeq, end: u64) {
        let (path, config) = (self.path_of(seq), self.config.clone());
        self.in_background("log-cut", move || {
            if let Err(error) = cut_tail(&config, &path, end) {
                tracing::warn!(%error, "could not cut the spare tail of a log file; the next start will");
            }
        });
    }
}

/// The log as sessions and readers use it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LogHandle {
    pub(crate) catalog: Arc<Catalog>,
}

impl LogHandle {
    /// All files, oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<FileEntry> {
        let durable = self.durable_end().get();
        let list = self.catalog.files.lock();
        let entry = |file: &FileState| {
            let live = if file.seq == durable.file { durable.offset.0 } else { 0 };
            let (size, modified) = file.finished.unwrap_or_else(|| (live, SystemTime::now()));
            let active = file.finished.is_none();
            FileEntry { file: file.seq, name: self.catalog.names.log(file.seq), size, modified, active }
        };
        list.files.iter().map(entry).collect()
    }

    /// The number of files that are prepared for coming rotations. Reads a directory; 0 if that fails.
    #[must_use]
    pub fn prepared_files(&self) -> usize {
        self.catalog.prepared.list().map_or(0, |files| files.len())
    }

    /// The oldest file.
    #[must_use]
    pub fn oldest(&self) -> Option<FileSeq> {
        self.catalog.files.lock().files.first().map(|file| file.seq)
    }

    /// The position up to which readers may read. The commit pipeline advances it.
    #[must_use]
    pub fn durable_end(&self) -> &DurableEnd {
        &self.catalog.shared.durable
    }

    /// The naming scheme of the log's files.
    #[must_use]
    pub fn names(&self) -> &FileNames {
        &self.catalog.names
    }

    /// The path of the log directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.catalog.path
    }

    /// The file system that the log is in.
    #[must_use]
    pub fn disk(&self) -> &Disk {
        &self.catalog.config.disk
    }

    /// The flush method in use, after fallbacks.
    #[must_use]
    pub fn flush_method(&self) -> FlushMethod {
        self.catalog.method
    }

    /// Changes the size in bytes at which a file is followed by a new one. Files prepared from now on have that size,
    /// too.
    pub fn set_max_size(&self, max_size: u64) {
        self.catalog.max_size.store(max_size, Ordering::Relaxed);
        if let Some(preparer) = self.catalog.preparer() {
            preparer.set_size(max_size);
        }
    }

    /// Returns an error if a write or sync has failed.
    ///
    /// # Errors
    /// The first such failure.
    pub fn check(&self) -> Result<(), WriteError> {
        self.catalog.shared.poison.check()
    }

    /// Ends all waiting for space on a full disk: waiting writes and all later ones fail. For a shutdown.
    pub fn stop_waiting_for_space(&self) {
        self.catalog.shared.space.give_up();
    }

    /// Returns the state of a full disk.
    #[must_use]
    pub fn full_disk(&self) -> &Arc<FullDisk> {
        &self.catalog.config.room.full_disk
    }

    /// Whether a write of the log waits for room.
    #[must_use]
    pub fn waits_for_room(&self) -> bool {
        self.full_disk().has_waiting(crate::space::WHO)
    }

    /// Makes the reserve, or makes it whole again, if there is room. Now and then, on a thread that may block.
    pub fn keep_reserve(&self) {
        self.catalog.prepared.reserve.keep();
    }

    /// Makes the reserve whole, or as large as half of the room allows, out of room that the caller has made and still keeps from others.
    pub fn restore_reserve(&self) {
        self.wait_for_background();
        self.catalog.prepared.reserve.restore();
    }

    /// Bytes that a checkpoint on a full disk can be given.
    #[must_use]
    pub fn reserve_bytes(&self) -> u64 {
        self.catalog.prepared.reserve.bytes()
    }

    /// Gives back space that is kept for later: of prepared files, then of the reserve, a piece a call. False if there is none left.
    ///
    /// # Errors
    /// The operating system refused.
    pub fn give_back_room(&self) -> Result<bool, IoFailure> {
        let given = self.catalog.prepared.give_back()?;
        self.full_disk().room_was_made();
        Ok(given)
    }

    /// Waits for the work that earlier calls left to background threads: deleting purged files, cutting spare tails.
    /// FLUSH BINARY LOGS waits so, because whoever asked may read the finished file with any tool; commits never do.
    pub fn wait_for_background(&self) {
        let threads: Vec<_> = std::mem::take(&mut *self.catalog.background.lock());
        for thread in threads {
            let _ = thread.join();
        }
    }

    /// Opens one file for reading up to its end, or up to the durable end if it is active.
    ///
    /// # Errors
    /// There is no such file, or it can not be opened.
    pub fn read(&self, seq: FileSeq) -> Result<ReadFile, ReadError> {
        let durable = self.durable_end().get();
        let size = self.catalog.finished_size(seq)?;
        let mut file = ReadFile::open(self.disk(), seq, &self.catalog.path_of(seq))?;
        file.set_limit(size.unwrap_or(if durable.file == seq { durable.offset.0 } else { LogOffset(0).0 }));
        Ok(file)
    }
}
