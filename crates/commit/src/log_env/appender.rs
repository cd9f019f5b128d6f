//! The log's writer with its append state. Its holder may append; the pipeline hands it from leader to leader.

use super::numbering::Next;
use crate::cache::CacheError;
use crate::error::reason;
use crate::head::FileHead;
use crate::recovery::Recovered;
use omnibus_engine::CommitNo;
use omnibus_format::group::{Chain, GROUP_HEAD_LEN, GroupHead};
use omnibus_format::header::FLAG_IGNORABLE;
use omnibus_format::writer::{finish_cached, write_final};
use omnibus_format::{CHECKSUM_LEN, Checksum, DecodeError, EventContext, EventType, LogPrivate};
use omnibus_log::{GroupsEnd, LogWriter};
use std::sync::Arc;

/// A transaction that is larger than this goes to the file piece by piece, so that the log buffer
/// stays small. Its pieces count only once its last event is there (COMMIT-3).
pub(crate) const PIECE: usize = 1 << 20;

/// The log's append side and the state of numbering. Guarded by the flush lock.
pub struct Appender {
    pub(crate) writer: LogWriter,
    pub(crate) scratch: Vec<u8>,
    pub(crate) checksum: Checksum,
    /// The last commit number before the active file: GTID events count from it.
    pub(crate) base: CommitNo,
    pub(crate) last: CommitNo,
    /// The next ids to be given.
    pub(crate) next: Next,
    /// File offset of the open group's head, if a group is open.
    group_at: Option<u64>,
    chain: Chain,
    groups_end: u64,
    /// Contents of the open group's head: header fields, and the newest durable commit number.
    stamp: (EventContext, CommitNo),
}

impl Appender {
    /// Creates the append side of a log whose end recovery has found, in a file that begins with `head`.
    pub(crate) fn new(writer: LogWriter, head: &FileHead, recovered: &Recovered, next: Next) -> Appender {
        Appender {
            writer,
            scratch: Vec::new(),
            checksum: head.checksum,
            base: recovered.last,
            last: recovered.last,
            next,
            group_at: None,
            chain: head.chain,
            groups_end: head.end(),
            stamp: (EventContext { timestamp: 0, server_id: 0 }, recovered.last),
        }
    }

    /// Records that the writer is in a new file whose groups end at `end`, with the checksum chain's value there.
    pub(crate) fn in_new_file(&mut self, checksum: Checksum, chain: Chain, end: u64) {
        debug_assert!(self.group_at.is_none(), "a file ends behind a whole group");
        (self.checksum, self.chain, self.groups_end) = (checksum, chain, end);
    }

    /// The end of this file's groups, for the head of the next file.
    pub(crate) fn groups_end(&self) -> GroupsEnd {
        GroupsEnd { end: self.groups_end, chain: self.chain.last() }
    }

    /// Sets the contents of the heads of later groups.
    pub(crate) fn stamp(&mut self, context: EventContext, durable: CommitNo) {
        self.stamp = (context, durable);
    }

    /// Opens a group, unless one is open, by leaving room for its head. Everything behind a file's head is in a group.
    pub(crate) fn begin_group(&mut self) {
        if self.group_at.is_none() {
            self.group_at = Some(self.writer.position().offset.0);
            let room = group_head_len(self.checksum);
            self.writer.buffer().extend_from_slice(&[0; GROUP_HEAD_LEN + CHECKSUM_LEN][..room]);
        }
    }

    /// Writes the open group's head, if one is open. Later events are in another group.
    pub(crate) fn end_group(&mut self) {
        let Some(at) = self.group_at.take() else { return };
        let (room, (context, durable)) = (group_head_len(self.checksum), self.stamp);
        let end = self.writer.position().offset.0;
        let buffer = self.writer.buffer();
        // No piece of an open group has been sealed.
        let from = buffer.len() - usize::try_from(end - at).unwrap_or(usize::MAX);
        let body = &buffer[from + room..];
        let mut hash = self.chain.hash();
        hash.update(body);
        let head = self.chain.add(hash, at, body.len() as u64, durable.0);
        self.scratch.clear();
        write_group_head(&mut self.scratch, context, at, self.checksum, head, room);
        self.writer.buffer()[from..from + room].copy_from_slice(&self.scratch);
        self.groups_end = end;
    }

    /// Appends one final event.
    pub(crate) fn add(
        &mut self,
        context: EventContext,
        kind: EventType,
        flags: u16,
        body: impl FnOnce(&mut Vec<u8>),
    ) {
        self.scratch.clear();
        let position = self.writer.position().offset.0;
        write_final(&mut self.scratch, context, kind, flags, position, self.checksum, body);
        self.writer.buffer().extend_from_slice(&self.scratch);
    }

    /// Appends cached events in their final form. Long runs are written to the file on the way.
    pub(crate) fn add_cached(&mut self, cached: &[u8]) -> Result<(), CopyError> {
        self.begin_group();
        self.scratch.clear();
        let position = self.writer.position().offset.0;
        finish_cached(&mut self.scratch, cached, position, self.checksum)?;
        self.writer.buffer().extend_from_slice(&self.scratch);
        if self.writer.buffer().len() >= PIECE {
            // Groups in flight may share a block with this piece: wait for them.
            self.writer.wait_idle();
            self.end_group();
            self.writer.seal().run_without_sync().map_err(|error| CopyError::Log(reason(&error)))?;
            self.scratch.shrink_to(PIECE);
        }
        Ok(())
    }
}

/// The number of bytes of a group's head.
pub(crate) fn group_head_len(checksum: Checksum) -> usize {
    GROUP_HEAD_LEN + checksum.len()
}

/// Writes a group's head as an event of `len` bytes.
pub(crate) fn write_group_head(
    out: &mut Vec<u8>,
    context: EventContext,
    position: u64,
    checksum: Checksum,
    head: GroupHead,
    len: usize,
) {
    let spare = len.saturating_sub(GROUP_HEAD_LEN + checksum.len());
    write_final(out, context, EventType::IGNORABLE, FLAG_IGNORABLE, position, checksum, |body| {
        LogPrivate::Group { head, spare }.encode(body);
    });
}

/// The reason why a cache was not copied.
pub(crate) enum CopyError {
    Cache(Arc<str>),
    Log(Arc<str>),
}

impl From<CacheError> for CopyError {
    fn from(error: CacheError) -> CopyError {
        CopyError::Cache(reason(&error))
    }
}

impl From<DecodeError> for CopyError {
    fn from(error: DecodeError) -> CopyError {
        CopyError::Cache(reason(&error))
    }
}
