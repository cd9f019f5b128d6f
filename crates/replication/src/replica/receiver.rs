//! The receiver thread of a channel: connects to the source, asks for what is not applied yet, checks every event, and
//! puts whole transactions into the queue. It reconnects when the connection is lost.
//!
//! The applier can have it begin again from the applied position ([`Receiver::restart`]); otherwise it continues behind
//! the last transaction that it put into the queue.

mod conversation;

use super::position::SourcePosition;
use super::queue::Queue;
use super::status::{ChannelStatus, ErrorAt, IoRunning, TrxTimes};
use crate::client::{ClientError, DumpStart, Endpoint, Introduction, Remote};
use crate::limit::EventLimit;
use crate::model::TrxHeader;
use omnibus_format::{AnyGtid, GtidPosition, GtidSet};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The settings of a receiver.
#[derive(Clone, Debug)]
pub struct ReceiverSettings {
    /// The source's address and credentials.
    pub endpoint: Endpoint,
    /// The properties of this server that the source is told.
    pub me: Introduction,
    /// The pause between two attempts to connect.
    pub connect_retry: Duration,
    /// The number of attempts before giving up; 0 for no limit.
    pub retry_count: u64,
    /// The number of bytes from which a transaction is passed on in pieces.
    pub piece: usize,
    /// The maximum length of an event.
    pub event_limit: EventLimit,
    /// The name of the channel, for the source's list of connections.
    pub channel: String,
}

/// The position from which to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// A position in the source's files.
    File(SourcePosition),
    /// Behind the transactions that are here already, in MySQL's GTIDs.
    Gtids(GtidSet),
    /// Behind a position of MariaDB's GTIDs.
    Mariadb(GtidPosition),
}

impl Resume {
    fn start(&self) -> DumpStart {
        match self {
            Resume::File(at) => DumpStart::File { file: at.file.to_string(), position: at.position },
            Resume::Gtids(set) => DumpStart::Gtids(set.clone()),
            Resume::Mariadb(position) => DumpStart::MariadbGtids(position.to_string()),
        }
    }

    fn advance(&mut self, gtid: Option<AnyGtid>, end: &SourcePosition) {
        match (self, gtid) {
            (Resume::File(at), _) => *at = end.clone(),
            (Resume::Gtids(set), Some(AnyGtid::Mysql { source, gno })) => set.add(source, gno),
            (Resume::Mariadb(position), Some(AnyGtid::Mariadb(gtid))) => position.set(gtid),
            _ => {}
        }
    }
}

/// Returns the position from which to ask, at the start and after each restart.
pub type ResumeFrom = Box<dyn Fn() -> Result<Resume, ErrorAt> + Send>;

/// An error's number and text.
pub type Refusal = (u16, &'static str);

/// Returns the reason why a transaction with this GTID cannot be taken, if there is one.
pub type Refuses = Box<dyn Fn(Option<AnyGtid>) -> Option<Refusal> + Send>;

/// A running receiver. Dropping it stops it.
pub struct Receiver {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    settings: ReceiverSettings,
    queue: Arc<Queue>,
    status: Arc<ChannelStatus>,
    control: Mutex<Control>,
    wake: Condvar,
    ended: AtomicBool,
}

#[derive(Default)]
struct Control {
    stop: bool,
    restart: bool,
    remote: Option<Remote>,
    /// The source waits for acknowledgements on this connection.
    semi_sync: bool,
}

/// The reason why a connection to the source ended.
enum End {
    /// STOP REPLICA.
    Stop,
    /// It has to begin again from the applied position.
    Restart,
    /// The connection failed.
    Client(ClientError),
    /// An error that a retry does not resolve.
    Fatal(u16, String),
}

impl From<ClientError> for End {
    fn from(error: ClientError) -> End {
        End::Client(error)
    }
}

impl Receiver {
    /// Starts the thread.
    ///
    /// # Errors
    /// The operating system cannot start a thread.
    pub fn start(
        settings: ReceiverSettings,
        queue: Arc<Queue>,
        status: Arc<ChannelStatus>,
        resume: ResumeFrom,
        refuses: Refuses,
    ) -> std::io::Result<Receiver> {
        queue.set_closed(false);
        status.update(|s| {
            s.io = IoRunning::Connecting;
            s.io_state = "Connecting to source";
            s.io_error = ErrorAt::default();
        });
        let shared = Arc::new(Shared {
            settings,
            queue,
            status,
            control: Mutex::default(),
            wake: Condvar::new(),
            ended: AtomicBool::new(false),
        });
        let thread = {
            let shared = shared.clone();
            std::thread::Builder::new()
                .name("replica-io".into())
                .spawn(move || shared.run(&resume, &refuses))?
        };
        Ok(Receiver { shared, thread: Some(thread) })
    }

    /// Returns whether it receives or tries to, and is not ending.
    #[must_use]
    pub fn is_running(&self) -> bool {
        !self.shared.ended.load(Ordering::SeqCst)
    }

    /// Drops the queue's items and asks the source again from the applied position.
    pub fn restart(&self) {
        let mut control = self.shared.control.lock();
        control.restart = true;
        self.shared.queue.clear();
        if let Some(remote) = control.remote.take() {
            remote.stop();
        }
        self.shared.wake.notify_all();
    }

    /// Tells the source that everything up to here is stored safely, if it waits for that.
    pub fn acknowledge(&self, at: &SourcePosition) {
        let control = self.shared.control.lock();
        if let (true, Some(remote)) = (control.semi_sync, &control.remote) {
            // A connection that is lost is the thread's to notice.
            let _ = remote.acknowledge(at.file.as_bytes(), at.position);
        }
    }

    /// Asks the thread to end.
    pub fn end(&self) {
        let mut control = self.shared.control.lock();
        control.stop = true;
        if let Some(remote) = control.remote.take() {
            remote.stop();
        }
        self.shared.queue.set_closed(true);
        self.shared.wake.notify_all();
    }

    /// Ends the thread and waits for its end.
    pub fn stop(&mut self) {
        self.end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The state that a receiver keeps from one connection to the next.
struct Memory {
    resume: Resume,
    epoch: u64,
    uuid: Option<String>,
    attempts: u64,
    /// The transaction that is passed on in pieces.
    open: Option<TrxHeader>,
}

impl Shared {
    fn run(&self, resume: &ResumeFrom, refuses: &Refuses) {
        let ended = self.serve(resume, refuses);
        self.control.lock().remote = None;
        // First, so that whoever sees the error can start it again.
        self.ended.store(true, Ordering::SeqCst);
        if let End::Fatal(code, message) = ended {
            tracing::error!(channel = %self.settings.channel, code, "replication receiver: {message}");
            self.status.io_error(code, message);
        }
        self.status.update(|s| {
            s.io = IoRunning::No;
            s.io_state = "";
            s.queueing = TrxTimes::default();
        });
        self.queue.wake();
    }

    /// Runs connections until `Stop` or `Fatal`.
    fn serve(&self, resume: &ResumeFrom, refuses: &Refuses) -> End {
        let mut memory: Option<Memory> = None;
        loop {
            {
                let mut control = self.control.lock();
                if control.stop {
                    return End::Stop;
                }
                if std::mem::take(&mut control.restart) {
                    memory = None;
                }
            }
            if memory.is_none() {
                let epoch = self.queue.epoch();
                match resume() {
                    Ok(resume) => {
                        if let Resume::Mariadb(position) = &resume {
                            self.status.update(|s| s.read_gtids = position.clone());
                        }
                        memory = Some(Memory { resume, epoch, uuid: None, attempts: 0, open: None })
                    }
                    Err(error) => return End::Fatal(error.code, error.message),
                }
            }
            let Some(known) = memory.as_mut() else { continue };
            match self.session(known, refuses) {
                End::Restart => memory = None,
                End::Client(error) => {
                    if let Some(end) = self.failed(&error, known) {
                        return end;
                    }
                }
                end => return end,
            }
        }
    }

    /// Handles an error: waits, or returns the end if it was the last attempt.
    fn failed(&self, error: &ClientError, memory: &mut Memory) -> Option<End> {
        let control = self.control.lock();
        if control.stop {
            return Some(End::Stop);
        }
        if control.restart {
            return None;
        }
        drop(control);
        let settings = &self.settings;
        if !error.may_pass() {
            let message = match error {
                ClientError::Server { code: 1236, message } => {
                    format!("Got fatal error 1236 from source when reading data from binary log: '{message}'")
                }
                other => other.to_string(),
            };
            return Some(End::Fatal(error.code(), message));
        }
        self.status.update(|s| {
            s.io = IoRunning::Connecting;
            s.io_state = "Reconnecting after a failed source event read";
        });
        if matches!(error, ClientError::Lost(_) | ClientError::Ended) && memory.attempts == 0 {
            // It worked until now: try at once, and count from here.
            tracing::warn!(channel = %settings.channel, "replication receiver: {error}; connecting again");
            memory.attempts = 1;
            return None;
        }
        memory.attempts = memory.attempts.max(1);
        let message = format!(
            "Error connecting to source '{:?}'. This was attempt {}/{}, with a delay of {} seconds between attempts. \
             Message: {error}",
            settings.endpoint,
            memory.attempts,
            settings.retry_count,
            settings.connect_retry.as_secs(),
        );
        tracing::warn!(channel = %settings.channel, code = error.code(), "{message}");
        if settings.retry_count != 0 && memory.attempts >= settings.retry_count {
            return Some(End::Fatal(error.code(), message));
        }
        self.status.io_error(error.code(), message);
        memory.attempts += 1;
        self.pause(settings.connect_retry)
    }

    fn pause(&self, time: Duration) -> Option<End> {
        let until = Instant::now() + time;
        let mut control = self.control.lock();
        while !control.stop && !control.restart {
            if self.wake.wait_until(&mut control, until).timed_out() {
                break;
            }
        }
        control.stop.then_some(End::Stop)
    }

    /// Gives the connection's handle to the threads that may stop it, unless it has been stopped already.
    fn expose(&self, remote: Remote, semi_sync: bool) {
        let mut control = self.control.lock();
        if control.stop || control.restart {
            remote.stop();
        }
        control.semi_sync = semi_sync;
        control.remote = Some(remote);
    }
}
