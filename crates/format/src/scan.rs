//! Iterates over the events in a byte slice and reports precisely how the iteration ended.
//!
//! Used by recovery, the tailing reader, `omnibus binlog` and the replica's receiver. It reads no file and never
//! guesses: zeros are the preallocated tail, an event that runs past the slice is torn (or not yet read: the caller
//! knows), anything else is damage. LOG-2: stale or zero bytes never parse as an event, because the size, the end
//! position and the checksum must all agree.

use crate::checksum::{CHECKSUM_LEN, Checksum, crc32, split_checksum};
use crate::event_type::EventType;
use crate::events::FormatDescription;
use crate::header::{EventHeader, FLAG_IN_USE, FLAGS_OFFSET, HEADER_LEN, LOG_POS_OFFSET, MAGIC, SIZE_OFFSET};

/// The maximum size of an event in bytes: 1 GiB of statement or row plus room for its surroundings.
pub const MAX_EVENT_SIZE: u32 = (1 << 30) + (64 << 10);

/// One whole event inside the scanned slice.
#[derive(Clone, Copy, Debug)]
pub struct RawEvent<'a> {
    /// File offset of its first byte.
    pub offset: u64,
    /// The common header.
    pub header: EventHeader,
    /// The bytes between header and checksum.
    pub body: &'a [u8],
    /// All bytes: header, body, checksum.
    pub bytes: &'a [u8],
}

impl RawEvent<'_> {
    /// File offset behind the event.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

/// The reason why no event could be read at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScanErrorKind {
    /// The slice continues with zeros where a header should be: preallocated space.
    #[error("preallocated space")]
    Preallocated,
    /// The slice ends inside the event.
    #[error("torn event: {needed} bytes needed, {available} there")]
    Torn {
        /// Bytes of the event, or of a header when even that is cut.
        needed: u64,
        /// Bytes in the slice.
        available: u64,
    },
    /// The size field is impossible.
    #[error("impossible event size {0}")]
    BadLength(u32),
    /// The end position field differs from the event's end.
    #[error("end position {stored} instead of {expected}")]
    BadPosition {
        /// The value in the header.
        stored: u32,
        /// Offset + size, low 32 bits.
        expected: u32,
    },
    /// The checksum does not match.
    #[error("checksum {stored:#010x} stored, {computed:#010x} computed")]
    BadChecksum {
        /// The value in the file.
        stored: u32,
        /// The value computed from the bytes.
        computed: u32,
    },
    /// The group is not the expected one, or its bytes are damaged.
    #[error("not the bytes that were written there as a group")]
    BadGroup,
    /// The next file's head has another end of this file.
    #[error("the file ends otherwise than the next one says")]
    OtherEnd,
    /// FORMAT_DESCRIPTION cannot be understood.
    #[error("unreadable format description")]
    BadFormat,
    /// The slice does not start with the binlog magic.
    #[error("not a binary log: bad magic number")]
    BadMagic,
}

/// There is no event at `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at offset {offset}")]
pub struct ScanError {
    /// File offset of the first byte that is not part of a whole, valid event.
    pub offset: u64,
    /// The reason.
    pub kind: ScanErrorKind,
}

/// The rules that decide whether bytes are an event.
#[derive(Clone, Copy, Debug)]
pub struct ScanRules {
    /// The file's algorithm; updated by each FORMAT_DESCRIPTION met.
    pub checksum: Checksum,
    /// Compute and compare checksums.
    pub verify_checksum: bool,
    /// The end position field must equal the event's end (true for binlogs, false for relay
    /// logs and streams).
    pub verify_position: bool,
    /// An end position of 0 is accepted: MariaDB 11 and later write it inside transactions
    /// (`binlog_legacy_event_pos=0`). Updated by each FORMAT_DESCRIPTION read; never true in this server's own files
    /// (LOG-2).
    pub zero_position: bool,
    /// Largest size accepted.
    pub max_size: u32,
}

impl Default for ScanRules {
    fn default() -> Self {
        Self {
            checksum: Checksum::Crc32,
            verify_checksum: true,
            verify_position: true,
            zero_position: false,
            max_size: MAX_EVENT_SIZE,
        }
    }
}

impl ScanRules {
    /// Updates the rules for the events behind this one: a file's first event sets them.
    pub fn follow(&mut self, event: &RawEvent<'_>) {
        match event.header.event_type {
            EventType::FORMAT_DESCRIPTION => {
                let found = FormatDescription::checksum_of_event(event.bytes);
                self.checksum = found.ok().flatten().unwrap_or(Checksum::None);
                self.zero_position =
                    FormatDescription::decode(event.body).is_ok_and(|format| format.leaves_out_positions());
            }
            EventType::START_V3 if event.offset == MAGIC.len() as u64 => *self = self.of_version_3(),
            _ => {}
        }
    }

    fn of_version_3(&self) -> ScanRules {
        ScanRules { checksum: Checksum::None, verify_position: false, ..*self }
    }
}

/// Reads the event at the start of `bytes`, which lies at file offset `offset`.
///
/// `Ok(None)`: `bytes` is empty. FORMAT_DESCRIPTION is read by its own checksum byte.
///
/// # Errors
/// The bytes are not a whole, valid event; the kind says why.
pub fn parse_event<'a>(
    bytes: &'a [u8],
    offset: u64,
    rules: &ScanRules,
) -> Result<Option<RawEvent<'a>>, ScanError> {
    let fail = |kind| Err(ScanError { offset, kind });
    if bytes.is_empty() {
        return Ok(None);
    }
    // Asserts LOG-2: what is no event fails here or below, and ends the scan.
    let head = &bytes[..bytes.len().min(HEADER_LEN)];
    if head.iter().all(|&b| b == 0) {
        return fail(ScanErrorKind::Preallocated);
    }
    let Ok(header) = EventHeader::decode(head) else {
        return fail(torn(HEADER_LEN as u64, bytes));
    };
    let is_format = header.event_type == EventType::FORMAT_DESCRIPTION;
    // The first event of a file of version 3, which knew no checksums and other positions.
    let old_start = header.event_type == EventType::START_V3 && offset == MAGIC.len() as u64;
    let rules = if old_start { &rules.of_version_3() } else { rules };
    let checksum_len = if is_format { CHECKSUM_LEN } else { rules.checksum.len() };
    if (header.size as usize) < HEADER_LEN + checksum_len || header.size > rules.max_size {
        return fail(ScanErrorKind::BadLength(header.size));
    }
    let expected = offset.wrapping_add(u64::from(header.size)) as u32;
    let left_out = rules.zero_position && header.log_pos == 0;
    if rules.verify_position && header.log_pos != expected && !left_out {
        return fail(ScanErrorKind::BadPosition { stored: header.log_pos, expected });
    }
    let Some(event) = bytes.get(..header.size as usize) else {
        return fail(torn(u64::from(header.size), bytes));
    };
    let mut has_checksum = rules.checksum == Checksum::Crc32;
    if is_format {
        match FormatDescription::checksum_of_event(event) {
            Ok(found) => has_checksum = found.is_some(),
            Err(_) => return fail(ScanErrorKind::BadFormat),
        }
    }
    let body_end = event.len() - if has_checksum { CHECKSUM_LEN } else { 0 };
    if has_checksum && rules.verify_checksum {
        verify(event, is_format).map_err(|kind| ScanError { offset, kind })?;
    }
    Ok(Some(RawEvent { offset, header, body: &event[HEADER_LEN..body_end], bytes: event }))
}

/// Returns the length of the event at the start of `bytes` if [`parse_event`] would check only its frame and find it
/// whole. `None`: call `parse_event`. Readers of whole files use this first.
#[inline]
#[must_use]
pub fn frame_len(bytes: &[u8], offset: u64, rules: &ScanRules) -> Option<usize> {
    if rules.verify_checksum || !rules.verify_position {
        return None;
    }
    let head = bytes.first_chunk::<HEADER_LEN>()?;
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let size = word(SIZE_OFFSET);
    let fits = (HEADER_LEN + CHECKSUM_LEN..=bytes.len()).contains(&(size as usize))
        && word(LOG_POS_OFFSET) == offset.wrapping_add(u64::from(size)) as u32;
    // What these two say is for `ScanRules::follow`.
    let plain = !matches!(EventType(head[4]), EventType::FORMAT_DESCRIPTION | EventType::START_V3);
    (fits && plain).then_some(size as usize)
}

fn torn(needed: u64, bytes: &[u8]) -> ScanErrorKind {
    ScanErrorKind::Torn { needed, available: bytes.len() as u64 }
}

/// Verifies the checksum. It does not cover the in-use bit of FORMAT_DESCRIPTION, which changes in place.
fn verify(event: &[u8], is_format: bool) -> Result<(), ScanErrorKind> {
    let Some((covered, stored)) = split_checksum(event) else {
        return Err(ScanErrorKind::BadLength(event.len() as u32));
    };
    let computed = if is_format && covered[FLAGS_OFFSET] & FLAG_IN_USE as u8 != 0 {
        let mut copy = covered.to_vec();
        copy[FLAGS_OFFSET] &= !(FLAG_IN_USE as u8);
        crc32(&copy)
    } else {
        crc32(covered)
    };
    if stored == computed { Ok(()) } else { Err(ScanErrorKind::BadChecksum { stored, computed }) }
}

/// Iterates over the events of a slice. Yields errors once, then ends.
#[derive(Clone, Debug)]
pub struct EventIter<'a> {
    bytes: &'a [u8],
    offset: u64,
    rules: ScanRules,
    done: bool,
}

impl<'a> EventIter<'a> {
    /// Creates an iterator over `bytes`, whose first byte is an event's first byte at file offset `offset`.
    pub fn new(bytes: &'a [u8], offset: u64, rules: ScanRules) -> Self {
        Self { bytes, offset, rules, done: false }
    }

    /// Creates an iterator over a whole file in memory, magic included.
    ///
    /// # Errors
    /// The file does not begin with the magic number.
    pub fn of_file(bytes: &'a [u8], rules: ScanRules) -> Result<Self, ScanError> {
        match bytes.strip_prefix(&MAGIC) {
            Some(rest) => Ok(Self::new(rest, MAGIC.len() as u64, rules)),
            None => Err(ScanError { offset: 0, kind: ScanErrorKind::BadMagic }),
        }
    }

    /// File offset of the next event: the valid end, once the iterator has ended.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The checksum algorithm in force.
    pub fn checksum(&self) -> Checksum {
        self.rules.checksum
    }
}

impl<'a> Iterator for EventIter<'a> {
    type Item = Result<RawEvent<'a>, ScanError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        match parse_event(self.bytes, self.offset, &self.rules) {
            Ok(Some(event)) => {
                self.rules.follow(&event);
                self.bytes = &self.bytes[event.bytes.len()..];
                self.offset = event.end();
                Some(Ok(event))
            }
            Ok(None) => {
                self.done = true;
                None
            }
            Err(error) => {
                self.done = true;
                Some(Err(error))
            }
        }
    }
}
