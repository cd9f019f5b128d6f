//! The accountant: how much memory statements hold, by session and for the server.
//!
//! A tree of counters. Whoever keeps something has an [`Account`] and asks before it makes what it keeps. Accounts take from their
//! session, and the session takes chunks from the server: so counting a row is an addition to a plain number, a session touches the
//! counter that all share once for many things, and a statement that collects nothing (a point read) never comes here.
//! What counts is everything that a client can make grow: what operators keep, what functions make and need for it, trees and
//! plans of statements, parameters, packets that have come in part, replies, variables, locks by name.
//! What the catalog holds is the server's: statements have the rest of its limit, at least a half, and what would make definitions take
//! more is refused; those of a start never are.
//!
//! A refusal is an operator's sign to go to a temporary file, or the statement's error where it has none. Limits are
//! those of the session that asks (`connection_memory_limit`, `global_connection_memory_limit`), read when it asks. The server's
//! is for the session that holds most: who holds little, or less than that one, may go on until all have an eighth more, while the
//! largest is refused, or has its statement ended (MEMORY-1).

pub use crate::api::MemoryLimits;
use crate::api::{KillFlag, SessionSettings};
use crate::error::{ConditionMemory, KeptConditions, SqlError, SqlResult};
use omnibus_value::Value;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

/// Bytes that an account takes from its session at once, and a session from the server.
const CHUNK: u64 = 64 << 10;
/// Bytes that a session takes from the server at once while it holds less than a chunk: thousands of sessions hold a little each.
const PIECE: u64 = 16 << 10;
/// Bytes of a client's session that does nothing: its state, its task, its buffers. Nobody is asked for these.
pub(crate) const CONNECTION: u64 = 32 << 10;
/// The most that a session holds which holds little: this part of the server's limit, but a chunk at least and `LITTLE_MAX` at most.
const LITTLE: u64 = 1024;
const LITTLE_MAX: u64 = 1 << 20;
/// The part of the server's limit that all but the largest may have beyond it.
const BEYOND: u64 = 8;
/// More than there is anywhere; sums of less do not overflow.
const MOST: u64 = 1 << 50;
/// Bytes that an operator that has a temporary file may hold although a limit says no: with less it would write a file a row.
const LEAST: u64 = 256 << 10;

/// Bytes given back after which the allocator is asked to give the machine its own: a quarter of the server's limit, within these.
const COLLECT_AFTER: (u64, u64) = (8 << 20, 64 << 20);
/// Less than this, given back at once, is what short statements take by turns, and the allocator soon uses it again: it does not count there.
const MUCH: u64 = 1 << 20;
/// The function that makes the allocator of the process give back what nobody holds.
static COLLECTOR: OnceLock<fn()> = OnceLock::new();

/// Names what makes the process's allocator give the machine back what was freed. Allocators keep that for a while, and a process whose statements hold
/// large memory by turns would have several times as much as is counted (MEMORY-1). The first call counts.
pub fn set_collector(collect: fn()) {
    let _ = COLLECTOR.set(collect);
}

/// For so long the session found to hold most is taken for it, if it holds more than who asks: 10,000 sessions are looked at no more often.
const LARGEST_FOR: Duration = Duration::from_millis(1);

/// The sessions of clients.
#[derive(Debug, Default)]
struct Clients {
    /// Some of them are gone.
    sessions: Vec<Weak<SessionMemory>>,
    /// The session that was found to hold most, and when.
    largest: Option<(Instant, Weak<SessionMemory>)>,
}

impl Clients {
    fn add(&mut self, session: &Arc<SessionMemory>) {
        if self.sessions.len() == self.sessions.capacity() {
            self.sessions.retain(|other| other.strong_count() > 0);
        }
        self.sessions.push(Arc::downgrade(session));
    }

    /// The one that holds most, if that is more than `used`.
    fn largest_beyond(&mut self, used: u64) -> Option<Arc<SessionMemory>> {
        let known = self.largest.as_ref().filter(|(since, _)| since.elapsed() < LARGEST_FOR);
        if let Some(known) = known.and_then(|(_, known)| known.upgrade()).filter(|known| known.used() > used)
        {
            return Some(known);
        }
        let largest = self.sessions.iter().filter_map(Weak::upgrade).max_by_key(|session| session.used())?;
        self.largest = Some((Instant::now(), Arc::downgrade(&largest)));
        Some(largest).filter(|largest| largest.used() > used)
    }
}

/// The root: all sessions of a database, and what their temporary files are counted by.
#[derive(Debug, Default)]
pub struct ServerMemory {
    used: AtomicU64,
    /// Bytes of the catalog.
    definitions: AtomicU64,
    /// Bytes given back since the allocator was asked for them.
    given_back: AtomicU64,
    clients: Mutex<Clients>,
    /// `Created_tmp_disk_tables`: groups, distinct rows and derived tables that outgrew memory.
    pub tmp_disk_tables: AtomicU64,
    /// `Created_tmp_files`.
    pub tmp_files: AtomicU64,
    /// `Sort_merge_passes`.
    pub sort_merge_passes: AtomicU64,
}

impl ServerMemory {
    /// `Global_connection_memory`: bytes that statements and sessions hold.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes that the catalog holds.
    #[must_use]
    pub fn definitions(&self) -> u64 {
        self.definitions.load(Ordering::Relaxed)
    }

    /// The catalog holds so many bytes from now on.
    pub(crate) fn definitions_hold(&self, bytes: u64) {
        self.definitions.store(bytes, Ordering::Relaxed);
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if bytes >= MUCH {
            self.given_back.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Has the allocator give back what was freed, before somebody takes more.
    fn collect(&self, limit: u64) {
        let enough = (limit / 4).clamp(COLLECT_AFTER.0, COLLECT_AFTER.1);
        let given_back = self.given_back.load(Ordering::Relaxed);
        let mine =
            || self.given_back.compare_exchange(given_back, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if given_back >= enough
            && let Some(collect) = COLLECTOR.get()
            && mine()
        {
            collect();
        }
    }

    /// As SHOW STATUS names them.
    #[must_use]
    pub fn counters(&self) -> Vec<(String, String)> {
        let line = |name: &str, value: u64| (name.to_owned(), value.to_string());
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        vec![
            line("Created_tmp_disk_tables", read(&self.tmp_disk_tables)),
            line("Created_tmp_files", read(&self.tmp_files)),
            line("Global_connection_memory", self.used()),
            line("Omnibus_definition_memory", self.definitions()),
            line("Sort_merge_passes", read(&self.sort_merge_passes)),
        ]
    }
}

/// A session's part. Mostly one thread's; a text that others let go of is given back by theirs.
#[derive(Debug, Default)]
pub struct SessionMemory {
    used: AtomicU64,
    /// Bytes that it has taken from the server; each change of it is one of the server's counter.
    reserved: AtomicU64,
    server: Arc<ServerMemory>,
    /// Bytes that it has of the server's beside those, for as long as it is there.
    standing: u64,
    /// Ends its statement.
    kill: Option<Arc<KillFlag>>,
}

/// Whether who asks can do without.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// A refusal is the statement's error.
    Memory,
    /// A refusal sends rows to a file.
    MemoryOrFile,
}

impl SessionMemory {
    /// The memory of no client of this database.
    #[must_use]
    pub fn of(server: Arc<ServerMemory>) -> SessionMemory {
        SessionMemory::new(server, 0, None)
    }

    fn new(server: Arc<ServerMemory>, standing: u64, kill: Option<Arc<KillFlag>>) -> SessionMemory {
        SessionMemory { used: AtomicU64::new(0), reserved: AtomicU64::new(0), server, standing, kill }
    }

    /// Of a client of this database, whose statement `kill` ends.
    #[must_use]
    pub fn of_client(server: Arc<ServerMemory>, kill: Arc<KillFlag>) -> Arc<SessionMemory> {
        let session = Arc::new(SessionMemory::new(server.clone(), CONNECTION, Some(kill)));
        server.used.fetch_add(CONNECTION, Ordering::Relaxed);
        server.clients.lock().add(&session);
        session
    }

    /// The server's part.
    #[must_use]
    pub fn server(&self) -> &ServerMemory {
        &self.server
    }

    /// Bytes that it holds.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    #[inline]
    fn take(&self, bytes: u64, limits: MemoryLimits, need: Need) -> SqlResult<()> {
        if bytes > MOST {
            return Err(SqlError::memory_exceeded(limits.server, "global_connection_memory_limit"));
        }
        let used = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if used <= self.reserved.load(Ordering::Relaxed) && used <= limits.connection {
            return Ok(());
        }
        self.reserve(used, limits, need).inspect_err(|_| {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        })
    }

    /// Takes what is missing to `used` from the server.
    #[cold]
    fn reserve(&self, used: u64, limits: MemoryLimits, need: Need) -> SqlResult<()> {
        let MemoryLimits { connection: own, server: limit } = limits;
        let all = limit - self.server.definitions().min(most_of_definitions(limit));
        if used > own {
            return Err(SqlError::memory_exceeded(own, "connection_memory_limit"));
        }
        self.server.collect(all);
        let piece = if used <= CHUNK { PIECE } else { CHUNK };
        let missing = used.saturating_sub(self.reserved.load(Ordering::Relaxed)).next_multiple_of(piece);
        let server = self.server.used.fetch_add(missing, Ordering::Relaxed) + missing;
        if server > all && (server - all > all / BEYOND || !self.may_go_beyond(used, limit, need)) {
            self.server.used.fetch_sub(missing, Ordering::Relaxed);
            return Err(SqlError::memory_exceeded(limit, "global_connection_memory_limit"));
        }
        self.reserved.fetch_add(missing, Ordering::Relaxed);
        Ok(())
    }

    /// Whether a session that holds so much may have more although there is no room: then the largest makes some.
    fn may_go_beyond(&self, used: u64, limit: u64, need: Need) -> bool {
        let holds_little = used <= (limit / LITTLE).clamp(CHUNK, LITTLE_MAX);
        if need == Need::MemoryOrFile {
            return holds_little;
        }
        let larger = self.server.clients.lock().largest_beyond(used);
        if let Some(kill) = larger.as_ref().and_then(|largest| largest.kill.as_ref()) {
            kill.give_memory_back(limit);
        }
        holds_little || larger.is_some()
    }

    fn take_anyway(&self, bytes: u64) {
        // No limit, no refusal.
        let _ = self.take(bytes, MemoryLimits::default(), Need::Memory);
    }

    fn give_back(&self, bytes: u64) {
        let used = self.used.fetch_sub(bytes, Ordering::Relaxed) - bytes;
        let reserved = self.reserved.load(Ordering::Relaxed);
        // One chunk stays with who has much, so that what grows and shrinks by turns takes none.
        let kept =
            if used < CHUNK { used.next_multiple_of(PIECE) } else { used.next_multiple_of(CHUNK) + CHUNK };
        let exchange = |kept| {
            self.reserved.compare_exchange(reserved, kept, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        if reserved > kept && exchange(kept) {
            self.server.give_back(reserved - kept);
        }
    }
}

impl Drop for SessionMemory {
    fn drop(&mut self) {
        let reserved = *self.reserved.get_mut();
        self.server.give_back(reserved + self.standing);
    }
}

/// The memory of one operator. Given back when it is dropped.
#[derive(Debug)]
pub struct Account {
    session: Arc<SessionMemory>,
    used: u64,
    reserved: u64,
}

impl Account {
    /// An account of nothing yet.
    #[must_use]
    pub fn new(session: &Arc<SessionMemory>) -> Account {
        Account { session: session.clone(), used: 0, reserved: 0 }
    }

    /// One of nothing, of the same session.
    #[must_use]
    pub fn like(&self) -> Account {
        Account::new(&self.session)
    }

    /// The server whose memory it takes.
    #[must_use]
    pub fn server(&self) -> &ServerMemory {
        self.session.server()
    }

    /// Bytes it holds.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Takes more.
    ///
    /// # Errors
    /// 3170: a limit says no, and nothing was taken.
    #[inline]
    pub fn grow(&mut self, bytes: usize, settings: &SessionSettings) -> SqlResult<()> {
        self.grow_within(bytes, MemoryLimits::of(settings))
    }

    /// As `grow`, for who has the limits only.
    ///
    /// # Errors
    /// As `grow`.
    #[inline]
    pub fn grow_within(&mut self, bytes: usize, limits: MemoryLimits) -> SqlResult<()> {
        self.grow_by_need(bytes, limits, Need::Memory)
    }

    #[inline]
    fn grow_by_need(&mut self, bytes: usize, limits: MemoryLimits, need: Need) -> SqlResult<()> {
        let used = self.used.saturating_add(bytes as u64);
        if used > self.reserved {
            let more = (used - self.reserved).checked_next_multiple_of(CHUNK).unwrap_or(u64::MAX);
            self.session.take(more, limits, need)?;
            self.reserved += more;
        }
        self.used = used;
        Ok(())
    }

    /// Takes just so much more, and no chunk: for what there may be thousands of.
    ///
    /// # Errors
    /// As `grow`.
    #[inline]
    pub fn grow_exactly(&mut self, bytes: usize, limits: MemoryLimits) -> SqlResult<()> {
        let used = self.used.saturating_add(bytes as u64);
        let more = used.saturating_sub(self.reserved);
        self.session.take(more, limits, Need::Memory)?;
        self.reserved += more;
        self.used = used;
        Ok(())
    }

    /// Takes more within an operator's own budget and three quarters of the limits. `false`: nothing was taken, and the
    /// operator goes to its file. A little is always there, so that files do not hold a row each.
    #[inline]
    pub fn has_room(&mut self, bytes: usize, budget: u64, settings: &SessionSettings) -> bool {
        let used = self.used + bytes as u64;
        if used > budget {
            return false;
        }
        // The last quarter is for those who have no file.
        let limits = MemoryLimits::of(settings);
        let most = |limit: u64| limit - limit / 4;
        let limits = MemoryLimits { connection: most(limits.connection), server: most(limits.server) };
        if self.grow_by_need(bytes, limits, Need::MemoryOrFile).is_ok() {
            return true;
        }
        if used <= LEAST {
            let more = used.saturating_sub(self.reserved);
            self.session.take_anyway(more);
            self.reserved += more;
            self.used = used;
        }
        used <= LEAST
    }

    /// Takes more whatever the limits say: the one row that an operator cannot do without.
    pub fn take_anyway(&mut self, bytes: usize) {
        self.used += bytes as u64;
        let more = self.used.saturating_sub(self.reserved);
        self.session.take_anyway(more);
        self.reserved += more;
    }

    /// Holds so many bytes from now on.
    ///
    /// # Errors
    /// As `grow`.
    pub fn resize(&mut self, bytes: usize, limits: MemoryLimits) -> SqlResult<()> {
        match (bytes as u64).checked_sub(self.used) {
            Some(more) => self.grow_within(more as usize, limits),
            None => {
                self.shrink((self.used - bytes as u64) as usize);
                Ok(())
            }
        }
    }

    /// Holds no more than so many bytes from now on.
    #[inline]
    pub fn shrink_to(&mut self, bytes: u64) {
        if self.used > bytes {
            self.shrink((self.used - bytes) as usize);
        }
    }

    /// Gives some back.
    pub fn shrink(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes as u64);
        let spare = self.reserved - self.used.next_multiple_of(CHUNK).min(self.reserved);
        // One chunk stays, so that what grows and shrinks by turns takes none.
        if spare > CHUNK {
            self.session.give_back(spare);
            self.reserved -= spare;
        }
    }

    /// Gives everything back.
    pub fn clear(&mut self) {
        if self.reserved > 0 {
            self.session.give_back(self.reserved);
            (self.used, self.reserved) = (0, 0);
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The memory of a session's conditions: those of the last statement, and those that handlers of its programs were entered with.
#[derive(Debug)]
pub struct ConditionAccount(Mutex<Account>);

impl ConditionAccount {
    /// Of a session.
    #[must_use]
    pub fn new(session: &Arc<SessionMemory>) -> Arc<ConditionAccount> {
        Arc::new(ConditionAccount(Mutex::new(Account::new(session))))
    }
}

impl ConditionMemory for ConditionAccount {
    fn take(&self, bytes: usize, wanted: KeptConditions) -> bool {
        let limits = MemoryLimits { connection: wanted.connection_memory, server: wanted.server_memory };
        self.0.lock().grow_within(bytes, limits).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        let mut account = self.0.lock();
        account.shrink(bytes);
        // A session that has nothing to do holds no chunk.
        if account.used() == 0 {
            account.clear();
        }
    }
}

/// The part of the server's limit that definitions may have: statements have at least as much, however many there are at a start.
#[must_use]
pub(crate) fn most_of_definitions(limit: u64) -> u64 {
    limit / 2
}

/// Bytes of a statement for each of its words: their part of the tree, of the plan, and of what runs it. Measured on those that make most of few words:
/// lists of constants and of columns.
const WORD: usize = 512;

/// The bytes of the tree and the plan of a statement of so many words.
#[must_use]
pub fn tree(words: usize) -> usize {
    words * WORD
}

/// About how many bytes a row of values takes in memory.
#[must_use]
pub fn memory_of(values: &[Value]) -> usize {
    let long = |value: &Value| match value {
        Value::Bytes(bytes) | Value::Json(bytes) => bytes.len() + 16,
        _ => 0,
    };
    size_of_val(values) + values.iter().map(long).sum::<usize>() + 32
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
