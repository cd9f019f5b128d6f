//! The log threads, and the rule by which a committing thread leads its own group.
//!
//! There is one thread per write that may be in flight: several on a slow device, one on a fast one, whose groups
//! become larger that way. Each thread takes the flush stage, seals a group, writes it and acknowledges it. A thread
//! that finds the places in flight taken leaves the transactions that it appended to the next leader, as a follower. So
//! a slow sync blocks no session's thread.

use super::Shared;
use super::queue::{Enrolled, RollBack, Waiting, is_long};
use super::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use super::sync::thread;
use super::sync::thread::JoinHandle;
use super::sync::{Condvar, Mutex};
use super::ticket::{Ticket, ticket, ticket_of};
use crate::env::Env;
use crate::stats::CommitStats;
use crate::{CommitError, CommitProtocol, CommitRequest};
use omnibus_engine::CommitNo;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The number of waiting transactions for which a sleeping thread is woken for the flush stage while all writes of a
/// slow device are in flight. With fewer, the thread switch costs more than the overlap gains. A fast device's write
/// ends sooner.
const FLUSH_AHEAD: usize = 16;

/// The interval at which an idle thread looks for work; it bounds the data loss of `sync_binlog=0`.
const TICK: Duration = Duration::from_secs(1);

/// The sleeping log threads. The last to fall asleep is woken first, because its caches are warm.
pub(super) struct Idle {
    /// The number of log threads.
    threads: usize,
    /// Length of `asleep`, to be read without its lock.
    sleeping: AtomicUsize,
    asleep: Mutex<Vec<Arc<Wakeup>>>,
    shutdown: AtomicBool,
}

/// The wake-up signal of one thread.
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

    /// Waits for a wake-up. Returns false if `TICK` passed first.
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

    /// Wakes one sleeping thread, if any, unless `of_use` threads are awake. Each of those looks for work before it
    /// sleeps, and more threads would only take turns with cold caches.
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

    /// Sleeps until called, unless `busy` returns true after the intention to sleep is announced: a session that adds
    /// work after that sees a sleeper and calls. Returns false if a tick passed without a call.
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
    pub(super) fn enrol(&self, request: CommitRequest) -> Ticket {
        if self.idle.is_shut_down() {
            let (completer, ticket) = ticket();
            self.turn_away(&request, completer, CommitError::ShuttingDown);
            return ticket;
        }
        let last_seen = CommitNo(self.progress.numbered.load(Ordering::Acquire));
        let (awaited, long, prepared) = (request.awaited, is_long(&request), request.prepared_xid());
        let inline = request.inline;
        let roll_back = prepared.map(|xid| {
            let env = self.env.clone();
            Box::new(move || env.rollback_prepared(xid)) as RollBack
        });
        let waiting = Arc::new(Waiting::new(request, roll_back));
        let (completer, ticket) = ticket_of(waiting.clone());
        let (prepared, at) = (prepared.is_some(), Instant::now());
        let enrolled = Enrolled { waiting, completer, prepared, long, last_seen, at };
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
        } else if before == FLUSH_AHEAD && self.pace.in_flight_limit(&self.settings) > 1 {
            self.call_for_flush();
        }
        ticket
    }

    /// Releases locks that others wait for while the next group has to wait for a write in flight, so that those others
    /// can join that group. Runs on the committing thread, unless that would have to wait or the queued work is long.
    fn flush_awaited(&self) {
        if self.env.is_stuck() {
            return;
        }
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

    /// Returns whether a group sealed now could start at once. A stale answer causes a needless or a missing call; the
    /// thread whose write is in flight makes good for a missing one, because it looks at the queue after its write.
    fn may_write(&self) -> bool {
        !self.env.is_stuck() && self.order.lock().has_place(self.pace.in_flight_limit(&self.settings))
    }

    /// Calls threads for transactions that arrived during a write and called nobody. For a thread that leads no group
    /// next.
    pub(super) fn call_for_waiting(&self) {
        if self.waiting() > 0 {
            self.call_for_write();
        }
    }

    /// Calls a thread for the next write: one for each write that may be in flight is of use.
    fn call_for_write(&self) {
        self.idle.call(self.pace.in_flight_limit(&self.settings) as usize);
    }

    /// Calls a thread for the flush stage while all places in flight are taken.
    fn call_for_flush(&self) {
        self.idle.call((self.pace.in_flight_limit(&self.settings) as usize).saturating_add(1));
    }

    /// The number of transactions that no group in flight carries.
    fn waiting(&self) -> usize {
        self.queue.len() + self.progress.pending.load(Ordering::SeqCst)
    }

    /// Does the whole commit on this thread if nobody else is committing and the device is fast. Not where groups
    /// usually have several members: the thread would block for a sync while their requests wait for it.
    fn lead_inline(&self) -> bool {
        if !self.pace.suits_inline(&self.settings) || self.delay_wanted() {
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

    /// Runs one round of leadership. Returns false if there was nothing to lead.
    pub(super) fn lead(&self) -> bool {
        if self.env.is_stuck() {
            return false;
        }
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

    /// `binlog_group_commit_sync_delay`: waits for more transactions, up to that number and that time.
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

    /// With `sync_binlog` other than 1, makes written but unsynced bytes durable at a quiet moment: engines persist
    /// only what is durable (ENGINE-1).
    fn sync_stragglers(&self) {
        let unsynced = self.progress.durable.load(Ordering::Acquire) < self.published.number().0;
        if !unsynced || self.order.lock().in_flight() > 0 {
            return;
        }
        if let Some(mut flush) = self.flush.try_lock() {
            let _ = self.settle(&mut flush);
        }
    }
}
