//! Packet framing: 3-byte length, sequence number, splitting at 16 MB - 1. Not the payloads.
//!
//! `InBuf` collects bytes from a socket and hands out whole payloads in place; `OutBuf` collects a
//! whole reply, so that it leaves in one write. Both are owned by one connection task. An idle
//! connection gives its memory back with `shrink`.

use std::ops::Range;

/// Longest payload of one frame; a frame of exactly this length is continued by the next one.
pub const MAX_FRAME: usize = 0xFF_FFFF;
const HEADER: usize = 4;
/// Buffers above this are given back between commands.
const KEEP: usize = 16 * 1024;

/// A peer broke the framing. The connection cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// More bytes than `max_allowed_packet` (error 1153).
    #[error("packet bigger than 'max_allowed_packet' bytes")]
    TooBig,
    /// A sequence number that is not the next one (error 1156).
    #[error("packets out of order")]
    OutOfOrder,
}

/// Bytes received and not yet consumed.
#[derive(Debug, Default)]
pub struct InBuf {
    buf: Vec<u8>,
    start: usize,
}

impl InBuf {
    /// An empty buffer without memory.
    #[must_use]
    pub fn new() -> Self {
        InBuf::default()
    }

    /// Returns the buffer to which a socket read appends, with at least `room` bytes of spare capacity.
    pub fn writable(&mut self, room: usize) -> &mut Vec<u8> {
        if self.start == self.buf.len() {
            self.buf.clear();
            self.start = 0;
        } else if self.start > 0 && self.buf.capacity() - self.buf.len() < room {
            self.buf.drain(..self.start);
            self.start = 0;
        }
        self.buf.reserve(room);
        &mut self.buf
    }

    /// The memory that it has when `room` more bytes are written.
    #[must_use]
    pub fn memory_with(&self, room: usize) -> usize {
        let (pending, capacity) = (self.pending(), self.buf.capacity());
        if pending + room <= capacity { capacity } else { (2 * capacity).max(pending + room) }
    }

    /// Bytes held and not consumed.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.buf.len() - self.start
    }

    /// The number of bytes that the packet at the front still needs, as far as is known: a hint for the size of the
    /// next read. It is never above 1 MB, so a peer's claim does not allocate (WIRE-1).
    #[must_use]
    pub fn wanted(&self) -> usize {
        let have = &self.buf[self.start..];
        match have.first_chunk::<HEADER>() {
            Some(h) => (frame_len(h) + HEADER).saturating_sub(have.len()).clamp(4096, 1 << 20),
            None => 4096,
        }
    }

    /// The sequence number of the packet at the front, once its header is there.
    #[must_use]
    pub fn front_seq(&self) -> Option<u8> {
        self.buf[self.start..].get(HEADER - 1).copied()
    }

    /// Returns whether the packet at the front is complete.
    #[must_use]
    pub fn has_packet(&self) -> bool {
        let mut rest = &self.buf[self.start..];
        while let Some(header) = rest.first_chunk::<HEADER>() {
            let len = frame_len(header);
            let Some(behind) = rest.get(HEADER + len..) else { return false };
            if len < MAX_FRAME {
                return true;
            }
            rest = behind;
        }
        false
    }

    /// Consumes the packet at the front if it is whole, and tells where its payload is: read it
    /// with [`InBuf::payload`] before the next call to `writable`. `seq` is the sequence number
    /// expected and is advanced past the packet's frames. Length is checked against `max` as
    /// soon as a header is seen, before the payload arrives.
    pub fn next_packet(&mut self, seq: &mut u8, max: usize) -> Result<Option<Range<usize>>, FrameError> {
        let mut at = self.start;
        let mut total = 0usize;
        let mut frames = 0u8;
        loop {
            let Some(header) = self.buf.get(at..).and_then(|b| b.first_chunk::<HEADER>()) else {
                return Ok(None);
            };
            let len = frame_len(header);
            total += len;
            if total > max {
                return Err(FrameError::TooBig);
            }
            if header[3] != seq.wrapping_add(frames) {
                return Err(FrameError::OutOfOrder);
            }
            frames = frames.wrapping_add(1);
            at += HEADER + len;
            if at > self.buf.len() {
                return Ok(None);
            }
            if len < MAX_FRAME {
                break;
            }
        }
        let begin = self.start + HEADER;
        self.join_frames(begin, total);
        *seq = seq.wrapping_add(frames);
        self.start = at;
        Ok(Some(begin..begin + total))
    }

    /// Moves the payloads of continued frames together, in place, from `begin` on.
    fn join_frames(&mut self, begin: usize, total: usize) {
        let mut filled = MAX_FRAME;
        let mut from = begin + MAX_FRAME + HEADER;
        while filled < total {
            let n = (total - filled).min(MAX_FRAME);
            self.buf.copy_within(from..from + n, begin + filled);
            filled += n;
            from += n + HEADER;
        }
    }

    /// The payload that `next_packet` found.
    #[must_use]
    pub fn payload(&self, range: Range<usize>) -> &[u8] {
        self.buf.get(range).unwrap_or(&[])
    }

    /// Takes every unconsumed byte out, as needed when TLS starts in mid-stream.
    pub fn take_pending(&mut self) -> Vec<u8> {
        let rest = self.buf.split_off(self.start);
        self.buf.clear();
        self.start = 0;
        rest
    }

    /// Frees a large buffer when nothing is pending; call before waiting for a command.
    pub fn shrink(&mut self) {
        if self.pending() == 0 && self.buf.capacity() > KEEP {
            *self = InBuf::default();
        }
    }
}

fn frame_len(header: &[u8; HEADER]) -> usize {
    u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize
}

/// A reply being built, frame headers included.
#[derive(Debug, Default)]
pub struct OutBuf {
    buf: Vec<u8>,
    seq: u8,
}

/// A point in a reply to roll back to (WIRE-2).
#[derive(Clone, Copy, Debug)]
pub struct OutMark {
    len: usize,
    seq: u8,
}

impl OutBuf {
    /// An empty buffer without memory.
    #[must_use]
    pub fn new() -> Self {
        OutBuf::default()
    }

    /// The sequence number of the next frame. A reply continues its command's numbering.
    pub fn set_seq(&mut self, seq: u8) {
        self.seq = seq;
    }

    /// The sequence number of the next frame.
    #[must_use]
    pub fn seq(&self) -> u8 {
        self.seq
    }

    /// Appends one packet whose payload `f` writes, split into frames where it is too long.
    pub fn packet(&mut self, f: impl FnOnce(&mut Vec<u8>)) {
        let at = self.buf.len();
        self.buf.extend_from_slice(&[0; HEADER]);
        f(&mut self.buf);
        let len = self.buf.len() - at - HEADER;
        if len < MAX_FRAME {
            let b = (len as u32).to_le_bytes();
            self.buf[at..at + HEADER].copy_from_slice(&[b[0], b[1], b[2], self.seq]);
            self.seq = self.seq.wrapping_add(1);
        } else {
            self.split(at, len);
        }
    }

    /// Rewrites the long payload after the header at `at` as several frames. A payload that is a
    /// multiple of the frame length ends with an empty frame.
    fn split(&mut self, at: usize, len: usize) {
        let frames = len / MAX_FRAME + 1;
        self.buf.reserve_exact(frames * HEADER);
        self.buf.resize(at + len + frames * HEADER, 0);
        // From the last one, which goes furthest, so that none is written over.
        for frame in (0..frames).rev() {
            let from = at + HEADER + frame * MAX_FRAME;
            let head = from - HEADER + frame * HEADER;
            let length = MAX_FRAME.min(len - frame * MAX_FRAME);
            self.buf.copy_within(from..from + length, head + HEADER);
            let seq = self.seq.wrapping_add(frame as u8);
            let b = (length as u32).to_le_bytes();
            self.buf[head..head + HEADER].copy_from_slice(&[b[0], b[1], b[2], seq]);
        }
        self.seq = self.seq.wrapping_add(frames as u8);
    }

    /// Begins a frame of `len` bytes of payload, which follow by [`OutBuf::raw`] or are sent from elsewhere right behind what
    /// is here.
    pub fn frame_head(&mut self, len: usize) {
        let b = (len as u32).to_le_bytes();
        self.buf.extend_from_slice(&[b[0], b[1], b[2], self.seq]);
        self.seq = self.seq.wrapping_add(1);
    }

    /// As [`OutBuf::frame_head`], for a payload that begins with a zero.
    #[inline]
    pub fn frame_head_and_zero(&mut self, len: usize) {
        let b = (len as u32).to_le_bytes();
        self.buf.extend_from_slice(&[b[0], b[1], b[2], self.seq, 0]);
        self.seq = self.seq.wrapping_add(1);
    }

    /// Appends bytes of a payload.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.buf.extend_from_slice(bytes);
    }

    /// Makes room for `more` bytes.
    pub fn reserve(&mut self, more: usize) {
        self.buf.reserve(more);
    }

    /// Makes room for `more` bytes and no others.
    pub fn reserve_exact(&mut self, more: usize) {
        self.buf.reserve_exact(more);
    }

    /// The memory that it has.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.buf.capacity()
    }

    /// The bytes to be sent.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buf
    }

    /// Changes one byte of what is to be sent.
    pub fn set_byte(&mut self, at: usize, byte: u8) {
        if let Some(place) = self.buf.get_mut(at) {
            *place = byte;
        }
    }

    /// Returns whether nothing is to be sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buf.is_empty()
    }

    /// Drops the sent bytes; the sequence number continues.
    pub fn sent(&mut self) {
        self.buf.clear();
    }

    /// Frees a large buffer.
    pub fn shrink(&mut self) {
        if self.buf.capacity() > KEEP {
            self.buf = Vec::new();
        }
    }

    /// The present point.
    #[must_use]
    pub fn mark(&self) -> OutMark {
        OutMark { len: self.buf.len(), seq: self.seq }
    }

    /// Undoes everything since `mark`, unless it was already sent (WIRE-2).
    pub fn rollback(&mut self, mark: OutMark) {
        self.buf.truncate(mark.len);
        self.seq = mark.seq;
    }
}
