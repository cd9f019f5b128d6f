//! The redo log of one engine. Every method may be called from any thread.
//!
//! Four locks, in this order: `syncing` (one sync at a time; a thread that waited for it finds its records synced by
//! the one before, which is the group), `writer` (appending), `device` (a sync and its result: the operating system
//! reports a lost page once, and no later sync may succeed after that) and `book` (the state in memory). `prepare` does
//! not take the first, so transactions prepare while a sync runs. `commit` and `rollback` take only the last, so the
//! commit thread waits for no I/O: their records are written with the next prepare or sync. Losing them is harmless,
//! because the binary log decides again at recovery.

use crate::live::Live;
use crate::record::{self, Record};
use crate::segment;
use omnibus_disk::{Disk, File};
use omnibus_engine::{CommitNo, TrxId, WriteSet};
use omnibus_sync::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The redo log of one engine.
pub struct Participant {
    disk: Disk,
    directory: PathBuf,
    segment_size: u64,
    syncing: Mutex<()>,
    writer: Mutex<Writer>,
    /// Why a sync of a segment failed.
    device: Mutex<Option<String>>,
    book: Mutex<Book>,
    syncs: AtomicU64,
}

#[derive(Default)]
struct Book {
    live: Live,
    /// Records of commits and rollbacks that are not written yet.
    notes: Vec<Vec<u8>>,
}

struct Writer {
    /// The segment being written; none before the first prepare.
    active: Option<Active>,
    /// The next segment's number.
    next: u64,
    /// Segments that there are, oldest first.
    segments: Vec<u64>,
    /// Bytes appended since opening, and how many of them a finished sync covers.
    appended: u64,
    synced: u64,
    failed: Option<String>,
}

struct Active {
    file: Arc<File>,
    number: u64,
    offset: u64,
}

impl std::fmt::Debug for Participant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Participant").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Participant {
    /// Reads what a stop left. `persisted` is how far the engine's tables go: what was committed up to there is done.
    ///
    /// # Errors
    /// A segment cannot be read, or is damaged where a crash cannot have damaged it (`InvalidData`).
    pub fn open(
        disk: &Disk,
        directory: &Path,
        segment_size: u64,
        persisted: CommitNo,
    ) -> io::Result<Participant> {
        let segments = segment::list(disk, directory)?;
        let mut live = Live::default();
        // It will not be the last segment any more, and is to be whole then.
        if let Some(&last) = segments.last() {
            segment::sync(disk, directory, last)?;
        }
        for (at, &number) in segments.iter().enumerate() {
            let torn = segment::read(disk, directory, number, |record| match record {
                Record::Prepare(trx, writes) => live.prepared(trx, number, Some(writes)),
                Record::Commit(trx, no) => live.was_committed(trx, no),
                Record::Rollback(trx) => live.rolled_back(trx),
            })?;
            match torn {
                None => {}
                Some(end) if at + 1 == segments.len() => segment::cut(disk, directory, number, end)?,
                Some(end) => {
                    let path = segment::path(directory, number);
                    let what = format!("{} is damaged at {end}", path.display());
                    return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                }
            }
        }
        live.persisted(persisted);
        let next = segments.last().map_or(1, |last| last + 1);
        let writer = Writer { active: None, next, segments, appended: 0, synced: 0, failed: None };
        Ok(Participant {
            disk: disk.clone(),
            directory: directory.to_owned(),
            segment_size,
            syncing: Mutex::new(()),
            writer: Mutex::new(writer),
            device: Mutex::default(),
            book: Mutex::new(Book { live, notes: Vec::new() }),
            syncs: AtomicU64::new(0),
        })
    }

    /// Writes a prepare record; not durable on return. `persisted` lets old segments go.
    ///
    /// # Errors
    /// The write failed, now or before.
    pub fn prepare(&self, trx: TrxId, writes: &WriteSet, persisted: CommitNo) -> io::Result<()> {
        let payload = record::prepare(trx, writes).map_err(io::Error::other)?;
        let mut writer = self.writer.lock();
        writer.check()?;
        let done = self.append(&mut writer, &payload, persisted);
        let number = writer.guard(done)?;
        self.book.lock().live.prepared(trx, number, None);
        Ok(())
    }

    /// Makes everything that was prepared, committed or rolled back before the call durable, with one sync. Concurrent
    /// callers share it; without new records there is none.
    ///
    /// # Errors
    /// The sync failed, now or before.
    pub fn flush(&self) -> io::Result<()> {
        let wanted = {
            let mut writer = self.writer.lock();
            writer.check()?;
            let done = self.write_notes(&mut writer);
            writer.guard(done)?;
            writer.appended
        };
        let _one = self.syncing.lock();
        let (file, covers) = {
            let writer = self.writer.lock();
            writer.check()?;
            match &writer.active {
                Some(active) if writer.synced < wanted => (Arc::clone(&active.file), writer.appended),
                _ => return Ok(()),
            }
        };
        // Earlier segments were synced when they were left.
        let done = self.sync(&file);
        self.syncs.fetch_add(1, Ordering::Relaxed);
        let mut writer = self.writer.lock();
        writer.guard(done)?;
        writer.synced = writer.synced.max(covers);
        Ok(())
    }

    /// The number of times that [`Participant::flush`] synced the device since the log was opened.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Transactions found prepared when the log was opened, for the binary log to decide about.
    #[must_use]
    pub fn prepared(&self) -> Vec<TrxId> {
        self.book.lock().live.undecided()
    }

    /// Records that the transaction is committed as `no`. Returns its writes if it was found when the log was opened. No I/O.
    pub fn commit(&self, trx: TrxId, no: CommitNo) -> Option<WriteSet> {
        let mut book = self.book.lock();
        if !book.live.contains(trx) {
            return None;
        }
        book.notes.push(record::commit(trx, no));
        book.live.committed(trx, no)
    }

    /// The transaction is rolled back. No I/O.
    pub fn rollback(&self, trx: TrxId) {
        let mut book = self.book.lock();
        if book.live.contains(trx) {
            book.notes.push(record::rollback(trx));
            book.live.rolled_back(trx);
        }
    }

    /// The engine's tables have everything up to `persisted`: segments that hold nothing else go.
    ///
    /// # Errors
    /// A file could not be removed; it is tried again next time.
    pub fn checkpoint(&self, persisted: CommitNo) -> io::Result<()> {
        self.truncate(&mut self.writer.lock(), persisted)
    }

    fn append(&self, writer: &mut Writer, payload: &[u8], persisted: CommitNo) -> io::Result<u64> {
        self.write_notes(writer)?;
        self.room(writer, record::framed_len(payload), persisted)?;
        writer.write(std::slice::from_ref(&payload))
    }

    /// Writes the decisions made since. They are taken and written under one lock of the writer, so that the record of
    /// a decision never precedes its prepare.
    fn write_notes(&self, writer: &mut Writer) -> io::Result<()> {
        let notes = std::mem::take(&mut self.book.lock().notes);
        if notes.is_empty() {
            return Ok(());
        }
        self.room(writer, notes.iter().map(|note| record::framed_len(note)).sum(), CommitNo::ZERO)?;
        writer.write(&notes).map(|_| ())
    }

    /// Switches to a new segment if the active one has no room for this number of bytes.
    fn room(&self, writer: &mut Writer, bytes: u64, persisted: CommitNo) -> io::Result<()> {
        if let Some(active) = &writer.active {
            if active.offset + bytes <= self.segment_size {
                return Ok(());
            }
            self.sync(&active.file)?;
            writer.synced = writer.appended;
            self.truncate(writer, persisted)?;
        }
        let number = writer.next;
        let file = segment::create(&self.disk, &self.directory, number, self.segment_size.max(bytes))?;
        writer.next += 1;
        writer.segments.push(number);
        writer.active = Some(Active { file: Arc::new(file), number, offset: 0 });
        Ok(())
    }

    /// Syncs a segment, unless one of these syncs has failed.
    fn sync(&self, file: &File) -> io::Result<()> {
        let mut failed = self.device.lock();
        if let Some(why) = &*failed {
            return Err(io::Error::other(format!("the redo log failed before: {why}")));
        }
        file.sync_data().inspect_err(|error| *failed = Some(error.to_string()))
    }

    fn truncate(&self, writer: &mut Writer, persisted: CommitNo) -> io::Result<()> {
        let active = writer.active.as_ref().map_or(writer.next, |active| active.number);
        let needed = {
            let mut book = self.book.lock();
            book.live.persisted(persisted);
            book.live.needed_from().min(active)
        };
        while let Some(&oldest) = writer.segments.first().filter(|oldest| **oldest < needed) {
            self.disk.remove_if_there(&segment::path(&self.directory, oldest))?;
            writer.segments.remove(0);
        }
        Ok(())
    }
}

impl Writer {
    fn check(&self) -> io::Result<()> {
        match &self.failed {
            Some(why) => Err(io::Error::other(format!("the redo log failed before: {why}"))),
            None => Ok(()),
        }
    }

    /// An error poisons the log.
    fn guard<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &done {
            self.failed.get_or_insert_with(|| error.to_string());
        }
        done
    }

    /// Writes records into the active segment, which has room. Returns its number.
    fn write(&mut self, payloads: &[impl AsRef<[u8]>]) -> io::Result<u64> {
        let Some(active) = &mut self.active else { return Err(io::Error::other("no segment")) };
        let mut bytes = Vec::new();
        payloads.iter().for_each(|payload| record::frame(&mut bytes, active.number, payload.as_ref()));
        active.file.write_all_at(&bytes, active.offset)?;
        active.offset += bytes.len() as u64;
        self.appended += bytes.len() as u64;
        Ok(active.number)
    }
}
