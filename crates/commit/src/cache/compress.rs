//! `binlog_transaction_compression`: replaces a transaction's events by one compressed event, on its session's thread,
//! before it enrols.
//!
//! Only transactions of row events are compressed. Events that the log must examine without decompressing (text,
//! definitions, XA, private events) stay as they are, and so does a transaction that is too long or would not become
//! shorter.

use super::{CacheError, TrxCache};
use omnibus_format::events::Query;
use omnibus_format::header::HEADER_LEN;
use omnibus_format::{Dialect, EventHeader, EventType, payload, writer};
use std::sync::atomic::{AtomicU64, Ordering};

/// The largest transaction that is compressed, in bytes: compression holds it in memory as a whole, twice.
const LONGEST: u64 = 64 << 20;
/// Bytes from which compression takes so long that it needs a thread that may block.
const QUICK: u64 = 256 << 10;
/// The smallest transaction that is compressed, in bytes.
const SHORTEST: u64 = 128;

/// Counters of transaction compression.
#[derive(Debug, Default)]
pub struct CompressionStats {
    /// Number of compressed transactions.
    pub transactions: AtomicU64,
    /// Bytes of their events before compression.
    pub before: AtomicU64,
    /// Bytes of their events after compression.
    pub after: AtomicU64,
}

impl TrxCache {
    /// Returns whether compressing the cached events would take long.
    #[must_use]
    pub fn takes_long_to_compress(&self) -> bool {
        self.len() > QUICK && self.may_compress()
    }

    fn may_compress(&self) -> bool {
        self.settings.dialect == Dialect::Mysql
            && !self.statements
            && self.opening.is_none()
            && self.large.is_none()
            && (SHORTEST..=LONGEST).contains(&self.len())
    }

    /// Replaces all events by one compressed event, if that is shorter. `level` is zstd's compression level. No event
    /// may be appended afterwards.
    ///
    /// # Errors
    /// The spilled events cannot be read.
    pub fn compress(&mut self, level: i32) -> Result<(), CacheError> {
        if !self.may_compress() {
            return Ok(());
        }
        let mut events = Vec::new();
        if self.spill.is_some() {
            self.read_events::<CacheError>(1 << 20, |run| {
                events.extend_from_slice(run);
                Ok(())
            })?;
        }
        let plain = if self.spill.is_some() { &events } else { &self.memory };
        if !has_rows_only(plain) {
            return Ok(());
        }
        let mut body = Vec::new();
        // Without memory for it the events go as they are.
        if payload::encode(plain, level, &mut body).is_err() {
            return Ok(());
        }
        let before = plain.len();
        if body.len() + HEADER_LEN >= before {
            return Ok(());
        }
        self.spill = None;
        self.memory.clear();
        writer::append_event(
            &mut self.memory,
            self.context,
            EventType::TRANSACTION_PAYLOAD,
            self.naming.flags(),
            &body,
        );
        self.events = 1;
        let stats = &self.settings.compressed;
        let add = |cell: &AtomicU64, n: usize| cell.fetch_add(n as u64, Ordering::Relaxed);
        add(&stats.transactions, 1);
        add(&stats.before, before);
        add(&stats.after, self.memory.len());
        Ok(())
    }
}

fn has_rows_only(mut events: &[u8]) -> bool {
    while let Ok(header) = EventHeader::decode(events) {
        let Some((event, rest)) = events.split_at_checked(header.size as usize) else { return false };
        let fits = match header.event_type {
            EventType::QUERY => Query::decode(&event[HEADER_LEN..]).is_ok_and(|query| query.sql == b"BEGIN"),
            EventType::TABLE_MAP | EventType::ROWS_QUERY | EventType::XID => true,
            kind => kind.is_rows(),
        };
        if !fits {
            return false;
        }
        events = rest;
    }
    events.is_empty()
}
