//! The file of a large transaction: its events with their final positions and checksums, from a block boundary on.
//!
//! The positions are known because the transaction will begin at this offset of a log file. The space in front is left
//! to the flush stage and is zeros until then, so no scan gets past it (LOG-2). The file is synced as it grows. That
//! costs time of its own session only, whereas a gigabyte of dirty pages would delay every other sync. The file belongs
//! to one session, and to the flush leader once it is settled. Dropping it removes the file, unless it has become a log
//! file; files that a crash leaves are removed by the next start.

use omnibus_format::group::GroupHash;
use omnibus_format::header::HEADER_LEN;
use omnibus_format::writer::finish_cached;
use omnibus_format::{Checksum, DecodeError, EventHeader};
use omnibus_log::mutant::{self, Mutant};
use omnibus_log::{BLOCK, Disk, File, Spilled};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Bytes reserved for the file's head, the GTID event and a filler between them. A log with GTIDs of many sources needs
/// more; its large transactions are copied.
const RESERVE: usize = 4 * BLOCK;
/// The maximum of dirty bytes. Writing them takes the device a millisecond or two, which another session's write may
/// have to wait for.
const SYNC_EVERY: u64 = 1 << 20;
/// The longest pause after a sync, which leaves the device to others for as long as the sync took.
const PAUSE_MAX: Duration = Duration::from_millis(10);
/// Bytes of zeros behind the end, so that the log's next writes there change no metadata.
const SPARE: usize = 256 << 10;
/// Offset of the event's length in its header.
const SIZE_AT: usize = 9;

#[derive(Debug)]
pub(crate) struct LargeFile {
    disk: Disk,
    /// `None` once it is dropped.
    file: Option<File>,
    /// The number of bytes in front of offset 0.
    front: u64,
    path: PathBuf,
    checksum: Checksum,
    /// Bytes of the events without checksums, as in the cache.
    len: u64,
    events: u64,
    /// File offset up to which it was synced.
    synced: u64,
    settled: Option<Spilled>,
    /// The group hash of the events in the file; `None` after a rollback to a savepoint, until the file is settled.
    hash: Option<GroupHash>,
    broken: bool,
    kept: bool,
}

impl LargeFile {
    pub(crate) fn create(disk: Disk, path: PathBuf, checksum: Checksum) -> io::Result<LargeFile> {
        let file = disk.create_hidden(&path)?;
        let front = file.front();
        // Allocated now: the flush stage's write there then changes no metadata.
        file.write_all_with_room(&[0; RESERVE][front as usize..], 0, 0)?;
        Ok(LargeFile {
            disk,
            file: Some(file),
            front,
            path,
            checksum,
            len: 0,
            events: 0,
            synced: 0,
            settled: None,
            hash: Some(GroupHash::default()),
            broken: false,
            kept: false,
        })
    }

    fn file(&self) -> io::Result<&File> {
        self.file.as_ref().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Bytes of the events without checksums, and their number.
    pub(crate) fn size(&self) -> (u64, u64) {
        (self.len, self.events)
    }

    pub(crate) fn checksum(&self) -> Checksum {
        self.checksum
    }

    /// File offset of the first event.
    fn reserve(&self) -> u64 {
        RESERVE as u64 - self.front
    }

    fn end(&self) -> u64 {
        self.reserve() + self.len + self.events * self.checksum.len() as u64
    }

    /// Appends whole cached events. After an error the file is unchanged.
    pub(crate) fn append(&mut self, cached: &[u8], events: u64) -> io::Result<()> {
        let end = self.end();
        let mut bytes = Vec::with_capacity(cached.len() + (events * 4) as usize);
        finish_cached(&mut bytes, cached, end, self.checksum).map_err(damaged)?;
        self.check()?;
        if let Err(error) = self.file()?.write_all_at(&bytes, end) {
            let _ = self.file()?.set_len(end);
            return Err(error);
        }
        if let Some(hash) = &mut self.hash {
            hash.update(&bytes);
        }
        let new_end = end + bytes.len() as u64;
        if new_end - self.synced >= SYNC_EVERY {
            let started = Instant::now();
            self.sync()?;
            self.synced = new_end;
            self.disk.pause(started.elapsed().min(PAUSE_MAX));
        }
        self.len += cached.len() as u64;
        self.events += events;
        Ok(())
    }

    /// Syncs the file. A failed sync is final: the content of the device is unknown, and the next sync would succeed
    /// regardless.
    fn sync(&mut self) -> io::Result<()> {
        self.check()?;
        if mutant::is(Mutant::LargeUnsynced) {
            return Ok(());
        }
        self.broken = true;
        self.file()?.sync_all()?;
        self.broken = false;
        Ok(())
    }

    fn check(&self) -> io::Result<()> {
        if self.broken { Err(io::Error::other("an earlier sync of it failed")) } else { Ok(()) }
    }

    /// Keeps the first `events` events, which take `len` bytes, and drops the others.
    pub(crate) fn truncate(&mut self, len: u64, events: u64) -> io::Result<()> {
        (self.len, self.events, self.hash) = (len, events, None);
        self.synced = self.synced.min(self.end());
        self.file()?.set_len(self.end())
    }

    /// Makes the file durable and ready to become a log file. No event may be appended afterwards.
    pub(crate) fn settle(&mut self) -> io::Result<()> {
        let end = self.end();
        if self.hash.is_none() {
            self.hash = Some(self.hash_file(end)?);
        }
        let partial = (end + self.front) % BLOCK as u64;
        let mut tail = vec![0; partial as usize];
        self.file()?.read_exact_at(&mut tail, end - partial)?;
        let spare = (BLOCK as u64 - partial) % BLOCK as u64;
        self.file()?.write_all_with_room(&vec![0; spare as usize + SPARE], 0, end)?;
        self.sync()?;
        let (path, reserve, front) = (self.path.clone(), self.reserve(), self.front);
        self.settled = Some(Spilled { path, reserve, end, tail, front });
        Ok(())
    }

    fn hash_file(&self, end: u64) -> io::Result<GroupHash> {
        let (mut hash, mut at) = (GroupHash::default(), self.reserve());
        let mut piece = vec![0; SPARE];
        while at < end {
            let len = usize::try_from(end - at).unwrap_or(SPARE).min(SPARE);
            self.file()?.read_exact_at(&mut piece[..len], at)?;
            hash.update(&piece[..len]);
            at += len as u64;
        }
        Ok(hash)
    }

    /// The group hash of the events.
    pub(crate) fn hash(&self) -> Option<&GroupHash> {
        self.hash.as_ref()
    }

    /// The description that the log needs to take the file over; `None` before it is settled.
    pub(crate) fn settled(&self) -> Option<&Spilled> {
        self.settled.as_ref()
    }

    /// Marks the file as a log file, so that dropping this does not remove it.
    pub(crate) fn keep(&mut self) {
        self.kept = true;
    }

    /// Passes the events as they were appended to the callback, in pieces of about `piece` bytes.
    pub(crate) fn read<E>(
        &self,
        piece: usize,
        failed: impl Fn(io::Error) -> E,
        each: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut at, end) = (self.reserve(), self.end());
        let (mut bytes, mut cached) = (Vec::new(), Vec::new());
        while at < end {
            let held = bytes.len();
            let take = (piece.max(1) as u64).min(end - at);
            bytes.resize(held + take as usize, 0);
            let file = self.file().map_err(&failed)?;
            file.read_exact_at(&mut bytes[held..], at).map_err(&failed)?;
            at += take;
            cached.clear();
            let used =
                unfinish(&mut cached, &bytes, self.checksum).map_err(|error| failed(damaged(error)))?;
            bytes.drain(..used);
            if !cached.is_empty() {
                each(&cached)?;
            }
        }
        Ok(())
    }
}

impl Drop for LargeFile {
    fn drop(&mut self) {
        if !self.kept {
            // Its name goes at once. Its space goes when it is closed, which takes the file system long enough to be
            // left to another thread.
            let _ = self.disk.remove(&self.path);
            if let Some(file) = self.file.take() {
                crate::drop_elsewhere(file);
            }
        }
    }
}

/// Turns whole final events back into cached ones; returns the number of bytes of `bytes` that they took.
fn unfinish(cached: &mut Vec<u8>, bytes: &[u8], checksum: Checksum) -> Result<usize, DecodeError> {
    let mut at = 0;
    while let Ok(header) = EventHeader::decode(&bytes[at..]) {
        let size = header.size as usize;
        if size < HEADER_LEN + checksum.len() {
            return Err(DecodeError::new(at, "event size"));
        }
        if bytes.len() - at < size {
            break;
        }
        let (start, len) = (cached.len(), size - checksum.len());
        cached.extend_from_slice(&bytes[at..at + len]);
        cached[start + SIZE_AT..start + SIZE_AT + 4].copy_from_slice(&(len as u32).to_le_bytes());
        at += size;
    }
    Ok(at)
}

fn damaged(error: DecodeError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}
