//! `binlog_transaction_compression`: a transaction's events become one, compressed, on its session's thread, before it enrols.
//!
//! Only rows are: what the log needs to see without decompressing (text, definitions, XA, what is private) stays as it is, and so does what
//! is too long, or would not become shorter.

use super::{CacheError, TrxCache};
use omnibus_format::events::Query;
use omnibus_format::header::HEADER_LEN;
use omnibus_format::{Dialect, EventHeader, EventType, payload, writer};
use std::sync::atomic::{AtomicU64, Ordering};

/// A longer transaction is not compressed: it would be in memory as a whole, twice.
const LONGEST: u64 = 64 << 20;
/// Compressing more takes so long that it needs a thread that may block.
const QUICK: u64 = 256 << 10;
/// What is shorter has nothing to gain.
const SHORTEST: u64 = 128;

/// What compression came to.
#[derive(Debug, Default)]
pub struct CompressionStats {
    /// Transactions.
    pub transactions: AtomicU64,
    /// Bytes of their events.
    pub before: AtomicU64,
    /// Bytes that they became.
    pub after: AtomicU64,
}

impl TrxCache {
    /// Whether compressing what is here takes long.
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

    /// Makes one event of all of them, if that is shorter, at this level of zstd's. Nothing is appended afterwards.
    ///
    /// # Errors
    /// What was spilled can not be read.
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
            self.flags,
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
