//! MySQL's whole transactions in one event (`binlog_transaction_compression`): TRANSACTION_PAYLOAD, written at once and read event by
//! event.
//!
//! A payload of a few hundred kilobytes can stand for gigabytes, so it is decompressed as it is read and one event is in
//! memory at a time, beside what zstd looks back on (128 MiB at most, which is the most that a source's highest level
//! uses). An event inside is no longer than one that came by itself may be.

use crate::cursor::{Reader, lenenc_size, put_lenenc};
use crate::header::HEADER_LEN;
use crate::{DecodeError, EventHeader, EventType, MAX_EVENT_SIZE};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::io::Read;

const END: u64 = 0;
const SIZE: u64 = 1;
const COMPRESSION: u64 = 2;
const UNCOMPRESSED_SIZE: u64 = 3;
const COMPRESSION_ZSTD: u64 = 0;
const COMPRESSION_NONE: u64 = 255;
/// A buffer that was longer for one event is given back behind it.
const BUFFER_KEPT: usize = 1 << 20;
/// What is said of an event that is longer, once it is decompressed, than may be.
pub const TOO_LONG: &str = "a compressed event that is longer than replica_max_allowed_packet allows";

/// Appends an event's body that stands for these events, which have no checksums. zstd has the one level that its crate has, which is
/// what its makers call level 1.
pub fn encode(events: &[u8], out: &mut Vec<u8>) {
    let frame = compress_to_vec(events, CompressionLevel::Fastest);
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
}

/// What an event's body says of itself: whether it is compressed, and how many bytes it stands for, if it says so.
///
/// # Errors
/// It is damaged.
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

/// The events in a TRANSACTION_PAYLOAD event, one behind the other, without checksums.
pub struct Payload<'a> {
    contents: Contents<'a>,
    /// The longest event that is taken.
    longest: u32,
    event: Vec<u8>,
}

enum Contents<'a> {
    Plain(&'a [u8]),
    /// A long payload may be several frames: the one that is being read, and what is behind it once it has ended.
    Zstd {
        rest: &'a [u8],
        frame: Option<Box<StreamingDecoder<&'a [u8], FrameDecoder>>>,
    },
}

impl<'a> Payload<'a> {
    /// Of an event's body.
    ///
    /// # Errors
    /// It is damaged, or compressed in an unknown way.
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
            COMPRESSION_ZSTD => Contents::Zstd { rest, frame: None },
            _ => return Err(DecodeError::new(0, "payload compression")),
        };
        Ok(Payload { contents, longest: MAX_EVENT_SIZE, event: Vec::new() })
    }

    /// The same, with no event inside longer than this.
    #[must_use]
    pub fn limited_to(mut self, longest: u32) -> Payload<'a> {
        self.longest = longest;
        self
    }

    /// The next event: its header and its body. `None` behind the last one.
    ///
    /// # Errors
    /// The payload, or the event's length, is damaged.
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

    /// Appends up to `len` bytes to the buffer; it grows with what comes, not with what was promised.
    fn read(&mut self, len: usize) -> Result<(), DecodeError> {
        let damaged = || DecodeError::new(0, "zstd payload");
        match &mut self.contents {
            Contents::Plain(rest) => {
                let (now, later) = rest.split_at(len.min(rest.len()));
                self.event.extend_from_slice(now);
                *rest = later;
            }
            Contents::Zstd { rest, frame } => {
                while self.event.len() < len {
                    let missing = (len - self.event.len()) as u64;
                    let Some(open) = frame else {
                        if rest.is_empty() {
                            break;
                        }
                        *frame = Some(Box::new(StreamingDecoder::new(*rest).map_err(|_| damaged())?));
                        continue;
                    };
                    let read = open.take(missing).read_to_end(&mut self.event).map_err(|_| damaged())?;
                    if (read as u64) < missing
                        && let Some(ended) = frame.take()
                    {
                        *rest = ended.into_inner();
                    }
                }
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
        encode(&events, &mut body);
        assert!(body.len() * 3 < events.len(), "{} of {}", body.len(), events.len());
        assert_eq!(describe(&body).unwrap(), (true, Some(events.len() as u64)));
        let mut payload = Payload::new(&body).unwrap();
        for expected in &bodies {
            let (header, body) = payload.next().unwrap().unwrap();
            assert_eq!((header.timestamp, header.server_id, body), (7, 9, &expected[..]));
        }
        assert!(payload.next().unwrap().is_none());
    }
}
