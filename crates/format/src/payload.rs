//! TRANSACTION_PAYLOAD, MySQL's event with a whole transaction (`binlog_transaction_compression`): written at once and
//! read event by event.
//!
//! A payload of a few hundred kilobytes can stand for gigabytes, so it is decompressed while it is read, and only one
//! event is in memory at a time, beside zstd's window (at most 128 MiB, which a source's highest level uses). An event
//! inside has the same maximum length as one that comes by itself.

use crate::cursor::{Reader, lenenc_size, put_lenenc};
use crate::header::HEADER_LEN;
use crate::{DecodeError, EventHeader, EventType, MAX_EVENT_SIZE};
use std::io::{self, Read};
use zstd::bulk::Compressor;
use zstd::stream::read::Decoder;
use zstd::zstd_safe::CParameter;

const END: u64 = 0;
const SIZE: u64 = 1;
const COMPRESSION: u64 = 2;
const UNCOMPRESSED_SIZE: u64 = 3;
const COMPRESSION_ZSTD: u64 = 0;
const COMPRESSION_NONE: u64 = 255;
/// The highest level of zstd with a window of at most [`WINDOW_LOG`]; higher levels take hundreds of megabytes.
const WIDE_LEVEL: i32 = 19;
/// Binary logarithm of the maximum window for compression, for which every decoder has room.
const WINDOW_LOG: u32 = 23;
/// Binary logarithm of the maximum window for decompression, which the highest level of another server needs.
const LONGEST_WINDOW_LOG: u32 = 27;
/// The buffer capacity that is kept between events; a longer buffer is freed.
const BUFFER_KEPT: usize = 1 << 20;
/// The error text for a decompressed event that is too long.
pub const TOO_LONG: &str = "a compressed event that is longer than replica_max_allowed_packet allows";

/// Appends the body of an event that stands for `events`, which have no checksums. `level` is zstd's compression level,
/// 1 to 22.
///
/// # Errors
/// zstd has no memory for it.
pub fn encode(events: &[u8], level: i32, out: &mut Vec<u8>) -> io::Result<()> {
    let mut compressor = Compressor::new(level)?;
    if level > WIDE_LEVEL {
        compressor.set_parameter(CParameter::WindowLog(WINDOW_LOG))?;
    }
    let frame = compressor.compress(events)?;
    let fields = [
        (COMPRESSION, COMPRESSION_ZSTD),
        (UNCOMPRESSED_SIZE, events.len() as u64),
        (SIZE, frame.len() as u64),
    ];
    for (field, value) in fields {
        put_lenenc(out, field);
        put_lenenc(out, lenenc_size(value) as u64);
        put_lenenc(out, value);
    }
    put_lenenc(out, END);
    out.extend_from_slice(&frame);
    Ok(())
}

/// Returns whether an event's body is compressed, and the number of decompressed bytes, if the body has it.
///
/// # Errors
/// The body is damaged.
pub fn describe(body: &[u8]) -> Result<(bool, Option<u64>), DecodeError> {
    let (mut size, mut compression) = (None, COMPRESSION_NONE);
    let mut r = Reader::new(body);
    loop {
        let field = r.lenenc("payload field")?;
        if field == END {
            return Ok((compression == COMPRESSION_ZSTD, size));
        }
        let value = r.lenenc_bytes("payload field")?;
        match field {
            UNCOMPRESSED_SIZE => size = Some(Reader::new(value).lenenc("payload size")?),
            COMPRESSION => compression = Reader::new(value).lenenc("payload compression")?,
            _ => {}
        }
    }
}

/// The events in a TRANSACTION_PAYLOAD event, without checksums.
pub struct Payload<'a> {
    contents: Contents<'a>,
    /// The maximum length of an event.
    longest: u32,
    event: Vec<u8>,
}

enum Contents<'a> {
    Plain(&'a [u8]),
    /// A long payload may be several frames.
    Zstd(Box<Decoder<'static, &'a [u8]>>),
}

impl<'a> Payload<'a> {
    /// Opens an event's body.
    ///
    /// # Errors
    /// The body is damaged, or compressed in an unknown way.
    pub fn new(body: &'a [u8]) -> Result<Payload<'a>, DecodeError> {
        let mut r = Reader::new(body);
        let (mut size, mut compression) = (None, COMPRESSION_NONE);
        loop {
            let field = r.lenenc("payload field")?;
            if field == END {
                break;
            }
            let value = r.lenenc_bytes("payload field")?;
            match field {
                SIZE => size = Some(Reader::new(value).lenenc_len("payload size")?),
                COMPRESSION => compression = Reader::new(value).lenenc("payload compression")?,
                _ => {}
            }
        }
        let rest = match size {
            Some(size) => r.take(size, "payload")?,
            None => r.rest(),
        };
        let contents = match compression {
            COMPRESSION_NONE => Contents::Plain(rest),
            COMPRESSION_ZSTD => {
                let failed = |_| DecodeError::new(0, "zstd payload");
                let mut decoder = Decoder::with_buffer(rest).map_err(failed)?;
                decoder.window_log_max(LONGEST_WINDOW_LOG).map_err(failed)?;
                Contents::Zstd(Box::new(decoder))
            }
            _ => return Err(DecodeError::new(0, "payload compression")),
        };
        Ok(Payload { contents, longest: MAX_EVENT_SIZE, event: Vec::new() })
    }

    /// Sets the maximum length in bytes of an event inside.
    #[must_use]
    pub fn limited_to(mut self, longest: u32) -> Payload<'a> {
        self.longest = longest;
        self
    }

    /// Reads the next event: its header and its body. `None` behind the last one.
    ///
    /// # Errors
    /// The payload or the event's length is damaged.
    // Not an iterator: the event borrows the buffer.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<(EventHeader, &[u8])>, DecodeError> {
        let damaged = || DecodeError::new(0, "an event in a compressed transaction");
        self.event.clear();
        self.event.shrink_to(BUFFER_KEPT);
        self.read(HEADER_LEN)?;
        if self.event.is_empty() {
            return Ok(None);
        }
        let header = EventHeader::decode(&self.event)?;
        let body = (header.size as usize).checked_sub(HEADER_LEN).ok_or_else(damaged)?;
        if header.event_type == EventType::TRANSACTION_PAYLOAD {
            return Err(damaged());
        }
        if header.size > self.longest {
            return Err(DecodeError::new(0, TOO_LONG));
        }
        self.event.clear();
        self.read(body)?;
        if self.event.len() != body {
            return Err(damaged());
        }
        Ok(Some((header, &self.event)))
    }

    /// Appends up to `len` bytes to the buffer. The buffer grows with the bytes read, not with the announced length.
    fn read(&mut self, len: usize) -> Result<(), DecodeError> {
        let damaged = || DecodeError::new(0, "zstd payload");
        match &mut self.contents {
            Contents::Plain(rest) => {
                let (now, later) = rest.split_at(len.min(rest.len()));
                self.event.extend_from_slice(now);
                *rest = later;
            }
            Contents::Zstd(decoder) => {
                let missing = len.saturating_sub(self.event.len()) as u64;
                decoder.take(missing).read_to_end(&mut self.event).map_err(|_| damaged())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::writer::{EventContext, append_event};

    #[test]
    fn what_is_written_is_read_and_takes_less_room() {
        let mut events = Vec::new();
        let context = EventContext { timestamp: 7, server_id: 9 };
        let bodies: Vec<Vec<u8>> = (0..50u8).map(|n| vec![n % 3; 200 + usize::from(n)]).collect();
        for body in &bodies {
            append_event(&mut events, context, EventType::ROWS_QUERY, 0, body);
        }
        let mut body = Vec::new();
        encode(&events, 3, &mut body).unwrap();
        assert!(body.len() * 3 < events.len(), "{} of {}", body.len(), events.len());
        assert_eq!(describe(&body).unwrap(), (true, Some(events.len() as u64)));
        let mut payload = Payload::new(&body).unwrap();
        for expected in &bodies {
            let (header, body) = payload.next().unwrap().unwrap();
            assert_eq!((header.timestamp, header.server_id, body), (7, 9, &expected[..]));
        }
        assert!(payload.next().unwrap().is_none());
    }

    /// Fields in front of a frame, as `encode` writes them.
    fn around(frame: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        for (field, value) in [(COMPRESSION, COMPRESSION_ZSTD), (SIZE, frame.len() as u64)] {
            put_lenenc(&mut body, field);
            put_lenenc(&mut body, lenenc_size(value) as u64);
            put_lenenc(&mut body, value);
        }
        put_lenenc(&mut body, END);
        [&body[..], frame].concat()
    }

    #[test]
    fn every_level_is_read_and_higher_ones_are_shorter() {
        let mut events = Vec::new();
        let context = EventContext { timestamp: 7, server_id: 9 };
        for n in 0..20_000u32 {
            let words =
                format!("row {} of a table with {} words {}", n % 977, n / 7, n.wrapping_mul(2_654_435_761));
            append_event(&mut events, context, EventType::ROWS_QUERY, 0, words.as_bytes());
        }
        let size = |level| {
            let mut body = Vec::new();
            encode(&events, level, &mut body).unwrap();
            let (mut payload, mut count) = (Payload::new(&body).unwrap(), 0);
            while payload.next().unwrap().is_some() {
                count += 1;
            }
            assert_eq!(count, 20_000, "level {level}");
            body.len()
        };
        let sizes = [size(1), size(3), size(19), size(22)];
        assert!(sizes[0] > sizes[2] && sizes[1] > sizes[2] && sizes[2] >= sizes[3], "{sizes:?}");
    }

    #[test]
    fn several_frames_are_one_payload_and_a_torn_one_is_none() {
        let mut events = Vec::new();
        let context = EventContext { timestamp: 7, server_id: 9 };
        append_event(&mut events, context, EventType::ROWS_QUERY, 0, &[b'x'; 3000]);
        let halves = events.split_at(1234);
        let frames = [zstd::bulk::compress(halves.0, 1).unwrap(), zstd::bulk::compress(halves.1, 9).unwrap()];
        let whole = frames.concat();
        let body = around(&whole);
        let mut payload = Payload::new(&body).unwrap();
        assert_eq!(payload.next().unwrap().unwrap().1.len(), 3000);
        assert!(payload.next().unwrap().is_none());
        for cut in (1..whole.len()).filter(|cut| *cut != frames[0].len()) {
            let body = around(&whole[..cut]);
            let mut payload = Payload::new(&body).unwrap();
            let mut events = std::iter::from_fn(|| payload.next().map(|event| event.map(drop)).transpose());
            assert!(events.any(|event| event.is_err()), "cut at {cut}");
        }
    }
}
