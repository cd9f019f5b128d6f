//! Which engines a write set is for, and its parts.

use crate::{SpaceId, WriteSet};
use bytes::Bytes;
use std::ops::{Bound, Range};

/// Whether all of it is the first engine's alone: nothing in another slot, nothing shared. On the commit
/// path, so: the last key decides the slot, and the first key nearly always the rest.
#[inline]
pub(super) fn only_first(writes: &WriteSet, shared: &Range<Bytes>) -> bool {
    let mut keys = writes.iter().map(|pending| pending.key());
    let Some(first) = keys.next() else { return true };
    if SpaceId::slot_of_key(keys.next_back().unwrap_or(first)) != 0 {
        return false;
    }
    *first >= shared.end[..] || writes.range::<(Bound<&[u8]>, Bound<&[u8]>)>(bounds(shared)).next().is_none()
}

fn bounds(shared: &Range<Bytes>) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (Bound::Included(&shared.start), Bound::Excluded(&shared.end))
}

/// Gives `to` what of the write set is for one slot, if anything is.
pub(super) fn part(writes: &WriteSet, slot: u8, shared: &Range<Bytes>, to: impl FnOnce(&WriteSet)) {
    if writes.iter().all(|pending| is_for(slot, shared, pending.key())) {
        to(writes);
    } else if let Some(part) = owned_part(writes, slot, shared) {
        to(&part);
    }
}

/// As `part`, as a write set of its own.
pub(super) fn owned_part(writes: &WriteSet, slot: u8, shared: &Range<Bytes>) -> Option<WriteSet> {
    let mut part = WriteSet::default();
    for pending in writes.iter().filter(|pending| is_for(slot, shared, pending.key())) {
        let key = Bytes::copy_from_slice(pending.key());
        match pending.write() {
            Some(value) => part.put(key, value),
            None => part.delete(key),
        }
    }
    (!part.is_empty()).then_some(part)
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
            keys = part.iter().map(|pending| Bytes::copy_from_slice(pending.key())).collect();
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
