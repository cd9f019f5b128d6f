//! Walking the log after a crash: every event of the files that recovery wants, and at the end where the last whole
//! transaction of the last file ends.
//!
//! The last file may be torn: by a half-written group, or by a hole where one of two writes under way at once was lost.
//! Everything from the first unreadable byte on goes, and so does a transaction whose last event is missing. An earlier
//! file must be whole, because a file is finished and synced before its successor exists; damage there is an error and
//! never a truncation. What the events mean is up to the caller, on the main thread, before the server listens.

use crate::dir::LogDir;
use crate::error::ReadError;
use crate::position::{FileSeq, LogOffset, LogPosition};
use crate::scan::{Next, RawEvent, ReadFile, ScanEnd, Torn, TornReason};
use crate::transaction::{Place, TransactionTracker};

/// How the log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogTail {
    /// Behind the last whole transaction, with all checksums right: where to cut.
    pub end: LogPosition,
    /// The file's length.
    pub file_len: LogOffset,
    /// Why the valid events end before the file does, if they do.
    pub torn: Option<TornReason>,
    /// Whether the valid events end inside of a transaction.
    pub incomplete_transaction: bool,
}

impl LogTail {
    /// Whether the file needs [`LogDir::truncate_tail`].
    #[must_use]
    pub fn needs_truncation(&self) -> bool {
        self.end.offset < self.file_len
    }
}

/// One step of a [`RecoveryScan`].
#[derive(Debug)]
pub enum RecoveryItem<'a> {
    /// An event and where it stands. A transaction's events are given before it is known to be whole: apply them at
    /// [`Place::Last`], and forget them at [`Place::First`] and at the end.
    Event {
        /// The file it is in; its offset is in the event.
        file: FileSeq,
        /// The event.
        event: RawEvent<'a>,
        /// Its place.
        place: Place,
    },
    /// A file other than the last one ended cleanly.
    FileEnd(FileSeq),
    /// The last file ended. Asking again gives the same.
    Tail(LogTail),
}

/// See the module; made by [`LogDir::recovery_scan`].
#[derive(Debug)]
pub struct RecoveryScan<'d> {
    dir: &'d LogDir,
    /// Files still to come.
    rest: &'d [FileSeq],
    file: ReadFile,
    seq: FileSeq,
    tracker: TransactionTracker,
    whole_end: LogOffset,
    /// What `whole_end` was before the last event.
    whole_before: LogOffset,
    /// See [`RecoveryScan::hold`].
    held: Option<LogOffset>,
    ended: bool,
}

impl<'d> RecoveryScan<'d> {
    pub(crate) fn new(dir: &'d LogDir, files: &'d [FileSeq]) -> Result<Option<RecoveryScan<'d>>, ReadError> {
        let Some((&seq, rest)) = files.split_first() else { return Ok(None) };
        let file = dir.read(seq)?;
        Ok(Some(RecoveryScan {
            dir,
            rest,
            file,
            seq,
            tracker: TransactionTracker::new(),
            whole_end: LogOffset(0),
            whole_before: LogOffset(0),
            held: None,
            ended: false,
        }))
    }

    /// Continues at `position` instead of at the file's start; `position` is the start of a transaction in the first
    /// file of this scan, as a checkpoint remembers it.
    ///
    /// # Errors
    /// The position is not in the first file, or the file can not be read.
    pub fn seek(&mut self, position: LogPosition) -> Result<(), ReadError> {
        let end = LogPosition { file: self.seq, offset: self.file.limit() };
        if position.file != self.seq || position > end {
            return Err(ReadError::BehindEnd { position, end });
        }
        self.file.seek(position.offset)?;
        self.whole_end = self.file.position().offset;
        Ok(())
    }

    /// Says that the event given last opens a group that only the caller knows, such as private events without a GTID,
    /// and that ends at `until`. If the log ends before, the group is not whole and goes as well.
    pub fn hold(&mut self, until: LogOffset) {
        self.whole_end = self.whole_before;
        self.held = Some(until);
    }

    /// The next event.
    ///
    /// # Errors
    /// A file can not be read, or one that should be whole is not.
    // Not an iterator: the event borrows the buffer.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<RecoveryItem<'_>, ReadError> {
        if std::mem::take(&mut self.ended)
            && let Some((&seq, rest)) = self.rest.split_first()
        {
            self.file = self.dir.read(seq)?;
            (self.seq, self.rest, self.whole_end) = (seq, rest, LogOffset(0));
            self.tracker = TransactionTracker::new();
        }
        let file_len = self.file.limit();
        match self.file.next()? {
            Next::Event(event) => {
                let place = self.tracker.step(&event);
                let end = LogOffset(event.end());
                self.held = self.held.filter(|until| end < *until);
                self.whole_before = self.whole_end;
                if self.held.is_none() && !self.tracker.is_inside() {
                    self.whole_end = end;
                }
                Ok(RecoveryItem::Event { file: self.seq, event, place })
            }
            Next::End(end) => {
                self.ended = true;
                let damage = |torn: Torn| ReadError::Damaged { position: torn.position, reason: torn.reason };
                match end {
                    // INDEX-1: the index names a file only once its header is durable.
                    ScanEnd::Torn(torn)
                        if !self.rest.is_empty() || self.whole_end <= LogOffset::FIRST_EVENT =>
                    {
                        Err(damage(torn))
                    }
                    ScanEnd::Clean(_) if !self.rest.is_empty() => Ok(RecoveryItem::FileEnd(self.seq)),
                    end => Ok(RecoveryItem::Tail(LogTail {
                        end: LogPosition { file: self.seq, offset: self.whole_end },
                        file_len,
                        torn: if let ScanEnd::Torn(torn) = end { Some(torn.reason) } else { None },
                        incomplete_transaction: self.held.is_some() || self.tracker.is_inside(),
                    })),
                }
            }
        }
    }

    /// Walks to the end without looking at the events.
    ///
    /// # Errors
    /// As [`RecoveryScan::next`].
    pub fn finish(mut self) -> Result<LogTail, ReadError> {
        loop {
            if let RecoveryItem::Tail(tail) = self.next()? {
                return Ok(tail);
            }
        }
    }
}
