//! Searches for whole events behind a torn place, to distinguish a torn tail from damage.
//!
//! Bytes count as an event by the same rules as everywhere (size, end position, checksum; LOG-2), so a search byte by
//! byte finds exactly the events that were written there. Recovery judges what the events mean; this module decides
//! nothing. Runs on the main thread, before the server listens.

use crate::error::ReadError;
use crate::position::LogOffset;
use crate::scan::ReadFile;
use omnibus_format::RawEvent;
use omnibus_format::header::HEADER_LEN;
use omnibus_format::scan::parse_event;

/// The number of bytes behind the torn place that are searched. Damage is a sector or a few blocks; a spare tail may be
/// a gigabyte of zeros.
const SEARCH_MAX: u64 = 16 << 20;
/// Bytes per read.
const WINDOW: usize = 1 << 20;
/// The shortest run of zeros that is skipped as a whole.
const ZERO_RUN: usize = 64;

/// The result of a search behind a torn place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Number of whole, valid events.
    pub events: u64,
    /// The offset behind the last byte that is not zero, within the searched range; the start of the search if all
    /// bytes are zero.
    pub data_end: u64,
}

impl ReadFile {
    /// Passes every whole event that starts at `from` or later to `see`, which ends the search by returning false. The
    /// events are parsed by the rules of the file's head, which must have been read before.
    ///
    /// # Errors
    /// The file can not be read.
    pub fn search_behind(
        &mut self,
        from: LogOffset,
        see: &mut dyn FnMut(&RawEvent<'_>) -> bool,
    ) -> Result<Seen, ReadError> {
        let mut found = Seen { events: 0, data_end: from.0 };
        let (mut at, end) = (from.0, self.limit().0.min(from.0.saturating_add(SEARCH_MAX)));
        while at < end {
            // Events follow one another: only where none does is it worth bringing a whole window.
            let header = self.window(at, HEADER_LEN)?;
            let here = first_candidate(&header, at).is_some();
            let window = if here { header } else { self.window(at, WINDOW)? };
            if window.is_empty() {
                break;
            }
            let Some(candidate) = first_candidate(&window, at) else {
                found.note_data(&window, at);
                // A header may lie across the edge of the window.
                at += (window.len() - HEADER_LEN.min(window.len() - 1)) as u64;
                if window.len() < WINDOW {
                    break;
                }
                continue;
            };
            let start = at + candidate as u64;
            found.note_data(&window[..candidate], at);
            let size = event_size(&window[candidate..]).unwrap_or(0);
            let bytes = self.window(start, size)?;
            at = match parse_event(&bytes, start, self.rules()) {
                Ok(Some(event)) => {
                    found.events += 1;
                    found.data_end = event.end();
                    if !see(&event) {
                        return Ok(found);
                    }
                    event.end()
                }
                _ => start + 1,
            };
        }
        Ok(found)
    }
}

impl Seen {
    fn note_data(&mut self, window: &[u8], at: u64) {
        if let Some(last) = window.iter().rposition(|&byte| byte != 0) {
            self.data_end = self.data_end.max(at + last as u64 + 1);
        }
    }
}

/// Returns the index in `window` of the first header whose end position agrees with its size and place.
fn first_candidate(window: &[u8], at: u64) -> Option<usize> {
    let mut start = 0;
    while start + HEADER_LEN <= window.len() {
        if let Some(run) = window.get(start..start + ZERO_RUN)
            && run.iter().all(|&byte| byte == 0)
        {
            // The run may end right where a header begins, whose own first bytes may be zeros.
            start += ZERO_RUN - HEADER_LEN;
            continue;
        }
        let size = event_size(&window[start..]).unwrap_or(0);
        let position = &window[start + 13..start + 17];
        let expected = (at + start as u64).wrapping_add(size as u64) as u32;
        if size >= HEADER_LEN && position == expected.to_le_bytes() {
            return Some(start);
        }
        start += 1;
    }
    None
}

fn event_size(header: &[u8]) -> Option<usize> {
    let size = header.get(9..13)?;
    usize::try_from(u32::from_le_bytes([size[0], size[1], size[2], size[3]])).ok()
}
