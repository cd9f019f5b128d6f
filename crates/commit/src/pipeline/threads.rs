//! The log threads, and when the committing thread leads its own group.
//!
//! One thread per write that may be in flight: several on a slow device, one on a quick one, whose groups are the larger
//! for it. Each takes the flush stage, seals a group, writes it and acknowledges it; whoever finds the places in flight taken
//! leaves what it appended to the next leader, as a follower. So a slow sync blocks no session's thread.

use super::Shared;
use super::queue::Enrolled;
use super::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use super::sync::thread;
use super::sync::thread::JoinHandle;
use super::sync::{Condvar, Mutex};
use super::ticket::Ticket;
use super::ticket::ticket;
use crate::env::Env;
use crate::stats::CommitStats;
use crate::{CommitError, CommitProtocol, CommitRequest};
use omnibus_engine::CommitNo;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// While all writes that a slow device takes are in flight, a sleeping thread is worth waking for the flush stage once
/// this many wait: below, the switch costs more than the overlap gains. A quick device's write ends sooner.
const FLUSH_AHEAD: usize = 16;

/// The unit of `Shared::group_size`, and the mean group size above which nobody leads inline.
pub(super) const ONE: u64 = 1024;
const ALONE: u64 = ONE + ONE / 10;

/// How often a thread with nothing to do looks around: bounds the data loss of `sync_binlog=0`.
const TICK: Duration = Duration::from_secs(1);

/// Sleeping log threads, the last to fall asleep first to be woken: its caches are warm.
pub(super) struct Idle {
    /// How many there are.
    threads: usize,
    /// Length of `asleep`, to be read without its lock.
    sleeping: AtomicUsize,
    asleep: Mutex<Vec<Arc<Wakeup>>>,
    shutdown: AtomicBool,
}

/// One thread's own way of being woken.
#[derive(Default)]
pub(super) struct Wakeup {
    woken: Mutex<bool>,
    condition: Condvar,
}

impl Wakeup {
    fn wake(&self) {
        *self.woken.lock() = true;
        self.condition.notify_one();
    }

    /// False if `TICK` passed first.
    fn wait(&self) -> bool {
        let mut woken = self.woken.lock();
        if !*woken {
            self.condition.wait_for(&mut woken, TICK);
        }
        std::mem::take(&mut *woken)
    }
}

impl Idle {
    pub(super) fn of(threads: usize) -> Idle {
        Idle {
            threads,
            sleeping: AtomicUsize::new(0),
            asleep: Mutex::default(),
            shutdown: AtomicBool::new(false),
        }
    }

    #[cfg(test)]
    pub(super) fn awake(&self) -> usize {
        self.threads - self.sleeping.load(Ordering::SeqCst)
    }

    /// Wakes one sleeping thread, if any, unless as many as are of use are awake: each of them looks for work before it
    /// sleeps, and more of them would only take turns, each with cold caches.
    pub(super) fn call(&self, of_use: usize) {
        let sleeping = self.sleeping.load(Ordering::SeqCst);
        if sleeping == 0 || self.threads.saturating_sub(sleeping) >= of_use {
            return;
        }
        let mut asleep = self.asleep.lock();
        let wakeup = asleep.pop();
        self.sleeping.store(asleep.len(), Ordering::SeqCst);
        drop(asleep);
        if let Some(wakeup) = wakeup {
            wakeup.wake();
        }
    }

    pub(super) fn shut_down(&self) {
        self.shutdown.store(true, Ordering::SeqCst);
        let wakeups = std::mem::take(&mut *self.asleep.lock());
        for wakeup in wakeups {
            wakeup.wake();
        }
    }

    pub(super) fn is_shut_down(&self) -> bool {
        self.shutdown.load(Ordering::SeqCst)
    }

    /// Sleeps until called, unless `busy` after the intention to sleep is announced: whoever adds
    /// work after that sees a sleeper and calls. False if a tick passed without a call.
    fn sleep(&self, wakeup: &Arc<Wakeup>, busy: impl Fn() -> bool) -> bool {
        let mut asleep = self.asleep.lock();
        asleep.push(wakeup.clone());
        self.sleeping.store(asleep.len(), Ordering::SeqCst);
        if busy() || self.is_shut_down() {
            asleep.pop();
            self.sleeping.store(asleep.len(), Ordering::SeqCst);
            return true;
        }
        drop(asleep);
        if wakeup.wait() {
            return true;
        }
        let mut asleep = self.asleep.lock();
        let before = asleep.len();
        asleep.retain(|other| !Arc::ptr_eq(other, wakeup));
        self.sleeping.store(asleep.len(), Ordering::SeqCst);
        // Called just now: the ring is for this thread, and must not be left for its next sleep.
        let called = asleep.len() == before;
        drop(asleep);
        called && wakeup.wait()
    }
}

pub(super) fn start<E: Env>(shared: &Arc<Shared<E>>) -> std::io::Result<Vec<JoinHandle<()>>> {
    (0..shared.settings.log_threads)
        .map(|n| {
            let shared = shared.clone();
            thread::Builder::new().name(format!("binlog-{n}")).spawn(move || shared.log_thread())
        })
        .collect()
}

impl<E: Env> Shared<E> {
    pub(super) fn enrol(&self, request: CommitRequest, inline: bool) -> Ticket {
        if self.idle.is_shut_down() {
            let (completer, ticket) = ticket();
            self.turn_away(&request, completer, CommitError::ShuttingDown);
            return ticket;
        }
        let (completer, ticket) = ticket();
        let last_seen = CommitNo(self.numbered.load(Ordering::Acquire));
        let awaited = request.awaited;
        let enrolled = Enrolled { request, completer, last_seen, at: Instant::now() };
        let before = self.queue.push(enrolled);
        if self.idle.is_shut_down() {
            // Whoever ends the pipeline may have looked at the queue for the last time.
            self.drain(&mut self.flush.lock());
            return ticket;
        }
        if inline && before == 0 && self.lead_inline() {
            return ticket;
        }
        if before == 0 && self.may_write() {
            self.call_for_write();
        } else if awaited {
            self.flush_awaited();
        } else if before == FLUSH_AHEAD && self.in_flight_limit() > 1 {
            self.call_for_flush();
        }
        ticket
    }

    /// Lets go of locks that others wait for, while a write is in flight that the next group has to wait for: those others
    /// can be in that group, too. On the committing thread, unless it would have to wait, or others' work is long.
    fn flush_awaited(&self) {
        if self.queue.has_long() || self.settings.protocol == CommitProtocol::GroupRedo {
            return self.call_for_flush();
        }
        let Some(mut flush) = self.flush.try_lock() else { return self.call_for_flush() };
        self.drain(&mut flush);
        drop(flush);
        // The write may have ended meanwhile, and its thread have seen nobody wait.
        if self.may_write() {
            self.call_for_waiting();
        }
    }

    /// Whether a group sealed now could start at once. A stale answer costs a needless or a missing
    /// call; the missing one is made good by the thread whose write is in flight, which looks at
    /// the queue after its write.
    fn may_write(&self) -> bool {
        self.order.lock().has_place(self.in_flight_limit())
    }

    /// After a write by a thread that leads no group next: those who came meanwhile called nobody.
    pub(super) fn call_for_waiting(&self) {
        if self.waiting() > 0 {
            self.call_for_write();
        }
    }

    /// A thread for the next write: one for each that may be in flight is of use.
    fn call_for_write(&self) {
        self.idle.call(self.in_flight_limit() as usize);
    }

    /// A thread for the flush stage, while all places in flight are taken.
    fn call_for_flush(&self) {
        self.idle.call((self.in_flight_limit() as usize).saturating_add(1));
    }

    /// Transactions that no group in flight carries.
    fn waiting(&self) -> usize {
        self.queue.len() + self.pending.load(Ordering::SeqCst)
    }

    /// Follows the size of groups, over about the last sixteen. With the flush lock held.
    pub(super) fn note_group_size(&self, members: u64) {
        let old = self.group_size.load(Ordering::Relaxed);
        self.group_size.store(old - old / 16 + members.min(1024) * (ONE / 16), Ordering::Relaxed);
    }

    /// Does the whole commit on this thread if nobody else is at it and the device is fast. Not where others
    /// usually are: the thread would block for a sync while their requests wait for it.
    fn lead_inline(&self) -> bool {
        let sync_us = self.sync_us.load(Ordering::Relaxed);
        if sync_us == 0 || sync_us > self.settings.fast_sync_us.load(Ordering::Relaxed) {
            return false;
        }
        if self.group_size.load(Ordering::Relaxed) > ALONE {
            return false;
        }
        if self.settings.sync_delay_us.load(Ordering::Relaxed) > 0 {
            return false;
        }
        let Some(mut flush) = self.flush.try_lock() else { return false };
        // Rotation takes files and directories to the device: a log thread's work.
        let full = flush.writer.as_ref().is_some_and(|writer| self.env.wants_rotation(writer));
        if full || self.order.lock().in_flight() > 0 {
            return false;
        }
        self.drain(&mut flush);
        let group = self.seal(&mut flush);
        drop(flush);
        let Some(group) = group else { return false };
        CommitStats::add(&self.stats.inline_groups, 1);
        self.run(group);
        self.call_for_waiting();
        true
    }

    fn log_thread(&self) {
        let wakeup = Arc::default();
        loop {
            let led = self.lead();
            if led || self.waiting() > 0 && self.may_write() {
                continue;
            }
            if self.idle.is_shut_down() && self.waiting() == 0 {
                return;
            }
            if !self.idle.sleep(&wakeup, || self.waiting() > 0 && self.may_write()) {
                self.sync_stragglers();
            }
        }
    }

    /// One round of leadership. False if there was nothing to lead.
    pub(super) fn lead(&self) -> bool {
        let mut flush = self.flush.lock();
        self.drain(&mut flush);
        if flush.has_pending() && self.delay_wanted() {
            drop(flush);
            self.wait_for_group();
            flush = self.flush.lock();
            self.drain(&mut flush);
        }
        self.rotate_if_full(&mut flush);
        let group = self.seal(&mut flush);
        drop(flush);
        let Some(group) = group else { return false };
        // Another write may start while this one is in flight.
        if self.queue.len() > 0 && self.may_write() {
            self.call_for_write();
        }
        self.run(group);
        true
    }

    fn delay_wanted(&self) -> bool {
        self.settings.sync_delay_us.load(Ordering::Relaxed) > 0
    }

    /// `binlog_group_commit_sync_delay`: wait for more transactions, at most so many, at most so long.
    fn wait_for_group(&self) {
        let delay = Duration::from_micros(self.settings.sync_delay_us.load(Ordering::Relaxed));
        let enough = self.settings.sync_no_delay_count.load(Ordering::Relaxed);
        let started = Instant::now();
        while started.elapsed() < delay && !self.idle.is_shut_down() {
            if enough > 0 && self.waiting() as u64 >= enough {
                return;
            }
            thread::sleep((delay - started.elapsed().min(delay)).min(Duration::from_micros(50)));
        }
    }

    /// With `sync_binlog` other than 1, what was written but not synced becomes durable when there is
    /// a quiet moment: engines persist only what is durable (ENGINE-1).
    fn sync_stragglers(&self) {
        let unsynced = self.durable.load(Ordering::Acquire) < self.published.number().0;
        if !unsynced || self.order.lock().in_flight() > 0 {
            return;
        }
        if let Some(mut flush) = self.flush.try_lock() {
            let _ = self.settle(&mut flush);
        }
    }
}
