//! PREVIOUS_GTIDS: the GTIDs in all earlier files. It is the second event of a file. COM_BINLOG_DUMP_GTID has the same
//! bytes.
//!
//! There are two forms. Without tags: a count, and per UUID its intervals. With tags (MySQL 8.3 and later): the first
//! eight bytes have a 1 at both ends and the count between, and each UUID is followed by its tag. A set without tags is
//! written in the first form, which every reader knows.

use crate::cursor::Reader;
use crate::error::DecodeError;
use crate::gtid::{GNO_MAX, GtidSet, Interval, ServerUuid};
use crate::tsid::{Tag, Tsid};
use crate::varlen;

/// The first and the last of the eight bytes in the form with tags.
const TAGGED: u64 = 1;

/// The decoded event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreviousGtids {
    /// The set.
    pub set: GtidSet,
}

impl PreviousGtids {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (tagged, count) = (self.set.has_tags(), self.set.source_count() as u64);
        let first = if tagged { TAGGED << 56 | count << 8 | TAGGED } else { count };
        out.extend_from_slice(&first.to_le_bytes());
        for (source, intervals) in self.set.iter() {
            out.extend_from_slice(&source.uuid.0);
            if tagged {
                varlen::put(out, source.tag.as_bytes().len() as u64);
                out.extend_from_slice(source.tag.as_bytes());
            }
            out.extend_from_slice(&(intervals.len() as u64).to_le_bytes());
            for interval in intervals {
                out.extend_from_slice(&interval.start.to_le_bytes());
                out.extend_from_slice(&interval.end.to_le_bytes());
            }
        }
    }

    /// Decodes either form.
    ///
    /// # Errors
    /// The body is truncated, or of an unknown form.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let first = r.u64("UUID count")?;
        let (tagged, count) = match (first >> 56, first & 0xff) {
            (0, _) => (false, first),
            (TAGGED, TAGGED) => (true, first << 8 >> 16),
            _ => return Err(DecodeError::new(0, "form of a GTID set")),
        };
        let mut set = GtidSet::new();
        for _ in 0..count {
            let mut source = Tsid::from(ServerUuid(r.array("UUID")?));
            if tagged {
                source.tag = read_tag(&mut r)?;
            }
            for _ in 0..r.u64("interval count")? {
                let (start, end) = (r.u64("interval")?, r.u64("interval")?);
                if start == 0 || end <= start || end > GNO_MAX + 1 {
                    return Err(r.error("GTID interval"));
                }
                set.add_interval(source, Interval { start, end });
            }
        }
        if !r.is_empty() {
            return Err(r.error("end of GTID set"));
        }
        Ok(Self { set })
    }
}

/// Reads a tag and the length in front of it.
pub(super) fn read_tag(r: &mut Reader<'_>) -> Result<Tag, DecodeError> {
    let len = varlen::read(r, "length of a tag")?;
    let len = usize::try_from(len).map_err(|_| r.error("length of a tag"))?;
    let letters = r.take(len, "tag")?;
    Tag::from_bytes(letters).ok_or_else(|| r.error("tag"))
}
