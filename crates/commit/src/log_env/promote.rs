//! The flush stage of a large transaction: a rotation to the file that holds its events.
//!
//! It runs under the flush lock and takes as long as a rotation. The file's head and the transaction's first event
//! depend on the commits before, so they are made here; the head of the transaction's group fills the room between
//! them. Everything appended before is durable on return, whatever `sync_binlog` is, because only the last file of the
//! log may have a torn tail.

use super::LogEnv;
use super::appender::{Appender, group_head_len, write_group_head};
use super::first_event::FirstEvent;
use super::numbering::CommitNumbers;
use crate::env::AppendError;
use crate::error::reason;
use crate::head::FileHead;
use crate::request::CommitRequest;
use omnibus_format::group::Chain;

/// The bytes in front of the transaction in its file.
struct Front {
    head: FileHead,
    opening: Vec<u8>,
    /// The checksum chain behind the transaction.
    chain: Chain,
    end: u64,
}

impl LogEnv {
    /// Makes a settled file the active log file. Returns `None`, without any effect, if it cannot be one.
    pub(crate) fn promote(
        &self,
        appender: &mut Appender,
        place: CommitNumbers,
        request: &mut CommitRequest,
    ) -> Option<Result<(), AppendError>> {
        self.end_group(appender);
        let front = self.front(appender, place, request)?;
        self.add_rotate(appender).ok()?;
        let (_, spilled, _) = request.cache.settled()?;
        // Groups in flight are in the file that ends here.
        appender.writer.wait_idle();
        if let Err(error) = appender.writer.promote(&front.head.bytes, &front.opening, spilled) {
            return Some(Err(AppendError::Log(reason(&error))));
        }
        request.cache.promoted();
        appender.in_new_file(front.head.checksum, front.chain, front.end);
        appender.base = appender.last;
        self.appended(appender, place);
        Some(Ok(()))
    }

    fn front(&self, appender: &Appender, place: CommitNumbers, request: &CommitRequest) -> Option<Front> {
        let (made_with, spilled, hash) = request.cache.settled()?;
        let head = self.next_head(appender);
        let checksum = head.checksum;
        let writer = &appender.writer;
        if checksum != made_with || !writer.can_promote(spilled) || !writer.may_rotate() {
            return None;
        }
        // As the transaction's place will be: the first in its file.
        let first =
            FirstEvent { base: appender.last, checksum, ..self.first_event(appender, place, request) };
        let written = |position: u64| {
            let mut out = Vec::new();
            first.write(&mut out, position);
            out
        };
        let from = head.end();
        let room = spilled.reserve.checked_sub(from + written(0).len() as u64);
        let room = room.filter(|room| *room >= group_head_len(checksum) as u64)? as usize;
        let (context, first) = (first.context, written(from + room as u64));
        // All of it is one group, whose head takes what room there is.
        let mut chain = head.chain;
        let mut group = chain.hash();
        group.update(&first);
        group.append(hash);
        let len = first.len() as u64 + spilled.end - spilled.reserve;
        let group = chain.add(group, from, len, self.durable_no().0);
        let mut opening = Vec::with_capacity(room + first.len());
        write_group_head(&mut opening, context, from, checksum, group, room);
        opening.extend_from_slice(&first);
        Some(Front { head, opening, chain, end: spilled.end })
    }
}
