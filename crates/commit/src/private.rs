//! Private events that the commit path itself writes: ignorable (type 28), read only by recovery.
//!
//! Body: `OMNI`, kind (1 byte), version (1 byte), payload. Other kinds belong to `omnibus_format`.

use omnibus_format::events::PreviousGtids;
use omnibus_format::{EventType, GtidSet, RawEvent};

const MAGIC: &[u8; 4] = b"OMNI";
const VERSION: u8 = 1;
/// Version 1 ended with a number that GTIDs counted from.
const FILE_START_VERSION: u8 = 2;
/// Of a commit mark that has a GTID.
const NAMED_MARK_VERSION: u8 = 2;
const FILLER: u8 = 200;
const FILE_START: u8 = 201;
const COMMIT_MARK: u8 = 202;

/// Bytes of an empty filler event, header and checksum included.
pub(crate) const MIN_FILLER: usize = 19 + 6 + 4;

/// What a private event of the commit path says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Private {
    /// Padding up to a block boundary.
    Filler,
    /// Stands in the file's head.
    FileStart {
        /// The first commit number that this file may hold.
        first: u64,
        /// GTIDs that count as executed here, though no file ever had them.
        elsewhere: GtidSet,
    },
    /// The private events in the `len` bytes that follow are this commit number's.
    CommitMark {
        /// The number.
        no: u64,
        /// Bytes of the group behind this event, so that a torn group is known for one.
        len: u64,
        /// The GTID that it was given and that no other event has (`sql_log_bin=0`), or nothing.
        gtid: GtidSet,
    },
}

impl Private {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(MAGIC);
        match self {
            Private::Filler => out.extend_from_slice(&[FILLER, VERSION]),
            Private::FileStart { first, elsewhere } => {
                out.extend_from_slice(&[FILE_START, FILE_START_VERSION]);
                out.extend_from_slice(&first.to_le_bytes());
                PreviousGtids { set: elsewhere }.encode(out);
            }
            Private::CommitMark { no, len, gtid } => {
                let version = if gtid.is_empty() { VERSION } else { NAMED_MARK_VERSION };
                out.extend_from_slice(&[COMMIT_MARK, version]);
                out.extend_from_slice(&no.to_le_bytes());
                out.extend_from_slice(&len.to_le_bytes());
                if !gtid.is_empty() {
                    PreviousGtids { set: gtid }.encode(out);
                }
            }
        }
    }

    /// `None` for events that are not ours.
    pub(crate) fn decode(event: &RawEvent<'_>) -> Option<Private> {
        if event.header.event_type != EventType::IGNORABLE {
            return None;
        }
        let rest = event.body.strip_prefix(MAGIC)?;
        let [kind, version, payload @ ..] = rest else { return None };
        let number = |at: usize| Some(u64::from_le_bytes(payload.get(at..at + 8)?.try_into().ok()?));
        match (*kind, *version) {
            (FILLER, VERSION) => Some(Private::Filler),
            (FILE_START, FILE_START_VERSION) => {
                let elsewhere = PreviousGtids::decode(payload.get(8..)?).ok()?.set;
                Some(Private::FileStart { first: number(0)?, elsewhere })
            }
            (FILE_START, VERSION) => {
                Some(Private::FileStart { first: number(0)?, elsewhere: GtidSet::new() })
            }
            (COMMIT_MARK, VERSION) => {
                Some(Private::CommitMark { no: number(0)?, len: number(8)?, gtid: GtidSet::new() })
            }
            (COMMIT_MARK, NAMED_MARK_VERSION) => {
                let gtid = PreviousGtids::decode(payload.get(16..)?).ok()?.set;
                Some(Private::CommitMark { no: number(0)?, len: number(8)?, gtid })
            }
            _ => None,
        }
    }
}
