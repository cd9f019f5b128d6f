//! The trx cache: a session's events of its open transaction. Memory first, then a spill file.
//!
//! Events are whole binlog events without checksum and with `log_pos` 0; both are finished when the
//! flush stage copies them into the log (they depend on the position). The cache belongs to one
//! session and is used by one thread at a time; its limits are shared and may change at any time.
//!
//! Past `binlog_large_commit_threshold` they go to a file that can become a log file, finished (`large_file`).

mod compress;
mod large_file;
mod large_settings;
pub(crate) mod mariadb;

use crate::owned::GtidGuard;
pub use compress::CompressionStats;
use large_file::LargeFile;
pub use large_settings::LargeSettings;
use mariadb::Opening;
use omnibus_format::group::GroupHash;
use omnibus_format::header::{FLAG_SKIP_REPLICATION, HEADER_LEN};
use omnibus_format::writer::{self, EventContext};
use omnibus_format::{Checksum, Dialect, EventHeader, EventType, Origin, Unnamed};
use omnibus_log::{File, Spilled};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Limits and counters that all caches of a server share.
#[derive(Debug)]
pub struct CacheSettings {
    /// `binlog_cache_size`: bytes kept in memory before the cache spills.
    pub cache_size: AtomicU64,
    /// `max_binlog_cache_size`: bytes past which a transaction fails with error 1197.
    pub max_cache_size: AtomicU64,
    /// `tmpdir`: where spill files go. They are unlinked at once, so a crash leaves none.
    pub spill_dir: PathBuf,
    /// `Binlog_cache_use`: transactions that used a cache.
    pub uses: AtomicU64,
    /// `Binlog_cache_disk_use`: transactions that spilled.
    pub disk_uses: AtomicU64,
    /// Transactions that were compressed.
    pub compressed: CompressionStats,
    /// What makes a transaction large.
    pub large: LargeSettings,
    /// Whose events the log has.
    pub dialect: Dialect,
}

/// Finished events are written in runs of about this size.
const LARGE_RUN: u64 = 256 << 10;

impl CacheSettings {
    /// MySQL's defaults: 32 KiB in memory, no limit in all.
    #[must_use]
    pub fn new(spill_dir: PathBuf) -> CacheSettings {
        CacheSettings {
            cache_size: AtomicU64::new(32 * 1024),
            max_cache_size: AtomicU64::new(u64::MAX),
            spill_dir,
            uses: AtomicU64::new(0),
            disk_uses: AtomicU64::new(0),
            compressed: CompressionStats::default(),
            large: LargeSettings::default(),
            dialect: Dialect::Mysql,
        }
    }

    /// A large transaction's file failed: it is beside the logs.
    fn large_failed(&self, source: std::io::Error) -> CacheError {
        CacheError::Spill { dir: self.large.directory(), source }
    }
}

/// Why an event could not be kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The transaction is larger than `max_binlog_cache_size` (MySQL error 1197).
    #[error(
        "Multi-statement transaction required more than 'max_binlog_cache_size' bytes of storage; increase this mysqld variable and try again"
    )]
    TooLarge,
    /// The spill file could not be written or read back.
    #[error("the transaction's spill file in {dir} failed: {source}")]
    Spill {
        /// The directory of spill files.
        dir: PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// One event is longer than the format can say (4 GiB).
    #[error("a binlog event of {0} bytes is longer than the log format allows")]
    EventTooLong(u64),
}

/// A point in the cache to roll back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CacheMark {
    len: u64,
    events: u64,
    opened: bool,
}

/// A transaction's events, in order.
#[derive(Debug)]
pub struct TrxCache {
    memory: Vec<u8>,
    spill: Option<Spill>,
    /// Instead of `spill`.
    large: Option<Box<LargeFile>>,
    events: u64,
    /// Whether this transaction has been counted in `uses`.
    counted: bool,
    context: EventContext,
    /// What opened the group, where that is none of the events.
    opening: Option<Opening>,
    /// There may be changes as text.
    statements: bool,
    /// `gtid_domain_id`, of MariaDB's dialect.
    domain: u32,
    /// Flags that all events of the transaction have.
    flags: u16,
    /// What becomes of it without a GTID of its own.
    unnamed: Unnamed,
    /// Of a transaction that was born elsewhere, or was given its id.
    origin: Option<Box<Given>>,
    settings: Arc<CacheSettings>,
}

#[derive(Debug)]
struct Given {
    origin: Origin,
    /// Goes when the transaction is in the log, or is given up.
    _guard: Option<GtidGuard>,
}

#[derive(Debug)]
struct Spill {
    file: File,
    len: u64,
}

impl TrxCache {
    /// An empty cache.
    #[must_use]
    pub fn new(settings: Arc<CacheSettings>) -> TrxCache {
        TrxCache {
            memory: Vec::new(),
            spill: None,
            large: None,
            events: 0,
            counted: false,
            context: EventContext { timestamp: 0, server_id: 0 },
            opening: None,
            statements: false,
            domain: 0,
            flags: 0,
            unnamed: Unnamed::Automatic,
            origin: None,
            settings,
        }
    }

    /// What the headers of the following events say: seconds since 1970 at the statement's start,
    /// and the id of the server that ran it.
    pub fn set_context(&mut self, timestamp: u32, server_id: u32) {
        let server_id = self.origin.as_ref().map_or(server_id, |given| given.origin.server_id);
        self.context = EventContext { timestamp, server_id };
    }

    /// The transaction was born elsewhere: the headers of the following events name that server, and the log writes it
    /// with the GTID it has. Until `clear`.
    pub fn set_origin(&mut self, origin: Origin) {
        self.set_given(origin, None);
    }

    /// As [`TrxCache::set_origin`], with the right to commit that id.
    pub fn set_given(&mut self, origin: Origin, guard: Option<GtidGuard>) {
        self.context.server_id = origin.server_id;
        self.origin = Some(Box::new(Given { origin, _guard: guard }));
    }

    /// `gtid_domain_id`: where the log numbers the transaction, in MariaDB's dialect. Until it is changed.
    pub fn set_domain(&mut self, domain: u32) {
        self.domain = domain;
    }

    /// See [`TrxCache::set_domain`].
    #[must_use]
    pub fn domain(&self) -> u32 {
        self.domain
    }

    /// MariaDB's `skip_replication`: the headers of the following events say that replicas may leave them out. Until it is
    /// changed.
    pub fn set_skip_replication(&mut self, skip: bool) {
        self.flags = if skip { FLAG_SKIP_REPLICATION } else { 0 };
    }

    /// Flags of all its events.
    pub(crate) fn flags(&self) -> u16 {
        self.flags
    }

    /// What the log does with transactions that have no GTID of their own. Until it is changed.
    pub fn set_unnamed(&mut self, unnamed: Unnamed) {
        self.unnamed = unnamed;
    }

    /// See [`TrxCache::set_unnamed`].
    #[inline]
    pub(crate) fn unnamed(&self) -> Unnamed {
        self.unnamed
    }

    /// The server that the headers of its events name.
    #[must_use]
    pub fn server_id(&self) -> u32 {
        self.context.server_id
    }

    /// Whose events the log has.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.settings.dialect
    }

    /// Whether some changes may be statements, not rows.
    pub(crate) fn has_statements(&self) -> bool {
        self.statements
    }

    /// What opened the group, where that is none of the events.
    pub(crate) fn opening(&self) -> Option<&Opening> {
        self.opening.as_ref()
    }

    /// The body of the QUERY event that stands in front of the events, if it is none of them.
    #[must_use]
    pub fn opening_statement(&self) -> Option<&[u8]> {
        match &self.opening {
            Some(Opening::Statement(body)) => Some(body),
            _ => None,
        }
    }

    /// See [`TrxCache::set_origin`].
    #[must_use]
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref().map(|given| &given.origin)
    }

    /// Adds one event.
    ///
    /// # Errors
    /// [`CacheError::TooLarge`] past `max_binlog_cache_size`; the cache is as before.
    pub fn append_event(&mut self, event_type: u8, flags: u16, body: &[u8]) -> Result<(), CacheError> {
        if self.settings.dialect == Dialect::Mariadb {
            return self.append_for_mariadb(event_type, flags, body);
        }
        if self.events == 0
            && event_type == EventType::QUERY.0
            && !body.ends_with(b"BEGIN")
            && self.keep_opening(body)
        {
            return Ok(());
        }
        self.append_as_is(event_type, flags, body)
    }

    #[inline]
    fn append_as_is(&mut self, event_type: u8, flags: u16, body: &[u8]) -> Result<(), CacheError> {
        let size = (HEADER_LEN + body.len()) as u64;
        // The checksum's four bytes come later and must fit as well.
        if u32::try_from(size + 4).is_err() {
            return Err(CacheError::EventTooLong(size));
        }
        if self.len() + size > self.settings.max_cache_size.load(Ordering::Relaxed) {
            return Err(CacheError::TooLarge);
        }
        let cache_size = self.settings.cache_size.load(Ordering::Relaxed);
        let held = self.memory.len() as u64 + size;
        if held > cache_size && !self.memory.is_empty() && (self.large.is_none() || held > LARGE_RUN) {
            self.spill_memory()?;
        }
        if self.memory.capacity() == 0 {
            // Most transactions fit; growing from nothing would allocate five times.
            self.memory.reserve(1024);
        }
        writer::append_event(&mut self.memory, self.context, EventType(event_type), flags | self.flags, body);
        self.events += 1;
        self.statements |= is_statement(EventType(event_type), body);
        if !self.counted {
            self.counted = true;
            self.settings.uses.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Bytes kept, without checksums.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.spilled() + self.memory.len() as u64
    }

    /// Whether there is no event.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events == 0 && self.opening.is_none()
    }

    /// Number of events.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Bytes in the spill file.
    #[must_use]
    pub fn spilled(&self) -> u64 {
        match &self.large {
            None => self.spill.as_ref().map_or(0, |spill| spill.len),
            Some(large) => large.size().0,
        }
    }

    /// Whether it takes `settle` before it is committed, which may take long.
    #[must_use]
    pub fn is_large(&self) -> bool {
        // One event can be all of it.
        self.large.is_some()
            || self.memory.len() as u64 > LARGE_RUN && self.settings.large.is_large(self.memory.len() as u64)
    }

    /// Finishes and syncs a large transaction's file: what is left of its commit does not depend on its size.
    /// Nothing is appended afterwards.
    pub(crate) fn settle(&mut self) -> Result<(), CacheError> {
        if self.is_large() {
            self.spill_memory()?;
            let settings = &self.settings;
            if let Some(large) = &mut self.large {
                large.settle().map_err(|source| settings.large_failed(source))?;
            }
        }
        Ok(())
    }

    /// A settled file, the checksum algorithm of its events, and what they add up to.
    #[inline]
    pub(crate) fn settled(&self) -> Option<(Checksum, &Spilled, &GroupHash)> {
        let large = self.large.as_ref()?;
        Some((large.checksum(), large.settled()?, large.hash()?))
    }

    /// Its file is a log file now.
    pub(crate) fn promoted(&mut self) {
        if let Some(large) = &mut self.large {
            large.keep();
            self.settings.large.promoted.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The present end.
    #[must_use]
    pub fn mark(&self) -> CacheMark {
        CacheMark { len: self.len(), events: self.events, opened: self.opening.is_some() }
    }

    /// Forgets every event after `mark`.
    ///
    /// # Errors
    /// The spill file could not be cut; the transaction must then be rolled back as a whole.
    pub fn rollback_to(&mut self, mark: CacheMark) -> Result<(), CacheError> {
        let spilled = self.spilled();
        if mark.len >= spilled {
            self.memory.truncate((mark.len - spilled) as usize);
        } else {
            self.memory.clear();
            let dir = self.settings.spill_dir.clone();
            if let Some(large) = &mut self.large {
                let cut = large.truncate(mark.len, mark.events);
                cut.map_err(|source| self.settings.large_failed(source))?;
            } else if let Some(spill) = &mut self.spill {
                spill.file.set_len(mark.len).map_err(|source| CacheError::Spill { dir, source })?;
                spill.len = mark.len;
            }
        }
        self.events = mark.events;
        if !mark.opened {
            self.opening = None;
        }
        Ok(())
    }

    /// Empties the cache for the next transaction; gives back memory and disk beyond the usual.
    pub fn clear(&mut self) {
        self.spill = None;
        self.large = None;
        self.memory.clear();
        if self.memory.capacity() > 64 * 1024 {
            self.memory = Vec::new();
        }
        self.events = 0;
        self.counted = false;
        self.opening = None;
        self.statements = false;
        self.origin = None;
    }

    /// Calls `each` with every run of whole events, in order, reading spilled ones back in pieces of
    /// about `piece` bytes (one event may be longer).
    ///
    /// # Errors
    /// The spill file could not be read, or `each` failed.
    pub fn read_events<E: From<CacheError>>(
        &mut self,
        piece: usize,
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let dir = &self.settings.spill_dir;
        if let Some(large) = &self.large {
            let failed = |source| E::from(self.settings.large_failed(source));
            large.read(piece, failed, &mut each)?;
        } else if let Some(spill) = &self.spill {
            spill.read_events(piece, dir, &mut each)?;
        }
        if self.memory.is_empty() { Ok(()) } else { each(&self.memory) }
    }

    fn spill_memory(&mut self) -> Result<(), CacheError> {
        if self.large.is_some() || self.settings.large.is_large(self.len()) {
            return self.spill_large();
        }
        let dir = &self.settings.spill_dir;
        let failed = |source| CacheError::Spill { dir: dir.clone(), source };
        if self.spill.is_none() {
            self.settings.disk_uses.fetch_add(1, Ordering::Relaxed);
            let file = self.settings.large.unnamed(dir).map_err(failed)?;
            self.spill = Some(Spill { file, len: 0 });
        }
        let Some(spill) = &mut self.spill else { return Ok(()) };
        if let Err(source) = spill.file.write_all_at(&self.memory, spill.len) {
            // Give back what room the short write has taken.
            let _ = spill.file.set_len(spill.len);
            return Err(failed(source));
        }
        spill.len += self.memory.len() as u64;
        self.memory.clear();
        Ok(())
    }
}

impl TrxCache {
    fn spill_large(&mut self) -> Result<(), CacheError> {
        if self.large.is_none() {
            self.become_large()?;
        }
        let Some(large) = &mut self.large else { return Ok(()) };
        let events = self.events - large.size().1;
        let settings = &self.settings;
        large.append(&self.memory, events).map_err(|source| settings.large_failed(source))?;
        self.memory.clear();
        Ok(())
    }

    /// Goes on in a file that can become a log file. Copies what was spilled so far: about the threshold's
    /// number of bytes at most.
    fn become_large(&mut self) -> Result<(), CacheError> {
        let (dir, settings) = (self.settings.spill_dir.clone(), self.settings.clone());
        let failed = |source| settings.large_failed(source);
        let mut large = settings.large.create().map_err(failed)?;
        if let Some(spill) = &self.spill {
            spill.read_events(LARGE_RUN as usize, &dir, &mut |bytes| {
                large.append(bytes, whole_events(bytes).1).map_err(failed)
            })?;
            self.spill = None;
        } else {
            self.settings.disk_uses.fetch_add(1, Ordering::Relaxed);
        }
        self.large = Some(Box::new(large));
        Ok(())
    }
}

impl Spill {
    fn read_events<E: From<CacheError>>(
        &self,
        piece: usize,
        dir: &std::path::Path,
        each: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let failed = |source| E::from(CacheError::Spill { dir: dir.to_path_buf(), source });
        let mut buffer = Vec::new();
        let mut left = self.len;
        while left > 0 {
            let held = buffer.len();
            let take = (piece.max(1) as u64).min(left) as usize;
            buffer.resize(held + take, 0);
            self.file.read_exact_at(&mut buffer[held..], self.len - left).map_err(failed)?;
            left -= take as u64;
            let (whole, _) = whole_events(&buffer);
            if whole > 0 {
                each(&buffer[..whole])?;
                buffer.drain(..whole);
            }
        }
        Ok(())
    }
}

/// The whole events at the start of `bytes`: how many bytes they take, and how many they are.
fn whole_events(bytes: &[u8]) -> (usize, u64) {
    let (mut at, mut events) = (0, 0);
    while let Ok(header) = EventHeader::decode(&bytes[at..]) {
        let size = header.size as usize;
        if size < HEADER_LEN || bytes.len() - at < size {
            break;
        }
        at += size;
        events += 1;
    }
    (at, events)
}

/// Whether an event's change is a statement's text. MySQL's replicas stop (13117) at one in a transaction that says that it
/// has rows only.
fn is_statement(kind: EventType, body: &[u8]) -> bool {
    kind == EventType::EXECUTE_LOAD_QUERY || kind == EventType::QUERY && !body.ends_with(b"BEGIN")
}

#[cfg(test)]
mod tests;
