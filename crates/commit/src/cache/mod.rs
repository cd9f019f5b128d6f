//! The trx cache: the events of a session's open transaction, first in memory, then in a spill file.
//!
//! Events are whole binlog events without checksum and with `log_pos` 0. The flush stage completes both when it copies
//! the events into the log, because they depend on the position. The cache belongs to one session and is used by one
//! thread at a time; its limits are shared and may change at any time.
//!
//! Beyond `binlog_large_commit_threshold` the events go to a file that can become a log file, in their final form
//! (`large_file`).

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
    /// `tmpdir`: the directory of spill files. They are unlinked at once, so a crash leaves none.
    pub spill_dir: PathBuf,
    /// `Binlog_cache_use`: transactions that used a cache.
    pub uses: AtomicU64,
    /// `Binlog_cache_disk_use`: transactions that spilled.
    pub disk_uses: AtomicU64,
    /// Counters of transaction compression.
    pub compressed: CompressionStats,
    /// The limits and files of large transactions.
    pub large: LargeSettings,
    /// The dialect of the log's events.
    pub dialect: Dialect,
}

/// The approximate number of bytes per write of final events.
const LARGE_RUN: u64 = 256 << 10;

/// Bytes of memory that a cache keeps for the next transaction: thousands of sessions that do nothing have one.
const KEPT: usize = 16 << 10;

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

    /// The error of a large transaction's file, which is beside the logs.
    fn large_failed(&self, source: std::io::Error) -> CacheError {
        CacheError::Spill { dir: self.large.directory(), source }
    }
}

/// The reason why an event could not be kept.
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
        /// The operating system's error.
        #[source]
        source: std::io::Error,
    },
    /// The event exceeds the format's limit of 4 GiB.
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

/// The events of one transaction, in order.
#[derive(Debug)]
pub struct TrxCache {
    memory: Vec<u8>,
    spill: Option<Spill>,
    /// The file of a large transaction, instead of `spill`.
    large: Option<Box<LargeFile>>,
    events: u64,
    /// Whether this transaction has been counted in `uses`.
    counted: bool,
    context: EventContext,
    /// The opening of the group, if it is not among the events.
    opening: Option<Opening>,
    /// Some changes may be logged as text.
    statements: bool,
    /// In effect until it is changed.
    pub naming: Naming,
    /// The origin of a transaction that was executed elsewhere first, or was given its id.
    origin: Option<Box<Given>>,
    settings: Arc<CacheSettings>,
}

/// How the log names a transaction, and marks its events.
#[derive(Clone, Copy, Debug)]
pub struct Naming {
    /// `gtid_domain_id`: the domain in which the log numbers the transaction, in MariaDB's dialect.
    pub domain: u32,
    /// How the log treats the transaction if it has no GTID of its own.
    pub unnamed: Unnamed,
    /// MariaDB's `skip_replication`: replicas may leave the events out.
    pub skip_replication: bool,
}

impl Default for Naming {
    fn default() -> Naming {
        Naming { domain: 0, unnamed: Unnamed::Automatic, skip_replication: false }
    }
}

impl Naming {
    /// The flags that all events of the transaction have.
    pub(crate) fn flags(self) -> u16 {
        if self.skip_replication { FLAG_SKIP_REPLICATION } else { 0 }
    }
}

#[derive(Debug)]
struct Given {
    origin: Origin,
    /// Released when the transaction is in the log, or is given up.
    _guard: Option<GtidGuard>,
}

#[derive(Debug)]
struct Spill {
    file: File,
    len: u64,
}

impl TrxCache {
    /// Creates an empty cache.
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
            naming: Naming::default(),
            origin: None,
            settings,
        }
    }

    /// Sets the header fields of the following events: `timestamp` in seconds since 1970 at the statement's start, and
    /// the id of the server that executed it.
    pub fn set_context(&mut self, timestamp: u32, server_id: u32) {
        let server_id = self.origin.as_ref().map_or(server_id, |given| given.origin.server_id);
        self.context = EventContext { timestamp, server_id };
    }

    /// Declares that the transaction was first executed elsewhere: the headers of the following events name that
    /// server, and the log writes the transaction with that GTID. In effect until `clear`.
    pub fn set_origin(&mut self, origin: Origin) {
        self.set_given(origin, None);
    }

    /// As [`TrxCache::set_origin`], together with the right to commit that id.
    pub fn set_given(&mut self, origin: Origin, guard: Option<GtidGuard>) {
        self.context.server_id = origin.server_id;
        self.origin = Some(Box::new(Given { origin, _guard: guard }));
    }

    /// The server id in the headers of the events.
    #[must_use]
    pub fn server_id(&self) -> u32 {
        self.context.server_id
    }

    /// The dialect of the log's events.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.settings.dialect
    }

    /// Returns whether some changes may be logged as text instead of rows.
    pub(crate) fn has_statements(&self) -> bool {
        self.statements
    }

    /// The opening of the group, if it is not among the events.
    pub(crate) fn opening(&self) -> Option<&Opening> {
        self.opening.as_ref()
    }

    /// The body of the QUERY event that precedes the events, if it is not among them.
    #[must_use]
    pub fn opening_statement(&self) -> Option<&[u8]> {
        match &self.opening {
            Some(Opening::Statement(body)) => Some(body),
            _ => None,
        }
    }

    /// The origin set by [`TrxCache::set_origin`].
    #[must_use]
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref().map(|given| &given.origin)
    }

    /// Appends one event.
    ///
    /// # Errors
    /// [`CacheError::TooLarge`] beyond `max_binlog_cache_size`; the cache is unchanged.
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
        writer::append_event(
            &mut self.memory,
            self.context,
            EventType(event_type),
            flags | self.naming.flags(),
            body,
        );
        self.events += 1;
        self.statements |= is_statement(EventType(event_type), body);
        if !self.counted {
            self.counted = true;
            self.settings.uses.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The number of bytes kept, without checksums.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.spilled() + self.memory.len() as u64
    }

    /// Returns whether the cache has no event.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events == 0 && self.opening.is_none()
    }

    /// The number of events.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The number of bytes in the spill file.
    #[must_use]
    pub fn spilled(&self) -> u64 {
        match &self.large {
            None => self.spill.as_ref().map_or(0, |spill| spill.len),
            Some(large) => large.size().0,
        }
    }

    /// Returns whether `settle` is needed before the commit. It may take long.
    #[must_use]
    pub fn is_large(&self) -> bool {
        // One event can be all of it.
        self.large.is_some()
            || self.memory.len() as u64 > LARGE_RUN && self.settings.large.is_large(self.memory.len() as u64)
    }

    /// Completes and syncs a large transaction's file, so that the rest of its commit does not depend on its size. No
    /// event may be appended afterwards.
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

    /// The settled file, the checksum algorithm of its events, and their group hash.
    #[inline]
    pub(crate) fn settled(&self) -> Option<(Checksum, &Spilled, &GroupHash)> {
        let large = self.large.as_ref()?;
        Some((large.checksum(), large.settled()?, large.hash()?))
    }

    /// Records that the file has become a log file.
    pub(crate) fn promoted(&mut self) {
        if let Some(large) = &mut self.large {
            large.keep();
            self.settings.large.promoted.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A mark at the present end.
    #[must_use]
    pub fn mark(&self) -> CacheMark {
        CacheMark { len: self.len(), events: self.events, opened: self.opening.is_some() }
    }

    /// Drops every event after `mark`.
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

    /// Empties the cache for the next transaction; frees memory and disk space beyond the usual.
    pub fn clear(&mut self) {
        self.spill = None;
        self.large = None;
        self.memory.clear();
        if self.memory.capacity() > KEPT {
            self.memory = Vec::new();
        }
        self.events = 0;
        self.counted = false;
        self.opening = None;
        self.statements = false;
        self.origin = None;
    }

    /// Calls `each` with every run of whole events, in order, reading spilled ones back in pieces of about `piece`
    /// bytes (one event may be longer).
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

    /// Moves the events to a file that can become a log file. Copies the spilled events: at most about the threshold's
    /// number of bytes.
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

/// Returns the number of bytes that the whole events at the start of `bytes` take, and the number of these events.
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

/// Returns whether an event's change is a statement's text. MySQL's replicas stop with error 13117 at such an event in
/// a transaction that declares to have rows only.
fn is_statement(kind: EventType, body: &[u8]) -> bool {
    kind == EventType::EXECUTE_LOAD_QUERY || kind == EventType::QUERY && !body.ends_with(b"BEGIN")
}

#[cfg(test)]
mod tests;
