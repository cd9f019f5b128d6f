//! The compressed protocol: frames of seven bytes of head and a payload, around the frames of [`crate::frame`].
//!
//! The payload of a frame is a piece of the stream of packets, wherever it begins and ends: compressed, or as it is where that
//! is shorter. A frame is decompressed as it is read, into the reader's buffer, and never past the length that its head has, so
//! that some kilobytes which stand for gigabytes cost what a reader takes of them and no more (WIRE-1).

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZFlush, MZStatus};
use std::io::{Cursor, Read};
use zstd::stream::read::Decoder;

/// Bytes of a head.
pub const HEAD: usize = 7;
/// Longest piece of the stream in one frame.
pub const LONGEST: usize = 0xFF_FFFF;
/// The smallest payload in bytes that is compressed; a shorter one would hardly become shorter.
const SHORTEST: usize = 50;
/// Binary logarithm of zstd's window: no more than a frame has. A frame announces it in its first bytes, and memory is
/// reserved for it.
const ZSTD_WINDOW_LOG: u32 = 24;
/// The compression algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RFC 1950.
    Zlib,
    /// RFC 8878.
    Zstd,
}

impl Algorithm {
    /// MySQL's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Zlib => "zlib",
            Algorithm::Zstd => "zstd",
        }
    }
}

/// The compression of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// From 1 to 9 for zlib, to 22 for zstd.
    pub level: u8,
}

impl Compression {
    /// zlib, at the level that is usual: no client chooses it.
    pub const ZLIB: Compression = Compression { algorithm: Algorithm::Zlib, level: 6 };
}

/// A frame does not hold what its head says (error 1157).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a compressed packet that cannot be decompressed")]
pub struct BadFrame;

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Bytes of payload behind it.
    pub len: usize,
    /// Number of the frame within a command and its reply.
    pub seq: u8,
    /// Bytes that the payload stands for; 0 if it is not compressed.
    pub stands_for: usize,
}

impl Head {
    /// Reads one.
    #[must_use]
    pub fn decode(head: &[u8; HEAD]) -> Head {
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], 0]) as usize;
        Head { len: number(0), seq: head[3], stands_for: number(4) }
    }

    fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.len as u32).to_le_bytes()[..3]);
        out.push(self.seq);
        out.extend_from_slice(&(self.stands_for as u32).to_le_bytes()[..3]);
    }
}

/// Appends a frame that stands for `piece`, which is no longer than [`LONGEST`].
pub fn put_frame(out: &mut Vec<u8>, piece: &[u8], compression: Compression, seq: u8) {
    let level = compression.level;
    let packed = match compression.algorithm {
        _ if piece.len() < SHORTEST => Vec::new(),
        Algorithm::Zlib => miniz_oxide::deflate::compress_to_vec_zlib(piece, level),
        // Without memory for it the piece goes as it is.
        Algorithm::Zstd => zstd::bulk::compress(piece, level.into()).unwrap_or_default(),
    };
    if packed.is_empty() || packed.len() >= piece.len() {
        Head { len: piece.len(), seq, stands_for: 0 }.put(out);
        out.extend_from_slice(piece);
    } else {
        Head { len: packed.len(), seq, stands_for: piece.len() }.put(out);
        out.extend_from_slice(&packed);
    }
}

/// A frame that is read piece by piece.
pub struct Piece {
    contents: Contents,
    /// The number of bytes still to come.
    left: usize,
}

enum Contents {
    Plain { payload: Vec<u8>, at: usize },
    Zlib { payload: Vec<u8>, at: usize, state: Box<InflateState> },
    Zstd(Box<Decoder<'static, Cursor<Vec<u8>>>>),
}

impl std::fmt::Debug for Piece {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Piece({} to come)", self.left)
    }
}

impl Piece {
    /// Creates the decompressor of the payload behind `head`.
    ///
    /// # Errors
    /// The payload is not compressed with this algorithm.
    pub fn new(head: Head, payload: Vec<u8>, algorithm: Algorithm) -> Result<Piece, BadFrame> {
        if head.stands_for == 0 {
            let left = payload.len();
            return Ok(Piece { contents: Contents::Plain { payload, at: 0 }, left });
        }
        let contents = match algorithm {
            Algorithm::Zlib => {
                Contents::Zlib { payload, at: 0, state: InflateState::new_boxed(DataFormat::Zlib) }
            }
            Algorithm::Zstd => {
                let mut decoder = Decoder::with_buffer(Cursor::new(payload)).map_err(|_| BadFrame)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(|_| BadFrame)?;
                Contents::Zstd(Box::new(decoder))
            }
        };
        Ok(Piece { contents, left: head.stands_for })
    }

    /// Reads into `out` and returns how much: 0 at the end.
    ///
    /// # Errors
    /// The payload is damaged, or stands for another length than its head says.
    pub fn read(&mut self, out: &mut [u8]) -> Result<usize, BadFrame> {
        let wanted = out.len().min(self.left);
        let out = &mut out[..wanted];
        if out.is_empty() {
            return Ok(0);
        }
        let count = match &mut self.contents {
            Contents::Plain { payload, at } => {
                out.copy_from_slice(payload.get(*at..*at + wanted).ok_or(BadFrame)?);
                *at += wanted;
                wanted
            }
            Contents::Zlib { payload, at, state } => {
                let rest = payload.get(*at..).unwrap_or_default();
                let done = inflate(state, rest, out, MZFlush::None);
                *at += done.bytes_consumed;
                match done.status {
                    Ok(MZStatus::Ok | MZStatus::StreamEnd) => done.bytes_written,
                    _ => return Err(BadFrame),
                }
            }
            Contents::Zstd(decoder) => decoder.read(out).map_err(|_| BadFrame)?,
        };
        if count == 0 {
            return Err(BadFrame);
        }
        self.left -= count;
        if self.left == 0 && self.goes_on() {
            return Err(BadFrame);
        }
        Ok(count)
    }

    /// Returns whether bytes follow the announced length: a checksum has to follow, which is read here.
    fn goes_on(&mut self) -> bool {
        let mut more = [0];
        match &mut self.contents {
            Contents::Plain { .. } => false,
            Contents::Zlib { payload, at, state } => {
                let rest = payload.get(*at..).unwrap_or_default();
                let done = inflate(state, rest, &mut more, MZFlush::None);
                done.bytes_written > 0 || done.status != Ok(MZStatus::StreamEnd)
            }
            Contents::Zstd(decoder) => !matches!(decoder.read(&mut more), Ok(0)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const BOTH: [Compression; 2] = [Compression::ZLIB, Compression { algorithm: Algorithm::Zstd, level: 3 }];

    fn through(compression: Compression, text: &[u8], buffer: usize) -> Result<Vec<u8>, BadFrame> {
        let mut frame = Vec::new();
        put_frame(&mut frame, text, compression, 7);
        unpack(&frame, compression.algorithm, buffer)
    }

    fn unpack(frame: &[u8], algorithm: Algorithm, buffer: usize) -> Result<Vec<u8>, BadFrame> {
        let head = Head::decode(frame.first_chunk().ok_or(BadFrame)?);
        let mut piece = Piece::new(head, frame[HEAD..].to_vec(), algorithm)?;
        let (mut all, mut room) = (Vec::new(), vec![0; buffer]);
        loop {
            match piece.read(&mut room)? {
                0 => return Ok(all),
                count => all.extend_from_slice(&room[..count]),
            }
        }
    }

    #[test]
    fn a_frame_gives_back_what_it_was_made_of() {
        let long: Vec<u8> = (0..200_000u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
        let highest = Compression { algorithm: Algorithm::Zstd, level: 22 };
        for compression in BOTH.into_iter().chain([highest]) {
            for text in [&b""[..], b"SELECT 1", &long[..49], &long[..50], &long] {
                for buffer in [1 + text.len() / 50, 70_000] {
                    assert_eq!(through(compression, text, buffer).as_deref(), Ok(text), "{compression:?}");
                }
            }
            let mut frame = Vec::new();
            put_frame(&mut frame, &long, compression, 7);
            assert!(frame.len() < long.len() / 2, "{compression:?} makes it shorter");
            assert_eq!(Head::decode(frame.first_chunk().unwrap()).seq, 7);
        }
    }

    #[test]
    fn a_frame_that_stands_for_another_length_is_refused() {
        for compression in BOTH {
            let algorithm = compression.algorithm;
            let mut frame = Vec::new();
            put_frame(&mut frame, &[b'x'; 10_000], compression, 0);
            for wrong in [9_999u32, 10_001, 1, 0xFF_FFFF] {
                let mut other = frame.clone();
                other[4..7].copy_from_slice(&wrong.to_le_bytes()[..3]);
                assert_eq!(unpack(&other, algorithm, 4096), Err(BadFrame), "{algorithm:?} {wrong}");
            }
            for cut in HEAD..frame.len() {
                assert_eq!(unpack(&frame[..cut], algorithm, 4096), Err(BadFrame), "{algorithm:?} {cut}");
            }
        }
    }

    #[test]
    fn a_window_that_a_frame_cannot_need_is_refused() {
        // Magic, no single segment, a window of 128 MiB, and a last raw block of one byte.
        let mut frame = vec![15, 0, 0, 0, 1, 0, 0];
        frame.extend_from_slice(&[0x28, 0xB5, 0x2F, 0xFD, 0, 17 << 3, 9, 0, 0, b'x']);
        assert_eq!(unpack(&frame, Algorithm::Zstd, 16), Err(BadFrame));
        frame[HEAD + 5] = 10 << 3;
        assert_eq!(unpack(&frame, Algorithm::Zstd, 16).as_deref(), Ok(&b"x"[..]));
    }
}
