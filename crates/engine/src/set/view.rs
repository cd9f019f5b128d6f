//! A snapshot of all engines: one number (SNAP-1). The first engine is read without an object of its own; the
//! others' are made when they are first asked for.

use super::Parts;
use crate::{CommitNo, EngineError, KeyRef, ReadAt, Snapshot, SnapshotIter, SpaceId};
use bytes::Bytes;
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

pub(super) struct SetSnapshot<F> {
    parts: Arc<Parts<F>>,
    at: CommitNo,
    others: [OnceLock<Box<dyn Snapshot>>; SpaceId::SLOTS - 1],
}

impl<F: ReadAt> SetSnapshot<F> {
    pub(super) fn new(parts: Arc<Parts<F>>, at: CommitNo) -> SetSnapshot<F> {
        SetSnapshot { parts, at, others: Default::default() }
    }

    /// Of a slot above 0 that has an engine.
    fn other(&self, slot: u8) -> Option<&dyn Snapshot> {
        let engine = self.parts.other(slot)?;
        let cell = self.others.get(usize::from(slot).wrapping_sub(1))?;
        Some(&**cell.get_or_init(|| engine.snapshot(self.at)))
    }

    /// The slots that a range touches.
    fn slots(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> (u8, u8) {
        let first = match from {
            Bound::Included(key) | Bound::Excluded(key) => SpaceId::slot_of_key(key),
            Bound::Unbounded => 0,
        };
        let highest = self.parts.others.len() as u8;
        let last = match to {
            Bound::Included(key) | Bound::Excluded(key) => SpaceId::slot_of_key(key).min(highest),
            Bound::Unbounded => highest,
        };
        (first, last)
    }
}

/// The lower bound within a slot: an engine above slot 0 also holds shared keys, which are not its to show.
fn clip<'a>(from: Bound<&'a [u8]>, start: &'a [u8; 4]) -> Bound<&'a [u8]> {
    match from {
        Bound::Included(key) | Bound::Excluded(key) if *key >= start[..] => from,
        _ => Bound::Included(start),
    }
}

fn start_of(slot: u8) -> [u8; 4] {
    SpaceId::in_slot(slot, 0).prefix()
}

impl<F: ReadAt> Snapshot for SetSnapshot<F> {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        match SpaceId::slot_of_key(key) {
            0 => self.parts.first.get_at(self.at, key),
            slot => self.other(slot).map_or(Ok(None), |snapshot| snapshot.get(key)),
        }
    }

    fn get_version(&self, key: &[u8]) -> Result<Option<(CommitNo, Bytes)>, EngineError> {
        match SpaceId::slot_of_key(key) {
            0 => self.parts.first.get_version_at(self.at, key),
            slot => self.other(slot).map_or(Ok(None), |snapshot| snapshot.get_version(key)),
        }
    }

    fn scan<'a>(&'a self, from: Bound<&[u8]>, to: Bound<&[u8]>, reverse: bool) -> SnapshotIter<'a> {
        let (first, last) = self.slots(from, to);
        if (first, last) == (0, 0) {
            return self.parts.first.scan_at(self.at, from, to, reverse);
        }
        let mut scans: Vec<SnapshotIter<'a>> = Vec::new();
        for slot in first..=last {
            if slot == 0 {
                scans.push(self.parts.first.scan_at(self.at, from, to, reverse));
            } else if let Some(other) = self.other(slot) {
                scans.push(other.scan(clip(from, &start_of(slot)), to, reverse));
            }
        }
        if reverse {
            scans.reverse();
        }
        match scans.len() {
            1 => scans.remove(0),
            _ => Box::new(scans.into_iter().flatten()),
        }
    }

    fn visit(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        each: &mut dyn FnMut(KeyRef<'_>, Bytes) -> bool,
    ) -> Result<bool, EngineError> {
        let (first, last) = self.slots(from, to);
        for slot in first..=last {
            let more = match (slot, self.other(slot)) {
                (0, _) => self.parts.first.visit_at(self.at, from, to, each)?,
                (_, Some(other)) => other.visit(clip(from, &start_of(slot)), to, each)?,
                (_, None) => true,
            };
            if !more {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
