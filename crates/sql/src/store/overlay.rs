//! A transaction's own pending writes, laid over what an engine's snapshot has.

use super::range::{KeyRange, by_ref};
use bytes::Bytes;
use omnibus_engine::{EngineError, Snapshot, Write, WriteSet};
use std::ops::Bound;

/// Merges the engine's pairs with the pending writes, up to `want`. Returns whether that was all.
pub(super) fn read_batch(
    snapshot: &dyn Snapshot,
    writes: &WriteSet,
    range: &KeyRange,
    want: usize,
    out: &mut Vec<(Bytes, Bytes)>,
) -> Result<bool, EngineError> {
    if range.is_empty() {
        return Ok(true);
    }
    let mut own = OwnWrites::new(writes, range);
    if own.is_empty() && !range.reverse {
        return snapshot.visit(by_ref(&range.from), by_ref(&range.to), &mut |key, value| {
            out.push((key.to_bytes(), value));
            out.len() < want
        });
    }
    let mut stored = snapshot.scan(by_ref(&range.from), by_ref(&range.to), range.reverse);
    if own.is_empty() {
        for pair in stored {
            out.push(pair?);
            if out.len() >= want {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    let mut next = stored.next().transpose()?;
    loop {
        if out.len() >= want {
            return Ok(false);
        }
        let order = match (&next, own.peek()) {
            (None, None) => return Ok(true),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some((key, _)), Some((own, _))) if range.reverse => own.cmp(key),
            (Some((key, _)), Some((own, _))) => key.cmp(own),
        };
        if order.is_le() {
            let pair = std::mem::replace(&mut next, stored.next().transpose()?);
            if order.is_lt() {
                out.extend(pair);
                continue;
            }
        }
        if let Some((key, Some(value))) = own.take() {
            out.push((key.clone(), value.clone()));
        }
    }
}

/// Pending writes of a range, in its direction.
pub(super) struct OwnWrites<'a> {
    next: Option<(&'a Bytes, &'a Write)>,
    rest: Box<dyn Iterator<Item = (&'a Bytes, &'a Write)> + 'a>,
}

impl<'a> OwnWrites<'a> {
    pub(super) fn new(writes: &'a WriteSet, range: &'a KeyRange) -> OwnWrites<'a> {
        if writes.is_empty() {
            return OwnWrites { next: None, rest: Box::new(std::iter::empty()) };
        }
        let pending = writes.range::<(Bound<&[u8]>, Bound<&[u8]>)>((by_ref(&range.from), by_ref(&range.to)));
        let mut rest: Box<dyn Iterator<Item = (&'a Bytes, &'a Write)> + 'a> =
            if range.reverse { Box::new(pending.rev()) } else { Box::new(pending) };
        OwnWrites { next: rest.next(), rest }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.next.is_none()
    }

    fn peek(&self) -> Option<(&'a Bytes, &'a Write)> {
        self.next
    }

    fn take(&mut self) -> Option<(&'a Bytes, &'a Write)> {
        std::mem::replace(&mut self.next, self.rest.next())
    }
}
