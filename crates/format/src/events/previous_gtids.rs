//! PREVIOUS_GTIDS: every GTID in the files before this one. Second event of a file.

use crate::cursor::Reader;
use crate::error::DecodeError;
use crate::gtid::{GNO_MAX, GtidSet, Interval, ServerUuid};

/// The decoded event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreviousGtids {
    /// The set.
    pub set: GtidSet,
}

impl PreviousGtids {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.set.uuid_count() as u64).to_le_bytes());
        for (uuid, intervals) in self.set.iter() {
            out.extend_from_slice(&uuid.0);
            out.extend_from_slice(&(intervals.len() as u64).to_le_bytes());
            for i in intervals {
                out.extend_from_slice(&i.start.to_le_bytes());
                out.extend_from_slice(&i.end.to_le_bytes());
            }
        }
    }

    /// Decodes the untagged form. The tagged form of 8.3 and later sets the count's top byte,
    /// and is refused.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let uuids = r.u64("UUID count")?;
        if uuids >> 56 != 0 {
            return Err(DecodeError::new(0, "GTID set with tags"));
        }
        let mut set = GtidSet::new();
        for _ in 0..uuids {
            let uuid = ServerUuid(r.array("UUID")?);
            for _ in 0..r.u64("interval count")? {
                let (start, end) = (r.u64("interval")?, r.u64("interval")?);
                if start == 0 || end <= start || end > GNO_MAX + 1 {
                    return Err(r.error("GTID interval"));
                }
                set.add_interval(uuid, Interval { start, end });
            }
        }
        if !r.is_empty() {
            return Err(r.error("end of GTID set"));
        }
        Ok(Self { set })
    }
}
