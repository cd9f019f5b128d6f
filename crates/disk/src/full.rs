//! The state of a full disk: one for the log, the engines and the pages that show it (SPACE-1).
//!
//! A writer that finds no room for a write that must not fail reports it here ([`FullDisk::waits`]), tries again now and then, and reports when it
//! goes on ([`FullDisk::goes_on`]). How it waits is its own affair. The log of errors has one line when the first one begins to wait
//! and one when the last one has got on.
//!
//! [`FullDisk::make_room`] puts an order into who takes what becomes free (SPACE-2): while somebody makes room, the engines' checkpoints
//! have it, because they are what lets log files go, and commits that wait for room do not try again.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Whether an operation failed because there was no room, on the disk or in its quota.
#[must_use]
pub fn is_full(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// See the module. Any thread; nothing here blocks.
#[derive(Debug, Default)]
pub struct FullDisk {
    /// Whether who finds no room waits for some.
    patient: AtomicBool,
    /// `waiting` is not empty.
    full: AtomicBool,
    makers: AtomicUsize,
    /// Changes when room was made.
    made: AtomicU64,
    /// How often the state has begun.
    begun: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The writers that wait, each with its reason: "can not write FILE: REASON".
    waiting: BTreeMap<&'static str, String>,
    since: Option<Instant>,
}

/// Somebody makes room for as long as this lives.
#[derive(Debug)]
pub struct MakingRoom<'a>(&'a FullDisk);

impl FullDisk {
    /// A disk that is waited for until [`FullDisk::give_up`]. The default is one that nobody waits for.
    #[must_use]
    pub fn patient() -> FullDisk {
        FullDisk { patient: AtomicBool::new(true), ..FullDisk::default() }
    }

    /// Whether a write that finds no room is to wait.
    #[must_use]
    pub fn is_patient(&self) -> bool {
        self.patient.load(Ordering::Acquire)
    }

    /// From now on a full disk is an error, also for those who wait already: for a shutdown.
    pub fn give_up(&self) {
        self.patient.store(false, Ordering::Release);
    }

    /// `who` waits for room, because it `can not write FILE: REASON`.
    pub fn waits(&self, who: &'static str, why: &dyn Display) {
        let mut state = self.state();
        if state.waiting.is_empty() {
            state.since = Some(Instant::now());
            self.begun.fetch_add(1, Ordering::Relaxed);
            tracing::error!(
                "the disk is full: {why}. What writes waits, reads go on. Free room, or use PURGE BINARY LOGS; then all goes on by itself"
            );
        }
        // Asserts SPACE-1: it is full for all who ask from here on.
        state.waiting.insert(who, why.to_string());
        self.full.store(true, Ordering::Release);
    }

    /// `who` waits no longer; `found` says whether it got its room.
    pub fn goes_on(&self, who: &'static str, found: bool) {
        if !self.is_full() {
            return;
        }
        let mut state = self.state();
        if state.waiting.remove(who).is_none() || !state.waiting.is_empty() {
            return;
        }
        self.full.store(false, Ordering::Release);
        let seconds = state.since.take().map_or(0, |since| since.elapsed().as_secs());
        if found {
            tracing::info!(seconds, "there is space on the disk again: what waited for it goes on");
        }
    }

    /// Whether anybody waits for room now.
    #[inline]
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }

    /// Whether this one waits for room now.
    #[must_use]
    pub fn has_waiting(&self, who: &str) -> bool {
        self.is_full() && self.state().waiting.contains_key(who)
    }

    /// Returns the reason of the first writer that waits, and for how long one has waited.
    #[must_use]
    pub fn trouble(&self) -> Option<(String, Duration)> {
        let state = self.state();
        let why = state.waiting.values().next()?;
        Some((why.clone(), state.since.map_or(Duration::ZERO, |since| since.elapsed())))
    }

    /// How often somebody has begun to wait while nobody did.
    #[must_use]
    pub fn times(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// SPACE-2: until what this gives is dropped, what becomes free is for those who let log files go.
    pub fn make_room(&self) -> MakingRoom<'_> {
        self.makers.fetch_add(1, Ordering::AcqRel);
        MakingRoom(self)
    }

    /// Whether somebody makes room: commits and whatever is written ahead of need leave it alone.
    #[must_use]
    pub fn is_making_room(&self) -> bool {
        self.makers.load(Ordering::Acquire) > 0
    }

    /// Notes that a file was removed, so that writes that wait for room try again.
    pub fn room_was_made(&self) {
        self.made.fetch_add(1, Ordering::AcqRel);
    }

    /// Changes with [`FullDisk::room_was_made`].
    #[must_use]
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Acquire)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for MakingRoom<'_> {
    fn drop(&mut self) {
        self.0.makers.fetch_sub(1, Ordering::AcqRel);
        self.0.room_was_made();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_full_from_the_first_who_waits_to_the_last() {
        // SPACE-1
        let disk = FullDisk::patient();
        assert!(!disk.is_full() && disk.trouble().is_none());
        disk.waits("log", &"can not write a: no room");
        disk.waits("engine", &"can not write b: no room");
        disk.waits("log", &"can not write a: no room");
        assert!(disk.is_full() && disk.has_waiting("log") && disk.has_waiting("engine"));
        disk.goes_on("engine", true);
        assert!(disk.is_full() && !disk.has_waiting("engine"));
        assert_eq!(disk.trouble().map(|(why, _)| why).as_deref(), Some("can not write a: no room"));
        disk.goes_on("log", true);
        disk.goes_on("log", true);
        assert!(!disk.is_full() && disk.trouble().is_none());
        disk.waits("log", &"can not write a: no room");
        assert_eq!(disk.times(), 2);
    }

    #[test]
    fn room_is_made_until_the_last_who_makes_it_has_done() {
        // SPACE-2
        let disk = FullDisk::patient();
        let (first, second) = (disk.make_room(), disk.make_room());
        drop(first);
        assert!(disk.is_making_room());
        let before = disk.made();
        drop(second);
        assert!(!disk.is_making_room() && disk.made() != before);
    }
}
