//! Splits a write set into the parts of each engine.

use crate::{SpaceId, WriteSet};
use bytes::Bytes;
use std::ops::{Bound, Range};

/// Returns whether all writes are the first engine's alone: none in another slot, none shared. This is on the commit
/// path, so the last key decides the slot, and the first key nearly always the rest.
#[inline]
pub(super) fn only_first(writes: &WriteSet, shared: &Range<Bytes>) -> bool {
    if writes.is_spilled() {
        let others = (Bound::Included(&SLOT_1[..]), Bound::Unbounded);
        return !writes.may_have(others) && !writes.may_have(bounds(shared));
    }
    let mut keys = writes.in_memory(..).map(|held| held.key());
    let Some(first) = keys.next() else { return true };
    if SpaceId::slot_of_key(keys.next_back().unwrap_or(first)) != 0 {
        return false;
    }
    *first >= shared.end[..] || writes.in_memory(bounds(shared)).next().is_none()
}

/// Returns a range as bounds of a search.
pub(super) fn bounds(range: &Range<Bytes>) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (Bound::Included(&range.start), Bound::Excluded(&range.end))
}

/// Passes the part of the write set that belongs to one slot to `to`, if there is one.
pub(super) fn part(writes: &WriteSet, slot: u8, shared: &Range<Bytes>, to: impl FnOnce(&WriteSet)) {
    let mut held = writes.in_memory(..);
    if !writes.is_spilled() && held.all(|held| is_for(slot, shared, held.key())) {
        to(writes);
    } else if let Some(part) = owned_part(writes, slot, shared) {
        to(&part);
    }
}

/// As `part`, returning a write set of its own.
pub(super) fn owned_part(writes: &WriteSet, slot: u8, shared: &Range<Bytes>) -> Option<WriteSet> {
    let part = writes.part(vec![shared.clone(), keys_of(slot)]);
    (!part.is_empty()).then_some(part)
}

/// The first key of the second slot.
const SLOT_1: [u8; 1] = [0x40];

/// All keys of a slot.
pub(super) fn keys_of(slot: u8) -> Range<Bytes> {
    let start = SpaceId::in_slot(slot, 0).prefix();
    // Keys begin with their space, and the last space is never used.
    let end = match u32::from_be_bytes(start).checked_add(u32::from_be_bytes(SpaceId::in_slot(1, 0).prefix()))
    {
        Some(next) => next.to_be_bytes(),
        None => [0xff; 4],
    };
    Bytes::copy_from_slice(&start)..Bytes::copy_from_slice(&end)
}

fn is_for(slot: u8, shared: &Range<Bytes>, key: &[u8]) -> bool {
    SpaceId::slot_of_key(key) == slot || (*key >= shared.start[..] && *key < shared.end[..])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn set(keys: &[&[u8]]) -> WriteSet {
        let mut set = WriteSet::default();
        keys.iter().for_each(|key| set.put(Bytes::copy_from_slice(key), Bytes::new()));
        set
    }

    fn parts(writes: &WriteSet, slot: u8) -> Vec<Bytes> {
        let mut keys = Vec::new();
        part(writes, slot, &shared(), |part| {
            keys = part.iter().map(|pending| Bytes::copy_from_slice(pending.unwrap().key())).collect();
        });
        keys
    }

    fn shared() -> Range<Bytes> {
        Bytes::from_static(b"\0\0\0\x01B")..Bytes::from_static(b"\0\0\0\x02")
    }

    #[test]
    fn slots_and_shared_keys_decide_who_gets_what() {
        let (counter, definition, row) = (&b"\0\0\0\x01A1"[..], &b"\0\0\0\x01T1"[..], &b"\0\0\0\x64r"[..]);
        let other = &b"\x40\0\0\x65r"[..];
        assert!(only_first(&set(&[]), &shared()));
        assert!(only_first(&set(&[row]), &shared()));
        assert!(only_first(&set(&[counter, row]), &shared()));
        assert!(!only_first(&set(&[counter, definition, row]), &shared()));
        assert!(!only_first(&set(&[definition]), &shared()));
        assert!(!only_first(&set(&[row, other]), &shared()));
        assert!(!only_first(&set(&[other]), &shared()));
        let all = set(&[counter, definition, row, other]);
        assert_eq!(parts(&all, 0), [counter, definition, row]);
        assert_eq!(parts(&all, 1), [definition, other]);
        assert_eq!(parts(&set(&[row]), 1), [] as [Bytes; 0]);
    }
}
