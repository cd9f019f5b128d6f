//! The commit pipeline: queue, flush, sync and commit stages over an [`Env`].
//!
//! The crate's own page describes the whole. The modules are:
//! - `queue`: lock-free entry; the first into an empty queue calls for a leader
//! - `flush`: under the flush lock: number, append, install; seal a group
//! - `gate`: durable groups that wait for a replica
//! - `in_flight`: groups in flight, acknowledged strictly in order; the commit stage
//! - `progress`: how far commits have come
//! - `pace`: how quick the device is and how large groups are
//! - `abort`: ends the process on a panic in any of these
//! - `threads`: the log threads, and the committing thread as leader when the device is fast

mod abort;
mod flush;
mod gate;
mod in_flight;
mod pace;
mod progress;
mod queue;
mod threads;

use super::published::Published;
use super::sync;
use super::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use super::sync::thread::JoinHandle;
use super::sync::{Condvar, Mutex};
use super::ticket::{self, Ticket};
use crate::env::Env;
use crate::{CommitError, CommitRequest, CommitSettings, CommitStats};
use abort::AbortOnPanic;
use flush::Flush;
pub use gate::{Gate, Released};
use in_flight::Order;
use omnibus_engine::CommitNo;
use omnibus_log::LogPosition;
use omnibus_log::mutant::{self, Mutant};
use pace::Pace;
use progress::Progress;
use queue::FlushQueue;
use std::sync::Arc;
use std::time::Instant;

/// The commit pipeline. Cheap to share; `close` ends its threads.
pub struct Pipeline<E: Env> {
    shared: Arc<Shared<E>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared<E: Env> {
    /// Shared with the sessions that finish their own commits (`binlog_order_commits=0`).
    env: Arc<E>,
    settings: Arc<CommitSettings>,
    stats: Arc<CommitStats>,
    published: Arc<Published>,
    queue: FlushQueue,
    /// Lock order: flush, then order.
    flush: Mutex<Flush<E>>,
    order: Mutex<Order>,
    /// Signalled when a write in flight has been acknowledged.
    acknowledged: Condvar,
    idle: threads::Idle,
    progress: Progress,
    pace: Pace,
    /// The log failed: nothing more is appended.
    poisoned: AtomicBool,
    /// See `gate`. Written under the order lock.
    gate: AtomicU8,
    /// Swaps the two steps of `group-redo`, to show which transactions that would lose.
    #[cfg(test)]
    redo_before_queue: AtomicBool,
}

impl<E: Env> Pipeline<E> {
    /// Starts a pipeline whose last durable transaction is `last`.
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn start(
        env: E,
        writer: E::Writer,
        last: CommitNo,
        settings: Arc<CommitSettings>,
    ) -> std::io::Result<Pipeline<E>> {
        let position = env.position(&writer);
        let log_threads = settings.log_threads;
        let shared = Arc::new(Shared {
            env: Arc::new(env),
            settings,
            stats: Arc::new(CommitStats::default()),
            published: Arc::new(Published::new(last, position)),
            queue: FlushQueue::default(),
            flush: Mutex::new(Flush::new(writer, last)),
            order: Mutex::new(Order::default()),
            acknowledged: Condvar::new(),
            idle: threads::Idle::of(log_threads),
            progress: Progress::new(last),
            pace: Pace::new(),
            poisoned: AtomicBool::new(false),
            gate: AtomicU8::new(Gate::Open as u8),
            #[cfg(test)]
            redo_before_queue: AtomicBool::new(false),
        });
        let threads = Mutex::new(threads::start(&shared)?);
        Ok(Pipeline { shared, threads })
    }

    /// Hands a transaction over. It is committed when the ticket completes with success. Blocks only if the request is
    /// [inline](CommitRequest::inline).
    pub fn commit(&self, request: CommitRequest) -> Ticket {
        self.shared.enrol(request)
    }

    /// Does the work of one group on this thread; returns false if there was none to do. For callers that run without
    /// log threads.
    pub fn lead(&self) -> bool {
        self.shared.lead()
    }

    /// Returns a ticket that completes when `no` is published: durable with `sync_binlog=1`, written with another
    /// value, and released by the gate. A session that has read a version before that may reveal it only then
    /// (COMMIT-2).
    pub fn wait_published(&self, no: CommitNo) -> Ticket {
        if no <= self.shared.published.number() || mutant::is(Mutant::ReplyEarly) {
            return Ticket::done(Ok(no));
        }
        let mut order = self.shared.order.lock();
        if no <= self.shared.published.number() {
            return Ticket::done(Ok(no));
        }
        if let Some(reason) = &order.failed {
            return Ticket::done(Err(CommitError::LogFailed(reason.clone())));
        }
        order.wait_published(no)
    }

    /// The number up to which all commits are durable.
    #[must_use]
    pub fn durable(&self) -> CommitNo {
        CommitNo(self.shared.progress.durable.load(Ordering::Acquire))
    }

    /// The newest number assigned, published or not.
    #[must_use]
    pub fn numbered(&self) -> CommitNo {
        CommitNo(self.shared.progress.numbered.load(Ordering::Acquire))
    }

    /// The number up to which all commits are in the engines. Those with a higher number are about to be.
    #[must_use]
    pub fn installed(&self) -> CommitNo {
        CommitNo(self.shared.progress.installed.load(Ordering::Acquire))
    }

    /// The published state, for snapshots.
    #[must_use]
    pub fn published(&self) -> &Arc<Published> {
        &self.shared.published
    }

    /// Counters and histograms.
    #[must_use]
    pub fn stats(&self) -> &Arc<CommitStats> {
        &self.shared.stats
    }

    /// The environment.
    #[must_use]
    pub fn env(&self) -> &E {
        &self.shared.env
    }

    /// The position of the next group.
    #[must_use]
    pub fn position(&self) -> LogPosition {
        self.shared
            .flush
            .lock()
            .writer
            .as_ref()
            .map_or_else(|| self.shared.published.place().1, |w| self.shared.env.position(w))
    }

    /// Runs `work` on the log's append side with nothing in flight and everything before it durable:
    /// FLUSH LOGS, RESET, and the like. Commits wait meanwhile.
    ///
    /// # Errors
    /// The log has failed.
    pub fn with_quiet_log<R>(&self, work: impl FnOnce(&E, &mut E::Writer) -> R) -> Result<R, CommitError> {
        let mut flush = self.shared.flush.lock();
        self.shared.settle(&mut flush)?;
        let Some(writer) = flush.writer.as_mut() else { return Err(CommitError::ShuttingDown) };
        let whole = AbortOnPanic::new("work on the quiet log");
        let done = work(&self.shared.env, writer);
        drop(whole);
        drop(flush);
        self.shared.call_for_waiting();
        Ok(done)
    }

    /// As [`Pipeline::with_quiet_log`], for work that switches files: its error counts as a failure of the log, and the
    /// position at its end is published.
    ///
    /// # Errors
    /// The log has failed, now or before.
    pub fn change_file<R>(
        &self,
        work: impl FnOnce(&E, &mut E::Writer) -> Result<R, Arc<str>>,
    ) -> Result<R, CommitError> {
        let mut flush = self.shared.flush.lock();
        self.shared.settle(&mut flush)?;
        if flush.writer.is_none() {
            return Err(CommitError::ShuttingDown);
        }
        let done = self.shared.change_file(&mut flush, work);
        drop(flush);
        self.shared.call_for_waiting();
        done
    }

    /// Switches to the next file (FLUSH BINARY LOGS). Blocks for a few writes.
    ///
    /// # Errors
    /// As [`Pipeline::change_file`].
    pub fn rotate(&self) -> Result<(), CommitError> {
        self.change_file(|env, writer| env.rotate(writer))
    }

    /// Sets the stage in which durable groups wait until [`Pipeline::release`]. Opening the gate releases all.
    pub fn set_gate(&self, gate: Gate) -> Released {
        self.shared.set_gate(gate)
    }

    /// Releases the groups that end at or before `up_to`.
    pub fn release(&self, up_to: LogPosition) -> Released {
        self.shared.release(up_to)
    }

    /// The time since which the oldest group waits behind the gate, and the number of transactions that wait there.
    #[must_use]
    pub fn held(&self) -> Option<(Instant, u64)> {
        self.shared.held()
    }

    /// Makes everything appended so far durable, whatever `sync_binlog` says.
    ///
    /// # Errors
    /// The log has failed.
    pub fn sync_all(&self) -> Result<CommitNo, CommitError> {
        self.with_quiet_log(|_, _| ())?;
        Ok(self.durable())
    }

    /// The number of writes in flight.
    #[cfg(test)]
    pub(crate) fn in_flight(&self) -> u64 {
        self.shared.order.lock().in_flight()
    }

    /// The number of log threads that are awake.
    #[cfg(test)]
    pub(crate) fn awake(&self) -> usize {
        self.shared.idle.awake()
    }

    /// Sets the field of that name.
    #[cfg(test)]
    pub(crate) fn set_redo_before_queue(&self, swapped: bool) {
        self.shared.redo_before_queue.store(swapped, Ordering::Relaxed);
    }

    /// The settings that the pipeline was started with.
    #[cfg(test)]
    pub(crate) fn settings(&self) -> &CommitSettings {
        &self.shared.settings
    }

    /// Commits the queue, stops the threads and returns the log's append side. Later commits fail with
    /// [`CommitError::ShuttingDown`]. A second call returns `None`.
    pub fn close(&self) -> Option<E::Writer> {
        self.shared.idle.shut_down();
        self.shared.set_gate(Gate::Open);
        for thread in self.threads.lock().drain(..) {
            // A log thread that panicked has poisoned nothing that is read below.
            let _ = thread.join();
        }
        let mut flush = self.shared.flush.lock();
        let _ = self.shared.settle(&mut flush);
        flush.close()
    }
}
