//! GTID and ANONYMOUS_GTID in the form of MySQL 8.x, the first event of every transaction. A GTID with a tag has
//! another event (`gtid_tagged`).

use crate::cursor::{Reader, lenenc_size, put_lenenc};
use crate::error::DecodeError;
use crate::event_type::EventType;
use crate::gtid::ServerUuid;
use crate::tsid::{Tag, Tsid};

/// The transaction may hold statement-format changes.
const FLAG_MAY_HAVE_STATEMENTS: u8 = 1;
/// Code of the (last committed, sequence number) pair that follows.
const LOGICAL_CLOCK: u8 = 2;
pub(super) const HAS_ORIGINAL_TIME: u64 = 1 << 55;
pub(super) const HAS_ORIGINAL_VERSION: u32 = 1 << 31;
/// Flags, UUID, number, clock code and two clock values.
const FIXED_LEN: usize = 1 + 16 + 8 + 1 + 16;

/// This server's `immediate_server_version`.
pub const SERVER_VERSION_NUMBER: u32 = 80400;

/// The commit times of a transaction and the versions of the servers that committed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GtidTimes {
    /// Microseconds since 1970 of the commit on the server that wrote this file.
    pub immediate_commit_us: u64,
    /// The same on the server that executed the transaction first.
    pub original_commit_us: u64,
    /// Version number (80400) of the server that wrote this file.
    pub immediate_version: u32,
    /// Version number of the server that executed the transaction first.
    pub original_version: u32,
}

/// A transaction's identity, logical clock and times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gtid {
    /// Source part.
    pub uuid: ServerUuid,
    /// Its tag; none in events that are not GTID_TAGGED.
    pub tag: Tag,
    /// Number part; 0 in ANONYMOUS_GTID.
    pub gno: u64,
    /// All changes are row events.
    pub row_format_only: bool,
    /// The other bits of the flags, which readers mask out.
    pub more_flags: u8,
    /// Transactions with a greater sequence number than this may run in parallel with it.
    pub last_committed: u64,
    /// This transaction's number in the file, from 1.
    pub sequence_number: u64,
    /// `None` when written by 5.7 or older.
    pub times: Option<GtidTimes>,
    /// Bytes of the whole transaction in the file, this event and all checksums included; 0 when
    /// not known.
    pub transaction_length: u64,
}

impl Gtid {
    /// UUID and tag.
    #[must_use]
    pub fn source(&self) -> Tsid {
        Tsid::new(self.uuid, self.tag)
    }

    /// Returns the type of the event; without a number, it is the anonymous one.
    #[must_use]
    #[inline]
    pub fn event_type(&self) -> EventType {
        match (self.gno, self.tag.is_none()) {
            (0, _) => EventType::ANONYMOUS_GTID,
            (_, true) => EventType::GTID,
            (_, false) => EventType::GTID_TAGGED,
        }
    }

    /// Decodes the body of one of the three event types.
    ///
    /// # Errors
    /// The body is truncated, or of an unknown form.
    pub fn decode_as(event_type: EventType, body: &[u8]) -> Result<Self, DecodeError> {
        if event_type == EventType::GTID_TAGGED { Self::decode_tagged(body) } else { Self::decode(body) }
    }

    /// The flags' byte.
    pub(super) fn flags(&self) -> u8 {
        let statements = if self.row_format_only { 0 } else { FLAG_MAY_HAVE_STATEMENTS };
        statements | self.more_flags & !FLAG_MAY_HAVE_STATEMENTS
    }

    pub(super) fn set_flags(&mut self, flags: u8) {
        self.row_format_only = flags & FLAG_MAY_HAVE_STATEMENTS == 0;
        self.more_flags = flags & !FLAG_MAY_HAVE_STATEMENTS;
    }

    /// Appends the body with `transaction_length` as it stands.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if !self.tag.is_none() {
            return self.encode_tagged(out);
        }
        out.push(self.flags());
        out.extend_from_slice(&self.uuid.0);
        out.extend_from_slice(&self.gno.to_le_bytes());
        out.push(LOGICAL_CLOCK);
        out.extend_from_slice(&self.last_committed.to_le_bytes());
        out.extend_from_slice(&self.sequence_number.to_le_bytes());
        let Some(times) = self.times else { return };
        put_times(out, times.immediate_commit_us, times.original_commit_us);
        put_lenenc(out, self.transaction_length);
        put_versions(out, times.immediate_version, times.original_version);
    }

    /// Body bytes that `encode` appends, given the current `transaction_length`.
    pub fn encoded_len(&self) -> usize {
        if !self.tag.is_none() {
            return self.tagged_len();
        }
        FIXED_LEN + self.times.map_or(0, |t| times_len(&t) + lenenc_size(self.transaction_length))
    }

    /// Sets `transaction_length` for a transaction whose other events take `others` final bytes.
    /// `overhead` is this event's header and checksum (19 + 4). The length counts itself, and its
    /// own width depends on its value.
    pub fn set_transaction_length(&mut self, others: u64, overhead: u64) {
        if !self.tag.is_none() {
            return self.set_tagged_length(others + overhead);
        }
        let Some(times) = self.times else { return };
        let base = others + overhead + (FIXED_LEN + times_len(&times)) as u64;
        let mut length = base + 1;
        while base + lenenc_size(length) as u64 != length {
            length = base + lenenc_size(length) as u64;
        }
        self.transaction_length = length;
    }

    /// Decodes the body of GTID or ANONYMOUS_GTID, of MySQL 5.6 and later.
    ///
    /// # Errors
    /// The body is truncated, or of an unknown form.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let flags = r.u8("GTID flags")?;
        let mut gtid =
            Gtid { uuid: ServerUuid(r.array("GTID UUID")?), gno: r.u64("GTID number")?, ..Gtid::default() };
        gtid.set_flags(flags);
        if r.is_empty() || r.u8("clock code")? != LOGICAL_CLOCK {
            return Ok(gtid);
        }
        gtid.last_committed = r.u64("last_committed")?;
        gtid.sequence_number = r.u64("sequence_number")?;
        if r.is_empty() {
            return Ok(gtid);
        }
        let mut times = GtidTimes::default();
        let immediate = r.uint(7, "commit timestamp")?;
        times.immediate_commit_us = immediate & !HAS_ORIGINAL_TIME;
        times.original_commit_us = match immediate & HAS_ORIGINAL_TIME {
            0 => times.immediate_commit_us,
            _ => r.uint(7, "original commit timestamp")?,
        };
        if !r.is_empty() {
            gtid.transaction_length = r.lenenc("transaction length")?;
        }
        if !r.is_empty() {
            let immediate = r.u32("server version")?;
            times.immediate_version = immediate & !HAS_ORIGINAL_VERSION;
            times.original_version = match immediate & HAS_ORIGINAL_VERSION {
                0 => times.immediate_version,
                _ => r.u32("original server version")?,
            };
        }
        gtid.times = Some(times);
        Ok(gtid)
    }
}

fn times_len(times: &GtidTimes) -> usize {
    let original_time = times.original_commit_us != times.immediate_commit_us;
    let original_version = times.original_version != times.immediate_version;
    7 + 4 + if original_time { 7 } else { 0 } + if original_version { 4 } else { 0 }
}

fn put_times(out: &mut Vec<u8>, immediate: u64, original: u64) {
    let flag = if immediate == original { 0 } else { HAS_ORIGINAL_TIME };
    out.extend_from_slice(&(immediate & !HAS_ORIGINAL_TIME | flag).to_le_bytes()[..7]);
    if flag != 0 {
        out.extend_from_slice(&original.to_le_bytes()[..7]);
    }
}

fn put_versions(out: &mut Vec<u8>, immediate: u32, original: u32) {
    let flag = if immediate == original { 0 } else { HAS_ORIGINAL_VERSION };
    out.extend_from_slice(&(immediate | flag).to_le_bytes());
    if flag != 0 {
        out.extend_from_slice(&original.to_le_bytes());
    }
}
