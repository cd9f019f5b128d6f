//! The flush stage of a large transaction: a rotation to the file that it is in already.
//!
//! Under the flush lock, and all of it together takes what a rotation takes. The file's head and the transaction's
//! first event depend on what was committed before, so they are made here; a filler takes the room between
//! them. Everything appended before is durable on return, whatever `sync_binlog` says: the log is one sequence of files,
//! and only its last one may have a torn tail.

use crate::CommitRequest;
use crate::appender::Appender;
use crate::env::AppendError;
use crate::identity::Place;
use crate::log_env::{LogEnv, reason};
use omnibus_format::header::{FLAG_IGNORABLE, MAGIC};
use omnibus_format::writer::write_final;
use omnibus_format::{CHECKSUM_LEN, Checksum, EventContext, EventType, LogPrivate, MIN_FILLER};

/// What goes in front of the transaction in its file.
struct Front {
    head: Vec<u8>,
    opening: Vec<u8>,
    checksum: Checksum,
}

impl LogEnv {
    /// Makes a settled file the active log file. `None` if it can not be one; nothing has happened then.
    pub(crate) fn promote(
        &self,
        appender: &mut Appender,
        place: Place,
        request: &mut CommitRequest,
    ) -> Option<Result<(), AppendError>> {
        let front = self.front(appender, place, request)?;
        self.add_rotate(appender).ok()?;
        let (_, spilled) = request.cache.settled()?;
        // Groups in flight are in the file that ends here.
        appender.writer.wait_idle();
        if let Err(error) = appender.writer.promote(&front.head, &front.opening, spilled) {
            return Some(Err(AppendError::Log(reason(&error))));
        }
        request.cache.promoted();
        (appender.checksum, appender.base) = (front.checksum, appender.last);
        self.appended(appender, place);
        Some(Ok(()))
    }

    fn front(&self, appender: &mut Appender, place: Place, request: &CommitRequest) -> Option<Front> {
        let (made_with, spilled) = request.cache.settled()?;
        let (head, checksum) = self.next_head(appender);
        if checksum != made_with {
            return None;
        }
        // As the transaction's place will be: the first in its file.
        let before = (appender.base, appender.checksum);
        (appender.base, appender.checksum) = (appender.last, checksum);
        let context = self.context_of(request);
        let first = |appender: &Appender, position: u64| {
            let mut out = Vec::new();
            self.write_first(&mut out, appender, position, place, request);
            out
        };
        let from = (MAGIC.len() + head.len()) as u64;
        let room = spilled.reserve.checked_sub(from + first(appender, 0).len() as u64);
        let opening = room.filter(|room| *room >= MIN_FILLER as u64).map(|room| {
            let mut opening = filler(context, from, room, checksum);
            opening.extend(first(appender, from + room));
            opening
        });
        (appender.base, appender.checksum) = before;
        Some(Front { head, opening: opening?, checksum })
    }
}

/// A filler event of `len` bytes at `position`.
fn filler(context: EventContext, position: u64, len: u64, checksum: Checksum) -> Vec<u8> {
    let mut out = Vec::with_capacity(len as usize);
    write_final(&mut out, context, EventType::IGNORABLE, FLAG_IGNORABLE, position, checksum, |body| {
        let least = MIN_FILLER - CHECKSUM_LEN + checksum.len();
        LogPrivate::Filler((len as usize).saturating_sub(least)).encode(body);
    });
    out
}
