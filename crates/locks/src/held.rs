//! Locks that a transaction holds and waits for, as others see them: for INNODB_TRX and `data_locks`. Reads one transaction and one shard
//! after the other, so nobody is stopped for longer than a lock takes.

use crate::handle::TrxHandle;
use crate::mode::Mode;
use crate::stats::LockTarget;
use crate::sync::atomic::Ordering;
use bytes::Bytes;
use std::time::Duration;

/// Counts of the locks of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldCounts {
    /// Records, one by one or in bulk; a record that it waits for counts.
    pub rows: usize,
    /// Spaces in which it has records or ranges.
    pub spaces: usize,
    /// Tables.
    pub tables: usize,
    /// Tables that it may write to.
    pub written: usize,
}

/// A lock that a transaction holds in a space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLock {
    /// The space.
    pub space: u32,
    /// The record; `None`: many of the space, or a range.
    pub key: Option<Bytes>,
    /// The mode, as the field writes it.
    pub mode: &'static str,
}

/// A wait under way.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The lock.
    pub target: LockTarget,
    /// The mode asked for.
    pub mode: &'static str,
    /// The duration so far.
    pub waited: Duration,
}

impl TrxHandle {
    /// Counts its locks.
    #[must_use]
    pub fn held(&self) -> HeldCounts {
        let held = self.trx.held.lock();
        let mut spaces: Vec<u32> = held.records.iter().map(|(space, _)| *space).collect();
        spaces.extend(held.bulks.iter().chain(&held.ranges));
        spaces.sort_unstable();
        spaces.dedup();
        HeldCounts {
            rows: held.records.len() + self.trx.bulk.load(Ordering::Relaxed),
            spaces: spaces.len(),
            tables: held.tables.len(),
            written: held.tables.iter().filter(|table| table.mode.is_none_or(Mode::writes)).count(),
        }
    }

    /// The locks that it holds in spaces: of single records at most so many.
    #[must_use]
    pub fn held_in_spaces(&self, most: usize) -> Vec<HeldLock> {
        let (records, bulks, ranges) = {
            let held = self.trx.held.lock();
            let records: Vec<_> = held.records.iter().take(most).cloned().collect();
            (records, held.bulks.clone(), held.ranges.clone())
        };
        // One that is only waited for is in the list as well.
        let single = |(space, key): (u32, Bytes)| {
            let mode = self.manager.with_space(space, |s| s.mode_of(&self.trx, &key))?;
            Some(HeldLock { space, key: Some(key), mode: mode.name() })
        };
        let many = bulks.into_iter().map(|space| HeldLock { space, key: None, mode: "X" });
        let gaps = ranges.into_iter().map(|space| HeldLock { space, key: None, mode: "X,GAP" });
        records.into_iter().filter_map(single).chain(many).chain(gaps).collect()
    }

    /// The wait of its own that is under way.
    #[must_use]
    pub fn waiting(&self) -> Option<Waiting> {
        let slot = self.trx.slot.lock();
        let target = slot.target.clone()?.told();
        let waited = slot.since.map_or_else(Duration::default, |since| since.elapsed());
        Some(Waiting { target, mode: slot.mode, waited })
    }
}
