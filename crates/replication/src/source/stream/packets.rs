//! Builds the packets of a [`Stream`] from events: heads, frames, removed or filled parts, and the events that the
//! stream makes itself.

use super::super::block::BlockEvent;
use super::super::error::SourceError;
use super::super::parts::LONG;
use super::super::peer::WantedChecksum;
use super::{ASKS_AT, SEMI_SYNC_MAGIC, Stream};
use omnibus_format::checksum::{CHECKSUM_LEN, crc32};
use omnibus_format::events::{MariadbGtidEvent, Query, Rotate};
use omnibus_format::header::{
    FLAG_ARTIFICIAL, FLAG_IGNORABLE, FLAG_IN_USE, FLAG_SUPPRESS_USE, FLAGS_OFFSET, HEADER_LEN,
    LOG_POS_OFFSET, SIZE_OFFSET,
};
use omnibus_format::writer::{restamp, write_final};
use omnibus_format::{Checksum, EventContext, EventHeader, EventType, FormatDescription};
use omnibus_log::LogPosition;
use omnibus_wire::{MAX_FRAME, OutBuf};
use std::ops::Range;

/// The longest gap in bytes that is filled with an event of the same length; a longer one is skipped over.
const MAX_FILLER: usize = 64 << 10;
/// Offset of the creation time in FORMAT_DESCRIPTION.
const CREATED_AT: usize = HEADER_LEN + 2 + 50;

/// Returns the header of an event that is cut to `size` bytes.
fn resized(event: &[u8], size: usize) -> [u8; HEADER_LEN] {
    let mut header = [0; HEADER_LEN];
    header.copy_from_slice(&event[..HEADER_LEN]);
    header[SIZE_OFFSET..SIZE_OFFSET + 4].copy_from_slice(&(size as u32).to_le_bytes());
    header
}

impl Stream {
    /// Appends the replacement of MariaDB's GTID for a client that does not know it: the BEGIN that it stands for, if
    /// it does.
    pub(super) fn put_begin(&mut self, event: &BlockEvent<'_>, checksum: Checksum, out: &mut OutBuf) {
        let gtid = MariadbGtidEvent::decode(event.body(checksum));
        let header = EventHeader::decode(event.bytes);
        let (Ok(header), Ok(gtid)) = (header, gtid) else { return };
        if gtid.flags & MariadbGtidEvent::FLAG_STANDALONE != 0 {
            self.gap = true;
            return;
        }
        let context = EventContext { timestamp: header.timestamp, server_id: header.server_id };
        let mut made = Vec::with_capacity(64);
        let begin =
            Query { thread_id: 0, exec_time: 0, error_code: 0, status: b"", database: b"", sql: b"BEGIN" };
        let flags = FLAG_SUPPRESS_USE;
        write_final(&mut made, context, EventType::QUERY, flags, 0, self.checksum, |body| begin.encode(body));
        restamp(&mut made, header.log_pos, flags, self.checksum);
        self.gap = false;
        self.put(&made, self.checksum, out);
    }

    /// Appends a harmless event of the same length in a private event's place.
    pub(super) fn fill(&mut self, event: &BlockEvent<'_>, out: &mut OutBuf) {
        let body = event.size - HEADER_LEN - self.checksum.len().min(event.size - HEADER_LEN);
        if event.size > MAX_FILLER {
            return self.put_rotate_to(event.end(), out);
        }
        let position = event.end() as u32;
        self.put_made(out, EventType::IGNORABLE, FLAG_IGNORABLE, position, |out| {
            out.resize(out.len() + body, 0);
        });
    }

    /// Appends an event as a packet. It is shorter than a frame's limit.
    #[inline]
    pub(super) fn put(&mut self, event: &[u8], checksum: Checksum, out: &mut OutBuf) {
        let size = event.len() - self.stripped(event, checksum);
        self.put_head(size, out);
        if size < event.len() {
            out.raw(&resized(event, size));
            out.raw(&event[HEADER_LEN..size]);
        } else {
            out.raw(event);
        }
    }

    /// Appends an event of the present block. Returns the room left in the packet's frame, if it is a long one.
    pub(super) fn put_event(
        &mut self,
        event: &BlockEvent<'_>,
        checksum: Checksum,
        out: &mut OutBuf,
    ) -> Option<usize> {
        self.real_end = LogPosition::new(self.file, event.end());
        if event.size >= LONG || event.missing() > 0 {
            return Some(self.put_long(event, checksum, out));
        }
        self.put(event.bytes, checksum, out);
        None
    }

    /// Appends an event of the present block by reference, in several frames if it is longer than one. Returns the room
    /// left in the last one.
    pub(super) fn put_long(&mut self, event: &BlockEvent<'_>, checksum: Checksum, out: &mut OutBuf) -> usize {
        let strip = self.stripped(event.bytes, checksum);
        // Who reads events in pieces does not cut checksums off.
        debug_assert!(strip == 0 || event.missing() == 0);
        let size = event.size - strip;
        let mut room = MAX_FRAME - self.put_head(size, out);
        let (mut at, end) = (event.at, event.at + event.bytes.len() - strip);
        if strip > 0 {
            out.raw(&resized(event.bytes, size));
            at += HEADER_LEN;
            room -= HEADER_LEN;
        }
        self.put_piece(at..end, event.missing(), room, out)
    }

    /// Appends a piece of a long event in the present block, of which `left` bytes follow, for a frame with this much
    /// room.
    pub(super) fn put_piece(
        &mut self,
        piece: Range<usize>,
        left: usize,
        mut room: usize,
        out: &mut OutBuf,
    ) -> usize {
        let Range { mut start, end } = piece;
        // A frame that is full is followed by another one, if only by an empty one.
        while end - start >= room {
            self.parts.push(out.bytes().len(), start..start + room);
            start += room;
            room = MAX_FRAME;
            out.frame_head((end - start + left).min(MAX_FRAME));
        }
        self.parts.push(out.bytes().len(), start..end);
        room - (end - start)
    }

    /// Appends the head of an event of `size` bytes. Returns the number of bytes of the frame that it took.
    #[inline]
    pub(super) fn put_head(&mut self, size: usize, out: &mut OutBuf) -> usize {
        self.asks_at = Some(out.bytes().len() + ASKS_AT);
        if !self.semi_sync {
            out.frame_head_and_zero((1 + size).min(MAX_FRAME));
            return 1;
        }
        let head = [0, SEMI_SYNC_MAGIC, 0];
        out.frame_head((head.len() + size).min(MAX_FRAME));
        out.raw(&head);
        head.len()
    }

    /// The number of bytes at an event's end that this client does not get.
    #[inline]
    pub(super) fn stripped(&self, event: &[u8], checksum: Checksum) -> usize {
        let strip = checksum == Checksum::Crc32 && self.checksum == Checksum::None;
        if strip && event.len() >= HEADER_LEN + CHECKSUM_LEN { CHECKSUM_LEN } else { 0 }
    }

    /// Appends a file's first event. Whether checksums follow depends on the file and the client.
    pub(super) fn put_format(
        &mut self,
        event: &[u8],
        in_middle: bool,
        out: &mut OutBuf,
    ) -> Result<(), SourceError> {
        let found = FormatDescription::checksum_of_event(event).ok().flatten();
        let version = event.get(HEADER_LEN + 2..CREATED_AT).unwrap_or(&[]);
        self.mariadb_log = version.windows(7).any(|part| part == b"MariaDB");
        let mut event = event.to_vec();
        let Some(found) = found.filter(|_| event.len() >= CREATED_AT + 4 + 1 + CHECKSUM_LEN) else {
            self.checksum = Checksum::None;
            self.put(&event, Checksum::None, out);
            return Ok(());
        };
        self.checksum = match (found, self.wanted) {
            (Checksum::Crc32, WantedChecksum::Crc32) => Checksum::Crc32,
            (Checksum::Crc32, WantedChecksum::Unsaid) if !self.mariadb => {
                return Err(SourceError::ChecksumUnknown);
            }
            _ => Checksum::None,
        };
        event[FLAGS_OFFSET] &= !(FLAG_IN_USE as u8);
        if in_middle {
            event[LOG_POS_OFFSET..LOG_POS_OFFSET + 4].fill(0);
            event[CREATED_AT..CREATED_AT + 4].fill(0);
        }
        let body_end = event.len() - CHECKSUM_LEN;
        event[body_end - 1] = self.checksum.code();
        // It carries one itself in every case.
        let crc = crc32(&event[..body_end]);
        event[body_end..].copy_from_slice(&crc.to_le_bytes());
        self.put(&event, Checksum::None, out);
        Ok(())
    }

    pub(super) fn put_rotate(&mut self, out: &mut OutBuf) {
        self.put_rotate_to(self.position, out);
    }

    pub(super) fn put_rotate_to(&mut self, position: u64, out: &mut OutBuf) {
        let name = self.file_name();
        self.put_made(out, EventType::ROTATE, FLAG_ARTIFICIAL, 0, |body| {
            Rotate { position, file: name.as_bytes() }.encode(body);
        });
    }

    /// Appends an event that is in no file.
    pub(super) fn put_made(
        &mut self,
        out: &mut OutBuf,
        event_type: EventType,
        flags: u16,
        log_pos: u32,
        body: impl FnOnce(&mut Vec<u8>),
    ) {
        let context = EventContext { timestamp: 0, server_id: self.server_id };
        let mut event = Vec::with_capacity(96);
        write_final(&mut event, context, event_type, flags, 0, self.checksum, body);
        restamp(&mut event, log_pos, flags, self.checksum);
        self.put(&event, self.checksum, out);
    }
}
