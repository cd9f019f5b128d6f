//! The table of connections: what SHOW PROCESSLIST lists and KILL reaches.
//!
//! Threads that receive and apply for replication have entries, too. Each connection owns its entry and writes it without
//! contention; readers look at it rarely.

mod activity;
mod client;

use activity::stage_text;
pub use activity::{Activity, Stage, state_in};
pub(crate) use client::Watched;

use omnibus_disk::FullDisk;
use omnibus_format::Dialect;
use omnibus_sql::memory::SessionMemory;
use omnibus_sql::{KillFlag, Progress, Progressed, SessionWatch};
use parking_lot::Mutex;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;

/// Texts that change rarely.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// Name the client gave.
    pub user: String,
    /// `user@host` of the account that it logged in to.
    pub account: String,
    /// Host and, for TCP, port.
    pub host: String,
    /// Default database.
    pub db: Option<Arc<str>>,
    /// The client's description of itself.
    pub attributes: Attributes,
}

/// Connection attributes, name and value, in the order of the login.
pub type Attributes = Arc<[(String, String)]>;

/// As many of them as fit into `most` bytes.
#[must_use]
pub fn kept_attributes(given: &[(Vec<u8>, Vec<u8>)], most: usize) -> Attributes {
    let mut left = most;
    let fits = |(name, value): &&(Vec<u8>, Vec<u8>)| {
        let rest = left.checked_sub(name.len() + value.len());
        rest.map(|rest| left = rest).is_some()
    };
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    given.iter().take_while(fits).map(|(name, value)| (text(name), text(value))).collect()
}

/// One connection.
pub struct Process {
    /// Connection id.
    pub id: u32,
    /// Its user, host and database.
    pub identity: Mutex<Identity>,
    /// KILL sets it, the running statement reads it.
    pub kill: Arc<KillFlag>,
    /// Wakes a connection that waits (for a command, a lock, a commit) after a KILL.
    pub killed: Notify,
    /// This session's counters.
    pub counters: crate::status::SessionCounters,
    activity: AtomicU8,
    stage: AtomicU8,
    since_us: AtomicI64,
    statement: Mutex<Vec<u8>>,
    /// `wait_timeout` of this session, seconds; 0 before the login.
    idle_limit: AtomicU64,
    idle_ended: AtomicBool,
    client: client::ClientSocket,
    hooks: Hooks,
    progress: OnceLock<Arc<Progress>>,
    describe: OnceLock<Describe>,
    memory: OnceLock<Arc<SessionMemory>>,
    full_disk: Arc<FullDisk>,
}

/// How others reach a thread of the session that is parked in a lock wait: what ends the wait, and what tells of it.
#[derive(Default)]
struct Hooks {
    kill: OnceLock<KillHook>,
    watch: OnceLock<Arc<SessionWatch>>,
}

/// Ends what a thread waits in. Called on other sessions' threads; does not block.
pub type KillHook = Box<dyn Fn() + Send + Sync>;

/// Tells the state of a thread of the server itself; called whenever it is shown.
pub type Describe = Box<dyn Fn() -> ThreadState + Send + Sync>;

/// See [`Describe`].
#[derive(Clone, Copy, Debug)]
pub struct ThreadState {
    /// Command column.
    pub command: &'static str,
    /// State column.
    pub state: &'static str,
    /// Since when, in microseconds since the epoch; 0 for since it began.
    pub since_us: i64,
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The bytes that are kept of a statement's text.
const KEEP_TEXT: usize = 64 * 1024;
/// Text buffers larger than this are given back when the statement ends.
const KEEP_BUFFER: usize = 1024;

impl Process {
    fn new(id: u32, full_disk: Arc<FullDisk>) -> Process {
        Process {
            id,
            identity: Mutex::new(Identity { user: "unauthenticated user".into(), ..Identity::default() }),
            kill: Arc::new(KillFlag::default()),
            killed: Notify::new(),
            counters: crate::status::SessionCounters::default(),
            activity: AtomicU8::new(Activity::Connect as u8),
            stage: AtomicU8::new(Stage::Login as u8),
            since_us: AtomicI64::new(crate::clock::now_us()),
            statement: Mutex::new(Vec::new()),
            idle_limit: AtomicU64::new(0),
            idle_ended: AtomicBool::new(false),
            client: client::ClientSocket::default(),
            hooks: Hooks::default(),
            progress: OnceLock::new(),
            describe: OnceLock::new(),
            memory: OnceLock::new(),
            full_disk,
        }
    }

    /// Sets the account of its statements' memory, and the object that tells how far they are.
    pub fn set_counted(&self, memory: Arc<SessionMemory>, progress: Arc<Progress>) {
        let _ = self.memory.set(memory);
        let _ = self.progress.set(progress);
    }

    /// Bytes that its statements and its transaction hold.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.memory.get().map_or(0, |memory| memory.used())
    }

    /// Whether it is a thread of the server itself and no client's connection.
    #[must_use]
    pub fn is_system(&self) -> bool {
        self.describe.get().is_some()
    }

    /// Sets the hook that ends a lock wait of this session.
    pub fn set_kill_hook(&self, hook: KillHook) {
        let _ = self.hooks.kill.set(hook);
    }

    /// Sets the object that tells of its transaction and its lock waits.
    pub fn set_transaction(&self, watch: Arc<SessionWatch>) {
        let _ = self.hooks.watch.set(watch);
    }

    /// Its transaction as others see it; `None` for one without a session.
    #[must_use]
    pub fn transaction(&self) -> Option<&Arc<SessionWatch>> {
        self.hooks.watch.get()
    }

    /// The stage, as far as the statement itself could say it: blocking waits are inside the SQL layer.
    fn present_stage(&self) -> u8 {
        let mut stage = self.stage.load(Ordering::Relaxed);
        if stage == Stage::Executing as u8 && self.kill.is_committing() {
            stage = Stage::CommitWait as u8;
        }
        // SPACE-1: whoever waits for a commit then waits for room.
        if stage == Stage::CommitWait as u8 && self.full_disk.is_full() {
            return Stage::DiskWait as u8;
        }
        if stage != Stage::Executing as u8 {
            return stage;
        }
        let parked = self.transaction().and_then(|watch| watch.waits_for());
        parked.map_or(stage, |target| Stage::waiting_for(&target) as u8)
    }

    /// After the flag is set: wakes whatever the session waits in.
    fn wake(&self) {
        if let Some(hook) = self.hooks.kill.get() {
            hook();
        }
        self.killed.notify_one();
    }

    /// The login is over: `seconds` of silence end the connection from now on.
    pub fn start_idle_clock(&self, seconds: u64) {
        self.idle_limit.store(seconds, Ordering::Relaxed);
    }

    /// The session's `wait_timeout` changed.
    pub fn change_idle_limit(&self, seconds: u64) {
        if self.idle_limit.load(Ordering::Relaxed) != 0 {
            self.idle_limit.store(seconds, Ordering::Relaxed);
        }
    }

    /// Ends the connection if it has been silent for too long. Called by the server's clock, so that
    /// sessions need no timer of their own for each command.
    pub fn check_idle(&self, now_us: i64) {
        let limit = self.idle_limit.load(Ordering::Relaxed);
        let idle_us = now_us.saturating_sub(self.since_us());
        let over = limit != 0 && !self.is_running() && idle_us / 1_000_000 >= limit as i64;
        if over && !self.idle_ended.swap(true, Ordering::Relaxed) {
            self.kill_connection();
        }
    }

    /// Whether the connection ended by `wait_timeout`.
    #[must_use]
    pub fn idle_ended(&self) -> bool {
        self.idle_ended.load(Ordering::Relaxed)
    }

    /// A command begins at `now_us`.
    pub fn begin(&self, activity: Activity, text: &[u8], now_us: i64) {
        {
            let mut statement = self.statement.lock();
            statement.clear();
            statement.extend_from_slice(&text[..text.len().min(KEEP_TEXT)]);
        }
        self.activity.store(activity as u8, Ordering::Relaxed);
        self.stage.store(Stage::Executing as u8, Ordering::Relaxed);
        self.since_us.store(now_us, Ordering::Relaxed);
    }

    /// The command is over.
    pub fn end(&self, now_us: i64) {
        self.activity.store(Activity::Sleep as u8, Ordering::Relaxed);
        self.stage.store(Stage::None as u8, Ordering::Relaxed);
        self.since_us.store(now_us, Ordering::Relaxed);
        let mut statement = self.statement.lock();
        statement.clear();
        if statement.capacity() > KEEP_BUFFER {
            *statement = Vec::new();
        }
    }

    /// The running statement goes on to another stage.
    pub fn stage(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Relaxed);
    }

    /// Whether a statement runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.activity.load(Ordering::Relaxed) != Activity::Sleep as u8
    }

    /// Microseconds since the epoch when the present activity began.
    #[must_use]
    pub fn since_us(&self) -> i64 {
        self.since_us.load(Ordering::Relaxed)
    }

    /// Ends the running statement; a thread of the server itself ends as a whole.
    pub fn kill_query(&self) {
        self.kill.kill_query();
        self.wake();
    }

    /// Ends the connection.
    pub fn kill_connection(&self) {
        self.kill.kill_connection();
        self.wake();
    }

    /// Waits until the connection is to end, or with `query` the statement.
    pub(crate) async fn interrupted(&self, query: bool) {
        while !(self.kill.connection_killed() || query && self.kill.is_killed()) {
            self.killed.notified().await;
        }
    }

    /// As SHOW PROCESSLIST has it.
    #[must_use]
    pub fn line(&self, now_us: i64) -> ProcessLine {
        let identity = self.identity.lock().clone();
        let statement = self.statement.lock();
        // A statement may be shown to other sessions: no password in it (ACCOUNT-1).
        let info = (!statement.is_empty())
            .then(|| String::from_utf8_lossy(&omnibus_parser::redact(&statement)).into_owned());
        let stage = self.present_stage();
        let progress = self.progress.get().and_then(|progress| progress.read());
        let progress = progress.filter(|_| stage == Stage::Executing as u8);
        let now = match self.describe.get() {
            Some(describe) => describe(),
            None => ThreadState {
                command: Activity::name(self.activity.load(Ordering::Relaxed)),
                state: progress.map_or_else(|| stage_text(stage), |progress| progress.work.state()),
                since_us: 0,
            },
        };
        let since_us = if now.since_us == 0 { self.since_us() } else { now.since_us };
        ProcessLine {
            id: self.id,
            identity,
            command: if self.kill.connection_killed() { "Killed" } else { now.command },
            seconds: (now_us - since_us).max(0) / 1_000_000,
            state: now.state,
            progress,
            info,
        }
    }
}

/// One line of SHOW PROCESSLIST.
#[derive(Clone, Debug)]
pub struct ProcessLine {
    /// Connection id.
    pub id: u32,
    /// Its user, host and database.
    pub identity: Identity,
    /// Command column.
    pub command: &'static str,
    /// Time column.
    pub seconds: i64,
    /// State column.
    pub state: &'static str,
    /// How far a statement is that tells it.
    pub progress: Option<Progressed>,
    /// Info column.
    pub info: Option<String>,
}

impl ProcessLine {
    /// The State column in the words of a dialect, and how far the statement is.
    #[must_use]
    pub fn state_in(&self, dialect: Dialect) -> Cow<'static, str> {
        let state = state_in(dialect, self.state);
        match self.progress {
            Some(progress) => format!("{state} ({}%)", progress.percent()).into(),
            None => state.into(),
        }
    }
}

/// All connections.
#[derive(Debug, Default)]
pub struct Processes {
    map: Mutex<BTreeMap<u32, Arc<Process>>>,
    next: AtomicU64,
    full_disk: OnceLock<Arc<FullDisk>>,
}

impl Processes {
    /// Sets the state of a full disk, which tells who waits for a commit that it waits for room.
    pub(crate) fn set_full_disk(&self, full_disk: Arc<FullDisk>) {
        let _ = self.full_disk.set(full_disk);
    }

    /// A new connection's entry. Ids wrap after 2^32 and skip those in use.
    pub fn register(&self) -> Arc<Process> {
        self.insert(|_| {})
    }

    /// The entry of a thread of the server itself.
    pub fn register_thread(&self, host: &str, describe: Describe) -> Arc<Process> {
        self.insert(|process| {
            *process.identity.lock() =
                Identity { user: "system user".into(), host: host.into(), ..Identity::default() };
            let _ = process.describe.set(describe);
        })
    }

    fn insert(&self, prepare: impl FnOnce(&Process)) -> Arc<Process> {
        let mut map = self.map.lock();
        loop {
            let id = (self.next.fetch_add(1, Ordering::Relaxed) + 1) as u32;
            if id != 0 && !map.contains_key(&id) {
                let full_disk = self.full_disk.get().cloned().unwrap_or_default();
                let process = Arc::new(Process::new(id, full_disk));
                prepare(&process);
                map.insert(id, process.clone());
                return process;
            }
        }
    }

    /// The connection is gone.
    pub fn remove(&self, id: u32) {
        self.map.lock().remove(&id);
    }

    /// One of them.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<Arc<Process>> {
        self.map.lock().get(&u32::try_from(id).ok()?).cloned()
    }

    /// All of them, by id.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Process>> {
        self.map.lock().values().cloned().collect()
    }

    /// Those of clients, by id.
    #[must_use]
    pub fn clients(&self) -> Vec<Arc<Process>> {
        self.map.lock().values().filter(|process| !process.is_system()).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn other_sessions_see_no_password() {
        // ACCOUNT-1
        let processes = Processes::default();
        let process = processes.register();
        process.begin(Activity::Query, b"CREATE USER u IDENTIFIED BY 'geheim'", 0);
        let line = process.line(5_000_000);
        let info = line.info.unwrap();
        assert!(info.starts_with("CREATE USER u") && !info.contains("geheim"), "{info}");
        assert_eq!((line.command, line.state, line.seconds), ("Query", "executing", 5));
        process.end(0);
        assert_eq!(process.line(0).info, None);
    }

    #[test]
    fn ids_are_not_given_twice() {
        let processes = Processes::default();
        processes.next.store(u64::from(u32::MAX) - 1, Ordering::Relaxed);
        let ids: Vec<u32> = (0..3).map(|_| processes.register().id).collect();
        assert_eq!(ids, [u32::MAX, 1, 2], "0 is never an id");
        processes.next.store(0, Ordering::Relaxed);
        assert_eq!(processes.register().id, 3);
    }
}
