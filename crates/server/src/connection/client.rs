//! The connection itself: its socket and buffers, its entry in the process list, and how it ends.

use super::host::SessionShared;
use super::replies::Replies;
use super::told::Told;
use crate::dump::RegisteredGuard;
use crate::net::{NetError, PacketStream};
use crate::process::{Process, Watched};
use crate::server::Server;
use crate::status::Counter;
use omnibus_sql::memory::MemoryLimits;
use omnibus_sql::{Floor, SessionState};
use omnibus_wire::Capability;
use std::sync::Arc;

/// See the module.
pub(crate) struct Client {
    pub(super) server: Arc<Server>,
    /// In front of the stream: it goes first.
    _watched: Watched,
    pub(crate) packets: PacketStream,
    pub(crate) process: Arc<Process>,
    pub(crate) replies: Replies,
    /// The changes of the session's state that its replies tell.
    pub(crate) told: Told,
    /// COM_REGISTER_SLAVE: it is in SHOW REPLICAS for as long as this is here.
    pub(crate) registered: Option<RegisteredGuard>,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// COM_QUIT, KILL or shutdown.
    Properly,
    /// The peer vanished, timed out or broke the protocol.
    Aborted,
}

impl Client {
    /// `floor`: what its replies wait for.
    pub(crate) fn new(
        server: Arc<Server>,
        packets: PacketStream,
        process: Arc<Process>,
        floor: Arc<Floor>,
    ) -> Client {
        Client {
            server,
            _watched: process.watch(packets.stream.socket()),
            replies: Replies::new(floor, packets.caps.has(Capability::MULTI_STATEMENTS)),
            packets,
            process,
            told: Told::default(),
            registered: None,
        }
    }

    /// Follows settings that packets depend on; what they take is the session's.
    pub(crate) fn set_up(&mut self, shared: &SessionShared, state: &SessionState) {
        self.packets.timeouts = shared.timeouts();
        self.packets.messages = state.settings.collation_results;
        self.packets.count_with(&state.connection.memory, MemoryLimits::of(&state.settings));
    }

    /// The next command of at most `max` bytes, or nothing if the connection was killed while idle.
    pub(crate) async fn next_command(
        &mut self,
        max: usize,
    ) -> Result<Option<std::ops::Range<usize>>, NetError> {
        let mut read: Option<Result<std::ops::Range<usize>, NetError>> = None;
        loop {
            // A command that came after KILL is not begun.
            if self.process.kill.connection_killed() {
                // One that does not take its reply is not told why, as while it is sent.
                return if self.packets.stream.is_stuck() { Err(NetError::Closed) } else { Ok(None) };
            }
            if let Some(read) = read.take() {
                return read.map(Some);
            }
            tokio::select! {
                biased;
                command = self.packets.read_command(max) => read = Some(command),
                () = self.process.killed.notified() => {}
            }
        }
    }

    /// Sends what was collected, unless the connection is killed: a client that does not read its reply holds nobody who is to go.
    pub(crate) async fn flush(&mut self) -> Result<(), NetError> {
        let process = self.process.clone();
        tokio::select! {
            biased;
            flushed = self.packets.flush() => flushed,
            () = process.interrupted(false) => Err(NetError::Closed),
        }
    }

    /// Tells the client why it is let go, where the protocol lets it read that.
    pub(crate) async fn killed(&mut self) -> Ended {
        if self.process.idle_ended() {
            self.packets.refuse(&crate::errors::inactivity_timeout()).await;
            return Ended::Aborted;
        }
        if self.server.is_stopping() {
            // Without a word, as MySQL: a pool takes a connection that closes for one to open again, while an error that
            // it reads as the answer to its next statement is the statement's failure.
            let _ = self.packets.flush().await;
            return Ended::Properly;
        }
        let error =
            omnibus_sql::SqlError { code: 1927, state: *b"70100", message: "Connection was killed".into() };
        // It answers no command, which is what its number says.
        self.packets.out.set_seq(0);
        self.packets.refuse(&error).await;
        Ended::Properly
    }

    /// Ends a connection that broke, with the error that its protocol still lets it read.
    pub(crate) async fn broken(&mut self, error: &NetError) -> Ended {
        match error {
            NetError::Frame(omnibus_wire::FrameError::TooBig) => {
                self.packets.refuse(&crate::errors::packet_too_large()).await;
            }
            NetError::Frame(_) => self.packets.refuse(&crate::errors::packets_out_of_order()).await,
            NetError::Io(error) => {
                if let Some(answer) = crate::net::broken_frame(error) {
                    self.packets.refuse(&answer).await;
                }
            }
            NetError::NoMemory(error) => self.packets.refuse(error).await,
            NetError::Closed => {}
        }
        tracing::debug!(id = self.process.id, %error, "connection ended");
        Ended::Aborted
    }

    /// Ends the connection without a word: what the client would read next is not what it waits for.
    pub(crate) fn cut(&mut self) {
        self.process.kill.kill_connection();
        self.packets.stream = crate::net::Stream::Gone;
    }

    /// Brings the counters of bytes up to date.
    pub(crate) fn count(&self) {
        let counters = &self.process.counters;
        counters.set(Counter::BytesReceived, self.packets.received);
        counters.set(Counter::BytesSent, self.packets.sent);
    }
}
