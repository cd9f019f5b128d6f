//! Assigns global transaction ids, in the flush stage under the flush lock.
//!
//! A transaction that came from elsewhere, or was given an id (`TrxCache::set_origin`), keeps it. Any other gets this
//! server's next id: in MySQL's dialect the smallest number that is neither executed nor owned by a session, in
//! MariaDB's the largest number of the domain plus one. So there is no gap and no number twice, and recovery needs no
//! counter, because it has the events. With `gtid_mode` below ON a transaction may be anonymous. Commit numbers are the
//! log's own order and independent of the ids.

use crate::env::AppendError;
use crate::error::Refusal;
use crate::executed::Executed;
use crate::owned::OwnedGtids;
use crate::request::CommitRequest;
use omnibus_engine::CommitNo;
use omnibus_format::events::MariadbGtid;
use omnibus_format::{AnyGtid, Dialect, GtidMode, GtidState, ServerUuid, Tsid, Unnamed};
use omnibus_log::mutant::{self, Mutant};
use omnibus_sync::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// The numbers that the flush stage gives a transaction before it writes anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommitNumbers {
    pub(crate) no: CommitNo,
    pub(crate) last_seen: CommitNo,
    /// Whether other tools read it; otherwise only recovery does.
    pub(super) logged: bool,
    /// `None` for an anonymous transaction. One that only recovery reads has an id only if it was given one.
    pub(crate) gtid: Option<AnyGtid>,
    /// MariaDB's commit id: transactions with the same number were committed together.
    pub(super) group: u64,
}

/// Consecutive transactions in MariaDB's dialect that a replica may run in parallel.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    first: CommitNo,
    id: u64,
}

/// The numbers for this server's next transaction. Guarded by the flush lock.
#[derive(Debug, Default)]
pub(crate) struct Next {
    /// The number of this server's next GTID, unless a session owns that one.
    gno: u64,
    /// MariaDB's dialect: the domain of the last transaction, and this server's next number in it.
    sequence: (u32, u64),
    group: Group,
}

/// The ids of a log: executed ids, ids owned by sessions, and the mode.
pub(crate) struct Numbering {
    uuid: ServerUuid,
    dialect: Dialect,
    pub(crate) executed: Mutex<Executed>,
    pub(crate) owned: Arc<OwnedGtids>,
    /// `gtid_strict_mode`.
    pub(super) strict: AtomicBool,
    /// `gtid_mode`.
    mode: AtomicU8,
    /// The number of sessions that wait for GTIDs.
    pub(crate) waits: AtomicU64,
}

impl Numbering {
    pub(super) fn new(uuid: ServerUuid, dialect: Dialect, executed: Executed) -> Numbering {
        Numbering {
            uuid,
            dialect,
            executed: Mutex::new(executed),
            owned: Arc::default(),
            strict: AtomicBool::new(false),
            mode: AtomicU8::new(GtidMode::On as u8),
            waits: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(super) fn mode(&self) -> GtidMode {
        GtidMode::from_number(self.mode.load(Ordering::SeqCst))
    }

    pub(super) fn set_mode(&self, mode: GtidMode) {
        self.mode.store(mode as u8, Ordering::SeqCst);
    }

    /// Recomputes the next numbers from the executed ids.
    pub(crate) fn count_anew(&self, next: &mut Next) {
        let executed = self.executed.lock();
        next.gno = executed.all().set().map_or(1, |set| set.free_from(self.uuid, 1));
        next.sequence = (0, executed.all().state().map_or(0, |state| state.highest(0)) + 1);
    }

    /// Returns the numbers of the transaction that is appended next. `server_id` is the server's own.
    #[inline]
    pub(super) fn place(
        &self,
        next: &mut Next,
        server_id: u32,
        (no, last_seen): (CommitNo, CommitNo),
        request: &CommitRequest,
    ) -> CommitNumbers {
        let gtid = match request.logged {
            true => self.gtid_of(next, server_id, request),
            false => self.given_to_unlogged(request),
        };
        let mut group = 0;
        if self.dialect == Dialect::Mariadb {
            // Who enrolled when one of the group was in the log already may depend on that one.
            if next.group.id == 0 || last_seen >= next.group.first {
                next.group = Group { first: no, id: no.0 };
            }
            group = next.group.id;
        }
        CommitNumbers { no, last_seen, logged: request.logged, gtid, group }
    }

    /// Returns the id that a transaction under `sql_log_bin=0` was given: it counts as executed all the same.
    fn given_to_unlogged(&self, request: &CommitRequest) -> Option<AnyGtid> {
        let given = request.cache.origin()?.gtid?;
        (given.dialect() == Dialect::Mysql && self.dialect == Dialect::Mysql).then_some(given)
    }

    #[inline]
    fn gtid_of(&self, next: &mut Next, server_id: u32, request: &CommitRequest) -> Option<AnyGtid> {
        let given = request.cache.origin().and_then(|origin| origin.gtid);
        if let Some(gtid) = given.filter(|gtid| gtid.dialect() == self.dialect) {
            return Some(gtid);
        }
        if self.dialect == Dialect::Mariadb {
            // The session's own `server_id` may be another than the server's.
            let named = Some(request.cache.server_id()).filter(|id| *id != 0);
            let (domain, server) = (request.cache.naming.domain, named.unwrap_or(server_id));
            if next.sequence.0 != domain {
                let executed = self.executed.lock();
                let highest = executed.all().state().map_or(0, |state| state.highest(domain));
                next.sequence = (domain, highest + 1);
            }
            let sequence = next.sequence.1;
            return Some(AnyGtid::Mariadb(MariadbGtid { domain, server, sequence }));
        }
        match request.cache.naming.unnamed {
            Unnamed::Automatic if self.mode().names_new() => {}
            Unnamed::NextOf(source) if self.mode().names_new() => {
                if source != self.uuid.into() {
                    return self.free_of(source);
                }
            }
            _ => return None,
        }
        if self.owned.any() {
            self.step_around_owned(next);
        }
        Some(AnyGtid::mysql(self.uuid, next.gno + u64::from(mutant::is(Mutant::GtidGap))))
    }

    #[cold]
    fn step_around_owned(&self, next: &mut Next) {
        if let Some(AnyGtid::Mysql { gno, .. }) = self.free_of(self.uuid.into()) {
            next.gno = gno;
        }
    }

    /// Returns the first id of a source that is neither executed nor owned.
    fn free_of(&self, source: Tsid) -> Option<AnyGtid> {
        let owned = self.owned.list();
        let executed = self.executed.lock();
        let set = executed.all().set()?;
        let mut gno = set.free_from(source, 1);
        while owned.contains(&AnyGtid::Mysql { source, gno }) {
            gno = set.free_from(source, gno + 1);
        }
        Some(AnyGtid::Mysql { source, gno })
    }

    /// Checks whether a transaction may have the id that it was given. Its session owns the id, but one of this
    /// server's own numbers can be assigned here between the session's check and its ownership.
    pub(super) fn check_given(
        &self,
        place: CommitNumbers,
        request: &CommitRequest,
    ) -> Result<(), AppendError> {
        if place.logged && place.gtid.is_none() && self.mode() == GtidMode::On {
            return Err(AppendError::Refused(Refusal::Anonymous));
        }
        let Some(gtid) = request.cache.origin().and(place.gtid) else { return Ok(()) };
        let executed = self.executed.lock();
        match (executed.all(), gtid) {
            (GtidState::Mysql(_), _) if executed.all().contains(gtid) => {
                Err(AppendError::Refused(Refusal::Executed(gtid)))
            }
            (GtidState::Mariadb(state), AnyGtid::Mariadb(given)) if self.strict.load(Ordering::Relaxed) => {
                match state.newest(given.domain) {
                    Some(newest) if state.highest(given.domain) >= given.sequence => {
                        Err(AppendError::Refused(Refusal::OutOfOrder { given, newest }))
                    }
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Records that all events of a transaction have been appended.
    pub(super) fn appended(&self, next: &mut Next, place: CommitNumbers) {
        let Some(gtid) = place.gtid else { return };
        let mut executed = self.executed.lock();
        executed.append(place.no, gtid);
        if !place.logged {
            executed.note_elsewhere(gtid);
        }
        if let (Some(state), AnyGtid::Mariadb(gtid)) = (executed.all().state(), gtid) {
            next.sequence = (gtid.domain, state.highest(gtid.domain) + 1);
        }
        if let (Some(set), AnyGtid::Mysql { source, .. }) = (executed.all().set(), gtid)
            && source == self.uuid.into()
        {
            // From the start: a session may have given a number back.
            next.gno = set.free_from(source, 1);
        }
    }
}
