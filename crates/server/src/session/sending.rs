//! A dump under way: from where it begins to the log's end, and on from there for as long as the client stays.
//!
//! Behind the shared tail it reads files on its own thread, which may block (`catch_up`): one read and one write of a quarter of
//! a mebibyte each, through one buffer, so that the bytes are still in the processor's cache when they are sent. A client
//! that does not take them within `PATIENCE` takes the thread no longer: the rest goes out without one, and then on. Within
//! the tail it is a task that waits without a thread. Either way it holds one block at most, however slow the client.

use super::dumping::{Dump, End, open, read_error};
use crate::dump::{DumpGuard, SemiSyncGuard, Tail};
use crate::net::{NetError, PacketStream, Twin, send_rest};
use crate::process::Stage;
use omnibus_log::{FileNames, FilePin, FileSeq, LogHandle, LogPosition};
use omnibus_replication::source::stream::SEMI_SYNC_MAGIC;
use omnibus_replication::source::{
    Block, BlockReader, BlockStep, DumpRequest, Found, Peer, SourceError, Stream, Unsent,
};
use omnibus_wire::OutBuf;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::time::{Duration, Instant};

/// How much of a file is read at once: two such buffers fit into a core's cache.
const READ_BYTES: usize = 256 << 10;
/// How many reads it is until another dump may have the thread.
const TURN: usize = 64;
/// The bytes that are collected before they are sent, if there are more.
const SEND_BYTES: usize = 256 << 10;
/// How long a client may keep the thread that reads files for it.
const PATIENCE: Duration = Duration::from_millis(100);
/// More than any padding between transactions.
const NEAR: u64 = 64 << 10;
/// The bytes that a client may send while it is sent the log: acknowledgements.
const MAX_ASIDE: usize = 4096;
/// With heartbeats off.
const LONG: Duration = Duration::from_secs(24 * 3600);

/// See the module.
pub(super) struct Sending<'a> {
    pub(super) request: &'a DumpRequest,
    pub(super) guard: &'a DumpGuard,
    pub(super) log: LogHandle,
    pub(super) stream: Stream,
    /// Whether what is read from files is verified; if not, long events come in pieces.
    pub(super) verify: bool,
    /// There while this dump reads files by itself.
    pub(super) reader: Option<BlockReader>,
    /// Of the file that the stream is in (PURGE-1).
    pub(super) pin: FilePin,
    pub(super) tail: Arc<Tail>,
    pub(super) waiting: Waiting,
    pub(super) acks: Option<Acknowledging>,
}

/// How reading files ended.
enum CaughtUp {
    /// Others may want the thread.
    TurnIsOver,
    /// The following events are in the shared tail.
    InMemory,
    /// Everything durable was read.
    AtEnd,
    /// The client does not take what was read: that, how much of all that is to be sent is, and what is wrong behind it.
    Stuck(Block, usize, Result<(), SourceError>),
}

/// The reason why a waiting dump was woken.
enum Woken {
    More,
    Heartbeat,
    Kill,
    /// The replica has everything before a position, if it names one of a file that is known.
    Acknowledged(Option<LogPosition>),
}

impl Sending<'_> {
    fn next_file(&mut self, file: FileSeq, out: &mut OutBuf) -> Result<(), End> {
        // The new pin before the old one goes.
        self.pin = FilePin::new(&self.log, file).map_err(|error| read_error(&self.log, &error))?;
        self.stream.next_file(file, out);
        Ok(())
    }

    /// Positions are used again when the log begins anew: what was just found may not be what is meant.
    fn check_reset(&self) -> Result<(), End> {
        match self.pin.is_stale() {
            true => Err(SourceError::Reset(self.stream.file_name()).into()),
            false => Ok(()),
        }
    }

    /// Whether its next events are in memory. A dump that ends with the log must not end where the feeder happens to be.
    fn is_in_memory(&self) -> bool {
        !self.request.ends_at_end()
            && !self.stream.is_inside()
            && !matches!(self.tail.hub().find(self.stream.position()), Found::Elsewhere)
    }

    /// Whether to send before there is more.
    fn has_enough(&self, out: &OutBuf) -> bool {
        !self.stream.parts().is_empty() || out.bytes().len() >= SEND_BYTES
    }

    /// Has the replica acknowledge what is about to be sent, if that may be the last there is for it: what follows so
    /// closely may be padding that it does not get.
    fn ask(&mut self, packets: &mut PacketStream) {
        let Some(acks) = &mut self.acks else { return };
        let (at, end) = (self.stream.position(), self.log.durable_end().get());
        if at.file == end.file && end.offset.0.saturating_sub(at.offset.0) <= NEAR {
            acks.at_end(&mut self.stream, packets);
        }
    }

    /// All that was collected has been sent.
    fn sent(&mut self) {
        self.stream.sent();
        self.waiting.sent();
    }
}

impl Dump<'_> {
    pub(super) async fn send_log(
        &mut self,
        mut sending: Sending<'_>,
    ) -> Result<std::convert::Infallible, End> {
        match self.send_on(&mut sending).await {
            // Nothing can be said in the middle of a packet.
            Err(End::Source(error)) if sending.stream.is_inside() => {
                tracing::warn!(connection = self.client.process.id, %error, "sending the binary log broke off inside an event");
                Err(End::Gone)
            }
            // What is before a damaged place is the client's, at its own speed.
            Err(End::Source(error)) => {
                self.flush_unless_killed(&mut sending, &[], 0).await?;
                Err(End::Source(error))
            }
            end => end,
        }
    }

    async fn send_on(&mut self, s: &mut Sending<'_>) -> Result<std::convert::Infallible, End> {
        loop {
            self.check_end(s)?;
            s.waiting.see();
            self.client.process.stage(Stage::SendingEvents);
            if s.reader.is_some() {
                let (server, process) = (self.server.clone(), self.client.process.clone());
                let turn = unless_killed(&process, server.dumps.turn_to_block()).await?;
                let limit = self.client.packets.timeouts.write;
                let sent = send_rest(&mut self.client.packets.stream, limit);
                unless_killed(&process, sent).await?.map_err(NetError::from)?;
                let caught_up = crate::net::blocking(|| self.catch_up(s))?;
                drop(turn);
                match caught_up {
                    CaughtUp::TurnIsOver => {}
                    CaughtUp::InMemory => s.reader = None,
                    CaughtUp::AtEnd => self.at_end(s).await?,
                    CaughtUp::Stuck(block, done, then) => {
                        self.flush_unless_killed(s, block.bytes(), done).await?;
                        then?;
                        if let Some(reader) = &mut s.reader {
                            reader.give_back(block);
                        }
                    }
                }
                continue;
            }
            let found = s.tail.hub().find(s.stream.position());
            s.check_reset()?;
            match found {
                Found::Block(block) => {
                    let fine = s.stream.block(&block, &mut self.client.packets.out);
                    if s.has_enough(&self.client.packets.out) {
                        s.ask(&mut self.client.packets);
                        self.flush_unless_killed(s, block.bytes(), 0).await?;
                    }
                    fine?;
                }
                Found::NextFile(file) => s.next_file(file, &mut self.client.packets.out)?,
                Found::Elsewhere => s.reader = Some(open(&s.log, s.stream.position(), s.verify).await?.0),
                Found::AtEnd => self.at_end(s).await?,
            }
        }
    }

    /// Sends what is in files. For a thread that may block.
    fn catch_up(&mut self, s: &mut Sending<'_>) -> Result<CaughtUp, End> {
        let mut twin = Twin::of(&mut self.client.packets.stream, PATIENCE).map_err(NetError::from)?;
        for _ in 0..TURN {
            self.check_end(s)?;
            if s.is_in_memory() {
                return Ok(CaughtUp::InMemory);
            }
            let Some(reader) = &mut s.reader else { return Ok(CaughtUp::InMemory) };
            self.server.dumps.count_own_read();
            let step = reader.next(READ_BYTES).map_err(|error| read_error(&s.log, &error))?;
            s.check_reset()?;
            match step {
                BlockStep::Block(block) => {
                    let then = s.stream.block(&block, &mut self.client.packets.out);
                    if s.has_enough(&self.client.packets.out) {
                        s.ask(&mut self.client.packets);
                        if let Some(done) = self.write_blocking(twin.as_mut(), s, &block)? {
                            return Ok(CaughtUp::Stuck(block, done, then));
                        }
                        s.sent();
                    }
                    then?;
                    if let Some(reader) = &mut s.reader {
                        reader.give_back(block);
                    }
                }
                BlockStep::NextFile(file) => s.next_file(file, &mut self.client.packets.out)?,
                BlockStep::CaughtUp => return Ok(CaughtUp::AtEnd),
            }
        }
        Ok(CaughtUp::TurnIsOver)
    }

    /// Sends what was collected. `Some` of what was sent if the client does not take all.
    fn write_blocking(
        &mut self,
        twin: Option<&mut Twin>,
        s: &Sending<'_>,
        block: &Block,
    ) -> Result<Option<usize>, End> {
        // An encrypted connection has none.
        let Some(twin) = twin else { return Ok(Some(0)) };
        let (own, parts) = (self.client.packets.out.bytes(), s.stream.parts());
        let mut unsent = Unsent { own, parts, block: block.bytes(), done: 0 };
        while let slices = unsent.slices()
            && !slices.is_empty()
        {
            match twin.write(&slices).map_err(NetError::from)? {
                Some(count) => unsent.done += count,
                None => break,
            }
        }
        let (done, all) = (unsent.done, unsent.len());
        self.client.packets.sent += done as u64;
        if done < all {
            return Ok(Some(done));
        }
        self.client.packets.collected_is_sent();
        Ok(None)
    }

    /// Everything durable was collected: sends it, and waits for more.
    async fn at_end(&mut self, s: &mut Sending<'_>) -> Result<(), End> {
        s.stream.settle(&mut self.client.packets.out);
        let is_over = s.request.ends_at_end() || s.stream.until_reached(&mut self.client.packets.out);
        if let Some(acks) = &mut s.acks {
            acks.at_end(&mut s.stream, &mut self.client.packets);
        }
        if !self.client.packets.out.is_empty() {
            self.flush_unless_killed(s, &[], 0).await?;
        }
        if is_over {
            return Err(End::Eof);
        }
        self.client.process.stage(Stage::WaitingForEvents);
        // One large event must not be paid for as long as the client is here.
        self.client.packets.out.shrink();
        match self.wait(&mut s.waiting, s.log.names()).await? {
            Woken::Heartbeat => {
                s.stream.heartbeat(&mut self.client.packets.out);
                self.flush_unless_killed(s, &[], 0).await?;
            }
            Woken::Acknowledged(at) => s.acks.iter_mut().for_each(|acks| acks.acknowledged(at)),
            Woken::More | Woken::Kill => {}
        }
        Ok(())
    }

    fn check_end(&self, s: &Sending<'_>) -> Result<(), End> {
        if self.client.process.kill.check().is_ok() {
            return Ok(());
        }
        if s.guard.is_replaced() && !self.client.process.kill.connection_killed() {
            let (file, position) = (s.stream.file_name(), s.stream.position().offset.0);
            return Err(SourceError::Replaced { file, position }.into());
        }
        Err(End::Killed)
    }

    /// Sends what was collected, of which `done` bytes are sent. A client that does not read must not keep a KILL waiting.
    async fn flush_unless_killed(
        &mut self,
        s: &mut Sending<'_>,
        block: &[u8],
        done: usize,
    ) -> Result<(), End> {
        let process = self.client.process.clone();
        unless_killed(&process, self.client.packets.flush_with(s.stream.parts(), block, done)).await??;
        s.sent();
        Ok(())
    }

    async fn wait(&mut self, waiting: &mut Waiting, names: &FileNames) -> Result<Woken, End> {
        let process = self.client.process.clone();
        let woken = tokio::select! {
            _ = waiting.moved.changed() => Woken::More,
            () = tokio::time::sleep_until(waiting.heartbeat_at) => Woken::Heartbeat,
            () = killed(&process) => Woken::Kill,
            read = self.client.packets.read_aside(MAX_ASIDE) => match read {
                Ok(range) => match self.client.packets.payload(range) {
                    [SEMI_SYNC_MAGIC, at @ ..] => Woken::Acknowledged(position_of(at, names)),
                    // COM_QUIT, or anything else that is no acknowledgement.
                    _ => return Err(End::Gone),
                },
                Err(_) => return Err(End::Gone),
            },
        };
        Ok(woken)
    }
}

async fn unless_killed<R>(
    process: &crate::process::Process,
    work: impl Future<Output = R>,
) -> Result<R, End> {
    tokio::select! {
        biased;
        done = work => Ok(done),
        () = killed(process) => Err(End::Gone),
    }
}

async fn killed(process: &crate::process::Process) {
    while process.kill.check().is_ok() {
        process.killed.notified().await;
    }
}

/// An acknowledgement without its first byte: the position, 8 bytes little-endian, and the file's name.
fn position_of(packet: &[u8], names: &FileNames) -> Option<LogPosition> {
    let (position, name) = packet.split_first_chunk::<8>()?;
    let file = names.parse(std::str::from_utf8(name).ok()?.trim_end_matches('\0'))?;
    Some(LogPosition::new(file, u64::from_le_bytes(*position)))
}

/// The requests to a semi-synchronous replica that it has not answered yet. It answers in order, and need not answer each: one
/// that applies by the batch has one answer for all of it, which names where it is.
pub(super) struct Acknowledging {
    guard: SemiSyncGuard,
    asked: VecDeque<Asked>,
    /// All of the log up to here was asked for, or had nothing to send.
    up_to: Option<LogPosition>,
}

/// One question.
struct Asked {
    /// The least position that an answer to it names.
    answer: LogPosition,
    /// The position that the replica then has: nothing that it gets lies between.
    has: LogPosition,
    since: Instant,
}

impl Acknowledging {
    pub(super) fn new(guard: SemiSyncGuard) -> Acknowledging {
        Acknowledging { guard, asked: VecDeque::new(), up_to: None }
    }

    /// Everything up to the stream's position is sent, or is about to be with what is collected.
    fn at_end(&mut self, stream: &mut Stream, packets: &mut PacketStream) {
        let position = stream.position();
        if self.up_to == Some(position) || !self.guard.is_wanted() {
            return;
        }
        self.up_to = Some(position);
        if let Some(answer) = stream.ask(&mut packets.out) {
            packets.numbers_restart();
            self.asked.push_back(Asked { answer, has: position, since: Instant::now() });
        } else if let Some(asked) = self.asked.back_mut() {
            // What came since is nothing that the replica gets.
            asked.has = position;
        } else {
            self.guard.acknowledged(position, None);
        }
    }

    /// Answers all that the position is behind, and the first in any case: each answer is one to something.
    fn acknowledged(&mut self, at: Option<LogPosition>) {
        let behind = self.asked.iter().take_while(|asked| at.is_some_and(|at| asked.answer <= at)).count();
        if let Some(last) = self.asked.drain(..behind.max(1).min(self.asked.len())).next_back() {
            self.guard.acknowledged(last.has, Some(last.since.elapsed()));
        }
    }
}

/// When to wake.
pub(super) struct Waiting {
    moved: tokio::sync::watch::Receiver<()>,
    period: Duration,
    heartbeat_at: Instant,
}

impl Waiting {
    pub(super) fn new(tail: &Arc<Tail>, peer: &Peer) -> Waiting {
        let period = peer.heartbeat.unwrap_or(LONG).min(LONG);
        let heartbeat_at = Instant::now() + period;
        Waiting { moved: tail.subscribe(), period, heartbeat_at }
    }

    /// The durable end is about to be read: what moved it until now is no news.
    fn see(&mut self) {
        self.moved.borrow_and_update();
    }

    /// Something was sent: the client knows that we are here.
    fn sent(&mut self) {
        self.heartbeat_at = Instant::now() + self.period;
    }
}
