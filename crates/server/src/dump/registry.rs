//! Registered replicas, and the receivers of the log. Shared by all sessions; touched when one comes or goes.

use super::semi_sync::SemiSync;
use crate::process::Process;
use omnibus_log::LogHandle;
use omnibus_replication::source::{Hub, Registration};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit, watch};

/// The shared tail wakes its followers no more often than this, unless commits wait for them.
const PACE: Duration = Duration::from_millis(1);

/// How many dumps may block a thread of the runtime at once: far fewer than it has, and enough for any disk.
const TURNS: usize = 32;

/// A client that registered as a replica.
#[derive(Clone, Debug)]
pub struct Replica {
    /// The description it registered with.
    pub registration: Registration,
    /// Its UUID, if it told one.
    pub uuid: String,
}

/// A running dump.
#[derive(Debug)]
struct Dump {
    process: Arc<Process>,
    server_id: u32,
    uuid: String,
    replaced: Arc<AtomicBool>,
}

impl Dump {
    /// Two dumps with the same identity are one replica that came back. By UUID where there is one, because people
    /// copy configurations with their server ids.
    fn is(&self, server_id: u32, uuid: &str) -> bool {
        if uuid.is_empty() && self.uuid.is_empty() {
            self.server_id == server_id && server_id != 0
        } else {
            self.uuid == uuid
        }
    }
}

#[derive(Debug, Default)]
struct Registered {
    /// By connection.
    replicas: BTreeMap<u32, Replica>,
    dumps: BTreeMap<u32, Dump>,
}

/// The shared tail and what wakes those who follow it: alive as long as one dump is, so that commits look for nobody
/// otherwise.
#[derive(Debug)]
pub struct Tail {
    hub: Arc<Hub>,
    fed: watch::Sender<()>,
    stop: Arc<AtomicBool>,
}

impl Tail {
    fn start(log: &LogHandle, semi_sync: Arc<SemiSync>) -> std::io::Result<Tail> {
        let tail = Tail { hub: Arc::default(), fed: watch::Sender::new(()), stop: Arc::default() };
        let (hub, fed, stop, log) = (tail.hub.clone(), tail.fed.clone(), tail.stop.clone(), log.clone());
        let feed = move || {
            let pace = || if semi_sync.is_enabled() { Duration::ZERO } else { PACE };
            hub.feed(&log, || stop.load(Ordering::SeqCst), pace, || fed.send_modify(|()| ()));
        };
        std::thread::Builder::new().name("dump-feed".into()).spawn(feed)?;
        Ok(tail)
    }

    /// The newest blocks.
    #[must_use]
    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Changes whenever there is more.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.fed.subscribe()
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        // Its thread ends by itself, soon.
        self.stop.store(true, Ordering::SeqCst);
    }
}

/// See the module.
#[derive(Debug)]
pub struct Dumps {
    state: Arc<Mutex<Registered>>,
    tail: Mutex<Weak<Tail>>,
    own_reads: AtomicU64,
    turns: Semaphore,
    /// Commits that wait for replicas.
    pub semi_sync: Arc<SemiSync>,
}

impl Default for Dumps {
    fn default() -> Dumps {
        Dumps {
            state: Arc::default(),
            tail: Mutex::default(),
            own_reads: AtomicU64::default(),
            turns: Semaphore::new(TURNS),
            semi_sync: Arc::default(),
        }
    }
}

impl Dumps {
    /// Those who registered, by `server_id`.
    #[must_use]
    pub fn replicas(&self) -> Vec<Replica> {
        let mut list: Vec<_> = self.state.lock().replicas.values().cloned().collect();
        list.sort_by_key(|replica| replica.registration.server_id);
        list
    }

    /// How many are registered.
    #[must_use]
    pub fn registered(&self) -> usize {
        self.state.lock().replicas.len()
    }

    /// How many dumps run.
    #[must_use]
    pub fn running(&self) -> usize {
        self.state.lock().dumps.len()
    }

    /// Registers a connection as a replica, until the guard goes.
    #[must_use]
    pub fn register(&self, connection: u32, replica: Replica) -> RegisteredGuard {
        self.state.lock().replicas.insert(connection, replica);
        RegisteredGuard { state: self.state.clone(), connection }
    }

    /// A dump begins: one with the same identity ends. The flag tells the new one that it is replaced in its turn.
    pub(crate) fn begin(&self, process: &Arc<Process>, server_id: u32, uuid: &str) -> DumpGuard {
        let replaced = Arc::new(AtomicBool::new(false));
        let dump =
            Dump { process: process.clone(), server_id, uuid: uuid.to_owned(), replaced: replaced.clone() };
        let mut state = self.state.lock();
        for other in state.dumps.values().filter(|other| other.is(server_id, uuid)) {
            tracing::info!(
                old = other.process.id,
                new = process.id,
                server_id,
                uuid,
                "a replica connected anew; its earlier dump ends"
            );
            other.replaced.store(true, Ordering::SeqCst);
            other.process.kill_query();
        }
        state.dumps.insert(process.id, dump);
        DumpGuard { state: self.state.clone(), connection: process.id, replaced }
    }

    /// The shared tail.
    ///
    /// # Errors
    /// Its thread could not be started.
    pub(crate) fn tail(&self, log: &LogHandle) -> std::io::Result<Arc<Tail>> {
        let mut shared = self.tail.lock();
        if let Some(tail) = shared.upgrade() {
            return Ok(tail);
        }
        let tail = Arc::new(Tail::start(log, self.semi_sync.clone())?);
        *shared = Arc::downgrade(&tail);
        Ok(tail)
    }

    /// Waits until this dump may block a thread; first come, first served.
    pub(crate) async fn turn_to_block(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.acquire().await.ok()
    }

    /// A dump has read a block from a file itself.
    pub(crate) fn count_own_read(&self) {
        self.own_reads.fetch_add(1, Ordering::Relaxed);
    }

    /// Lines for SHOW STATUS.
    #[must_use]
    pub fn status(&self) -> Vec<(String, String)> {
        let hub = self.tail.lock().upgrade().map(|tail| tail.hub.clone());
        let (reads, bytes) = hub.map_or((0, 0), |hub| (hub.reads(), hub.bytes()));
        [
            ("Replicas_connected", self.registered() as u64),
            ("Slaves_connected", self.registered() as u64),
            ("Binlog_dump_connections", self.running() as u64),
            ("Binlog_dump_tail_reads", reads),
            ("Binlog_dump_tail_bytes", bytes as u64),
            ("Binlog_dump_file_reads", self.own_reads.load(Ordering::Relaxed)),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_string()))
        .into()
    }
}

/// A registered replica, until it is dropped.
#[derive(Debug)]
pub struct RegisteredGuard {
    state: Arc<Mutex<Registered>>,
    connection: u32,
}

impl Drop for RegisteredGuard {
    fn drop(&mut self) {
        self.state.lock().replicas.remove(&self.connection);
    }
}

/// A running dump, until it is dropped.
#[derive(Debug)]
pub(crate) struct DumpGuard {
    state: Arc<Mutex<Registered>>,
    connection: u32,
    replaced: Arc<AtomicBool>,
}

impl DumpGuard {
    /// Whether another dump of the same replica has begun.
    pub(crate) fn is_replaced(&self) -> bool {
        self.replaced.load(Ordering::SeqCst)
    }
}

impl Drop for DumpGuard {
    fn drop(&mut self) {
        self.state.lock().dumps.remove(&self.connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Processes;

    #[test]
    fn a_replica_that_comes_back_ends_its_earlier_dump_and_no_other() {
        let (processes, dumps) = (Processes::default(), Dumps::default());
        let connections = [(); 5].map(|()| processes.register());
        let first = dumps.begin(&connections[0], 7, "a");
        let other = dumps.begin(&connections[1], 7, "b");
        let plain = dumps.begin(&connections[2], 8, "");
        assert!(!first.is_replaced() && !other.is_replaced(), "same server id, but other UUIDs");
        let again = dumps.begin(&connections[3], 9, "a");
        assert!(first.is_replaced() && !again.is_replaced() && !other.is_replaced());
        let _same_id = dumps.begin(&connections[4], 8, "");
        assert!(plain.is_replaced() && connections[2].kill.check().is_err());
        drop(first);
        assert_eq!(dumps.running(), 4);
    }

    #[test]
    fn tools_without_an_id_do_not_end_each_other() {
        let (processes, dumps) = (Processes::default(), Dumps::default());
        let first = dumps.begin(&processes.register(), 0, "");
        let _second = dumps.begin(&processes.register(), 0, "");
        assert!(!first.is_replaced());
    }
}
