//! Private events that the commit path itself writes: ignorable (type 28), read only by recovery.
//!
//! Body: `OMNI`, kind (1 byte), version (1 byte), payload. Other kinds belong to `omnibus_format`.

use omnibus_format::{EventType, RawEvent};

const MAGIC: &[u8; 4] = b"OMNI";
const VERSION: u8 = 1;
const FILLER: u8 = 200;
const FILE_START: u8 = 201;
const COMMIT_MARK: u8 = 202;

/// Bytes of an empty filler event, header and checksum included.
pub(crate) const MIN_FILLER: usize = 19 + 6 + 4;

/// What a private event of the commit path says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Private {
    /// Padding up to a block boundary.
    Filler,
    /// The first commit number that this file may hold. Stands in the file's head.
    FileStart(u64),
    /// The private events that follow, up to the next transaction, are this commit number.
    CommitMark(u64),
}

impl Private {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        let (kind, payload) = match self {
            Private::Filler => (FILLER, None),
            Private::FileStart(no) => (FILE_START, Some(no)),
            Private::CommitMark(no) => (COMMIT_MARK, Some(no)),
        };
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[kind, VERSION]);
        if let Some(no) = payload {
            out.extend_from_slice(&no.to_le_bytes());
        }
    }

    /// `None` for events that are not ours.
    pub(crate) fn decode(event: &RawEvent<'_>) -> Option<Private> {
        if event.header.event_type != EventType::IGNORABLE {
            return None;
        }
        let rest = event.body.strip_prefix(MAGIC)?;
        let [kind, VERSION, payload @ ..] = rest else { return None };
        let number = || Some(u64::from_le_bytes(payload.get(..8)?.try_into().ok()?));
        match *kind {
            FILLER => Some(Private::Filler),
            FILE_START => Some(Private::FileStart(number()?)),
            COMMIT_MARK => Some(Private::CommitMark(number()?)),
            _ => None,
        }
    }
}
