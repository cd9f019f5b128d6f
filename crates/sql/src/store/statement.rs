//! The state of the running statement in a transaction. It is made where an attempt at the statement begins and replaced where the
//! next one does.
//!
//! An attempt is one run of the statement. One that had to wait for a lock, to move to a thread that may block, or to be planned anew runs
//! again; of the attempts before, it has what is not in [`Attempt`]. A statement is no part of its transaction: a definition commits
//! what is open and goes on, and most transactions have several statements.

use super::counters::Taken;
use super::events::Logging;
use super::foreign_keys::ForeignKeys;
use super::lock::{Patience, Waits};
use super::memory::Room;
use super::read_ahead::Near;
use crate::api::{Mode, SessionSettings};
use crate::memory::{Account, SessionMemory};
use bytes::Bytes;
use std::sync::Arc;

/// See the module's text.
#[derive(Default)]
pub(crate) struct StatementScope {
    pub(super) attempt: Attempt,
    /// The snapshot that it reads is older than the statement.
    pub(super) snapshot_is_older: bool,
    /// The lock that an attempt ended for, if it may be given back (`read_committed`).
    pub(super) awaited: Option<Bytes>,
    /// AUTO_INCREMENT values: table, how many, first.
    pub(super) auto: Taken<(u64, u64, u64)>,
    /// Numbers out of sequences: table, number.
    pub(super) numbers: Taken<(u64, i64)>,
}

/// The state that ends with an attempt at the statement.
#[derive(Default)]
pub(super) struct Attempt {
    /// How it waits for locks.
    pub waits: Waits,
    /// How much it may have its transaction keep.
    pub room: Room,
    /// How its rows are logged.
    pub logging: Logging,
    pub foreign_keys: ForeignKeys,
    /// The rows that it has read ahead of the snapshot.
    pub near: Near,
    /// The lock of the row that it looks at, if it may be given back.
    pub matched: Option<Bytes>,
    /// It has given a row the value that SET INSERT_ID names.
    forced: bool,
}

impl Attempt {
    /// As the session's variables say. `files`: what it writes may go to files.
    pub(super) fn new(mode: Mode, settings: &SessionSettings, files: bool) -> Attempt {
        Attempt {
            waits: Waits { mode, patience: Patience::new(settings) },
            room: Room::of(settings, files),
            logging: Logging::of(settings),
            foreign_keys: ForeignKeys::new(settings.foreign_key_checks),
            ..Attempt::default()
        }
    }
}

impl StatementScope {
    /// Before the first statement of a session, whose memory is counted there.
    pub(super) fn of(memory: &Arc<SessionMemory>) -> StatementScope {
        let near = Near::counted(Account::new(memory));
        StatementScope { attempt: Attempt { near, ..Attempt::default() }, ..StatementScope::default() }
    }

    /// The scope of the attempt that follows, which is the first one of a statement or `again` one at the same.
    pub(super) fn next(self, attempt: Attempt, again: bool, snapshot_is_older: bool) -> StatementScope {
        StatementScope {
            // Lists are handed on empty: they keep their room.
            attempt: Attempt { near: self.attempt.near.emptied(attempt.room.limits), ..attempt },
            snapshot_is_older,
            awaited: self.awaited.filter(|_| again),
            auto: self.auto.next(again),
            numbers: self.numbers.next(again),
        }
    }

    /// Whether it may not block.
    pub(crate) fn is_inline(&self) -> bool {
        self.attempt.waits.mode == Mode::Inline
    }

    /// How it waits for locks.
    pub(crate) fn waits(&self) -> Waits {
        self.attempt.waits
    }

    /// Something else of it than its choice of rows needs this lock: what it has until its transaction ends.
    pub(super) fn keep(&mut self, key: &Bytes) {
        self.awaited.take_if(|awaited| awaited == key);
        self.attempt.matched.take_if(|matched| matched == key);
    }

    /// `foreign_key_checks` of what is applied next.
    pub(crate) fn check_foreign_keys(&mut self, checked: bool) {
        self.attempt.foreign_keys.checked = checked;
    }

    /// It is logged as text: its rows make no events.
    pub(crate) fn log_as_text(&mut self) {
        self.attempt.logging.log_as_text();
    }

    /// Its rows are logged by other means.
    pub(crate) fn without_row_events(&mut self) {
        self.attempt.logging.stop();
    }

    /// The first AUTO_INCREMENT value that it took.
    pub(crate) fn first_auto_value(&self) -> Option<u64> {
        self.auto.first().map(|(_, _, first)| *first)
    }

    /// A row has the value that SET INSERT_ID names.
    pub(crate) fn use_forced(&mut self) {
        self.attempt.forced = true;
    }

    /// Whether a row has it, which no later statement may have. Asked once.
    pub(crate) fn take_forced(&mut self) -> bool {
        std::mem::take(&mut self.attempt.forced)
    }

    /// As `take_forced`, for the log of a statement that goes on.
    pub(crate) fn has_forced(&self) -> bool {
        self.attempt.forced
    }
}
