//! A snapshot of all engines: one number (SNAP-1). The first engine is read without an object of its own; the
//! others' are made when they are first asked for.

use super::Parts;
use crate::{CommitNo, EngineError, Lent, ReadAt, Snapshot, SnapshotIter, SpaceId};
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

    /// Returns the snapshot of a slot above 0 that has an engine.
    fn other(&self, slot: u8) -> Option<&dyn Snapshot> {
        let engine = self.parts.other(slot)?;
        let cell = self.others.get(usize::from(slot).wrapping_sub(1))?;
        Some(&**cell.get_or_init(|| engine.snapshot(self.at)))
    }

    /// The slots that a range touches.
    fn slots(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> (u8, u8) {
        let first = SpaceId::slot_of_key(key_of(from));
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

/// A scan within one table, which the start of the scan determines.
struct Named<'a, F> {
    parts: &'a Parts<F>,
    from: [u8; 4],
}

impl<F: ReadAt> Named<'_, F> {
    fn error(&self, error: EngineError) -> EngineError {
        self.parts.named(error, &self.from)
    }
}

fn key_of(from: Bound<&[u8]>) -> &[u8] {
    match from {
        Bound::Included(key) | Bound::Excluded(key) => key,
        Bound::Unbounded => &[],
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
        .map_err(|error| self.parts.named(error, key))
    }

    fn get_version(&self, key: &[u8]) -> Result<Option<(CommitNo, Bytes)>, EngineError> {
        match SpaceId::slot_of_key(key) {
            0 => self.parts.first.get_version_at(self.at, key),
            slot => self.other(slot).map_or(Ok(None), |snapshot| snapshot.get_version(key)),
        }
        .map_err(|error| self.parts.named(error, key))
    }

    fn scan<'a>(&'a self, from: Bound<&[u8]>, to: Bound<&[u8]>, reverse: bool) -> SnapshotIter<'a> {
        let (first, last) = self.slots(from, to);
        let named =
            Named { parts: &self.parts, from: key_of(from).first_chunk().copied().unwrap_or_default() };
        if (first, last) == (0, 0) {
            let scan = self.parts.first.scan_at(self.at, from, to, reverse);
            return Box::new(scan.map(move |pair| pair.map_err(|error| named.error(error))));
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
        let pairs = scans.into_iter().flatten();
        Box::new(pairs.map(move |pair| pair.map_err(|error| named.error(error))))
    }

    fn visit(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        each: &mut dyn FnMut(Lent<'_>, Lent<'_>) -> bool,
    ) -> Result<bool, EngineError> {
        let (first, last) = self.slots(from, to);
        for slot in first..=last {
            let more = match (slot, self.other(slot)) {
                (0, _) => self.parts.first.visit_at(self.at, from, to, each),
                (_, Some(other)) => other.visit(clip(from, &start_of(slot)), to, each),
                (_, None) => Ok(true),
            };
            if !more.map_err(|error| self.parts.named(error, key_of(from)))? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
