//! How a transaction ends: COMMIT, ROLLBACK, a session that goes away.
//!
//! A commit takes the write set, the trx cache and the locks along; it is enrolled here and waited for by the session.
//! What must happen at its place in the order runs in the flush stage, on the leader's thread.

use super::backup_lock::DDL_LOCK;
use super::counters::Covers;
use super::trx::Trx;
use crate::api::RowWork;
use crate::catalog::TableState;
use crate::error::{ExecResult, SqlResult};
use omnibus_commit::{CommitRequest, OnDurable, Ticket};
use omnibus_engine::CommitNo;
use omnibus_locks::TrxLocks;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Counts the end of a transaction that has used tables.
fn count_end(trx: &Trx, end: RowWork) {
    if used_tables(trx) || !trx.transaction.writes.is_empty() {
        trx.budget.tally.step(end);
    }
}

fn used_tables(trx: &Trx) -> bool {
    trx.view.taken.is_some() || !trx.locks.tables.is_empty()
}

impl Trx {
    /// Commits. The ticket, if there is anything to wait for, must complete before the client is
    /// told. Locks go when the commit has its place in the order.
    ///
    /// # Errors
    /// The trx cache could not take the last event, or an engine can not keep what was written; the transaction is rolled
    /// back.
    pub fn commit(&mut self, now_us: u64) -> SqlResult<Option<Ticket>> {
        self.locks.rows.watch.commits(now_us);
        count_end(self, RowWork::Committed);
        // Under `sql_log_bin=0` an empty transaction with an id has no event yet, and must not be forgotten.
        let keeps_id = self.transaction.keeps_id;
        self.transaction.writes.settle_all();
        let told = self.log.events.tells_of_equal_rows() && !self.log.cache.is_empty();
        if self.transaction.writes.is_empty()
            && !told
            && (self.log.cache.origin().is_none() || self.log.cache.is_empty() && !keeps_id)
        {
            drop(self.transaction.take());
            self.leave();
            return Ok(None);
        }
        if let Some(error) = self.shared.port.engine().refuses(&self.transaction.writes) {
            self.rollback();
            return Err(error.into());
        }
        let xid = self.shared.xid.fetch_add(1, Ordering::Relaxed);
        let unlogged = self.transaction.unlogged_keys();
        let logging = &self.statement.attempt.logging;
        let logged = unlogged.and_then(|keys| {
            let writes = &self.transaction.writes;
            let logged = self.log.events.commit(logging, &mut self.log.cache, writes, xid, &keys)?;
            Ok((logged, self.shared.builds.written(writes)?))
        });
        let (logged, written) = match logged {
            Ok(logged) => logged,
            Err(error) => {
                self.rollback();
                return Err(error);
            }
        };
        count_rows(&mut self.transaction.deltas);
        let locks = self.locks.rows.owned.clone();
        let keep_tables = self.locks.has_locked_tables();
        let large = self.transaction.is_large(&self.log.cache) && !keep_tables;
        let ended = self.transaction.take();
        if large {
            // The session goes on with a new set while these are being released.
            self.locks.rows.replace();
        }
        let stamped = locks.handle();
        let release = move || give_back(locks, large, keep_tables);
        let (early, late) = match self.shared.port.releases_early() {
            true => (Some(release), None),
            false => (None, Some(Box::new(release) as OnDurable)),
        };
        let defines = ended.definition.and_then(|definition| definition.commit());
        let is_definition = defines.is_some();
        // Definitions take no part in two phases.
        let two_phase = logged && self.branch.is_none() && !is_definition;
        let in_flight = self.log.count_commit();
        let request = CommitRequest {
            xid: two_phase.then_some(xid),
            on_durable: late,
            awaited: early.is_some() && self.locks.rows.owned.anyone_waits(),
            on_ordered: Some(Box::new(move |no| {
                if let Some(defines) = defines {
                    defines(no);
                }
                take_effect(ended.covers);
                written.leave(no);
                ended.sequences.iter().for_each(|state| state.sequence.changed());
                drop(in_flight);
                if let Some(release) = early {
                    stamped.committed(no.0);
                    release();
                }
            })),
            ..CommitRequest::new(self.log.take_cache(), ended.writes, logged, now_us)
        };
        self.locks.handed_over = Some(Vec::new());
        // Who applies a log commits in its order: one that waited for the device would make all the others wait, and the
        // log would never see two of them at once.
        let ticket = match self.log.in_flight {
            None => self.shared.port.commit_seen(self.budget.kill(), request),
            // The next one may use what it defines, which is there only then.
            Some(_) if is_definition => Ticket::done(self.shared.port.commit(request.inline()).wait()),
            Some(_) => self.shared.port.commit(request),
        };
        self.leave();
        Ok(Some(ticket))
    }

    /// Whether the last statement has handed a commit over.
    #[must_use]
    pub fn has_committed(&self) -> bool {
        self.locks.handed_over.is_some()
    }

    /// Asks for a thread that may block, if the transaction is large.
    pub(crate) fn may_run_here(&self) -> ExecResult<()> {
        let long = self.transaction.is_large(&self.log.cache)
            || self.statement.attempt.logging.compression.is_some()
                && self.log.cache.takes_long_to_compress();
        if long { self.statement.waits().may_block() } else { Ok(()) }
    }

    /// Rolls back without waiting for what that takes: for a session that is gone.
    pub(crate) fn abandon(&mut self) {
        if self.transaction.is_large(&self.log.cache) && !self.locks.has_locked_tables() {
            let locks = self.locks.rows.owned.clone();
            self.locks.rows.replace();
            omnibus_commit::drop_elsewhere((std::mem::take(&mut self.transaction.writes), locks));
        }
        self.rollback();
    }

    /// Commits a DDL transaction whose events are already in the cache; `on_ordered` runs before the
    /// locks go. Those of LOCK TABLES stay, but for tables that are `gone`.
    pub(crate) fn commit_ddl(
        &mut self,
        logged: bool,
        now_us: u64,
        gone: Vec<u64>,
        on_ordered: impl FnOnce(CommitNo) + Send + 'static,
    ) -> Ticket {
        self.locks.rows.watch.commits(now_us);
        count_end(self, RowWork::Committed);
        let locks = self.locks.rows.owned.clone();
        let keep_tables = self.locks.has_locked_tables();
        self.locks.handed_over = Some(gone.clone());
        let ended = self.transaction.take();
        let request = CommitRequest {
            on_ordered: Some(Box::new(move |no| {
                on_ordered(no);
                locks.committed(no.0);
                if keep_tables {
                    locks.release_records();
                    gone.into_iter().chain([DDL_LOCK]).for_each(|id| locks.release_table(id));
                } else {
                    locks.release_all();
                }
            })),
            ..CommitRequest::new(self.log.take_cache(), ended.writes, logged, now_us)
        };
        let ticket = self.shared.port.commit_seen(self.budget.kill(), request);
        self.leave();
        ticket
    }

    /// Rolls everything back and lets go of all locks.
    pub fn rollback(&mut self) {
        self.locks.rows.watch.rolls_back();
        count_end(self, RowWork::RolledBack);
        self.branch.rolled_back();
        // What a commit has that is on its way is no longer the session's to undo.
        if !self.has_committed() {
            self.temp.rollback();
        }
        // What it has made is nobody's.
        drop(self.transaction.take());
        self.leave();
    }

    /// A transaction that was taken is over: what the session has for any of its transactions is ready for the next one.
    pub(super) fn leave(&mut self) {
        // What a commit that is on its way has done to temporary tables stays when that is done (COMMIT-4).
        if !self.has_committed() {
            self.temp.settle();
        }
        self.locks.rows.watch.end(used_tables(self) || self.has_committed());
        self.log.end();
        self.view.release();
        self.locks.end();
    }

    /// It is known what a commit that was handed over has come to. One that is not `done` leaves nothing behind (COMMIT-4): not in
    /// temporary tables either, and LOCK TABLES still has what it was to drop.
    pub fn commit_is_over(&mut self, done: bool) {
        match self.locks.handed_over.take() {
            None => {}
            Some(gone) if done => {
                self.temp.settle();
                super::table_lock::forget_tables(&mut self.locks, &gone);
            }
            Some(_) => {
                self.temp.rollback();
                // What the commit would have released in the log's order is released here.
                self.locks.end();
            }
        }
        if !done && !self.is_open() {
            self.rollback();
        }
    }
}

/// Gives a commit's locks back.
fn give_back(locks: Arc<TrxLocks>, large: bool, keep_tables: bool) {
    if large {
        // The last reference: releases them, a fifth of a second for a million.
        omnibus_commit::drop_elsewhere(locks);
    } else if keep_tables {
        locks.release_records();
    } else {
        locks.release_all();
    }
}

/// Counters that a commit reached are not reissued from now on. In the flush stage.
pub(super) fn take_effect(covers: Vec<Covers>) {
    for covered in covers {
        covered.state.auto_covered.fetch_max(covered.value, Ordering::AcqRel);
    }
}

/// Follows a commit with the estimates of tables' rows.
pub(super) fn count_rows(deltas: &mut Vec<(Arc<TableState>, i64)>) {
    for (state, delta) in deltas.drain(..) {
        let _ = state.rows_estimate.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |rows| {
            (rows != 0).then(|| rows.saturating_add_signed(delta).max(1))
        });
    }
}
