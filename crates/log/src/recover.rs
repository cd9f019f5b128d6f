//! Reads the log after a crash: every event of the files that recovery wants, and finally the end of the last whole
//! transaction of the last file.
//!
//! The last file may be torn: by a half-written group, or by a hole where one of two concurrent writes was lost. In a
//! file with groups (`groups`) everything behind the last whole group is cut. In a file of an earlier version
//! everything from the first unreadable byte on is cut, and so is a transaction whose last event is missing. An earlier
//! file must be whole, because a file is finished and synced before its successor exists; damage there is an error and
//! is never cut. The caller interprets the events, on the main thread, before the server listens.

use crate::dir::LogDir;
use crate::error::ReadError;
use crate::groups::{GroupedFile, GroupsEnd};
use crate::position::{FileSeq, LogOffset, LogPosition};
use crate::scan::{Next, RawEvent, ScanEnd, TornReason};
use crate::transaction::{EventPlace, TransactionTracker};
use omnibus_format::group::opens_group;
use omnibus_format::header::HEADER_LEN;

/// The state of the log's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogTail {
    /// The position behind the last whole transaction, with all checksums right: where to cut.
    pub end: LogPosition,
    /// The file's length.
    pub file_len: LogOffset,
    /// The reason why the valid events end before the file does, if they do.
    pub torn: Option<TornReason>,
    /// Whether the valid events end inside a transaction.
    pub incomplete_transaction: bool,
    /// The state of the file's groups, if it has any.
    pub groups: Option<TailGroups>,
}

/// The state of the last file's groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailGroups {
    /// The end of the last group that stays, for the next file's head.
    pub end: GroupsEnd,
    /// The salt of the file's checksum chain, for `ReadFile::groups_behind`.
    pub salt: u64,
    /// A ROTATE or STOP follows.
    pub closed: bool,
}

impl LogTail {
    /// Returns whether the file needs [`LogDir::truncate_tail`].
    #[must_use]
    pub fn needs_truncation(&self) -> bool {
        self.end.offset < self.file_len
    }
}

/// One step of a [`RecoveryScan`].
#[derive(Debug)]
pub enum RecoveryItem<'a> {
    /// An event and its place. A transaction's events are returned before it is known to be whole: apply them at
    /// [`EventPlace::Last`], and discard them at [`EventPlace::First`] and at the end.
    Event {
        /// The file it is in; its offset is in the event.
        file: FileSeq,
        /// The event.
        event: RawEvent<'a>,
        /// Its place in a transaction.
        place: EventPlace,
    },
    /// A file other than the last one ended cleanly.
    FileEnd(FileSeq),
    /// The last file ended. Further calls return the same.
    Tail(LogTail),
}

/// The scan of a log by recovery; see the module. Made by [`RecoveryScan::new`].
#[derive(Debug)]
pub struct RecoveryScan<'d> {
    dir: &'d LogDir,
    /// The files that follow.
    rest: &'d [FileSeq],
    file: GroupedFile,
    seq: FileSeq,
    whole: Whole,
    ended: bool,
}

/// The state of the valid part of a file.
#[derive(Debug, Default)]
struct Whole {
    tracker: TransactionTracker,
    end: LogOffset,
    /// The value of `end` before the last event.
    before: LogOffset,
    /// See [`RecoveryScan::hold`].
    held: Option<LogOffset>,
    /// The end of the groups that consist of whole transactions; `None` in a file without groups.
    groups: Option<GroupsEnd>,
}

impl<'d> RecoveryScan<'d> {
    /// Starts a scan of all events of a log from the start of `from` on. `None` if the log has no such file or no file at all.
    ///
    /// # Errors
    /// The first file can not be opened.
    pub fn new(dir: &'d LogDir, from: FileSeq) -> Result<Option<RecoveryScan<'d>>, ReadError> {
        let at = dir.files.iter().position(|&seq| seq == from).unwrap_or(dir.files.len());
        let Some((&seq, rest)) = dir.files[at..].split_first() else { return Ok(None) };
        let file = GroupedFile::new(dir.read(seq)?)?;
        let whole = Whole { groups: file.groups_end(), ..Whole::default() };
        Ok(Some(RecoveryScan { dir, rest, file, seq, whole, ended: false }))
    }

    /// Declares that the event returned last opens a group that ends at `until`. Only the caller can recognise such a
    /// group, for example private events without a GTID. If the log ends before `until`, the group is incomplete and is
    /// cut as well.
    pub fn hold(&mut self, until: LogOffset) {
        self.whole.end = self.whole.before;
        self.whole.held = Some(until);
    }

    /// Reads the next step.
    ///
    /// # Errors
    /// A file cannot be read, or a file that must be whole is damaged.
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

    /// Switches to the next file. Its head says where the previous file ends.
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

    /// Reads to the end without returning the events.
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

    /// Records the end of the groups so far.
    fn note_groups(&mut self, end: Option<GroupsEnd>) {
        if !self.is_inside() {
            self.groups = end;
        }
    }

    /// Returns the end of the last whole group, because no part of an incomplete group was acknowledged.
    fn end_of_groups(&mut self, end: ScanEnd) -> Option<GroupsEnd> {
        let groups = self.groups?;
        self.end = if self.is_inside() { LogOffset(groups.end) } else { end.position().offset };
        Some(groups)
    }
}
