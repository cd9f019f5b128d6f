//! Packets over a stream: reads whole packets, collects a reply and sends it in one write.
//!
//! Owned by one connection task. When nothing is pending the buffers are given back, so an idle
//! connection costs little.

use super::room::Room;
use super::stream::Stream;
use omnibus_replication::source::{Parts, Unsent};
use omnibus_sql::memory::{MemoryLimits, SessionMemory};
use omnibus_wire::compressed::Compression;
use omnibus_wire::{Capability, ErrPacket, FrameError, InBuf, OutBuf};
use std::future::{Future, poll_fn};
use std::io;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Why the connection cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The peer closed its end.
    #[error("connection closed by the client")]
    Closed,
    /// The socket failed.
    #[error("connection failed: {0}")]
    Io(#[from] io::Error),
    /// The peer broke the framing.
    #[error("{0}")]
    Frame(#[from] FrameError),
    /// There is no memory for the packet that is coming.
    #[error("{0}")]
    NoMemory(omnibus_sql::SqlError),
}

/// Writes everything. Nearly always the socket takes it at once, and no timer is made.
pub async fn send(stream: &mut Stream, bytes: &[u8], limit: Duration) -> io::Result<()> {
    let write = async {
        stream.write_all(bytes).await?;
        if stream.keeps_back() { stream.flush().await } else { Ok(()) }
    };
    in_time(limit, write).await
}

/// Sends what was left to the end of a turn and is still here (NET-2).
pub async fn send_rest(stream: &mut Stream, limit: Duration) -> io::Result<()> {
    in_time(limit, stream.flush()).await
}

/// A timer only for what does not happen at once.
async fn in_time<T>(limit: Duration, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let mut work = pin!(work);
    let first = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
    if let Poll::Ready(done) = first {
        return done;
    }
    tokio::time::timeout(limit, work).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

/// Bytes that come; nothing if the peer has to take a reply first.
async fn come(stream: &mut Stream, to: &mut Vec<u8>) -> io::Result<Option<usize>> {
    poll_fn(|context| {
        if stream.is_stuck() {
            return Poll::Ready(Ok(None));
        }
        pin!(stream.read_buf(to)).poll(context).map_ok(Some)
    })
    .await
}

/// One connection's packets.
#[derive(Debug)]
pub struct PacketStream {
    /// The bytes below.
    pub stream: Stream,
    /// The reply being built.
    pub out: OutBuf,
    /// The collation whose character set error messages are sent in; 0: as they are.
    pub messages: u16,
    /// The capabilities of both sides; none before the login.
    pub caps: Capability,
    input: InBuf,
    seq: u8,
    /// Bytes received since start.
    pub received: u64,
    /// Bytes sent since start.
    pub sent: u64,
    /// Where the packet that comes is counted; nowhere before the login, where packets are short.
    incoming: Option<Room>,
    /// Where the reply is.
    pub outgoing: Option<Room>,
    /// The number that compressed frames begin again with behind what is sent next.
    restart: Option<u8>,
    /// How long the peer may keep it waiting.
    pub timeouts: Timeouts,
}

/// How long a peer may keep a connection waiting.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// `net_read_timeout`: the rest of a packet, until it goes on.
    pub read: Duration,
    /// `net_write_timeout`: a reply, until it is read.
    pub write: Duration,
}

impl PacketStream {
    /// Over a fresh connection.
    #[must_use]
    pub fn new(stream: Stream) -> PacketStream {
        PacketStream {
            stream,
            out: OutBuf::new(),
            messages: 0,
            caps: Capability::default(),
            input: InBuf::new(),
            seq: 0,
            received: 0,
            sent: 0,
            incoming: None,
            outgoing: None,
            restart: None,
            timeouts: Timeouts { read: Duration::from_secs(30), write: Duration::from_secs(60) },
        }
    }

    /// Counts large buffers with a session's memory from now on, within its present limits.
    pub fn count_with(&mut self, memory: &Arc<SessionMemory>, limits: MemoryLimits) {
        for room in [&mut self.incoming, &mut self.outgoing] {
            room.get_or_insert_with(|| Room::new(memory, limits)).limits = limits;
        }
        if let Some(compressed) = self.stream.compressed() {
            compressed.limit(limits);
        }
    }

    /// Asks for what reading on takes: the buffer grows by doubling.
    fn ask_to_read(&mut self, more: usize) -> Result<(), NetError> {
        let Some(room) = &mut self.incoming else { return Ok(()) };
        room.grow_to(self.input.memory_with(more)).map_err(NetError::NoMemory)
    }

    /// Reads the next packet of the running exchange and says where it is (`payload`). Replies go on
    /// with its numbering. Cancel-safe: bytes read stay in the buffer.
    pub async fn read(&mut self, max: usize) -> Result<Range<usize>, NetError> {
        loop {
            let mut seq = self.seq;
            // Packets in compressed frames are not told apart by their own numbers, which clients count in various ways.
            if self.stream.compressed().is_some() {
                seq = self.input.front_seq().unwrap_or(seq);
            }
            if let Some(range) = self.input.next_packet(&mut seq, max)? {
                self.seq = seq;
                self.out.set_seq(seq);
                return Ok(range);
            }
            let room = self.input.wanted();
            self.ask_to_read(room)?;
            let begun = self.input.pending() > 0;
            let read = come(&mut self.stream, self.input.writable(room));
            // What has come of a packet takes memory, which nobody has for as long as he likes.
            let n = if begun { in_time(self.timeouts.read, read).await? } else { read.await? };
            let Some(n) = n else {
                send_rest(&mut self.stream, self.timeouts.write).await?;
                continue;
            };
            if n == 0 {
                return Err(NetError::Closed);
            }
            self.received += n as u64;
        }
    }

    /// Reads a command: numbering starts at 0 again.
    pub async fn read_command(&mut self, max: usize) -> Result<Range<usize>, NetError> {
        self.seq = 0;
        if self.input.pending() == 0
            && let Some(compressed) = self.stream.compressed()
        {
            compressed.set_seq(0);
        }
        self.read(max).await
    }

    /// Reads a packet that the client sends while it is being sent something, such as an acknowledgement: its numbering
    /// starts at 0 and ours is left alone. Cancel-safe.
    pub async fn read_aside(&mut self, max: usize) -> Result<Range<usize>, NetError> {
        if let Some(compressed) = self.stream.compressed() {
            compressed.read_aside();
        }
        loop {
            if let Some(range) = self.input.next_packet(&mut 0, max)? {
                return Ok(range);
            }
            let room = self.input.wanted();
            let Some(n) = come(&mut self.stream, self.input.writable(room)).await? else {
                send_rest(&mut self.stream, self.timeouts.write).await?;
                continue;
            };
            if n == 0 {
                return Err(NetError::Closed);
            }
            self.received += n as u64;
        }
    }

    /// The packet that was read last.
    #[must_use]
    pub fn payload(&self, range: Range<usize>) -> &[u8] {
        self.input.payload(range)
    }

    /// Bytes of the next command are here already.
    #[must_use]
    pub fn has_pending(&self) -> bool {
        self.input.pending() > 0
    }

    /// Bytes read past the packet just taken, for the TLS layer.
    pub fn take_early(&mut self) -> Vec<u8> {
        self.input.take_pending()
    }

    /// Compresses both directions from here on.
    pub fn compress(&mut self, compression: Compression) {
        let early = self.input.take_pending();
        self.stream.compress(compression, early, self.incoming.as_ref().map(Room::another));
    }

    /// The client begins to count anew behind what has been collected: the packets' numbers are in there already.
    pub fn numbers_restart(&mut self) {
        self.restart = Some(self.out.seq());
    }

    /// Sends what was collected.
    pub async fn flush(&mut self) -> Result<(), NetError> {
        if !self.out.is_empty() {
            self.sent += self.out.bytes().len() as u64;
            let (stream, bytes) = (&mut self.stream, self.out.bytes());
            if !poll_fn(|cx| Poll::Ready(stream.post(cx, bytes))).await {
                send(stream, bytes, self.timeouts.write).await?;
            }
            self.out.sent();
        }
        if let Some(room) = self.outgoing.as_mut().filter(|room| room.is_taken()) {
            self.out.shrink();
            room.clear();
        }
        self.seq = self.out.seq();
        Ok(())
    }

    /// Sends what was collected, with `parts` of a block in between. `done` of its bytes have been sent already.
    pub async fn flush_with(&mut self, parts: &Parts, block: &[u8], done: usize) -> Result<(), NetError> {
        let mut unsent = Unsent { own: self.out.bytes(), parts, block, done };
        self.sent += (unsent.len() - done) as u64;
        let stream = &mut self.stream;
        let write = async {
            while let slices = unsent.slices()
                && !slices.is_empty()
            {
                match stream.write_vectored(&slices).await? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    count => unsent.done += count,
                }
            }
            if stream.keeps_back() { stream.flush().await } else { Ok(()) }
        };
        in_time(self.timeouts.write, write).await?;
        self.collected_is_sent();
        Ok(())
    }

    /// Drops the collected bytes, which have been sent by other means.
    pub fn collected_is_sent(&mut self) {
        if let (Some(seq), Some(compressed)) = (self.restart.take(), self.stream.compressed()) {
            compressed.set_seq(seq);
        }
        self.out.sent();
        self.seq = self.out.seq();
    }

    /// Gives large buffers back; call before waiting for a command.
    pub fn shrink(&mut self) {
        self.input.shrink();
        self.out.shrink();
        for room in [&mut self.incoming, &mut self.outgoing].into_iter().flatten() {
            room.clear();
        }
    }

    /// Adds an error packet.
    pub fn error(&mut self, error: &omnibus_sql::SqlError) {
        let message = omnibus_sql::api::client_text::message(&error.message, self.messages);
        let packet = ErrPacket { code: error.code, state: error.state, message: message.into_owned().into() };
        let caps = self.caps;
        self.out.packet(|out| packet.encode(out, caps));
    }

    /// Says goodbye with an error; failures to do so do not matter.
    pub async fn refuse(&mut self, error: &omnibus_sql::SqlError) {
        self.error(error);
        self.close().await;
    }

    /// Sends what was collected and ends the connection; failures to do so do not matter.
    pub async fn close(&mut self) {
        if self.flush().await.is_ok() && send_rest(&mut self.stream, self.timeouts.write).await.is_ok() {
            let _ = self.stream.shutdown().await;
        }
    }
}
