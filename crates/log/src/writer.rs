//! The end of the log, owned by the flush stage: finished event bytes are appended to its buffer, and
//! [`LogWriter::seal`] hands them over to the sync stage. Also switches to the next file.
//!
//! The writer itself does no I/O except in [`LogWriter::rotate`] and [`LogWriter::close`]. With direct I/O the buffer's
//! first byte is at a block boundary: each seal keeps a copy of the last partial block as the beginning of the next
//! buffer, because that block is written again together with the bytes that follow.
//!
//! The steps of a rotation, and the state that a crash leaves:
//! 1. The ROTATE event is durable at the end of the old file.
//! 2. The old file's spare tail is cut, its in-use flag cleared, and it is synced (a long tail is cut later, see
//!    `finish.rs`). A crash up to here: the old file is the last one and ends well.
//! 3. The new file gets its name (a prepared file by rename, otherwise it is created) and its header, synced, then the
//!    directory is synced. A crash up to here: a file that the index does not name and that holds no transaction;
//!    opening the log removes it.
//! 4. The index is replaced. From here on the new file is the last one. INDEX-1 and INDEX-2 hold at every instant.

use crate::buffer::AlignedBuf;
use crate::config::LogConfig;
use crate::dir::LogDir;
use crate::durable::Shared;
use crate::error::{IoFailure, OpenError, PurgeError, ResetError, RotateError, WriteError, failed};
use crate::fault::Point;
use crate::file::{self, LogFile};
use crate::finish::{finish, mark_closed};
use crate::handle::{Catalog, LogHandle};
use crate::io;
use crate::job::WriteJob;
use crate::position::{FileSeq, LogPosition};
use omnibus_disk::Open;
use omnibus_format::header::MAGIC;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The append side of the log; see the module. It has one owner and is not meant to be called from two threads.
#[derive(Debug)]
pub struct LogWriter {
    catalog: Arc<Catalog>,
    shared: Arc<Shared>,
    file: Arc<LogFile>,
    buffer: AlignedBuf,
    /// File offset of the buffer's first byte.
    base: u64,
    /// File offset of the first byte that was not sealed yet.
    sealed: u64,
}

impl LogWriter {
    /// Creates the next file of a log, beginning with the events in `head` (FORMAT_DESCRIPTION, PREVIOUS_GTIDS; final bytes for
    /// offset 4), and hands the log over to the flush stage.
    ///
    /// # Errors
    /// The file or the index can not be written.
    pub fn start(dir: LogDir, head: &[u8]) -> Result<LogWriter, OpenError> {
        let seq = dir.next_file().ok_or(OpenError::NumbersUsedUp)?;
        seq.warn_near_end();
        let method = file::probe(&dir.config.disk, &dir.path, dir.config.flush_method)?;
        let catalog = Arc::new(Catalog::new(dir, method, seq)?);
        catalog.resume_removals();
        catalog.prepared.clear_taken()?;
        let for_start = Arc::clone(&catalog);
        catalog.shared.space.start_with(move || for_start.prepared.give_back_a_little());
        let writer = LogWriter::begin(Arc::clone(&catalog), seq, head);
        catalog.shared.space.started();
        let writer = writer?;
        catalog.start_background(writer.current());
        Ok(writer)
    }

    /// Creates file `seq` with its header and names it in the index.
    fn begin(catalog: Arc<Catalog>, seq: FileSeq, head: &[u8]) -> Result<LogWriter, OpenError> {
        let shared = Arc::clone(&catalog.shared);
        let file = open_next(&catalog, seq)?;
        let buffer = shared.pool.take();
        let mut writer = LogWriter { catalog, shared, file, buffer, base: 0, sealed: 0 };
        writer.write_head(head, Catalog::add)?;
        Ok(writer)
    }

    /// The position of the next appended byte.
    #[inline]
    #[must_use]
    pub fn position(&self) -> LogPosition {
        LogPosition::new(self.file.seq, self.base + self.buffer.len() as u64)
    }

    /// The buffer to append finished event bytes to. Append whole events only.
    #[inline]
    pub fn buffer(&mut self) -> &mut AlignedBuf {
        &mut self.buffer
    }

    /// Drops the bytes appended since `position`, which must not be sealed yet. For an encoder that fails half way.
    pub fn rewind(&mut self, position: LogPosition) {
        let offset = position.offset.0;
        if position.file == self.file.seq && offset >= self.sealed && position <= self.position() {
            self.buffer.truncate(usize::try_from(offset - self.base).unwrap_or(usize::MAX));
        }
    }

    /// Hands over everything appended since the last seal. Never blocks, and allocates nothing in steady state.
    pub fn seal(&mut self) -> WriteJob {
        let end = self.position();
        let start = LogPosition::new(self.file.seq, self.sealed);
        if self.shared.recent.is_wanted() {
            let first = usize::try_from(self.sealed - self.base).unwrap_or(usize::MAX);
            self.shared.recent.add(start, self.buffer.get(first..).unwrap_or(&[]));
        }
        let next_base = self.file.blocks.floor(end.offset.0);
        let mut next = self.shared.pool.take();
        next.extend_from_slice(&self.buffer[usize::try_from(next_base - self.base).unwrap_or(usize::MAX)..]);
        let mut buffer = std::mem::replace(&mut self.buffer, next);
        buffer.pad(self.file.blocks.ceil(end.offset.0) - end.offset.0);
        if self.file.is_direct() {
            buffer.align();
        }
        let base = std::mem::replace(&mut self.base, next_base);
        self.sealed = end.offset.0;
        self.file.outstanding.fetch_add(1, Ordering::SeqCst);
        if let Some(preparer) = self.catalog.preparer() {
            preparer.wrote(&self.file, end.offset.0);
        }
        let order = self.file.generations.seal();
        let (shared, file) = (Arc::clone(&self.shared), Arc::clone(&self.file));
        WriteJob { shared, file, base, buffer, start, end, order }
    }

    /// Returns whether the next job would share a block with one sealed now, so that the two could not be under way at
    /// once. Without direct I/O blocks are small, or single bytes.
    #[must_use]
    pub fn needs_padding(&self) -> bool {
        !self.file.blocks.is_border(self.position().offset.0)
    }

    /// Returns whether a job sealed now would write a block that the previously sealed job writes, too, so that the two
    /// must not be under way at once.
    #[must_use]
    pub fn shares_sealed_block(&self) -> bool {
        !self.file.blocks.is_border(self.sealed)
    }

    /// Returns the length in bytes, at least `min_filler`, of a filler event after which the log ends at a block
    /// boundary; 0 if it does already, or if blocks do not matter.
    #[must_use]
    pub fn pad_len(&self, min_filler: usize) -> usize {
        if !self.needs_padding() {
            return 0;
        }
        let end = self.position().offset.0 + min_filler as u64;
        min_filler + (self.file.blocks.ceil(end) - end) as usize
    }

    /// Returns whether the file has reached `max_binlog_size`.
    #[inline]
    #[must_use]
    pub fn needs_rotation(&self) -> bool {
        self.position().offset.0 >= self.catalog.max_size.load(Ordering::Relaxed) && self.may_rotate()
    }

    /// Returns whether a number is left for the next file, apart from those reserved for starts.
    #[must_use]
    pub fn may_rotate(&self) -> bool {
        self.file.seq.has_next_in_turn()
    }

    /// The name of the file after this one, for the ROTATE event; `None` once the numbers are used up.
    #[must_use]
    pub fn next_file_name(&self) -> Option<String> {
        self.file.seq.next().map(|seq| self.catalog.names.log(seq))
    }

    /// The name of the active file.
    #[must_use]
    pub fn file_name(&self) -> String {
        self.catalog.names.log(self.file.seq)
    }

    /// The log as sessions and readers use it.
    #[must_use]
    pub fn handle(&self) -> LogHandle {
        LogHandle { catalog: Arc::clone(&self.catalog) }
    }

    /// Blocks until every sealed job of the active file has run or was dropped. The jobs must be on other threads.
    pub fn wait_idle(&self) {
        self.shared.wait_idle(&self.file.outstanding);
    }

    /// Switches to the next file. The caller has appended the ROTATE event (its name: [`LogWriter::next_file_name`]),
    /// and all jobs sealed before have run; bytes that are still in the buffer are written here. `head` is as in
    /// [`LogWriter::start`]. Returns the position in the new file, which is then the durable end.
    ///
    /// # Errors
    /// A job is still under way (nothing happened; call again), or the operating system failed (the log is poisoned).
    pub fn rotate(&mut self, head: &[u8]) -> Result<LogPosition, RotateError> {
        self.rotate_into(head, open_next, Catalog::add)?;
        Ok(self.position())
    }

    /// As [`LogWriter::rotate`], and the new file replaces all others in the index in the same instant: the first step
    /// of a reset, whose `head` must not follow files whose GTIDs it lacks. The caller has called
    /// [`LogWriter::can_restart_at`].
    ///
    /// # Errors
    /// As [`LogWriter::rotate`].
    pub fn rotate_alone(&mut self, head: &[u8]) -> Result<LogPosition, RotateError> {
        self.rotate_into(head, open_next, Catalog::add_alone)?;
        Ok(self.position())
    }

    /// As `rotate`, with the file that `open` returns. It has its final name, and zeros in the place of `head` and
    /// behind it.
    pub(crate) fn rotate_into(
        &mut self,
        head: &[u8],
        open: impl Fn(&Catalog, FileSeq) -> Result<Arc<LogFile>, IoFailure>,
        name: impl Fn(&Catalog, FileSeq) -> Result<(), IoFailure>,
    ) -> Result<(), RotateError> {
        let next = self.file.seq.next().ok_or(RotateError::NumbersUsedUp)?;
        next.warn_near_end();
        let old = self.position();
        let uncut = self.finish_file(true)?;
        let opened = self.shared.space.patiently(|| open(&self.catalog, next));
        let file = opened.map_err(|failure| self.shared.poison.set(failure))?;
        self.file = file;
        self.buffer.truncate(0);
        (self.base, self.sealed) = (0, 0);
        self.write_head(head, name)?;
        if uncut {
            self.catalog.cut_in_background(old.file, old.offset.0);
        }
        if let Some(preparer) = self.catalog.preparer() {
            preparer.rotated(&self.file);
        }
        Ok(())
    }

    /// Continues behind durable bytes of the active file that did not come through this writer. They end at `end`, and
    /// `tail` is their part in the last, partial block. No byte is left to be sealed.
    pub(crate) fn go_on_at(&mut self, end: u64, tail: &[u8]) {
        self.base = self.file.blocks.floor(end);
        self.buffer.truncate(0);
        let partial = usize::try_from(end - self.base).unwrap_or(usize::MAX).min(tail.len());
        self.buffer.extend_from_slice(&tail[tail.len() - partial..]);
        self.sealed = end;
    }

    /// Ends the log. The caller has appended the STOP event, and all jobs have run.
    ///
    /// # Errors
    /// As [`LogWriter::rotate`].
    pub fn close(&mut self) -> Result<(), RotateError> {
        self.finish_file(false).map(|_| ())
    }

    /// Steps 1 and 2. Returns whether the spare tail is still to be cut.
    fn finish_file(&mut self, may_cut_later: bool) -> Result<bool, RotateError> {
        self.shared.poison.check()?;
        let outstanding = self.file.outstanding.load(Ordering::SeqCst);
        if outstanding > 0 {
            return Err(RotateError::JobsOutstanding(outstanding));
        }
        self.seal().run()?;
        self.file.end();
        let end = self.position();
        let (faults, file, path) = (&self.catalog.config.faults, self.file.plain(), &self.file.path);
        let spare = self.file.allocated().saturating_sub(end.offset.0);
        let later = may_cut_later && spare > self.catalog.config.cut_later;
        let finished = if later {
            mark_closed(faults, file, path, end.offset.0)
        } else {
            finish(faults, file, path, end.offset.0)
        };
        finished.map_err(|failure| self.shared.poison.set(failure))?;
        self.catalog.finished(self.file.seq, end.offset.0);
        self.shared.durable.advance(end);
        Ok(later)
    }

    /// The second half of step 3, and step 4.
    fn write_head(
        &mut self,
        head: &[u8],
        name: impl Fn(&Catalog, FileSeq) -> Result<(), IoFailure>,
    ) -> Result<(), WriteError> {
        self.write_unnamed_head(head)?;
        let named = self.shared.space.patiently(|| name(&self.catalog, self.file.seq));
        named.map_err(|failure| self.shared.poison.set(failure))?;
        self.shared.durable.advance(self.position());
        Ok(())
    }

    fn write_unnamed_head(&mut self, head: &[u8]) -> Result<(), WriteError> {
        self.buffer.extend_from_slice(&MAGIC);
        self.buffer.extend_from_slice(head);
        self.seal().run()?;
        let LogConfig { disk, faults, .. } = &self.catalog.config;
        io::sync_dir(disk, faults, Point::FileNameSync, &self.catalog.path)
            .map_err(failed("sync", &self.catalog.path))
            .map_err(|failure| self.shared.poison.set(failure))
    }

    /// Steps 2 and 3 of a reset; see `reset.rs`.
    pub(crate) fn begin_anew(&mut self, first: FileSeq, head: &[u8]) -> Result<(), ResetError> {
        self.shared.poison.check()?;
        let poison = |failure: IoFailure| self.shared.poison.set(failure);
        self.shared.recent.begin_anew();
        self.file = self.shared.space.patiently(|| open_next(&self.catalog, first)).map_err(poison)?;
        self.buffer.truncate(0);
        (self.base, self.sealed) = (0, 0);
        self.write_unnamed_head(head)?;
        let replaced = self.shared.space.patiently(|| match self.catalog.replace_all(first) {
            Err(PurgeError::Io(failure)) => Err(failure),
            done => Ok(done),
        });
        replaced
            .map_err(|failure| ResetError::Write(self.shared.poison.set(failure)))?
            .map_err(ResetError::Purge)?;
        self.shared.durable.restart(self.position());
        if let Some(preparer) = self.catalog.preparer() {
            preparer.rotated(&self.file);
        }
        Ok(())
    }

    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    pub(crate) fn current(&self) -> Arc<LogFile> {
        Arc::clone(&self.file)
    }
}

/// The first half of step 3: a file of zeros, or an empty one, under its final name.
fn open_next(catalog: &Catalog, seq: FileSeq) -> Result<Arc<LogFile>, IoFailure> {
    let path = catalog.path_of(seq);
    let LogConfig { disk, faults, .. } = &catalog.config;
    if !catalog.prepared.take(&path)? {
        faults
            .around(Point::FileCreate, || disk.open(&path, Open::CreateNew))
            .map_err(failed("create", &path))?;
    }
    faults.around_step(Point::FileBegin, || disk.begin(&path)).map_err(failed("begin", &path))?;
    LogFile::open(seq, path, catalog.method, &catalog.config).map(Arc::new)
}
