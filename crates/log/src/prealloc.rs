//! Files prepared ahead of time in `pre-allocated-binlog/`, and the background thread that prepares more.
//!
//! A prepared file is called `empty.NNNNNN` and holds zeros only. Rotation and start-up take the one with the lowest
//! number by renaming it; without one they create an empty file, which then grows by zero-filled pieces. Nobody ever
//! waits for a file to be prepared. With `binlog_preallocate=1` one low-priority thread keeps the wanted number of files
//! ready, and keeps a growing active file (the first one after a start) zero-filled some way ahead of the writes.

use crate::config::LogConfig;
use crate::dir::{holds_more_than_head, prepared_dir};
use crate::error::{IoFailure, PrepareError, ReadError, failed};
use crate::fault::{Faults, Point};
use crate::file::{LogFile, ZERO_PIECE};
use crate::position::FileSeq;
use crate::prepare::{Preparation, Progress, prepare_file, remove_stale_temporaries};
use crate::reserve::{OF_A_START, Reserve};
use crate::scan::ReadFile;
use crate::{buffer::BLOCK, buffer::round_up, io};
use omnibus_disk::{Disk, Open};
use omnibus_format::header::MAGIC;
use omnibus_sync::{Condvar, Mutex};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The pause after a failure before another file is prepared.
const AFTER_FAILURE: Duration = Duration::from_secs(60);
/// The time between two looks at a full disk.
const NO_ROOM: Duration = Duration::from_secs(1);

/// The directory of prepared files.
#[derive(Clone, Debug)]
pub(crate) struct PreparedFiles {
    pub(crate) dir: PathBuf,
    pub(crate) disk: Disk,
    pub(crate) faults: Faults,
    /// Kept beside them.
    pub(crate) reserve: Arc<Reserve>,
}

impl PreparedFiles {
    /// The prepared files with their numbers, lowest first. A missing directory has none.
    pub(crate) fn list(&self) -> Result<Vec<(u64, PathBuf)>, IoFailure> {
        let entries = match self.disk.list(&self.dir) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(failed("list", &self.dir))?,
        };
        let mut found = Vec::new();
        for name in entries {
            let digits = name.to_str().and_then(|name| name.strip_prefix("empty."));
            let number =
                digits.filter(|d| d.bytes().all(|b| b.is_ascii_digit())).and_then(|d| d.parse().ok());
            found.extend(number.map(|number: u64| (number, self.dir.join(&name))));
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Runs at a start: removes a prepared file that already has a log header but whose rename was lost in a power cut.
    /// It would stay in the way for ever. A file with transactions is kept.
    pub(crate) fn clear_taken(&self) -> Result<(), IoFailure> {
        for (_, path) in self.list()? {
            // What can not be read is left for whoever wants to take it, who says so.
            if self.is_taken(&path).unwrap_or(false) {
                self.disk.remove_if_there(&path).map_err(failed("remove", &path))?;
                tracing::info!(file = %path.display(), "removed a prepared log file that had been taken; another will be prepared");
            }
        }
        Ok(())
    }

    fn is_taken(&self, path: &Path) -> Result<bool, ReadError> {
        let mut file = ReadFile::open(&self.disk, FileSeq(0), path)?;
        let mut magic = [0; MAGIC.len()];
        let read = file.read_at(0, &mut magic)?;
        Ok(magic[..read] == MAGIC && !holds_more_than_head(&mut file)?)
    }

    /// The number of usable prepared files.
    fn usable(&self) -> Result<usize, IoFailure> {
        Ok(self.list()?.iter().filter(|(_, path)| self.is_blank(path).unwrap_or(false)).count())
    }

    /// Renames the first usable prepared file to `to`. Returns false if there is none.
    pub(crate) fn take(&self, to: &Path) -> Result<bool, IoFailure> {
        for (_, path) in self.list()? {
            match self.is_blank(&path) {
                Ok(true) => {}
                Ok(false) => {
                    tracing::warn!(file = %path.display(), "is no prepared log file: it is not all zeros; left alone");
                    continue;
                }
                Err(error) => {
                    tracing::warn!(file = %path.display(), %error, "can not use this prepared log file");
                    continue;
                }
            }
            if self.disk.exists(to).map_err(failed("look at", to))? {
                return Err(IoFailure::new("create", to, &std::io::ErrorKind::AlreadyExists.into()));
            }
            io::rename(&self.disk, &self.faults, Point::PreparedTake, &path, to)
                .map_err(failed("rename", &path))?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Removes the last usable prepared file to free its space. Returns false if there is none.
    pub(crate) fn give_up_one(&self) -> Result<bool, IoFailure> {
        for (_, path) in self.list()?.into_iter().rev() {
            if self.is_blank(&path).unwrap_or(false) {
                self.disk.remove_if_there(&path).map_err(failed("remove", &path))?;
                tracing::info!(file = %path.display(), "the disk is full: removed a prepared log file to make room");
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Gives back space that is kept for later: of prepared files, then of the reserve. False if there is none left.
    pub(crate) fn give_back(&self) -> Result<bool, IoFailure> {
        Ok(self.give_up_one()? || self.reserve.give_back()?)
    }

    /// As much as a start needs.
    pub(crate) fn give_back_a_little(&self) -> bool {
        let given = self.give_up_one().and_then(|given| Ok(given || self.reserve.give_a_start()?));
        given.inspect_err(|error| tracing::warn!(%error, "no room could be given back")).unwrap_or(false)
    }

    /// Looks at the first and the last block; reading all of a gigabyte would make a rotation wait. The first block
    /// alone tells a log file that was renamed by mistake, whose stale events could parse (LOG-2).
    fn is_blank(&self, path: &Path) -> std::io::Result<bool> {
        let file = self.disk.open(path, Open::Read)?;
        let about = file.metadata()?;
        let len = about.len;
        if !about.is_file || len == 0 {
            return Ok(false);
        }
        let mut block = vec![0; BLOCK.min(usize::try_from(len).unwrap_or(BLOCK))];
        for offset in [0, len - block.len() as u64] {
            file.read_exact_at(&mut block, offset)?;
            if block.iter().any(|&byte| byte != 0) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Sees to it that a start finds room on a full disk: takes the space of prepared files, then some of the reserve. Says so. If there is
/// nothing to take, the start comes as far as it comes.
///
/// # Errors
/// The operating system refused something else.
pub fn room_to_start(disk: &Disk, log: &Path) -> Result<(), IoFailure> {
    let dir = prepared_dir(log);
    if !disk.exists(&dir).map_err(failed("look at", &dir))? {
        return Ok(());
    }
    let trial = dir.join(".trial");
    let reserve = Arc::new(Reserve::new(&dir, disk.clone(), Arc::default(), 0));
    let files = PreparedFiles { dir, disk: disk.clone(), faults: Faults::default(), reserve };
    let mut said = false;
    while let Err(error) = try_room(disk, &trial) {
        let failure = failed("write", &trial)(error);
        if !failure.is_full_on_write() {
            return Err(failure);
        }
        if !std::mem::replace(&mut said, true) {
            tracing::error!(
                "the disk is full: {failure}. The server starts all the same; free room, or use PURGE BINARY LOGS"
            );
        }
        if !files.give_up_one()? && !files.reserve.give_a_start()? {
            break;
        }
    }
    Ok(())
}

fn try_room(disk: &Disk, trial: &Path) -> std::io::Result<()> {
    let tried = disk.open(trial, Open::Replace).and_then(|file| file.reserve(OF_A_START));
    disk.remove_if_there(trial)?;
    tried.map(|_| ())
}

#[derive(Debug)]
struct Wanted {
    stop: bool,
    wake: bool,
    active: Arc<LogFile>,
    /// File offset behind the last sealed job of the active file.
    written: u64,
}

#[derive(Debug)]
struct Inner {
    wanted: Mutex<Wanted>,
    /// The size in bytes of files to prepare, and the limit of extending the active file.
    size: AtomicU64,
    changed: Condvar,
    files: PreparedFiles,
    config: LogConfig,
}

/// The background thread. Dropping it stops and joins it.
#[derive(Debug)]
pub(crate) struct Preparer {
    inner: Arc<Inner>,
    thread: Option<JoinHandle<()>>,
}

impl Preparer {
    pub(crate) fn start(
        files: PreparedFiles,
        config: LogConfig,
        size: u64,
        active: Arc<LogFile>,
    ) -> Preparer {
        let wanted = Wanted { stop: false, wake: true, active, written: 0 };
        let inner = Arc::new(Inner {
            wanted: Mutex::new(wanted),
            size: AtomicU64::new(size),
            changed: Condvar::new(),
            files,
            config,
        });
        let shared = Arc::clone(&inner);
        let arrive = inner.files.disk.announce();
        let thread = std::thread::Builder::new().name("log-prepare".to_owned()).spawn(move || {
            arrive();
            shared.run();
        });
        if let Err(error) = &thread {
            tracing::warn!(%error, "no thread for preparing log files");
        }
        Preparer { inner, thread: thread.ok() }
    }

    /// Called by the flush stage for every sealed job: one comparison as long as the file is far enough ahead.
    #[inline]
    pub(crate) fn wrote(&self, file: &LogFile, end: u64) {
        let ahead = self.inner.config.extend_ahead;
        if file.allocated() < (end + ahead / 2).min(self.inner.size.load(Ordering::Relaxed)) {
            self.wake(|wanted| wanted.written = end);
        }
    }

    pub(crate) fn rotated(&self, file: &Arc<LogFile>) {
        self.wake(|wanted| {
            (wanted.active, wanted.written) = (Arc::clone(file), 0);
        });
    }

    pub(crate) fn set_size(&self, size: u64) {
        self.inner.size.store(size, Ordering::Relaxed);
        self.wake(|_| {});
    }

    fn wake(&self, change: impl FnOnce(&mut Wanted)) {
        let mut wanted = self.inner.wanted.lock();
        change(&mut wanted);
        if !std::mem::replace(&mut wanted.wake, true) {
            self.inner.changed.notify_one();
        }
    }
}

impl Drop for Preparer {
    fn drop(&mut self) {
        self.inner.wanted.lock().stop = true;
        self.inner.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Inner {
    fn run(&self) {
        if let Err(error) = self.files.disk.create_dir_all(&self.files.dir) {
            tracing::warn!(dir = %self.files.dir.display(), %error, "can not prepare log files");
        }
        remove_stale_temporaries(&self.files.disk, &self.files.dir);
        let mut failed: Option<Instant> = None;
        while self.wait() {
            self.extend_active();
            // Without room for a file there is none a moment later either, and each growth of the active one asks.
            if failed.is_some_and(|at| at.elapsed() < AFTER_FAILURE) {
                continue;
            }
            failed = None;
            if let Err(error) = self.prepare_missing()
                && !matches!(error, PrepareError::Stopped(_))
            {
                tracing::warn!(%error, "could not prepare a log file; the active file grows instead");
                failed = Some(Instant::now());
            }
        }
    }

    /// Sleeps until there is work and room for it; returns false when the thread has to end.
    fn wait(&self) -> bool {
        let full_disk = &self.config.room.full_disk;
        let mut wanted = self.wanted.lock();
        while !wanted.stop {
            if !wanted.wake {
                self.changed.wait(&mut wanted);
            } else if full_disk.is_full() || full_disk.is_making_room() {
                // What room there is is for what must be written. The work is not forgotten: nobody may call for it again.
                self.changed.wait_for(&mut wanted, NO_ROOM);
            } else {
                wanted.wake = false;
                break;
            }
        }
        !wanted.stop
    }

    /// Zero-fills the active file ahead of the writes, up to the size at which it will be rotated.
    fn extend_active(&self) {
        loop {
            let (active, target) = {
                let wanted = self.wanted.lock();
                let target =
                    (wanted.written + self.config.extend_ahead).min(self.size.load(Ordering::Relaxed));
                (Arc::clone(&wanted.active), if wanted.stop { 0 } else { round_up(target) })
            };
            let from = active.allocated();
            if from >= target {
                return;
            }
            let started = Instant::now();
            let piece = target.min(from + ZERO_PIECE as u64);
            if let Err(error) = active.extend_to(piece, from) {
                tracing::warn!(%error, "could not extend the active log file ahead of time");
                return;
            }
            if active.allocated() == from {
                return;
            }
            self.files.disk.pause(started.elapsed().min(Duration::from_millis(20)));
        }
    }

    fn prepare_missing(&self) -> Result<(), PrepareError> {
        loop {
            // What can not be used is in nobody's way.
            if self.files.usable()? >= self.config.preallocate_files {
                return Ok(());
            }
            let number = self.files.list()?.last().map_or(1, |(number, _)| number + 1);
            let path = self.files.dir.join(format!("empty.{number:06}"));
            let size = self.size.load(Ordering::Relaxed);
            let mut last = Instant::now();
            let disk = &self.files.disk;
            let report =
                prepare_file(disk, &path, round_up(size), Preparation::ZeroFill, &mut |_: Progress| {
                    self.extend_active();
                    // A quarter of the disk's time at most: a group's write must find it free.
                    disk.pause((last.elapsed() * 3).min(Duration::from_millis(50)));
                    last = Instant::now();
                    if self.wanted.lock().stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                });
            match report {
                Err(PrepareError::Exists(_)) => {}
                other => {
                    let report = other?;
                    tracing::debug!(file = %path.display(), size = report.size, elapsed = ?report.elapsed, "prepared");
                }
            }
        }
    }
}
