//! A log file that is open for writing: its descriptors, how far it is zero-filled, and how bytes become durable.
//!
//! Several threads may write one file at once as long as they touch different blocks; the caller guarantees that (see
//! `job.rs`). Which bytes are written, in which order, and who is told, is decided elsewhere.
//!
//! `allocated` only grows, and only under the extend lock. Zero-filling covers `[allocated, new)`, and no write goes
//! there before `allocated` has been moved past it; so zero-filling can never destroy an event (LOG-2 holds because the
//! part is zeros or a hole, never stale).
//!
//! A torn rewrite of the last partial block is harmless: its old and new content agree in all bytes that were durable
//! before, so each sector holds them either way.

use crate::buffer::{AlignedBuf, BLOCK, Blocks};
use crate::config::{FlushMethod, LogConfig};
use crate::error::{IoFailure, failed};
use crate::fault::{Faults, Point};
use crate::generation::Generations;
use crate::io::{sync_data, write_with_room};
use crate::position::FileSeq;
use omnibus_disk::{Disk, File, Open};
use omnibus_sync::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The largest single write of zeros; longer ones would hold up the writes of groups.
pub(crate) const ZERO_PIECE: usize = 1 << 20;

/// A file open for writing.
#[derive(Debug)]
pub(crate) struct LogFile {
    pub(crate) seq: FileSeq,
    pub(crate) path: PathBuf,
    pub(crate) method: FlushMethod,
    /// The write unit of jobs, which write whole units.
    pub(crate) blocks: Blocks,
    /// The blocks of the file system.
    space: Blocks,
    plain: File,
    through: Option<File>,
    allocated: AtomicU64,
    extend: Mutex<()>,
    extend_chunk: u64,
    /// The file has its final length. Read and changed under the extend lock.
    ended: AtomicBool,
    pub(crate) generations: Generations,
    /// Jobs sealed and not yet dropped.
    pub(crate) outstanding: AtomicUsize,
    faults: Faults,
}

impl LogFile {
    /// Opens a file that exists and holds nothing but zeros up to its length.
    pub(crate) fn open(
        seq: FileSeq,
        path: PathBuf,
        method: FlushMethod,
        config: &LogConfig,
    ) -> Result<LogFile, IoFailure> {
        let open = |how| config.disk.open(&path, how).map_err(failed("open", &path));
        let plain = open(Open::Write)?;
        let through = method.open().map(open).transpose()?;
        let len = plain.len().map_err(failed("read the size of", &path))?;
        Ok(LogFile {
            seq,
            path,
            method,
            blocks: Blocks::of(&plain, if method == FlushMethod::ODirectDsync { BLOCK as u64 } else { 1 }),
            space: Blocks::of(&plain, BLOCK as u64),
            plain,
            through,
            allocated: AtomicU64::new(len),
            extend: Mutex::new(()),
            extend_chunk: config.extend_chunk,
            ended: AtomicBool::new(false),
            generations: Generations::default(),
            outstanding: AtomicUsize::new(0),
            faults: config.faults.clone(),
        })
    }

    /// Returns whether writes must be whole blocks.
    pub(crate) fn is_direct(&self) -> bool {
        self.method == FlushMethod::ODirectDsync
    }

    /// The offset up to which the file is known to be allocated.
    pub(crate) fn allocated(&self) -> u64 {
        self.allocated.load(Ordering::Acquire)
    }

    /// Writes `bytes` at `offset`: whole blocks, of which the first `len` bytes are content. Writes through to the
    /// device if the flush method does that. [`LogFile::sync`] has to follow.
    pub(crate) fn write_through(&self, bytes: &[u8], len: usize, offset: u64) -> Result<(), IoFailure> {
        self.ensure_allocated(offset, bytes.len() as u64)?;
        let write = |file| {
            write_with_room(&self.faults, Point::JobWrite, file, (bytes, len), offset)
                .map_err(failed("write", &self.path))
        };
        match &self.through {
            Some(file) if self.is_direct() => write(file),
            // It goes by way of the page cache, and so do its errors.
            Some(file) => self.generations.alone(|| write(file)),
            None => {
                write(&self.plain)?;
                self.generations.wrote();
                Ok(())
            }
        }
    }

    /// Writes `bytes`, as for `write_through`, into the page cache.
    pub(crate) fn write_unsynced(&self, bytes: &[u8], len: usize, offset: u64) -> Result<(), IoFailure> {
        self.claim(offset + bytes.len() as u64);
        write_with_room(&self.faults, Point::JobWrite, &self.plain, (bytes, len), offset)
            .map_err(failed("write", &self.path))?;
        self.generations.wrote();
        Ok(())
    }

    /// Makes everything that is in the page cache so far durable. A write-through write makes only its own bytes
    /// durable.
    pub(crate) fn sync(&self) -> Result<(), IoFailure> {
        self.generations.cover(|| {
            sync_data(&self.faults, Point::JobSync, &self.plain).map_err(failed("sync", &self.path))
        })
    }

    fn ensure_allocated(&self, offset: u64, len: u64) -> Result<(), IoFailure> {
        let end = offset + len;
        if end <= self.allocated() {
            return Ok(());
        }
        // Zero-filling first would write a large group twice; it extends the file by itself.
        if self.extend_chunk == 0 || len > self.extend_chunk {
            self.claim(end);
            return Ok(());
        }
        self.extend_to(end + self.extend_chunk, end)
    }

    /// Keeps zero-filling away from everything before `end`. Whole blocks: a buffered zero in the same block as a
    /// direct write could bring the block's old content back.
    fn claim(&self, end: u64) {
        if end > self.allocated() {
            let _extending = self.extend.lock();
            self.allocated.fetch_max(self.space.ceil(end), Ordering::AcqRel);
        }
    }

    /// Zero-fills up to `target`, rounded up, in pieces; the lock is free between two pieces. A full disk is not an error:
    /// the space is optional, and the write that needs it reports the error. Up to `needed` then counts as allocated.
    pub(crate) fn extend_to(&self, target: u64, needed: u64) -> Result<(), IoFailure> {
        let target = self.space.ceil(target);
        while self.allocated() < target {
            let _extending = self.extend.lock();
            if self.ended.load(Ordering::Relaxed) {
                return Ok(());
            }
            let from = self.allocated();
            let to = target.min(Blocks::of(&self.plain, ZERO_PIECE as u64).floor(from + ZERO_PIECE as u64));
            if from >= to {
                continue;
            }
            match self.zero(from, to) {
                Ok(()) => self.allocated.fetch_max(to, Ordering::AcqRel),
                Err(failure) if failure.is_no_room() => {
                    self.allocated.fetch_max(self.space.ceil(needed), Ordering::AcqRel);
                    return Ok(());
                }
                Err(failure) => return Err(failure),
            };
        }
        Ok(())
    }

    /// Stops zero-filling for good: the file is about to get its final length, and the background thread must not
    /// make it longer again.
    pub(crate) fn end(&self) {
        let _extending = self.extend.lock();
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Writes zeros. The write-through descriptor makes the new length durable, too, so that a later write changes no
    /// metadata.
    ///
    /// A call that uses the page cache may receive the error of a page that a job has written and the device has lost.
    /// It therefore goes through [`Generations::alone`], so that later syncs fail, too.
    fn zero(&self, from: u64, to: u64) -> Result<(), IoFailure> {
        let zeros = &zeros()[..usize::try_from(to - from).unwrap_or(ZERO_PIECE).min(ZERO_PIECE)];
        let aligned = self.space.is_border(from) && self.space.is_border(to);
        let write = |file| {
            write_with_room(&self.faults, Point::FileExtend, file, (zeros, 0), from)
                .map_err(failed("write", &self.path))
        };
        match &self.through {
            Some(file) if self.is_direct() && aligned => write(file),
            Some(file) if !self.is_direct() => self.generations.alone(|| write(file)),
            _ => {
                write(&self.plain)?;
                self.generations.alone(|| {
                    sync_data(&self.faults, Point::FileExtendSync, &self.plain)
                        .map_err(failed("sync", &self.path))
                })
            }
        }
    }

    /// The descriptor without flags, for ending the file.
    pub(crate) fn plain(&self) -> &File {
        &self.plain
    }
}

/// One shared block of zeros; it is only read.
pub(crate) fn zeros() -> &'static [u8] {
    static ZEROS: OnceLock<AlignedBuf> = OnceLock::new();
    ZEROS.get_or_init(|| {
        let mut zeros = AlignedBuf::with_capacity(ZERO_PIECE);
        zeros.extend_from_slice(&vec![0; ZERO_PIECE]);
        zeros
    })
}

/// Returns the first method, from `wanted` downwards, that works in `dir`. Warns if it is not the wanted one. A full disk, on which nothing can be
/// tried, is no reason against a method: the start goes on, and has a reserve for its own files.
pub(crate) fn probe(disk: &Disk, dir: &Path, wanted: FlushMethod) -> Result<FlushMethod, IoFailure> {
    let mut method = wanted;
    loop {
        let path = dir.join(format!(".omnibus-probe-{}", std::process::id()));
        let error = match try_method(disk, &path, method) {
            Ok(()) => return Ok(method),
            Err(error) => error,
        };
        if omnibus_disk::is_full(error.kind()) {
            tracing::warn!(%method, %error, dir = %dir.display(), "this binlog_flush_method could not be tried");
            return Ok(method);
        }
        let Some(next) = method.fallback() else {
            return Err(IoFailure::new("write a probe file", &path, &error));
        };
        tracing::warn!(%method, instead = %next, %error, dir = %dir.display(),
            "the file system does not take this binlog_flush_method");
        method = next;
    }
}

/// Writes and reads back one block of a file at `path`, and removes the file.
pub(crate) fn try_method(disk: &Disk, path: &Path, method: FlushMethod) -> io::Result<()> {
    let tried = write_and_read_back(disk, path, method);
    let _ = disk.remove(path);
    tried
}

fn write_and_read_back(disk: &Disk, path: &Path, method: FlushMethod) -> io::Result<()> {
    let plain = disk.open(path, Open::Replace)?;
    plain.set_len(BLOCK as u64)?;
    let through = method.open().map(|how| disk.open(path, how)).transpose()?;
    let mut block = AlignedBuf::with_capacity(BLOCK);
    block.extend_from_slice(&[0x5a; BLOCK]);
    through.as_ref().unwrap_or(&plain).write_all_at(&block, 0)?;
    plain.sync_data()?;
    let mut back = vec![0; BLOCK];
    plain.read_exact_at(&mut back, 0)?;
    if back == *block {
        return Ok(());
    }
    Err(io::Error::other("what was written did not come back"))
}
