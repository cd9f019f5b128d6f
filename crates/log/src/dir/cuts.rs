//! Completes cuts of spare tails that a crash interrupted (see `finish`), when the directory is opened.

use super::LogDir;
use crate::error::{OpenError, failed};
use crate::finish::{finish, open_to_cut};
use crate::groups::GroupedFile;
use crate::position::FileSeq;
use crate::scan::{Next, ScanEnd, Torn, TornReason};
use omnibus_disk::Open;
use omnibus_format::EventType;
use omnibus_format::header::{EventHeader, HEADER_LEN};

/// The number of bytes at the end of a file that are examined: more than the longest ROTATE event.
const TAIL: usize = 512;

/// Returns whether a file of `len` bytes that ends with the bytes `last` ends with a whole ROTATE event. The checksum
/// of one ROTATE event in 256 ends with a zero byte, and reading such a file in full takes a while.
fn ends_with_rotate(last: &[u8], len: u64) -> bool {
    (HEADER_LEN..=last.len()).any(|event_len| {
        let header = EventHeader::decode(&last[last.len() - event_len..]);
        header.is_ok_and(|header| {
            header.event_type == EventType::ROTATE
                && header.size as usize == event_len
                && u64::from(header.log_pos) == len & u64::from(u32::MAX)
        })
    })
}

impl LogDir {
    /// Completes interrupted cuts in files before the last one that end in zeros. Examines a few bytes of each file,
    /// and reads a file in full only if its end is ambiguous.
    pub(super) fn resume_cuts(&self) -> Result<(), OpenError> {
        let Some((_, earlier)) = self.files.split_last() else { return Ok(()) };
        for &seq in earlier {
            let path = self.path_of(seq);
            let file = self.config.disk.open(&path, Open::Read).map_err(failed("open", &path))?;
            let len = file.len().map_err(failed("read the size of", &path))?;
            let mut last = [0; TAIL];
            let at = len.saturating_sub(last.len() as u64);
            let read = file.read_at(&mut last, at).map_err(failed("read", &path))?;
            // A single zero may be spare: a crash comes between any two steps of a cut. In a file that has bytes as wholes only it may read as
            // anything.
            let may_be_spare = last[..read].last() == Some(&0) || file.unit() > 1;
            if !may_be_spare || ends_with_rotate(&last[..read], len) {
                continue;
            }
            drop(file);
            if let Some(end) = self.end_of_rotated(seq)? {
                let file = open_to_cut(&self.config.disk, &self.config.faults, &path, end)?;
                finish(&self.config.faults, &file, &path, end)?;
                tracing::info!(file = %path.display(), end, dropped = len - end, "cut the spare tail of a log file");
            }
        }
        Ok(())
    }

    /// Returns the end of the ROTATE event if that is the file's last event and zeros follow it; `None` for any other
    /// file.
    fn end_of_rotated(&self, seq: FileSeq) -> Result<Option<u64>, OpenError> {
        let mut file = GroupedFile::new(self.read(seq)?)?;
        let mut rotated = false;
        loop {
            match file.next()? {
                Next::Event(event) => rotated = event.header.event_type == EventType::ROTATE,
                Next::End(ScanEnd::Torn(Torn { position, reason: TornReason::Preallocated })) if rotated => {
                    return Ok(Some(position.offset.0));
                }
                Next::End(_) => return Ok(None),
            }
        }
    }
}
