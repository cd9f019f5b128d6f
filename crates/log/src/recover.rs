//! Walking the log after a crash: every event of the files that recovery wants, and at the end where the last whole
//! transaction of the last file ends.
//!
//! The last file may be torn: by a half-written group, or by a hole where one of two writes under way at once was lost.
//! Of a file with groups (`groups`) everything behind the last whole one goes. Of one of an earlier version
//! everything from the first unreadable byte on goes, and so does a transaction whose last event is missing. An earlier
//! file must be whole, because a file is finished and synced before its successor exists; damage there is an error and
//! never a truncation. What the events mean is up to the caller, on the main thread, before the server listens.

use crate::dir::LogDir;
use crate::error::ReadError;
use crate::groups::{GroupedFile, GroupsEnd};
use crate::position::{FileSeq, LogOffset, LogPosition};
use crate::scan::{Next, RawEvent, ScanEnd, TornReason};
use crate::transaction::{EventPlace, TransactionTracker};
use omnibus_format::group::opens_group;
use omnibus_format::header::HEADER_LEN;

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
    /// What is known of the file's groups, if it has any.
    pub groups: Option<TailGroups>,
}

/// How the groups of the last file end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailGroups {
    /// Behind the last one that stays, for the next file's head.
    pub end: GroupsEnd,
    /// For `ReadFile::groups_behind`.
    pub salt: u64,
    /// A ROTATE or STOP follows.
    pub closed: bool,
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
    /// [`EventPlace::Last`], and forget them at [`EventPlace::First`] and at the end.
    Event {
        /// The file it is in; its offset is in the event.
        file: FileSeq,
        /// The event.
        event: RawEvent<'a>,
        /// Its place.
        place: EventPlace,
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
    file: GroupedFile,
    seq: FileSeq,
    whole: Whole,
    ended: bool,
}

/// How far a file is whole.
#[derive(Debug, Default)]
struct Whole {
    tracker: TransactionTracker,
    end: LogOffset,
    /// What `end` was before the last event.
    before: LogOffset,
    /// See [`RecoveryScan::hold`].
    held: Option<LogOffset>,
    /// How the groups end that hold whole transactions only; `None` in a file without groups.
    groups: Option<GroupsEnd>,
}

impl LogDir {
    /// Reads all events from the start of `from` on. `None` if the log has no such file or no file at all.
    ///
    /// # Errors
    /// The first file can not be opened.
    pub fn recovery_scan(&self, from: FileSeq) -> Result<Option<RecoveryScan<'_>>, ReadError> {
        let at = self.files.iter().position(|&seq| seq == from).unwrap_or(self.files.len());
        RecoveryScan::new(self, &self.files[at..])
    }
}

impl<'d> RecoveryScan<'d> {
    fn new(dir: &'d LogDir, files: &'d [FileSeq]) -> Result<Option<RecoveryScan<'d>>, ReadError> {
        let Some((&seq, rest)) = files.split_first() else { return Ok(None) };
        let file = GroupedFile::new(dir.read(seq)?)?;
        let whole = Whole { groups: file.groups_end(), ..Whole::default() };
        Ok(Some(RecoveryScan { dir, rest, file, seq, whole, ended: false }))
    }

    /// Says that the event given last opens a group that only the caller knows, such as private events without a GTID,
    /// and that ends at `until`. If the log ends before, the group is not whole and goes as well.
    pub fn hold(&mut self, until: LogOffset) {
        self.whole.end = self.whole.before;
        self.whole.held = Some(until);
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
            self.next_file(seq)?;
            self.rest = rest;
        }
        if self.file.is_between_groups() {
            self.whole.note_groups(self.file.groups_end());
        }
        let (file_len, start, closed) = (self.file.len(), self.file.chain_start(), self.file.is_closed());
        match self.file.next()? {
            Next::Event(event) => {
                let place = self.whole.step(&event);
                Ok(RecoveryItem::Event { file: self.seq, event, place })
            }
            Next::End(end) => {
                self.ended = true;
                let groups = start.and_then(|start| {
                    let end = self.whole.end_of_groups(end)?;
                    Some(TailGroups { end, salt: start.salt, closed })
                });
                match end {
                    // Nothing but its first four bytes is there.
                    ScanEnd::Clean(position) if self.whole.end <= LogOffset::FIRST_EVENT => {
                        Err(ReadError::Damaged {
                            position,
                            reason: TornReason::Torn { needed: HEADER_LEN as u64, available: 0 },
                        })
                    }
                    // Asserts INDEX-1: the index names a file only once its header is durable.
                    ScanEnd::Torn(torn)
                        if !self.rest.is_empty() || self.whole.end <= LogOffset::FIRST_EVENT =>
                    {
                        Err(ReadError::Damaged { position: torn.position, reason: torn.reason })
                    }
                    ScanEnd::Clean(_) if !self.rest.is_empty() => Ok(RecoveryItem::FileEnd(self.seq)),
                    end => Ok(RecoveryItem::Tail(LogTail {
                        end: LogPosition { file: self.seq, offset: self.whole.end },
                        file_len,
                        torn: if let ScanEnd::Torn(torn) = end { Some(torn.reason) } else { None },
                        incomplete_transaction: self.whole.is_inside(),
                        groups,
                    })),
                }
            }
        }
    }

    /// A file's head says how the one before ends.
    fn next_file(&mut self, seq: FileSeq) -> Result<(), ReadError> {
        let file = GroupedFile::new(self.dir.read(seq)?)?;
        if let (Some(before), Some(start)) = (self.whole.groups, file.chain_start())
            && start.before_end != 0
            && (GroupsEnd { end: start.before_end, chain: start.before_chain }) != before
        {
            let position = LogPosition::new(self.seq, before.end);
            return Err(ReadError::Damaged { position, reason: TornReason::OtherEnd });
        }
        self.whole = Whole { groups: file.groups_end(), ..Whole::default() };
        (self.file, self.seq) = (file, seq);
        Ok(())
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

impl Whole {
    fn is_inside(&self) -> bool {
        self.held.is_some() || self.tracker.is_inside()
    }

    fn step(&mut self, event: &RawEvent<'_>) -> EventPlace {
        let place = self.tracker.step(event);
        let end = LogOffset(event.end());
        if opens_group(event) {
            // It stands inside of a private group that was written in several.
            let len = event.bytes.len() as u64;
            self.held = self.held.map(|until| LogOffset(until.0 + len));
        }
        self.held = self.held.filter(|until| end < *until);
        self.before = self.end;
        if !self.is_inside() {
            self.end = end;
        }
        place
    }

    /// The groups so far end so.
    fn note_groups(&mut self, end: Option<GroupsEnd>) {
        if !self.is_inside() {
            self.groups = end;
        }
    }

    /// Nobody was told of a part of a group: only whole ones stay.
    fn end_of_groups(&mut self, end: ScanEnd) -> Option<GroupsEnd> {
        let groups = self.groups?;
        self.end = if self.is_inside() { LogOffset(groups.end) } else { end.position().offset };
        Some(groups)
    }
}
