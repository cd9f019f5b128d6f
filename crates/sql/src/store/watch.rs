//! A session's transaction as other threads see it: for KILL, the process list, INNODB_TRX and `events_transactions_*`.
//!
//! The session's thread writes a few numbers of its own, without a lock and without asking the clock again; what locks and
//! snapshots know is read from them. A look may mix two statements of a session, and never stops one.

use super::events::StatementInfo;
use super::transaction::Characteristics;
use crate::api::{EndedTrx, Isolation, TrxKind, TrxSeen};
use omnibus_commit::SnapshotWatch;
use omnibus_engine::CommitNo;
use omnibus_locks::{HeldLock, LockTarget, TrxHandle};
use parking_lot::Mutex;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};

/// Ended transactions that are remembered of each session, as MySQL's `events_transactions_history` has them.
const PAST: usize = 10;

/// Bits of `how`. The lowest two are the isolation level.
const READ_ONLY: u64 = 4;
/// START TRANSACTION, or a statement under autocommit=0, has opened it.
const OPEN: u64 = 8;
/// An earlier statement has read or locked something.
const BEGUN: u64 = 16;
const UNCHECKED_KEYS: u64 = 32;
const UNCHECKED_PARENTS: u64 = 64;
const ROLLED_BACK: u64 = 128;

/// See the module's text. A transaction that leaves its session takes its locks along, so the session's are not the same for ever.
pub struct SessionWatch {
    locks: Mutex<TrxHandle>,
    snapshot: OnceLock<SnapshotWatch>,
    present: Present,
    past: [Past; PAST],
}

/// Of the open transaction, or the running statement's.
#[derive(Default)]
struct Present {
    /// The number of transactions that the session has ended.
    ended: AtomicU64,
    how: AtomicU64,
    /// When START TRANSACTION opened it; 0 if nothing did.
    opened_us: AtomicU64,
    /// When the statement began that first used a table, or the last one that did not.
    began_us: AtomicU64,
    /// When the statement began that took the snapshot, or the last one that did not.
    read_us: AtomicU64,
    /// When COMMIT began; 0 before.
    ends_us: AtomicU64,
    rows: AtomicU64,
}

/// An ended transaction: its number is stored last, and 0 while the rest changes.
#[derive(Default)]
struct Past {
    number: AtomicU64,
    how: AtomicU64,
    began_us: AtomicU64,
    ended_us: AtomicU64,
}

fn kind_of(how: u64) -> TrxKind {
    let isolation = match how & 3 {
        0 => Isolation::ReadUncommitted,
        1 => Isolation::ReadCommitted,
        2 => Isolation::RepeatableRead,
        _ => Isolation::Serializable,
    };
    TrxKind { isolation, read_only: how & READ_ONLY != 0, open: how & OPEN != 0 }
}

fn bits_of(characteristics: &Characteristics) -> u64 {
    let bit = |set: bool, bit: u64| if set { bit } else { 0 };
    characteristics.isolation as u64
        | bit(characteristics.read_only, READ_ONLY)
        | bit(characteristics.open, OPEN)
}

/// The side of the session's thread.
impl SessionWatch {
    pub(super) fn new(handle: TrxHandle) -> SessionWatch {
        SessionWatch {
            locks: Mutex::new(handle),
            snapshot: OnceLock::new(),
            present: Present::default(),
            past: Default::default(),
        }
    }

    /// The session has other locks.
    pub(super) fn replace(&self, handle: TrxHandle) {
        *self.locks.lock() = handle;
    }

    /// The session's snapshots.
    pub(super) fn set_snapshot(&self, snapshot: SnapshotWatch) {
        let _ = self.snapshot.set(snapshot);
    }

    /// A transaction is opened.
    pub(super) fn opened(&self, characteristics: &Characteristics) {
        let present = &self.present;
        present.opened_us.store(omnibus_commit::now_us(), Relaxed);
        let kept = present.how.load(Relaxed) & (BEGUN | UNCHECKED_KEYS | UNCHECKED_PARENTS);
        present.how.store(kept | bits_of(characteristics), Relaxed);
    }

    /// A statement begins. `begun`: there are locks or writes; `reads`: there is a snapshot.
    pub(super) fn begin_statement(
        &self,
        characteristics: &Characteristics,
        (begun, reads): (bool, bool),
        info: &StatementInfo<'_>,
    ) {
        let (present, settings) = (&self.present, info.settings);
        let kept = present.how.load(Relaxed) & BEGUN;
        let begun = begun || reads || kept != 0;
        // SET timestamp is about what statements see.
        let now = || match settings.timestamp_us {
            None => u64::try_from(info.now_us).unwrap_or(0),
            Some(_) => omnibus_commit::now_us(),
        };
        if !reads {
            let now = now();
            present.read_us.store(now, Relaxed);
            if !begun {
                present.began_us.store(now, Relaxed);
            }
        }
        let mut how = bits_of(characteristics);
        for (bit, set) in [
            (BEGUN, begun),
            (UNCHECKED_KEYS, !settings.unique_checks),
            (UNCHECKED_PARENTS, !settings.foreign_key_checks),
        ] {
            how |= if set { bit } else { 0 };
        }
        present.how.store(how, Relaxed);
    }

    /// Its only statement has other characteristics.
    pub(super) fn changed(&self, characteristics: &Characteristics) {
        let kept = self.present.how.load(Relaxed) & (BEGUN | UNCHECKED_KEYS | UNCHECKED_PARENTS);
        self.present.how.store(kept | bits_of(characteristics), Relaxed);
    }

    pub(super) fn changed_rows(&self) -> u64 {
        self.present.rows.load(Relaxed)
    }

    /// So many rows are inserted, changed or deleted.
    pub(super) fn set_changed_rows(&self, rows: u64) {
        self.present.rows.store(rows, Relaxed);
    }

    /// COMMIT begins.
    pub(super) fn commits(&self, now_us: u64) {
        self.present.ends_us.store(now_us, Relaxed);
    }

    /// A rollback follows.
    pub(super) fn rolls_back(&self) {
        let present = &self.present;
        present.how.store(present.how.load(Relaxed) | ROLLED_BACK, Relaxed);
        present.ends_us.store(0, Relaxed);
    }

    /// The transaction is over, or there was none: `used` says whether it had anything.
    pub(super) fn end(&self, used: bool) {
        let present = &self.present;
        let how = present.how.load(Relaxed);
        let ends_us = present.ends_us.load(Relaxed);
        if used || how & (OPEN | BEGUN) != 0 {
            let number = present.ended.load(Relaxed) + 1;
            let began_us = if how & OPEN == 0 { &present.began_us } else { &present.opened_us };
            let ended_us = if ends_us == 0 { omnibus_commit::now_us() } else { ends_us };
            let place = &self.past[number as usize % PAST];
            place.number.store(0, Relaxed);
            fence(Release);
            place.how.store(how, Relaxed);
            place.began_us.store(began_us.load(Relaxed), Relaxed);
            place.ended_us.store(ended_us, Relaxed);
            place.number.store(number, Release);
            present.ended.store(number, Relaxed);
        }
        if ends_us != 0 {
            present.ends_us.store(0, Relaxed);
        }
        present.opened_us.store(0, Relaxed);
        present.rows.store(0, Relaxed);
        present.how.store(how & !(OPEN | BEGUN | READ_ONLY | ROLLED_BACK), Relaxed);
    }
}

/// The side of others.
impl SessionWatch {
    /// Ends the present wait, and every later one at once until `clear_kill`.
    pub fn kill(&self) {
        self.locks.lock().kill();
    }

    /// Makes the session able to wait again.
    pub fn clear_kill(&self) {
        self.locks.lock().clear_kill();
    }

    /// The lock that it waits for now.
    #[must_use]
    pub fn waits_for(&self) -> Option<LockTarget> {
        self.locks.lock().waits_for()
    }

    /// The locks that the transaction holds in spaces: of single records at most so many.
    #[must_use]
    pub fn held_in_spaces(&self, most: usize) -> Vec<HeldLock> {
        let locks = self.locks.lock().clone();
        locks.held_in_spaces(most)
    }

    /// The snapshot that is held, and since when, in microseconds since 1970.
    #[must_use]
    pub fn snapshot(&self) -> Option<(CommitNo, u64)> {
        let number = self.snapshot.get().and_then(SnapshotWatch::number)?;
        let (read_us, opened_us) = (&self.present.read_us, &self.present.opened_us);
        Some((number, read_us.load(Relaxed).max(opened_us.load(Relaxed))))
    }

    /// The present transaction, if there is one, or what there is instead.
    #[must_use]
    pub fn look(&self) -> TrxSeen {
        let (present, locks) = (&self.present, self.locks.lock().clone());
        let how = present.how.load(Relaxed);
        let began_us = present.began_us.load(Relaxed);
        let opened_us = present.opened_us.load(Relaxed);
        let session = locks.id();
        TrxSeen {
            id: id_of(session, present.ended.load(Relaxed) + 1),
            session,
            kind: kind_of(how),
            checks: (how & UNCHECKED_KEYS == 0, how & UNCHECKED_PARENTS == 0),
            begun: how & BEGUN != 0,
            opened_us: if opened_us == 0 { began_us } else { opened_us },
            began_us: began_us.max(opened_us),
            snapshot: self.snapshot(),
            rows_changed: present.rows.load(Relaxed),
            held: locks.held(),
            lock_bytes: locks.memory(),
            waiting: locks.waiting(),
        }
    }

    /// The last transactions that are over, newest first.
    #[must_use]
    pub fn past(&self) -> Vec<EndedTrx> {
        let session = self.locks.lock().id();
        let newest = self.present.ended.load(Relaxed);
        let numbers = (newest.saturating_sub(PAST as u64 - 1).max(1)..=newest).rev();
        numbers.filter_map(|number| self.past[number as usize % PAST].read(session, number)).collect()
    }
}

impl Past {
    /// It, if it is that one and nobody writes it meanwhile.
    fn read(&self, session: u64, number: u64) -> Option<EndedTrx> {
        if self.number.load(Acquire) != number {
            return None;
        }
        let how = self.how.load(Relaxed);
        let (began_us, ended_us) = (self.began_us.load(Relaxed), self.ended_us.load(Relaxed));
        fence(Acquire);
        (self.number.load(Relaxed) == number).then(|| EndedTrx {
            id: id_of(session, number),
            kind: kind_of(how),
            rolled_back: how & ROLLED_BACK != 0,
            began_us: began_us.min(ended_us),
            ended_us,
        })
    }
}

fn id_of(session: u64, number: u64) -> u64 {
    session << 32 | number & u64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::SessionSettings;
    use omnibus_locks::LockManager;

    #[test]
    fn the_last_ten_are_remembered_and_nothing_of_no_transaction() {
        let manager = LockManager::new();
        let owner = manager.begin(7);
        let watch = SessionWatch::new(owner.handle());
        watch.end(false);
        assert_eq!(watch.past(), []);
        let settings = SessionSettings::default();
        let mut how = Characteristics { open: false, read_only: false, isolation: Isolation::ReadCommitted };
        for at in 1..=12 {
            let info = StatementInfo {
                settings: &settings,
                database: "",
                sql: b"",
                timestamp: 0,
                now_us: at * 100,
                connection_id: 7,
            };
            watch.begin_statement(&how, (false, false), &info);
            watch.commits(at as u64 * 100 + 50);
            watch.end(true);
        }
        let past = watch.past();
        assert_eq!((past.len(), past[0].id, past[9].id), (10, 7 << 32 | 12, 7 << 32 | 3));
        assert_eq!((past[0].began_us, past[0].ended_us, past[0].kind.open), (1200, 1250, false));
        how.open = true;
        watch.opened(&how);
        watch.set_changed_rows(1);
        let seen = watch.look();
        assert_eq!((seen.id, seen.kind.open, seen.rows_changed), (7 << 32 | 13, true, 1));
        watch.rolls_back();
        watch.end(false);
        assert!(watch.past()[0].rolled_back && watch.past()[0].kind.open);
        assert_eq!((watch.look().kind.open, watch.look().rows_changed), (false, 0));
    }
}
