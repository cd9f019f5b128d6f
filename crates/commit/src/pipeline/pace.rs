//! How quick the device is and how large groups are: that decides who leads, and how many writes may be in flight.

use super::sync::atomic::{AtomicU64, Ordering};
use crate::CommitSettings;
use std::time::Duration;

/// The unit of `Pace::group_size`, and the mean group size above which no session leads inline.
const ONE: u64 = 1024;
const ALONE: u64 = ONE + ONE / 10;

/// Smoothed measures of the last groups.
pub(super) struct Pace {
    /// Sync time, microseconds; 0 before the first.
    sync_us: AtomicU64,
    /// Number of transactions in a group, in units of `ONE`.
    group_size: AtomicU64,
}

impl Pace {
    pub(super) fn new() -> Pace {
        Pace { sync_us: AtomicU64::new(0), group_size: AtomicU64::new(ONE) }
    }

    /// A quarter of the new value: follows a changed device within a few groups.
    pub(super) fn note_sync(&self, took: Duration) {
        let old = self.sync_us.load(Ordering::Relaxed);
        let new = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let smooth = if old == 0 { new } else { old - old / 4 + new / 4 };
        self.sync_us.store(smooth.max(1), Ordering::Relaxed);
    }

    /// Over about the last sixteen groups. With the flush lock held.
    pub(super) fn note_group(&self, members: u64) {
        let old = self.group_size.load(Ordering::Relaxed);
        self.group_size.store(old - old / 16 + members.min(1024) * (ONE / 16), Ordering::Relaxed);
    }

    /// Whether a session may do its whole commit: the device is known to be fast, and groups have one member.
    pub(super) fn suits_inline(&self, settings: &CommitSettings) -> bool {
        let sync_us = self.sync_us.load(Ordering::Relaxed);
        sync_us > 0
            && sync_us <= settings.fast_sync_us.load(Ordering::Relaxed)
            && self.group_size.load(Ordering::Relaxed) <= ALONE
    }

    /// The number of writes that may be in flight. One is enough for a fast device, whose groups become larger that way.
    pub(super) fn in_flight_limit(&self, settings: &CommitSettings) -> u64 {
        if self.sync_us.load(Ordering::Relaxed) <= settings.fast_sync_us.load(Ordering::Relaxed) {
            return 1;
        }
        settings.max_in_flight.load(Ordering::Relaxed).max(1)
    }
}
