//! Private events: what recovery needs of a transaction beside the events that other tools read.

use super::trx::cache_error;
use crate::error::SqlResult;
use bytes::Bytes;
use omnibus_commit::TrxCache;
use omnibus_engine::WriteSet;
use omnibus_format::header::FLAG_IGNORABLE;
use omnibus_format::{EventType, private};

/// The whole write set as one private event.
pub(crate) fn write_set_event(cache: &mut TrxCache, writes: &WriteSet) -> SqlResult<()> {
    let mut body = Vec::new();
    private::begin_write_set(&mut body);
    for pending in writes.iter() {
        let pending = pending?;
        private::put_write(&mut body, pending.key(), pending.write().as_deref());
    }
    private_event(cache, &body)
}

/// Bytes of writes in one private event.
const PART: usize = 1 << 20;

/// All writes, in private events of bounded size.
pub(super) fn all_writes_events(cache: &mut TrxCache, writes: &WriteSet) -> SqlResult<()> {
    let mut body = Vec::new();
    for pending in writes.iter() {
        let pending = pending?;
        if body.is_empty() {
            private::begin_all_writes(&mut body);
        }
        private::put_write(&mut body, pending.key(), pending.write().as_deref());
        if body.len() >= PART {
            private_event(cache, &body)?;
            body.clear();
        }
    }
    if body.is_empty() { Ok(()) } else { private_event(cache, &body) }
}

/// Writes that no row event tells of, as a private event.
pub(super) fn unlogged_event(cache: &mut TrxCache, writes: &WriteSet, keys: &[Bytes]) -> SqlResult<()> {
    if keys.is_empty() {
        return Ok(());
    }
    let mut body = Vec::new();
    private::begin_write_set(&mut body);
    for key in keys {
        if let Some(write) = writes.get(key)? {
            private::put_write(&mut body, key, write.as_deref());
        }
    }
    private_event(cache, &body)
}

/// A private event with this body.
pub(crate) fn private_event(cache: &mut TrxCache, body: &[u8]) -> SqlResult<()> {
    cache.append_event(EventType::IGNORABLE.0, FLAG_IGNORABLE, body).map_err(cache_error)
}
