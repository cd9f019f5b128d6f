//! The flush stage: under the flush lock, take the queue, number each transaction, append its
//! events, install its versions, release its locks; then seal a group for the sync stage.
//!
//! COMMIT-1: append, install and numbering happen here, in one order, and nowhere else.

use super::Shared;
use super::abort::AbortOnPanic;
use super::queue::Enrolled;
use super::sync::atomic::Ordering;
use super::sync::thread;
use super::ticket::Completer;
use crate::env::{AppendError, Env};
use crate::stats::CommitStats;
use crate::{CommitError, CommitProtocol, CommitRequest, CommitResult, OnDurable};
use omnibus_engine::CommitNo;
use omnibus_log::LogPosition;
use omnibus_log::mutant::{self, Mutant};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The number of groups for which padding to blocks stays on after two groups met in flight.
const PADDED: u32 = 64;

/// The state that the flush lock guards.
pub(super) struct Flush<E: Env> {
    /// Gone after `close`.
    pub writer: Option<E::Writer>,
    last: CommitNo,
    /// Appended transactions that are not sealed.
    pending: Vec<Member>,
    /// The number of groups written since the last synced one.
    groups_since_sync: u64,
    /// The number of further groups that end at a block boundary, because one lately blocked another.
    padded: u32,
    failed: Option<Arc<str>>,
}

/// A numbered transaction that waits for its group.
pub(super) struct Member {
    pub no: CommitNo,
    /// Replicas receive it.
    pub logged: bool,
    pub completer: Completer,
    /// Two-phase protocols: the engines hold it prepared under this number.
    pub prepared: Option<u64>,
    pub on_durable: Option<OnDurable>,
}

/// A sealed group: the leader of the sync stage holds exactly one.
pub(super) struct Group<J> {
    pub job: J,
    pub sync: bool,
    pub written: WrittenGroup,
}

/// A group whose bytes are written, with its remaining work.
pub(super) struct WrittenGroup {
    /// Its place among the groups in flight.
    pub turn: u64,
    pub members: Vec<Member>,
    pub last: CommitNo,
    pub end: LogPosition,
    pub synced: bool,
}

impl<E: Env> Flush<E> {
    pub(super) fn new(writer: E::Writer, last: CommitNo) -> Flush<E> {
        Flush {
            writer: Some(writer),
            last,
            pending: Vec::new(),
            groups_since_sync: 0,
            padded: 0,
            failed: None,
        }
    }

    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    pub(super) fn close(&mut self) -> Option<E::Writer> {
        self.failed.get_or_insert_with(|| Arc::from("the server is shutting down"));
        self.writer.take()
    }
}

impl<E: Env> Shared<E> {
    /// Takes the whole queue through the flush stage. Sends the results of transactions that cannot continue.
    pub(super) fn drain(&self, flush: &mut Flush<E>) {
        let _whole = AbortOnPanic::new("flush stage");
        let limit = self.settings.max_flush_queue_time_us.load(Ordering::Relaxed);
        let started = Instant::now();
        let before = flush.last;
        loop {
            if self.settings.protocol == CommitProtocol::GroupRedo {
                self.flush_with_redo(flush);
            } else {
                while let Some(enrolled) = self.queue.pop() {
                    self.flush_one(flush, enrolled);
                }
            }
            // Skimming: with a time set, go on taking arrivals until it is over.
            if limit == 0 || flush.pending.is_empty() || started.elapsed() >= Duration::from_micros(limit) {
                break;
            }
            thread::yield_now();
        }
        if flush.last != before {
            self.stats.flush_us.record_us(started.elapsed());
        }
    }

    /// `group-redo`: one sync of the engines' redo for all transactions whose log record is about to be written. The
    /// queue is taken first. In the other order, a transaction could prepare and enrol after the redo's sync and still
    /// be in this group: after a crash it would be in the log and in no engine (RECOVER-1).
    fn flush_with_redo(&self, flush: &mut Flush<E>) {
        let mut group = Vec::new();
        #[cfg(test)]
        let group_synced = self.redo_before_queue.load(Ordering::Relaxed).then(|| self.env.flush_engines());
        while let Some(enrolled) = self.queue.pop() {
            group.push(enrolled);
        }
        #[cfg(test)]
        if group_synced.is_some() {
            return group.into_iter().for_each(|enrolled| self.flush_one(flush, enrolled));
        }
        if group.iter().any(|enrolled| enrolled.prepared)
            && let Err(reason) = self.env.flush_engines()
        {
            flush.failed = Some(reason.clone());
            self.fail(&reason);
        }
        for enrolled in group {
            self.flush_one(flush, enrolled);
        }
    }

    /// Rolls a transaction that did not get into the log back where it is prepared, and tells its session.
    pub(super) fn turn_away(&self, request: &CommitRequest, completer: Completer, error: CommitError) {
        if let Some(xid) = request.prepared_xid() {
            self.env.rollback_prepared(xid);
        }
        completer.complete(Err(error));
    }

    fn flush_one(&self, flush: &mut Flush<E>, enrolled: Enrolled) {
        let Enrolled { waiting, completer, last_seen, at, .. } = enrolled;
        // Asserts COMMIT-4: what its session has taken back gets no place.
        let taken = completer.take().then(|| waiting.take()).flatten();
        let Some(mut request) = taken else {
            return completer.complete(Err(CommitError::Withdrawn));
        };
        self.learn_failure(flush);
        let Some(writer) = flush.writer.as_mut() else {
            return self.turn_away(&request, completer, CommitError::ShuttingDown);
        };
        if let Some(reason) = &flush.failed {
            let error = CommitError::LogFailed(reason.clone());
            return self.turn_away(&request, completer, error);
        }
        let no = flush.last.next();
        if let Err(error) = self.append(writer, no, last_seen, &mut request) {
            let CommitError::LogFailed(reason) = &error else {
                return self.turn_away(&request, completer, error);
            };
            // Some of it may be in the log: whether it is prepared or not is for recovery to decide.
            flush.failed = Some(reason.clone());
            self.fail(reason);
            return completer.complete(Err(error));
        }
        flush.last = no;
        self.progress.numbered.store(no.0, Ordering::Release);
        self.stats.queue_us.record_us(at.elapsed());
        match request.staged.take() {
            None => self.env.install(no, std::mem::take(&mut request.writes)),
            Some(staged) => self.env.install_staged(no, *staged),
        }
        self.progress.installed.store(no.0, Ordering::Release);
        if let Some(on_ordered) = request.on_ordered.take() {
            on_ordered(no);
        }
        let prepared = request.prepared_xid();
        let (logged, on_durable) = (request.logged, request.on_durable.take());
        flush.pending.push(Member { no, logged, completer, prepared, on_durable });
        self.progress.pending.fetch_add(1, Ordering::SeqCst);
    }

    /// Learns that a write failed: nothing is appended behind it.
    fn learn_failure(&self, flush: &mut Flush<E>) {
        if flush.failed.is_none() && self.poisoned.load(Ordering::Acquire) {
            flush.failed = self.order.lock().failed.clone();
        }
    }

    fn append(
        &self,
        writer: &mut E::Writer,
        no: CommitNo,
        last_seen: CommitNo,
        request: &mut CommitRequest,
    ) -> CommitResult {
        let before = self.env.position(writer);
        match self.env.append(writer, no, last_seen, request) {
            Ok(()) => {
                let after = self.env.position(writer);
                CommitStats::add(&self.stats.bytes, after.offset.0.saturating_sub(before.offset.0));
                Ok(no)
            }
            Err(AppendError::Cache(reason)) => Err(CommitError::Cache(reason)),
            Err(AppendError::Refused(refusal)) => Err(CommitError::Refused(refusal)),
            Err(AppendError::Log(reason)) => Err(CommitError::LogFailed(reason)),
        }
    }

    /// Seals the pending transactions as a group in flight, if there are any and a place is free.
    pub(super) fn seal(&self, flush: &mut Flush<E>) -> Option<Group<E::Job>> {
        let _whole = AbortOnPanic::new("flush stage");
        self.learn_failure(flush);
        if flush.pending.is_empty() || flush.failed.is_some() {
            self.drop_pending(flush);
            return None;
        }
        let limit = self.pace.in_flight_limit(&self.settings);
        let in_flight = self.order.lock().in_flight();
        let writer = flush.writer.as_mut()?;
        if in_flight >= limit {
            return None;
        }
        // A lone client's groups never meet, and padded they would take a block each.
        if in_flight > 0 {
            flush.padded = PADDED;
            if !self.order.lock().may_seal(limit, self.env.overlaps(writer)) {
                return None;
            }
        }
        let pad = limit > 1 && flush.padded > 0;
        flush.padded = flush.padded.saturating_sub(1);
        match self.env.seal(writer, pad) {
            Ok(job) => Some(self.make_group(flush, job, false)),
            Err(reason) => {
                flush.failed = Some(reason.clone());
                self.fail(&reason);
                self.drop_pending(flush);
                None
            }
        }
    }

    /// Gives a group its turn. It is synced if `sync_binlog` or `settling` requires it.
    fn make_group(&self, flush: &mut Flush<E>, job: E::Job, settling: bool) -> Group<E::Job> {
        let every = self.settings.sync_binlog.load(Ordering::Relaxed);
        flush.groups_since_sync += 1;
        let sync = settling || every > 0 && flush.groups_since_sync >= every;
        if sync {
            flush.groups_since_sync = 0;
        }
        let members = std::mem::take(&mut flush.pending);
        self.progress.pending.store(0, Ordering::SeqCst);
        if !members.is_empty() {
            self.stats.group_size.record(members.len() as u64);
            self.pace.note_group(members.len() as u64);
        }
        let end = flush.writer.as_ref().map_or_else(|| self.published.place().1, |w| self.env.position(w));
        if mutant::is(Mutant::PublishEarly) {
            self.published.publish(flush.last, end);
        }
        let synced = sync || mutant::is(Mutant::DurableUnsynced);
        let turn = self.order.lock().take_turn();
        Group { job, sync, written: WrittenGroup { turn, members, last: flush.last, end, synced } }
    }

    fn drop_pending(&self, flush: &mut Flush<E>) {
        let Some(reason) = &flush.failed else { return };
        self.progress.pending.store(0, Ordering::SeqCst);
        for member in flush.pending.drain(..) {
            member.completer.complete(Err(CommitError::LogFailed(reason.clone())));
        }
    }

    /// With the flush lock held: appends, writes, syncs and acknowledges everything that is queued, so that nothing is
    /// in flight.
    pub(super) fn settle(&self, flush: &mut Flush<E>) -> Result<(), CommitError> {
        self.drain(flush);
        self.wait_acknowledged();
        self.learn_failure(flush);
        if flush.failed.is_none()
            && let Some(writer) = flush.writer.as_mut()
        {
            match self.env.seal(writer, false) {
                Ok(job) => {
                    let group = self.make_group(flush, job, true);
                    self.run(group);
                }
                Err(reason) => {
                    flush.failed = Some(reason.clone());
                    self.fail(&reason);
                }
            }
        }
        // What was sealed just now may be held.
        self.wait_acknowledged();
        self.drop_pending(flush);
        let failed = self.order.lock().failed.clone();
        match failed.or_else(|| flush.failed.clone()) {
            Some(reason) => Err(CommitError::LogFailed(reason)),
            None => Ok(()),
        }
    }

    /// Rotates if the file is full. With the flush lock held.
    pub(super) fn rotate_if_full(&self, flush: &mut Flush<E>) {
        let full = flush.writer.as_ref().is_some_and(|writer| self.env.wants_rotation(writer));
        if !full || self.settle(flush).is_err() {
            return;
        }
        // A failure is known to everyone by now.
        let _ = self.change_file(flush, |env, writer| env.rotate(writer));
    }

    /// Runs `work`, which leaves the file. With the flush lock held, settled.
    pub(super) fn change_file<R>(
        &self,
        flush: &mut Flush<E>,
        work: impl FnOnce(&E, &mut E::Writer) -> Result<R, Arc<str>>,
    ) -> Result<R, CommitError> {
        let _whole = AbortOnPanic::new("change of the log file");
        let Some(writer) = flush.writer.as_mut() else { return Err(CommitError::ShuttingDown) };
        match work(&self.env, writer) {
            Ok(result) => {
                self.published.moved(self.env.position(writer));
                Ok(result)
            }
            Err(reason) => {
                flush.failed = Some(reason.clone());
                self.fail(&reason);
                Err(CommitError::LogFailed(reason))
            }
        }
    }
}
