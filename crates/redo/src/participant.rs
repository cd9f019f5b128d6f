//! The redo log of one engine. Every method may be called from any thread.
//!
//! Two locks, in this order: `syncing` (one sync at a time; a thread that waited for it finds its records synced by
//! the one before, which is the group) and `state` (appending). `prepare` holds only `state`, so transactions prepare
//! while a sync runs. `commit` and `rollback` do no I/O: their records go out with the next prepare or sync. Losing
//! them is harmless, because the binary log decides again at recovery.

use crate::live::Live;
use crate::record::{self, Record};
use crate::segment;
use omnibus_engine::{CommitNo, TrxId, WriteSet};
use parking_lot::Mutex;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The redo log of one engine.
pub struct Participant {
    directory: PathBuf,
    segment_size: u64,
    syncing: Mutex<()>,
    state: Mutex<State>,
}

struct State {
    live: Live,
    /// The segment being written; none before the first prepare.
    active: Option<Active>,
    /// The next segment's number.
    next: u64,
    /// Segments that there are, oldest first.
    segments: Vec<u64>,
    /// Records of commits and rollbacks that are not written yet.
    notes: Vec<Vec<u8>>,
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
    pub fn open(directory: &Path, segment_size: u64, persisted: CommitNo) -> io::Result<Participant> {
        let segments = segment::list(directory)?;
        let mut live = Live::default();
        for (at, &number) in segments.iter().enumerate() {
            let torn = segment::read(directory, number, |record| match record {
                Record::Prepare(trx, writes) => live.prepared(trx, number, Some(writes)),
                Record::Commit(trx, no) => live.was_committed(trx, no),
                Record::Rollback(trx) => live.rolled_back(trx),
            })?;
            match torn {
                None => {}
                Some(end) if at + 1 == segments.len() => segment::cut(directory, number, end)?,
                Some(end) => {
                    let path = segment::path(directory, number);
                    let what = format!("{} is damaged at {end}", path.display());
                    return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                }
            }
        }
        live.persisted(persisted);
        let next = segments.last().map_or(1, |last| last + 1);
        let state = State {
            live,
            active: None,
            next,
            segments,
            notes: Vec::new(),
            appended: 0,
            synced: 0,
            failed: None,
        };
        Ok(Participant {
            directory: directory.to_owned(),
            segment_size,
            syncing: Mutex::new(()),
            state: Mutex::new(state),
        })
    }

    /// Writes a prepare record; not durable on return. `persisted` lets old segments go.
    ///
    /// # Errors
    /// The write failed, now or before.
    pub fn prepare(&self, trx: TrxId, writes: &WriteSet, persisted: CommitNo) -> io::Result<()> {
        let payload = record::prepare(trx, writes);
        let mut state = self.state.lock();
        state.check()?;
        let done = self.append(&mut state, &payload, persisted);
        let number = state.guard(done)?;
        state.live.prepared(trx, number, None);
        Ok(())
    }

    /// One sync: everything that was prepared, committed or rolled back before the call is durable on return. Shared
    /// by all who call at once; none at all if there is nothing new.
    ///
    /// # Errors
    /// The sync failed, now or before.
    pub fn flush(&self) -> io::Result<()> {
        let wanted = {
            let mut state = self.state.lock();
            state.check()?;
            let done = self.write_notes(&mut state);
            state.guard(done)?;
            state.appended
        };
        let _one = self.syncing.lock();
        let (file, covers) = {
            let state = self.state.lock();
            state.check()?;
            match &state.active {
                Some(active) if state.synced < wanted => (Arc::clone(&active.file), state.appended),
                _ => return Ok(()),
            }
        };
        // Earlier segments were synced when they were left.
        let done = file.sync_data();
        let mut state = self.state.lock();
        state.guard(done)?;
        state.synced = state.synced.max(covers);
        Ok(())
    }

    /// Transactions found prepared when the log was opened, for the binary log to decide about.
    #[must_use]
    pub fn prepared(&self) -> Vec<TrxId> {
        self.state.lock().live.undecided()
    }

    /// The transaction is committed as `no`. Gives its writes if it was found when the log was opened. No I/O.
    pub fn commit(&self, trx: TrxId, no: CommitNo) -> Option<WriteSet> {
        let mut state = self.state.lock();
        if !state.live.contains(trx) {
            return None;
        }
        state.notes.push(record::commit(trx, no));
        state.live.committed(trx, no)
    }

    /// The transaction is rolled back. No I/O.
    pub fn rollback(&self, trx: TrxId) {
        let mut state = self.state.lock();
        if state.live.contains(trx) {
            state.notes.push(record::rollback(trx));
            state.live.rolled_back(trx);
        }
    }

    /// The engine's tables have everything up to `persisted`: segments that hold nothing else go.
    ///
    /// # Errors
    /// A file could not be removed; it is tried again next time.
    pub fn checkpoint(&self, persisted: CommitNo) -> io::Result<()> {
        self.truncate(&mut self.state.lock(), persisted)
    }

    fn append(&self, state: &mut State, payload: &[u8], persisted: CommitNo) -> io::Result<u64> {
        self.write_notes(state)?;
        self.room(state, record::framed_len(payload), persisted)?;
        state.write(std::slice::from_ref(&payload))
    }

    /// Without an active segment there is nothing to note: what was found at opening keeps until one is needed.
    fn write_notes(&self, state: &mut State) -> io::Result<()> {
        if state.notes.is_empty() {
            return Ok(());
        }
        let notes = std::mem::take(&mut state.notes);
        self.room(state, notes.iter().map(|note| record::framed_len(note)).sum(), CommitNo::ZERO)?;
        state.write(&notes).map(|_| ())
    }

    /// Moves on to a new segment if the active one has no room for so many bytes.
    fn room(&self, state: &mut State, bytes: u64, persisted: CommitNo) -> io::Result<()> {
        if let Some(active) = &state.active {
            if active.offset + bytes <= self.segment_size {
                return Ok(());
            }
            active.file.sync_data()?;
            state.synced = state.appended;
            self.truncate(state, persisted)?;
        }
        let number = state.next;
        let file = segment::create(&self.directory, number, self.segment_size.max(bytes))?;
        state.next += 1;
        state.segments.push(number);
        state.active = Some(Active { file: Arc::new(file), number, offset: 0 });
        Ok(())
    }

    fn truncate(&self, state: &mut State, persisted: CommitNo) -> io::Result<()> {
        state.live.persisted(persisted);
        let active = state.active.as_ref().map_or(state.next, |active| active.number);
        let needed = state.live.needed_from().min(active);
        while let Some(&oldest) = state.segments.first().filter(|oldest| **oldest < needed) {
            segment::remove(&self.directory, oldest)?;
            state.segments.remove(0);
        }
        Ok(())
    }
}

impl State {
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

    /// Writes records into the active segment, which has room. Gives its number.
    fn write(&mut self, payloads: &[impl AsRef<[u8]>]) -> io::Result<u64> {
        let Some(active) = &mut self.active else { return Err(io::Error::other("no segment")) };
        let mut bytes = Vec::new();
        payloads.iter().for_each(|payload| record::frame(&mut bytes, active.number, payload.as_ref()));
        segment::write_at(&active.file, &bytes, active.offset)?;
        active.offset += bytes.len() as u64;
        self.appended += bytes.len() as u64;
        Ok(active.number)
    }
}
