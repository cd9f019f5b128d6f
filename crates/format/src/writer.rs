//! Writing events: into a trx cache first, then finished into the log buffer.
//!
//! A cached event is header + body with `log_pos` 0 and a size that counts no checksum, because
//! neither its position nor the log's checksum setting is known while the transaction runs.
//! `finish_cached` makes the final bytes in the flush stage: one copy, three patched fields and
//! one checksum per event, no allocation beyond the output's growth. Called by sessions (append)
//! and by the flush leader (finish).

use crate::checksum::{CHECKSUM_LEN, Checksum, crc32};
use crate::error::DecodeError;
use crate::event_type::EventType;
use crate::header::{EventHeader, FLAG_IN_USE, FLAGS_OFFSET, HEADER_LEN, LOG_POS_OFFSET, SIZE_OFFSET};

/// The header fields that all events of one statement share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventContext {
    /// Seconds since 1970 of the statement's start.
    pub timestamp: u32,
    /// This server's id (or the originating server's, when applying).
    pub server_id: u32,
}

/// An event begun with [`begin_event`]; give it to [`end_event`].
#[derive(Debug)]
#[must_use = "an event without its size is not an event"]
pub struct OpenEvent {
    start: usize,
}

/// Appends a cached event's header; the caller appends the body and calls [`end_event`].
#[inline]
pub fn begin_event(out: &mut Vec<u8>, context: EventContext, event_type: EventType, flags: u16) -> OpenEvent {
    let start = out.len();
    let header = EventHeader {
        timestamp: context.timestamp,
        event_type,
        server_id: context.server_id,
        size: 0,
        log_pos: 0,
        flags,
    };
    out.extend_from_slice(&header.encode());
    OpenEvent { start }
}

/// Patches the size of an event begun at `open`. Bodies past 4 GiB do not exist: callers bound
/// them by `max_allowed_packet`; the size saturates and the reader reports a bad length.
#[inline]
pub fn end_event(out: &mut [u8], open: OpenEvent) {
    let size = u32::try_from(out.len() - open.start).unwrap_or(u32::MAX);
    let at = open.start + SIZE_OFFSET;
    out[at..at + 4].copy_from_slice(&size.to_le_bytes());
}

/// Appends one cached event whose body is at hand.
#[inline]
pub fn append_event(
    out: &mut Vec<u8>,
    context: EventContext,
    event_type: EventType,
    flags: u16,
    body: &[u8],
) {
    out.reserve(HEADER_LEN + body.len());
    let open = begin_event(out, context, event_type, flags);
    out.extend_from_slice(body);
    end_event(out, open);
}

/// Returns the number of bytes that `cached` (whole cached events) will take in the log, and the number of events.
///
/// # Errors
/// `cached` is not a sequence of whole events.
pub fn finished_len(cached: &[u8], checksum: Checksum) -> Result<(usize, usize), DecodeError> {
    let mut pos = 0;
    let mut events = 0;
    while pos < cached.len() {
        pos += cached_size(cached, pos)?;
        events += 1;
    }
    Ok((cached.len() + events * checksum.len(), events))
}

/// Copies cached events to the end of `out` as final log bytes and returns the end position in bytes. `position` is the
/// file offset of the first event.
///
/// # Errors
/// `cached` is not a sequence of whole events; `out` is then unchanged.
pub fn finish_cached(
    out: &mut Vec<u8>,
    cached: &[u8],
    position: u64,
    checksum: Checksum,
) -> Result<u64, DecodeError> {
    let rollback = out.len();
    let mut pos = 0;
    let mut position = position;
    while pos < cached.len() {
        let size = match cached_size(cached, pos) {
            Ok(size) => size,
            Err(error) => {
                out.truncate(rollback);
                return Err(error);
            }
        };
        position = finish_one(out, &cached[pos..pos + size], position, checksum);
        pos += size;
    }
    Ok(position)
}

/// Finishes one cached event; `event` is exactly its bytes.
#[inline]
fn finish_one(out: &mut Vec<u8>, event: &[u8], position: u64, checksum: Checksum) -> u64 {
    let start = out.len();
    out.extend_from_slice(event);
    let size = event.len() + checksum.len();
    let end = position + size as u64;
    patch(&mut out[start..], size, end);
    if checksum == Checksum::Crc32 {
        let crc = crc32(&out[start..]);
        out.extend_from_slice(&crc.to_le_bytes());
    }
    end
}

/// Writes one final event (not cached): `body` appends the body bytes. Returns the end position.
///
/// FORMAT_DESCRIPTION always carries a checksum, whatever the file's algorithm: that is how a
/// reader tells a file without checksums from one of a server that knew none.
pub fn write_final(
    out: &mut Vec<u8>,
    context: EventContext,
    event_type: EventType,
    flags: u16,
    position: u64,
    checksum: Checksum,
    body: impl FnOnce(&mut Vec<u8>),
) -> u64 {
    let start = out.len();
    let open = begin_event(out, context, event_type, flags);
    body(out);
    end_event(out, open);
    let with_crc = checksum == Checksum::Crc32 || event_type == EventType::FORMAT_DESCRIPTION;
    let size = out.len() - start + if with_crc { CHECKSUM_LEN } else { 0 };
    let end = position + size as u64;
    patch(&mut out[start..], size, end);
    if with_crc {
        // The in-use bit changes in place when the file is closed, so it is not covered.
        let in_use = event_type == EventType::FORMAT_DESCRIPTION && flags & FLAG_IN_USE != 0;
        let flags_at = start + FLAGS_OFFSET;
        if in_use {
            out[flags_at] &= !(FLAG_IN_USE as u8);
        }
        let crc = crc32(&out[start..]);
        if in_use {
            out[flags_at] |= FLAG_IN_USE as u8;
        }
        out.extend_from_slice(&crc.to_le_bytes());
    }
    end
}

/// Re-stamps one whole final event for another place: sets its end position and flags, and
/// recomputes its checksum. Used for the stream to a replica and for spilled caches.
pub fn restamp(event: &mut [u8], log_pos: u32, flags: u16, checksum: Checksum) {
    if event.len() < HEADER_LEN + checksum.len() {
        return;
    }
    event[LOG_POS_OFFSET..LOG_POS_OFFSET + 4].copy_from_slice(&log_pos.to_le_bytes());
    event[FLAGS_OFFSET..FLAGS_OFFSET + 2].copy_from_slice(&flags.to_le_bytes());
    if checksum == Checksum::Crc32 {
        let body_end = event.len() - CHECKSUM_LEN;
        let crc = crc32(&event[..body_end]);
        event[body_end..].copy_from_slice(&crc.to_le_bytes());
    }
}

#[inline]
fn patch(event: &mut [u8], size: usize, end: u64) {
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    event[SIZE_OFFSET..SIZE_OFFSET + 4].copy_from_slice(&size.to_le_bytes());
    // The field has 32 bits; files past 4 GiB wrap, as in every other server.
    event[LOG_POS_OFFSET..LOG_POS_OFFSET + 4].copy_from_slice(&(end as u32).to_le_bytes());
}

/// Size of the cached event at `pos`, checked against the slice.
#[inline]
fn cached_size(cached: &[u8], pos: usize) -> Result<usize, DecodeError> {
    let field = cached.get(pos + SIZE_OFFSET..pos + SIZE_OFFSET + 4);
    let field = field.ok_or_else(|| DecodeError::new(pos, "cached event header"))?;
    let size = crate::cursor::le_uint(field) as usize;
    if size < HEADER_LEN || size > cached.len() - pos {
        return Err(DecodeError::new(pos, "cached event size"));
    }
    Ok(size)
}
