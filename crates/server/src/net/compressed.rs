//! The compressed protocol under the packets: what is written goes out in compressed frames, what is read comes out of them.
//!
//! A frame is read when the packets before it have been taken, so that it can be numbered: numbers begin again with each command,
//! and a reply goes on with those of its command.

use super::room::Room;
use super::stream::Stream;
use crate::errors;
use omnibus_sql::SqlError;
use omnibus_sql::memory::MemoryLimits;
use omnibus_wire::FrameError;
use omnibus_wire::compressed::{BadFrame, Compression, HEAD, Head, Piece, put_frame};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Most that one frame of ours stands for. Longer ones are hardly shorter, and a worker is to be given back.
const LONGEST: usize = 128 << 10;
/// The bytes that take a worker longer than the others should wait.
const HEAVY: usize = 16 << 10;
/// The copies of a frame: as it comes, in a buffer that doubles, and being read.
const COPIES: usize = 4;
/// The bytes that are read from the socket at once.
const READ: usize = 64 << 10;

/// A stream whose bytes are compressed on their way.
#[derive(Debug)]
pub struct Compressed {
    stream: Stream,
    compression: Compression,
    /// Number of the next frame, in either direction.
    seq: u8,
    /// Frames are read whatever their numbers.
    aside: bool,
    /// Bytes of frames that were not read yet, from `from` on.
    raw: Vec<u8>,
    from: usize,
    piece: Option<Piece>,
    /// Frames that are to go, from `gone` on.
    ready: Vec<u8>,
    gone: usize,
    /// Where a frame that comes is counted.
    room: Option<Room>,
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// There is no memory for a frame.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NoMemory(SqlError);

/// The error for a peer whose frames are no frames or too large, if `error` is one of these.
#[must_use]
pub fn broken_frame(error: &io::Error) -> Option<SqlError> {
    let inner = error.get_ref()?;
    if let Some(NoMemory(error)) = inner.downcast_ref() {
        return Some(error.clone());
    }
    if inner.is::<BadFrame>() {
        return Some(errors::net_uncompress());
    }
    inner.is::<FrameError>().then(errors::packets_out_of_order)
}

impl Compressed {
    /// Over `stream`, of which `early` has been read.
    #[must_use]
    pub fn new(stream: Stream, compression: Compression, early: Vec<u8>, room: Option<Room>) -> Compressed {
        let (raw, ready) = (early, Vec::new());
        Compressed {
            stream,
            compression,
            seq: 0,
            aside: false,
            raw,
            from: 0,
            piece: None,
            ready,
            gone: 0,
            room,
        }
    }

    /// The stream below it.
    #[must_use]
    pub fn under(&self) -> &Stream {
        &self.stream
    }

    /// Frames that come are counted within these limits from now on.
    pub fn limit(&mut self, limits: MemoryLimits) {
        if let Some(room) = &mut self.room {
            room.limits = limits;
        }
    }

    /// The next frame has this number.
    pub fn set_seq(&mut self, seq: u8) {
        self.seq = seq;
    }

    /// From now on the client's frames have numbers of their own: those of a dump's acknowledgements.
    pub fn read_aside(&mut self) {
        self.aside = true;
    }

    /// The next frame, if all of it is here; else how many bytes are missing that are known of.
    fn next_piece(&mut self) -> io::Result<Result<Piece, usize>> {
        let have = &self.raw[self.from..];
        let Some(head) = have.first_chunk::<HEAD>() else { return Ok(Err(HEAD - have.len())) };
        let head = Head::decode(head);
        if head.seq != self.seq && !self.aside {
            return Err(invalid(FrameError::OutOfOrder));
        }
        let Some(payload) = have.get(HEAD..HEAD + head.len) else {
            return Ok(Err(HEAD + head.len - have.len()));
        };
        let piece = Piece::new(head, payload.to_vec(), self.compression.algorithm).map_err(invalid)?;
        self.from += HEAD + head.len;
        if self.from == self.raw.len() {
            // An idle connection keeps nothing.
            (self.raw, self.from) = (Vec::new(), 0);
            if let Some(room) = &mut self.room {
                room.clear();
            }
        }
        if !self.aside {
            self.seq = self.seq.wrapping_add(1);
        }
        Ok(Ok(piece))
    }

    fn poll_more(&mut self, missing: usize, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.from > 0 {
            self.raw.drain(..self.from);
            self.from = 0;
        }
        let before = self.raw.len();
        if let Some(room) = &mut self.room {
            // Its payload is taken out in one piece, which may be looked back on when it is decompressed.
            room.grow_to(COPIES * (before + missing.min(READ))).map_err(|error| invalid(NoMemory(error)))?;
        }
        self.raw.resize(before + missing.min(READ), 0);
        let mut room = ReadBuf::new(&mut self.raw[before..]);
        let polled = Pin::new(&mut self.stream).poll_read(cx, &mut room);
        let count = room.filled().len();
        self.raw.truncate(before + count);
        polled.map_ok(|()| count)
    }

    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.gone < self.ready.len() {
            let count = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.ready[self.gone..]))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.gone += count;
        }
        (self.ready, self.gone) = (Vec::new(), 0);
        Poll::Ready(Ok(()))
    }

    /// One frame at a time waits for the socket.
    fn poll_frame(&mut self, piece: &[u8], cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        let pack = || {
            let mut frame = Vec::new();
            put_frame(&mut frame, piece, self.compression, self.seq);
            frame
        };
        self.ready = if piece.len() < HEAVY { pack() } else { crate::net::blocking(pack) };
        self.seq = self.seq.wrapping_add(1);
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Compressed {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if let Some(piece) = &mut this.piece {
                let count = piece.read(buf.initialize_unfilled()).map_err(invalid)?;
                if count > 0 {
                    buf.advance(count);
                    return Poll::Ready(Ok(()));
                }
                this.piece = None;
            }
            match this.next_piece()? {
                Ok(piece) => this.piece = Some(piece),
                Err(missing) => {
                    if ready!(this.poll_more(missing, cx))? == 0 {
                        return Poll::Ready(Ok(()));
                    }
                }
            }
        }
    }
}

impl AsyncWrite for Compressed {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let piece = &buf[..buf.len().min(LONGEST)];
        ready!(self.get_mut().poll_frame(piece, cx))?;
        Poll::Ready(Ok(piece.len()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_drain(cx))?;
        let mut piece = Vec::new();
        for slice in slices {
            piece.extend_from_slice(&slice[..slice.len().min(LONGEST - piece.len())]);
        }
        ready!(this.poll_frame(&piece, cx))?;
        Poll::Ready(Ok(piece.len()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_drain(cx))?;
        Pin::new(&mut this.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_drain(cx))?;
        Pin::new(&mut this.stream).poll_shutdown(cx)
    }
}
