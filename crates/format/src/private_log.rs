//! Private events about the log itself. The commit path writes them, outside of transactions or in the place of a GTID
//! event.
//!
//! They are one of the two halves of [`crate::Private`], with kinds from 200 on. Pure.

use crate::error::DecodeError;
use crate::events::PreviousGtids;
use crate::group::{ChainStart, GroupHead};
use crate::header::PRIVATE_MAGIC;
use crate::{EventType, GtidSet, HEADER_LEN, RawEvent};

const VERSION: u8 = 1;
/// Version of a file start event without a chain. Version 1 ended with a number that GTIDs counted from.
const FILE_START_VERSION: u8 = 2;
/// Version of a file start event with the chain of the file's groups.
const CHAINED_START_VERSION: u8 = 3;
/// Version of a commit mark with a GTID.
const NAMED_MARK_VERSION: u8 = 2;
const FILLER: u8 = 200;
const FILE_START: u8 = 201;
const COMMIT_MARK: u8 = 202;
const GROUP: u8 = 203;
/// The first kind of this module.
pub(crate) const FIRST_KIND: u8 = 200;

/// Bytes of an empty filler event, header and checksum included.
pub const MIN_FILLER: usize = HEADER_LEN + PRIVATE_MAGIC.len() + 2 + 4;

/// A private event about the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogPrivate {
    /// Padding up to a block boundary; the number of zeros in the body.
    Filler(usize),
    /// The event in a file's head.
    FileStart {
        /// The first commit number that this file may hold.
        first: u64,
        /// GTIDs that count as executed here, though no file ever had them.
        elsewhere: GtidSet,
        /// The start of the chain. With it, every byte behind the head is in a group, except ROTATE and STOP. `None` in
        /// files of earlier versions.
        chain: Option<ChainStart>,
    },
    /// The head of a group: the bytes that follow were written at once.
    Group {
        /// The head's fields.
        head: GroupHead,
        /// Padding: the number of zeros behind the fields.
        spare: usize,
    },
    /// The private events in the `len` bytes that follow belong to this commit number.
    CommitMark {
        /// The number.
        no: u64,
        /// Bytes of the group behind this event, so that a torn group is recognised.
        len: u64,
        /// The GTID that the commit was given and that no other event has (`sql_log_bin=0`), or the empty set.
        gtid: GtidSet,
    },
}

impl LogPrivate {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&PRIVATE_MAGIC);
        match self {
            LogPrivate::Filler(zeros) => {
                out.extend_from_slice(&[FILLER, VERSION]);
                out.resize(out.len() + zeros, 0);
            }
            LogPrivate::FileStart { first, elsewhere, chain } => {
                let version = if chain.is_some() { CHAINED_START_VERSION } else { FILE_START_VERSION };
                out.extend_from_slice(&[FILE_START, version]);
                out.extend_from_slice(&first.to_le_bytes());
                if let Some(ChainStart { salt, before_end, before_chain, crc }) = chain {
                    out.extend_from_slice(&salt.to_le_bytes());
                    out.extend_from_slice(&before_end.to_le_bytes());
                    out.extend_from_slice(&before_chain.to_le_bytes());
                    out.extend_from_slice(&crc.to_le_bytes());
                }
                PreviousGtids { set: elsewhere.clone() }.encode(out);
            }
            LogPrivate::Group { head, spare } => {
                out.extend_from_slice(&[GROUP, VERSION]);
                head.encode(out);
                out.resize(out.len() + spare, 0);
            }
            LogPrivate::CommitMark { no, len, gtid } => {
                let version = if gtid.is_empty() { VERSION } else { NAMED_MARK_VERSION };
                out.extend_from_slice(&[COMMIT_MARK, version]);
                out.extend_from_slice(&no.to_le_bytes());
                out.extend_from_slice(&len.to_le_bytes());
                if !gtid.is_empty() {
                    PreviousGtids { set: gtid.clone() }.encode(out);
                }
            }
        }
    }

    /// Decodes an event; `None` for any other event.
    pub fn of_event(event: &RawEvent<'_>) -> Option<LogPrivate> {
        if event.header.event_type != EventType::IGNORABLE {
            return None;
        }
        let [kind, version, payload @ ..] = event.body.strip_prefix(&PRIVATE_MAGIC)? else { return None };
        Self::decode(*kind, *version, payload).ok().flatten()
    }

    /// Decodes the bytes that follow kind and version in a body; `None` for versions of later servers.
    pub(crate) fn decode(kind: u8, version: u8, payload: &[u8]) -> Result<Option<LogPrivate>, DecodeError> {
        let number = |at: usize| {
            let bytes = payload.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u64::from_le_bytes).ok_or(DecodeError::new(at, "private number"))
        };
        Ok(Some(match (kind, version) {
            (FILLER, VERSION) => LogPrivate::Filler(payload.len()),
            (FILE_START, FILE_START_VERSION) => {
                let elsewhere = PreviousGtids::decode(payload.get(8..).unwrap_or_default())?.set;
                LogPrivate::FileStart { first: number(0)?, elsewhere, chain: None }
            }
            (FILE_START, CHAINED_START_VERSION) => {
                let elsewhere = PreviousGtids::decode(payload.get(32..).unwrap_or_default())?.set;
                // Two numbers of four bytes each.
                let both = number(24)?;
                let (before_chain, crc) = (both as u32, (both >> 32) as u32);
                let chain = ChainStart { salt: number(8)?, before_end: number(16)?, before_chain, crc };
                LogPrivate::FileStart { first: number(0)?, elsewhere, chain: Some(chain) }
            }
            (FILE_START, VERSION) => {
                LogPrivate::FileStart { first: number(0)?, elsewhere: GtidSet::new(), chain: None }
            }
            (GROUP, VERSION) => {
                let head = GroupHead::decode(payload).ok_or(DecodeError::new(0, "group"))?;
                LogPrivate::Group { head, spare: payload.len() - GroupHead::FIELDS }
            }
            (COMMIT_MARK, VERSION | NAMED_MARK_VERSION) => {
                let gtid = match version {
                    VERSION => GtidSet::new(),
                    _ => PreviousGtids::decode(payload.get(16..).unwrap_or_default())?.set,
                };
                LogPrivate::CommitMark { no: number(0)?, len: number(8)?, gtid }
            }
            _ => return Ok(None),
        }))
    }
}
