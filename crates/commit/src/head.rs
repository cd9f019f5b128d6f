//! The head of a log file: its format, the transactions executed before it, and the first commit number that it may
//! hold.
//!
//! Written when a file begins; read by recovery and by searches for a position in the log.

use crate::executed::Executed;
use omnibus_engine::CommitNo;
use omnibus_format::events::{FormatDescription, MariadbGtidList, PreviousGtids};
use omnibus_format::group::{Chain, ChainStart};
use omnibus_format::header::{FLAG_IGNORABLE, FLAG_IN_USE, MAGIC};
use omnibus_format::writer::write_final;
use omnibus_format::{
    BinlogState, Checksum, Dialect, EventContext, EventType, GtidState, LogPrivate, ServerUuid,
};
use omnibus_log::{GroupsEnd, Next, ReadError, ReadFile, now_us};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// The identity of this server in the log.
#[derive(Clone, Debug)]
pub struct LogIdentity {
    /// `server_id`.
    pub server_id: u32,
    /// `server_uuid`, the source part of every GTID made here.
    pub uuid: ServerUuid,
    /// The version string in FORMAT_DESCRIPTION.
    pub version: String,
    /// The dialect of the log's ids and events. It is a property of the data directory and never changes.
    pub dialect: Dialect,
}

/// The contents of a file's first events.
#[derive(Debug, Default)]
pub(crate) struct Head {
    /// The first commit number that the file may hold.
    pub(crate) first: Option<CommitNo>,
    /// The transactions executed before the file began.
    pub(crate) previous: Option<GtidState>,
}

pub(crate) fn read_head(reader: &mut ReadFile) -> Result<Head, ReadError> {
    let mut head = Head::default();
    for _ in 0..3 {
        let Next::Event(event) = reader.next()? else { break };
        if event.header.event_type == EventType::PREVIOUS_GTIDS {
            let previous = PreviousGtids::decode(event.body).ok();
            head.previous = previous.map(|previous| GtidState::Mysql(previous.set));
        }
        if event.header.event_type == EventType::MARIADB_GTID_LIST {
            let list = MariadbGtidList::decode(event.body).ok();
            head.previous = list.map(|list| GtidState::Mariadb(BinlogState::from_list(&list.gtids)));
        }
        if let Some(LogPrivate::FileStart { first, .. }) = LogPrivate::of_event(&event) {
            head.first = Some(CommitNo(first));
        }
    }
    Ok(head)
}

/// The head of a log file: final bytes for offset 4.
#[derive(Debug)]
pub(crate) struct FileHead {
    pub(crate) bytes: Vec<u8>,
    pub(crate) checksum: Checksum,
    /// The start of the checksum chain of the file's groups.
    pub(crate) chain: Chain,
}

impl FileHead {
    /// File offset of the first group.
    pub(crate) fn end(&self) -> u64 {
        (MAGIC.len() + self.bytes.len()) as u64
    }
}

/// Builds the head of a log file whose first transaction is `first`, and that follows one whose groups end at `before`.
pub(crate) fn head(
    identity: &LogIdentity,
    server_id: u32,
    checksum: Checksum,
    first: CommitNo,
    executed: &Executed,
    before: GroupsEnd,
) -> FileHead {
    let timestamp = now_s();
    let context = EventContext { timestamp, server_id };
    let mut out = Vec::with_capacity(256);
    let description = match identity.dialect {
        Dialect::Mysql => FormatDescription::new(&identity.version, timestamp, checksum),
        Dialect::Mariadb => FormatDescription::mariadb(&identity.version, timestamp, checksum),
    };
    let mut at = 4;
    at = write_final(&mut out, context, EventType::FORMAT_DESCRIPTION, FLAG_IN_USE, at, checksum, |body| {
        description.encode(body);
    });
    let list_at = out.len();
    let (kind, flags) = match executed.dialect() {
        Dialect::Mysql => (EventType::PREVIOUS_GTIDS, FLAG_IGNORABLE),
        Dialect::Mariadb => (EventType::MARIADB_GTID_LIST, 0),
    };
    at = write_final(&mut out, context, kind, flags, at, checksum, |body| match executed.all() {
        GtidState::Mysql(set) => PreviousGtids { set: set.clone() }.encode(body),
        GtidState::Mariadb(state) => MariadbGtidList { flags: 0, gtids: state.list() }.encode(body),
    });
    let start_at = out.len();
    let mut chain = ChainStart { salt: salt(), before_end: before.end, before_chain: before.chain, crc: 0 };
    let put_start = |out: &mut Vec<u8>, chain| {
        out.truncate(start_at);
        let start = LogPrivate::FileStart {
            first: first.0,
            elsewhere: executed.elsewhere().clone(),
            chain: Some(chain),
        };
        write_final(out, context, EventType::IGNORABLE, FLAG_IGNORABLE, at, checksum, |body| {
            start.encode(body)
        });
    };
    // Once to see what it is the checksum of.
    put_start(&mut out, chain);
    let (before, start) = (&out[list_at..start_at], &out[start_at..out.len() - checksum.len()]);
    chain.crc = chain.head_crc(before, start);
    put_start(&mut out, chain);
    FileHead { bytes: out, checksum, chain: chain.chain() }
}

/// Returns a random number, which a client that can only write rows cannot guess.
fn salt() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Seconds since 1970 now, as events have them.
pub(crate) fn now_s() -> u32 {
    u32::try_from(now_us() / 1_000_000).unwrap_or(u32::MAX)
}
