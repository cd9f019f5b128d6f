//! GTID_TAGGED of MySQL 8.3 and later: a GTID event whose GTID has a tag.
//!
//! It has the form of MySQL's serialization library: a version, the number of bytes, the newest field that a reader
//! must know, and then fields, each behind its number, in the order of their numbers. Integers are of variable length
//! (`varlen`); a UUID is sixteen of them. Fields with default values are left out. A reader that meets a field which it
//! does not know, and need not know, stops there: newer fields are at the end.

use super::gtid::{Gtid, GtidTimes, HAS_ORIGINAL_TIME, HAS_ORIGINAL_VERSION};
use super::previous_gtids::read_tag;
use crate::cursor::Reader;
use crate::error::DecodeError;
use crate::varlen::{put, put_signed, read, read_signed};

/// The version of the form.
const VERSION: u64 = 1;

const FLAGS: u64 = 0;
const UUID: u64 = 1;
const NUMBER: u64 = 2;
const TAG: u64 = 3;
const LAST_COMMITTED: u64 = 4;
const SEQUENCE_NUMBER: u64 = 5;
const IMMEDIATE_TIME: u64 = 6;
const ORIGINAL_TIME: u64 = 7;
const LENGTH: u64 = 8;
const IMMEDIATE_VERSION: u64 = 9;
const ORIGINAL_VERSION: u64 = 10;
/// A field of group replication; it is skipped.
const COMMIT_GROUP_TICKET: u64 = 11;

impl Gtid {
    pub(super) fn encode_tagged(&self, out: &mut Vec<u8>) {
        let mut fields = Vec::with_capacity(128);
        self.put_fields(&mut fields);
        // The size counts itself.
        let rest = fields.len() as u64 + 2;
        let size = (1..=9).map(|len| rest + len).find(|size| varlen_len(*size) == size - rest);
        put(out, VERSION);
        put(out, size.unwrap_or(rest));
        // No field is one that a reader of this version must know.
        put(out, 0);
        out.extend_from_slice(&fields);
    }

    fn put_fields(&self, out: &mut Vec<u8>) {
        put(out, FLAGS);
        put(out, self.flags().into());
        put(out, UUID);
        self.uuid.0.iter().for_each(|byte| put(out, u64::from(*byte)));
        put(out, NUMBER);
        put_signed(out, self.gno as i64);
        put(out, TAG);
        put(out, self.tag.as_bytes().len() as u64);
        out.extend_from_slice(self.tag.as_bytes());
        put(out, LAST_COMMITTED);
        put_signed(out, self.last_committed as i64);
        put(out, SEQUENCE_NUMBER);
        put_signed(out, self.sequence_number as i64);
        let Some(times) = self.times else { return };
        put(out, IMMEDIATE_TIME);
        put(out, times.immediate_commit_us);
        if times.original_commit_us != times.immediate_commit_us {
            put(out, ORIGINAL_TIME);
            put(out, times.original_commit_us);
        }
        put(out, LENGTH);
        put(out, self.transaction_length);
        put(out, IMMEDIATE_VERSION);
        put(out, times.immediate_version.into());
        if times.original_version != times.immediate_version {
            put(out, ORIGINAL_VERSION);
            put(out, times.original_version.into());
        }
    }

    pub(super) fn tagged_len(&self) -> usize {
        let mut out = Vec::with_capacity(128);
        self.encode_tagged(&mut out);
        out.len()
    }

    /// The length counts itself, and its own width depends on its value.
    pub(super) fn set_tagged_length(&mut self, others: u64) {
        self.transaction_length = others;
        loop {
            let length = others + self.tagged_len() as u64;
            if length <= self.transaction_length {
                return;
            }
            self.transaction_length = length;
        }
    }

    /// Decodes the body of GTID_TAGGED.
    ///
    /// # Errors
    /// The body is truncated, of another version of the form, or has an unknown field that must be known.
    pub fn decode_tagged(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        if read(&mut r, "version of a tagged GTID")? != VERSION {
            return Err(DecodeError::new(0, "version of a tagged GTID"));
        }
        if read(&mut r, "size of a tagged GTID")? != body.len() as u64 {
            return Err(DecodeError::new(1, "size of a tagged GTID"));
        }
        let newest = read(&mut r, "newest field of a tagged GTID")?;
        let mut gtid = Gtid::default();
        let (mut times, mut original_time, mut original_version) = (GtidTimes::default(), None, None);
        while !r.is_empty() {
            let field = read(&mut r, "field of a tagged GTID")?;
            match field {
                FLAGS => gtid.set_flags(read(&mut r, "GTID flags")? as u8),
                UUID => {
                    for byte in &mut gtid.uuid.0 {
                        *byte = u8::try_from(read(&mut r, "GTID UUID")?).map_err(|_| r.error("GTID UUID"))?;
                    }
                }
                NUMBER => {
                    let number = read_signed(&mut r, "GTID number")?;
                    gtid.gno = u64::try_from(number).map_err(|_| r.error("GTID number"))?;
                }
                TAG => gtid.tag = read_tag(&mut r)?,
                LAST_COMMITTED => gtid.last_committed = read_signed(&mut r, "last_committed")? as u64,
                SEQUENCE_NUMBER => gtid.sequence_number = read_signed(&mut r, "sequence_number")? as u64,
                IMMEDIATE_TIME => times.immediate_commit_us = read_time(&mut r, "commit timestamp")?,
                ORIGINAL_TIME => original_time = Some(read_time(&mut r, "original commit timestamp")?),
                LENGTH => gtid.transaction_length = read(&mut r, "transaction length")?,
                IMMEDIATE_VERSION => times.immediate_version = read_version(&mut r, "server version")?,
                ORIGINAL_VERSION => original_version = Some(read_version(&mut r, "original server version")?),
                COMMIT_GROUP_TICKET => drop(read(&mut r, "commit group ticket")?),
                unknown if unknown < newest => return Err(r.error("field of a tagged GTID")),
                _ => break,
            }
        }
        if gtid.gno == 0 {
            return Err(r.error("GTID number"));
        }
        times.original_commit_us = original_time.unwrap_or(times.immediate_commit_us);
        times.original_version = original_version.unwrap_or(times.immediate_version);
        gtid.times = Some(times);
        Ok(gtid)
    }
}

/// Reads microseconds since the epoch. An event without a tag has 55 bits for them, so a server has no more.
fn read_time(r: &mut Reader<'_>, what: &'static str) -> Result<u64, DecodeError> {
    let time = read(r, what)?;
    if time < HAS_ORIGINAL_TIME { Ok(time) } else { Err(r.error(what)) }
}

/// A server's version. An event without a tag has 31 bits for it.
fn read_version(r: &mut Reader<'_>, what: &'static str) -> Result<u32, DecodeError> {
    let version = u32::try_from(read(r, what)?).map_err(|_| r.error(what))?;
    if version < HAS_ORIGINAL_VERSION { Ok(version) } else { Err(r.error(what)) }
}

fn varlen_len(value: u64) -> u64 {
    let mut out = Vec::with_capacity(9);
    put(&mut out, value);
    out.len() as u64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::event_type::EventType;

    /// An event written by a server of version 8.4.11.
    const REAL: [u8; 62] = [
        0x02, 0x7c, 0x00, 0x00, 0x02, 0x02, 0xee, 0x45, 0x03, 0x41, 0x02, 0x58, 0x02, 0x69, 0x03, 0x22, 0xc5,
        0x03, 0x69, 0x02, 0x82, 0x41, 0x02, 0x35, 0x02, 0xdc, 0xbe, 0xdc, 0x35, 0x02, 0x04, 0x04, 0x06, 0x10,
        0x74, 0x65, 0x73, 0x74, 0x5f, 0x74, 0x61, 0x67, 0x08, 0x00, 0x0a, 0x04, 0x0c, 0x7f, 0x00, 0x3e, 0x89,
        0x00, 0xfa, 0x5b, 0x06, 0x10, 0x45, 0x05, 0x12, 0xdb, 0xd0, 0x09,
    ];

    #[test]
    fn a_mysql_servers_event_is_read_and_written_alike() {
        let gtid = Gtid::decode_as(EventType::GTID_TAGGED, &REAL).unwrap();
        assert_eq!(gtid.source().to_string(), "77d1902c-01da-11f1-9a41-908d6e5f6e8d:test_tag");
        assert_eq!((gtid.gno, gtid.last_committed, gtid.sequence_number), (1, 0, 1));
        assert_eq!((gtid.transaction_length, gtid.row_format_only), (337, false));
        let times = gtid.times.unwrap();
        assert_eq!((times.immediate_version, times.original_version), (80_411, 80_411));
        assert_eq!(times.original_commit_us, times.immediate_commit_us);
        let mut out = Vec::new();
        gtid.encode(&mut out);
        assert_eq!(out, REAL);
        assert_eq!(gtid.encoded_len(), REAL.len());
        assert_eq!(gtid.event_type(), EventType::GTID_TAGGED);
    }

    #[test]
    fn lengths_count_themselves_whatever_their_width() {
        let mut gtid = Gtid::decode_tagged(&REAL).unwrap();
        for others in (0..400).chain([15_900, 16_383, 2_097_000, 2_097_151, 1 << 40]) {
            for more_flags in [0, 0xfe] {
                gtid.more_flags = more_flags;
                gtid.set_transaction_length(others, 23);
                let length = others + 23 + gtid.encoded_len() as u64;
                // At a boundary between widths the fixed point may be one too long, as no length fits exactly.
                assert!(gtid.transaction_length.abs_diff(length) <= 1, "{others}");
                let mut out = Vec::new();
                gtid.encode(&mut out);
                assert_eq!(Gtid::decode_tagged(&out).unwrap(), gtid);
            }
        }
    }

    #[test]
    fn times_and_versions_that_no_other_event_could_hold_are_damage() {
        let mut gtid = Gtid::decode_tagged(&REAL).unwrap();
        let times = gtid.times.unwrap();
        for (what, wrong) in [
            ("time", GtidTimes { immediate_commit_us: 1 << 55, ..times }),
            ("original time", GtidTimes { original_commit_us: 1 << 55, ..times }),
            ("version", GtidTimes { immediate_version: 1 << 31, ..times }),
            ("original version", GtidTimes { original_version: 1 << 31, ..times }),
        ] {
            gtid.times = Some(wrong);
            let mut out = Vec::new();
            gtid.encode(&mut out);
            assert!(Gtid::decode_tagged(&out).is_err(), "{what}");
        }
    }

    #[test]
    fn newer_fields_are_passed_over_unless_they_matter_and_damage_is_an_error() {
        let mut newer = REAL.to_vec();
        newer.extend_from_slice(&[0x28, 0x99, 0x99]);
        newer[1] = (newer.len() as u8) << 1;
        assert_eq!(Gtid::decode_tagged(&newer).unwrap(), Gtid::decode_tagged(&REAL).unwrap());
        newer[2] = 0x2a;
        assert!(Gtid::decode_tagged(&newer).is_err());
        for cut in 0..REAL.len() {
            assert!(Gtid::decode_tagged(&REAL[..cut]).is_err());
        }
    }
}
