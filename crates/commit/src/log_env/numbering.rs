//! Which global transaction id a transaction gets. Flush stage, under the flush lock.
//!
//! A transaction that was born elsewhere, or was given an id (`TrxCache::set_origin`), keeps it. Any other gets the next of
//! this server: MySQL's smallest number that is neither executed nor owned by a session, MariaDB's largest in the domain
//! and one. So there is no hole and no number twice, whatever else is in the log, and recovery needs no counter: it has
//! the events. With `gtid_mode` below ON a transaction may have none: it is anonymous. Commit numbers are the log's own order and independent of it.

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

/// What the flush stage has decided of a transaction before it writes anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommitNumbers {
    pub(crate) no: CommitNo,
    pub(crate) last_seen: CommitNo,
    /// Whether other tools read it; else only recovery does.
    pub(super) logged: bool,
    /// `None` for an anonymous one. What nobody else reads has one only if it was given it.
    pub(crate) gtid: Option<AnyGtid>,
    /// What MariaDB's event says of the transactions that were committed together.
    pub(super) group: u64,
}

/// Transactions of MariaDB's dialect that may run at once on a replica.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    first: CommitNo,
    id: u64,
}

/// What the next transaction of this server is given. Guarded by the flush lock.
#[derive(Debug, Default)]
pub(crate) struct Next {
    /// The number of this server's next GTID, unless a session owns that one.
    gno: u64,
    /// MariaDB's dialect: the domain of the last transaction, and this server's next number in it.
    sequence: (u32, u64),
    group: Group,
}

/// The ids of a log: which are executed, which sessions own, and whether new ones are given.
pub(crate) struct Numbering {
    uuid: ServerUuid,
    dialect: Dialect,
    pub(crate) executed: Mutex<Executed>,
    pub(crate) owned: Arc<OwnedGtids>,
    /// `gtid_strict_mode`.
    pub(super) strict: AtomicBool,
    /// `gtid_mode`.
    mode: AtomicU8,
    /// Who waits for GTIDs.
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

    /// What follows from what is executed now.
    pub(crate) fn count_anew(&self, next: &mut Next) {
        let executed = self.executed.lock();
        next.gno = executed.all().set().map_or(1, |set| set.free_from(self.uuid, 1));
        next.sequence = (0, executed.all().state().map_or(0, |state| state.highest(0)) + 1);
    }

    /// The place of the transaction that is appended next. `server_id` is the server's own.
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

    /// Under `sql_log_bin=0` a transaction that was given an id has it all the same: it counts as executed.
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
            let (domain, server) = (request.cache.domain(), named.unwrap_or(server_id));
            if next.sequence.0 != domain {
                let executed = self.executed.lock();
                let highest = executed.all().state().map_or(0, |state| state.highest(domain));
                next.sequence = (domain, highest + 1);
            }
            let sequence = next.sequence.1;
            return Some(AnyGtid::Mariadb(MariadbGtid { domain, server, sequence }));
        }
        match request.cache.unnamed() {
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

    /// The first id of a source that is neither executed nor owned.
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

    /// Whether a transaction may have the id that it was given. Its session owns it, but a number of this server's can be
    /// given out here between the session's look and its owning.
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

    /// All of a transaction has been appended.
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
