//! The event that precedes a transaction's others: its GTID, or the mark of one that only recovery reads. Bytes only.

use super::numbering::CommitNumbers;
use crate::cache::mariadb::Opening;
use crate::request::CommitRequest;
use omnibus_engine::CommitNo;
use omnibus_format::events::{Gtid, GtidTimes, MariadbGtid, MariadbGtidEvent, SERVER_VERSION_NUMBER};
use omnibus_format::header::{FLAG_IGNORABLE, FLAG_SUPPRESS_USE, HEADER_LEN};
use omnibus_format::writer::write_final;
use omnibus_format::{AnyGtid, Checksum, EventContext, EventType, GtidState, LogPrivate, Origin, Tsid};

/// The header fields of a transaction's first event. `own` is this server's `server_id`.
pub(super) fn context_of(request: &CommitRequest, own: u32) -> EventContext {
    let server_id = request.cache.origin().map_or(own, |origin| origin.server_id);
    let seconds = request.commit_timestamp_us / 1_000_000;
    EventContext { timestamp: u32::try_from(seconds).unwrap_or(u32::MAX), server_id }
}

/// The contents of the event.
#[derive(Clone, Copy)]
pub(super) struct FirstEvent<'a> {
    pub(super) context: EventContext,
    pub(super) checksum: Checksum,
    /// The last commit number before the file: GTID events count from it.
    pub(super) base: CommitNo,
    pub(super) place: CommitNumbers,
    pub(super) request: &'a CommitRequest,
}

impl FirstEvent<'_> {
    /// Appends the event in its final form for the offset `position` of a file.
    pub(super) fn write(&self, out: &mut Vec<u8>, position: u64) {
        match self.place.gtid {
            Some(AnyGtid::Mysql { source, gno }) if self.place.logged => {
                self.write_mysql(out, position, source, gno)
            }
            None if self.place.logged => self.write_mysql(out, position, Tsid::default(), 0),
            Some(AnyGtid::Mariadb(gtid)) => self.write_mariadb(out, position, gtid),
            gtid => self.write_mark(out, position, gtid),
        }
    }

    /// The number of bytes of the transaction's other events.
    fn others(&self) -> u64 {
        self.request.cache.len() + self.request.cache.events() * self.checksum.len() as u64
    }

    /// Appends a GTID or ANONYMOUS_GTID event, and the statement that opens the transaction if it is not among its
    /// events.
    fn write_mysql(&self, out: &mut Vec<u8>, position: u64, source: Tsid, gno: u64) {
        let FirstEvent { context, checksum, base, place, request } = *self;
        let opening = request.cache.opening_statement().unwrap_or_default();
        let mut gtid = Gtid {
            uuid: source.uuid,
            tag: source.tag,
            gno,
            row_format_only: !request.cache.has_statements(),
            more_flags: 0,
            last_committed: place.last_seen.0.saturating_sub(base.0),
            sequence_number: place.no.0 - base.0,
            times: Some(times(request.commit_timestamp_us, request.cache.origin())),
            transaction_length: 0,
        };
        let frame = (HEADER_LEN + checksum.len()) as u64;
        let opened = if opening.is_empty() { 0 } else { frame + opening.len() as u64 };
        gtid.set_transaction_length(opened + self.others(), frame);
        let from = out.len();
        // MariaDB and older readers pass over an event that they do not know if its header says that they may.
        let unknown = if source.tag.is_none() { 0 } else { FLAG_IGNORABLE };
        let flags = request.cache.naming.flags();
        write_final(out, context, gtid.event_type(), flags | unknown, position, checksum, |body| {
            gtid.encode(body)
        });
        if !opening.is_empty() {
            let position = position + (out.len() - from) as u64;
            write_final(
                out,
                context,
                EventType::QUERY,
                FLAG_SUPPRESS_USE | flags,
                position,
                checksum,
                |body| {
                    body.extend_from_slice(opening);
                },
            );
        }
    }

    fn write_mariadb(&self, out: &mut Vec<u8>, position: u64, gtid: MariadbGtid) {
        let FirstEvent { context, checksum, place, request, .. } = *self;
        let context = EventContext { server_id: gtid.server, ..context };
        let of_event = request.cache.naming.flags();
        write_final(out, context, EventType::MARIADB_GTID, of_event, position, checksum, |body| {
            let (flags, xid) = flags(request);
            let (domain, sequence) = (gtid.domain, gtid.sequence);
            MariadbGtidEvent { domain, sequence, flags, commit_id: Some(place.group) }.encode(body);
            body.extend_from_slice(xid);
        });
    }

    fn write_mark(&self, out: &mut Vec<u8>, position: u64, gtid: Option<AnyGtid>) {
        let FirstEvent { context, checksum, place, .. } = *self;
        let mut given = GtidState::default();
        if let Some(gtid) = gtid {
            given.add(gtid);
        }
        let gtid = given.set().cloned().unwrap_or_default();
        let mark = LogPrivate::CommitMark { no: place.no.0, len: self.others(), gtid };
        write_final(out, context, EventType::IGNORABLE, FLAG_IGNORABLE, position, checksum, |body| {
            mark.encode(body);
        });
    }
}

/// Returns the flags of MariaDB's GTID event about the group that follows, and the xid of a prepared branch.
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

/// Returns a transaction's times: here, now, and at its origin.
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
