//! Which global transaction id a transaction gets, and the first event that says so. Flush stage, under the flush lock.
//!
//! A transaction that was born elsewhere, or was given an id (`TrxCache::set_origin`), keeps it. Any other gets the next of
//! this server: MySQL's smallest number that is neither executed nor owned by a session, MariaDB's largest in the domain
//! and one. So there is no hole and no number twice, whatever else is in the log, and recovery needs no counter: it has
//! the events. With `gtid_mode` below ON a transaction may have none: it is anonymous. Commit numbers are the log's own order and independent of it.

use crate::CommitRequest;
use crate::appender::Appender;
use crate::cache::mariadb::Opening;
use crate::env::{AppendError, Refusal};
use crate::log_env::LogEnv;
use omnibus_engine::CommitNo;
use omnibus_format::events::{Gtid, GtidTimes, MariadbGtid, MariadbGtidEvent, SERVER_VERSION_NUMBER};
use omnibus_format::header::{FLAG_IGNORABLE, FLAG_SUPPRESS_USE, HEADER_LEN};
use omnibus_format::writer::write_final;
use omnibus_format::{
    AnyGtid, Dialect, EventContext, EventType, GtidMode, GtidState, LogPrivate, Origin, ServerUuid, Tsid,
    Unnamed,
};
use omnibus_log::mutant::{self, Mutant};
use std::sync::atomic::Ordering;

/// What the flush stage has decided of a transaction before it writes anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) no: CommitNo,
    pub(crate) last_seen: CommitNo,
    /// Whether other tools read it; else only recovery does.
    logged: bool,
    /// `None` for an anonymous one. What nobody else reads has one only if it was given it.
    pub(crate) gtid: Option<AnyGtid>,
    /// What MariaDB's event says of the transactions that were committed together.
    group: u64,
}

/// Transactions of MariaDB's dialect that may run at once on a replica.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Group {
    first: CommitNo,
    id: u64,
}

impl LogEnv {
    /// The place of the transaction that is appended next.
    #[inline]
    pub(crate) fn place(
        &self,
        appender: &mut Appender,
        (no, last_seen): (CommitNo, CommitNo),
        request: &CommitRequest,
    ) -> Place {
        let gtid = match request.logged {
            true => self.gtid_of(appender, request),
            false => self.given_to_unlogged(request),
        };
        let mut group = 0;
        if self.dialect() == Dialect::Mariadb {
            // Who enrolled when one of the group was in the log already may depend on that one.
            if appender.group.id == 0 || last_seen >= appender.group.first {
                appender.group = Group { first: no, id: no.0 };
            }
            group = appender.group.id;
        }
        Place { no, last_seen, logged: request.logged, gtid, group }
    }

    /// Under `sql_log_bin=0` a transaction that was given an id has it all the same: it counts as executed.
    fn given_to_unlogged(&self, request: &CommitRequest) -> Option<AnyGtid> {
        let given = request.cache.origin()?.gtid?;
        (given.dialect() == Dialect::Mysql && self.dialect() == Dialect::Mysql).then_some(given)
    }

    #[inline]
    fn gtid_of(&self, appender: &mut Appender, request: &CommitRequest) -> Option<AnyGtid> {
        let given = request.cache.origin().and_then(|origin| origin.gtid);
        if let Some(gtid) = given.filter(|gtid| gtid.dialect() == self.dialect()) {
            return Some(gtid);
        }
        if self.dialect() == Dialect::Mariadb {
            // The session's own `server_id` may be another than the server's.
            let named = Some(request.cache.server_id()).filter(|id| *id != 0);
            let (domain, server) = (request.cache.domain(), named.unwrap_or_else(|| self.server_id()));
            if appender.next_sequence.0 != domain {
                let executed = self.executed.lock();
                let highest = executed.all().state().map_or(0, |state| state.highest(domain));
                appender.next_sequence = (domain, highest + 1);
            }
            let sequence = appender.next_sequence.1;
            return Some(AnyGtid::Mariadb(MariadbGtid { domain, server, sequence }));
        }
        let uuid = self.identity().uuid;
        match request.cache.unnamed() {
            Unnamed::Automatic if self.gtid_mode().names_new() => {}
            Unnamed::NextOf(source) if self.gtid_mode().names_new() => {
                if source != uuid.into() {
                    return self.free_of(source);
                }
            }
            _ => return None,
        }
        if self.owned.any() {
            self.step_around_owned(appender, uuid);
        }
        Some(AnyGtid::mysql(uuid, appender.next_gno + u64::from(mutant::is(Mutant::GtidGap))))
    }

    #[cold]
    fn step_around_owned(&self, appender: &mut Appender, uuid: ServerUuid) {
        if let Some(AnyGtid::Mysql { gno, .. }) = self.free_of(uuid.into()) {
            appender.next_gno = gno;
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
    pub(crate) fn check_given(&self, place: Place, request: &CommitRequest) -> Result<(), AppendError> {
        if place.logged && place.gtid.is_none() && self.gtid_mode() == GtidMode::On {
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

    /// What the headers of a transaction's first event say.
    pub(crate) fn context_of(&self, request: &CommitRequest) -> EventContext {
        let own = self.server_id();
        let server_id = request.cache.origin().map_or(own, |origin| origin.server_id);
        let seconds = request.commit_timestamp_us / 1_000_000;
        EventContext { timestamp: u32::try_from(seconds).unwrap_or(u32::MAX), server_id }
    }

    /// Writes a transaction's first event, GTID or commit mark, for the offset `position` of the active file.
    pub(crate) fn write_first(
        &self,
        out: &mut Vec<u8>,
        appender: &Appender,
        position: u64,
        place: Place,
        request: &CommitRequest,
    ) {
        let (context, checksum) = (self.context_of(request), appender.checksum);
        let others = request.cache.len() + request.cache.events() * checksum.len() as u64;
        let opening = request.cache.opening_statement().unwrap_or_default();
        let (source, gno) = match place.gtid {
            Some(AnyGtid::Mysql { source, gno }) => (source, gno),
            _ => (Tsid::default(), 0),
        };
        match place.gtid {
            Some(AnyGtid::Mysql { .. }) | None if place.logged => {
                let mut gtid = Gtid {
                    uuid: source.uuid,
                    tag: source.tag,
                    gno,
                    row_format_only: !request.cache.has_statements(),
                    more_flags: 0,
                    last_committed: place.last_seen.0.saturating_sub(appender.base.0),
                    sequence_number: place.no.0 - appender.base.0,
                    times: Some(times(request.commit_timestamp_us, request.cache.origin())),
                    transaction_length: 0,
                };
                let frame = (HEADER_LEN + checksum.len()) as u64;
                let opened = if opening.is_empty() { 0 } else { frame + opening.len() as u64 };
                gtid.set_transaction_length(opened + others, frame);
                let from = out.len();
                // MariaDB and older readers pass over an event that they do not know if its header says that they may.
                let unknown = if source.tag.is_none() { 0 } else { FLAG_IGNORABLE };
                let flags = request.cache.flags() | unknown;
                write_final(out, context, gtid.event_type(), flags, position, checksum, |body| {
                    gtid.encode(body)
                });
                if !opening.is_empty() {
                    let position = position + (out.len() - from) as u64;
                    write_final(
                        out,
                        context,
                        EventType::QUERY,
                        FLAG_SUPPRESS_USE | request.cache.flags(),
                        position,
                        checksum,
                        |body| {
                            body.extend_from_slice(opening);
                        },
                    );
                }
            }
            Some(AnyGtid::Mariadb(gtid)) => {
                let context = EventContext { server_id: gtid.server, ..context };
                let flags_of_event = request.cache.flags();
                write_final(
                    out,
                    context,
                    EventType::MARIADB_GTID,
                    flags_of_event,
                    position,
                    checksum,
                    |body| {
                        let (flags, xid) = flags(request);
                        let event = MariadbGtidEvent {
                            domain: gtid.domain,
                            sequence: gtid.sequence,
                            flags,
                            commit_id: Some(place.group),
                        };
                        event.encode(body);
                        body.extend_from_slice(xid);
                    },
                );
            }
            _ => {
                let mut given = GtidState::default();
                if let Some(gtid) = place.gtid {
                    given.add(gtid);
                }
                let gtid = given.set().cloned().unwrap_or_default();
                let mark = LogPrivate::CommitMark { no: place.no.0, len: others, gtid };
                write_final(out, context, EventType::IGNORABLE, FLAG_IGNORABLE, position, checksum, |body| {
                    mark.encode(body);
                });
            }
        }
    }

    /// All of a transaction has been appended.
    pub(crate) fn appended(&self, appender: &mut Appender, place: Place) {
        appender.last = place.no;
        let Some(gtid) = place.gtid else { return };
        let mut executed = self.executed.lock();
        executed.append(place.no, gtid);
        if !place.logged {
            executed.note_elsewhere(gtid);
        }
        if let (Some(state), AnyGtid::Mariadb(gtid)) = (executed.all().state(), gtid) {
            appender.next_sequence = (gtid.domain, state.highest(gtid.domain) + 1);
        }
        if let (Some(set), AnyGtid::Mysql { source, .. }) = (executed.all().set(), gtid)
            && source == self.identity().uuid.into()
        {
            // From the start: a session may have given a number back.
            appender.next_gno = set.free_from(source, 1);
        }
    }
}

/// What MariaDB's GTID event says of the group that follows, and the xid of a prepared branch.
fn flags(request: &CommitRequest) -> (u8, &[u8]) {
    let parallel = MariadbGtidEvent::FLAG_ALLOW_PARALLEL;
    let safe = MariadbGtidEvent::FLAG_TRANSACTIONAL | parallel;
    match request.cache.opening() {
        Some(Opening::Transaction) => (safe, &[]),
        Some(Opening::Branch(xid)) => (safe | MariadbGtidEvent::FLAG_PREPARED_XA, xid),
        Some(Opening::BranchEnd(xid)) => {
            (safe | MariadbGtidEvent::FLAG_COMPLETED_XA | MariadbGtidEvent::FLAG_STANDALONE, xid)
        }
        Some(Opening::Statement(_)) | None => {
            (MariadbGtidEvent::FLAG_STANDALONE | MariadbGtidEvent::FLAG_DDL | parallel, &[])
        }
    }
}

/// A transaction's times: here now, and where it was born.
fn times(now_us: u64, origin: Option<&Origin>) -> GtidTimes {
    let known = |value: Option<u64>, own| value.filter(|value| *value != 0).unwrap_or(own);
    let version = known(origin.map(|origin| origin.original_version.into()), SERVER_VERSION_NUMBER.into());
    GtidTimes {
        immediate_commit_us: now_us,
        original_commit_us: known(origin.map(|origin| origin.original_commit_us), now_us),
        immediate_version: SERVER_VERSION_NUMBER,
        original_version: u32::try_from(version).unwrap_or(SERVER_VERSION_NUMBER),
    }
}
