//! How a transaction ends: COMMIT, ROLLBACK, a session that goes away.
//!
//! A commit takes the write set, the trx cache and the locks along; it is enrolled here and waited for by the session.
//! What must happen at its place in the order runs in the flush stage, on the leader's thread.

use super::backup_lock::DDL_LOCK;
use super::trx::{Covers, Trx};
use crate::api::Mode;
use crate::catalog::TableState;
use crate::error::{ExecResult, Interrupt, SqlResult};
use omnibus_commit::{CommitRequest, OnDurable, Ticket, TrxCache};
use omnibus_engine::CommitNo;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Trx {
    /// Commits. The ticket, if there is anything to wait for, must complete before the client is
    /// told. Locks go when the commit has its place in the order.
    ///
    /// # Errors
    /// The trx cache could not take the last event, or an engine can not keep what was written; the transaction is rolled
    /// back.
    pub fn commit(&mut self, now_us: u64) -> SqlResult<Option<Ticket>> {
        // Under `sql_log_bin=0` an empty transaction with an id has no event yet, and must not be forgotten.
        let keeps_id = std::mem::take(&mut self.keeps_id);
        self.writes.settle_all();
        if self.writes.is_empty() && (self.cache.origin().is_none() || self.cache.is_empty() && !keeps_id) {
            self.end();
            return Ok(None);
        }
        if let Some(error) = self.shared.port.engine().refuses(&self.writes) {
            self.rollback();
            return Err(error.into());
        }
        let xid = self.shared.xid.fetch_add(1, Ordering::Relaxed);
        let unlogged = self.unlogged_keys();
        let logged = unlogged.and_then(|keys| {
            let logged = self.events.commit(&mut self.cache, &self.writes, xid, &keys)?;
            Ok((logged, self.shared.builds.written(&self.writes)?))
        });
        let (logged, written) = match logged {
            Ok(logged) => logged,
            Err(error) => {
                self.rollback();
                return Err(error);
            }
        };
        count_rows(&mut self.deltas);
        let locks = self.locks.clone();
        let covers = std::mem::take(&mut self.covers);
        let sequences = std::mem::take(&mut self.sequences);
        let keep_tables = self.locked_tables;
        let large = self.is_large() && !keep_tables;
        if large {
            // The session goes on with a new set while these are being released.
            self.replace_locks();
        }
        let release = move || {
            if large {
                // The last reference: releases them, a fifth of a second for a million.
                omnibus_commit::drop_elsewhere(locks);
            } else if keep_tables {
                locks.release_records();
            } else {
                locks.release_all();
            }
        };
        let (early, late) = match self.shared.port.releases_early() {
            true => (Some(release), None),
            false => (None, Some(Box::new(release) as OnDurable)),
        };
        let (cache, writes) = (self.take_cache(), std::mem::take(&mut self.writes));
        let defines = self.definition.take().and_then(|definition| definition.commit());
        let is_definition = defines.is_some();
        // Definitions take no part in two phases.
        let two_phase = logged && self.branch.is_none() && !is_definition;
        let in_flight = self.in_flight.clone();
        if let Some(counter) = &in_flight {
            counter.fetch_add(1, Ordering::AcqRel);
        }
        let request = CommitRequest {
            xid: two_phase.then_some(xid),
            on_durable: late,
            awaited: early.is_some() && self.locks.anyone_waits(),
            on_ordered: Some(Box::new(move |no| {
                if let Some(defines) = defines {
                    defines(no);
                }
                take_effect(covers);
                written.leave(no);
                sequences.iter().for_each(|state| state.sequence.changed());
                if let Some(counter) = in_flight {
                    counter.fetch_sub(1, Ordering::AcqRel);
                }
                if let Some(release) = early {
                    release();
                }
            })),
            ..CommitRequest::new(cache, writes, logged, now_us)
        };
        self.handed_over = true;
        // Who applies a log commits in its order: one that waited for the device would make all the others wait, and the
        // log would never see two of them at once.
        let ticket = match self.in_flight {
            None => self.shared.port.commit(request),
            // The next one may use what it defines, which is there only then.
            Some(_) if is_definition => Ticket::done(self.shared.port.commit(request).wait()),
            Some(_) => self.shared.port.enrol(request),
        };
        self.end();
        Ok(Some(ticket))
    }

    /// Whether the last statement has handed a commit over.
    #[must_use]
    pub fn has_committed(&self) -> bool {
        self.handed_over
    }

    /// Whether ending it takes so long that it needs a thread that may block.
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.writes.is_spilled()
            || self.writes.entries() >= omnibus_commit::STAGED_KEYS
            || self.cache.is_large()
    }

    /// Asks for a thread that may block, if the transaction is large.
    pub(crate) fn may_run_here(&self) -> ExecResult<()> {
        let long = self.is_large() || self.events.compresses && self.cache.takes_long_to_compress();
        if self.mode == Mode::Inline && long { Err(Interrupt::NeedBlocking) } else { Ok(()) }
    }

    /// Rolls back without waiting for what that takes: for a session that is gone.
    pub(crate) fn abandon(&mut self) {
        if self.is_large() && !self.locked_tables {
            let locks = self.locks.clone();
            self.replace_locks();
            omnibus_commit::drop_elsewhere((std::mem::take(&mut self.writes), locks));
        }
        self.rollback();
    }

    /// The filled cache, for a commit to take along; an empty one is in its place.
    pub(super) fn take_cache(&mut self) -> TrxCache {
        std::mem::replace(&mut self.cache, self.shared.port.new_cache())
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
        let locks = self.locks.clone();
        let keep_tables = self.locked_tables;
        if keep_tables {
            self.tables.retain(|(id, _)| !gone.contains(id));
        }
        let (cache, writes) = (self.take_cache(), std::mem::take(&mut self.writes));
        let request = CommitRequest {
            on_ordered: Some(Box::new(move |no| {
                on_ordered(no);
                if keep_tables {
                    locks.release_records();
                    gone.into_iter().chain([DDL_LOCK]).for_each(|id| locks.release_table(id));
                } else {
                    locks.release_all();
                }
            })),
            ..CommitRequest::new(cache, writes, logged, now_us)
        };
        self.handed_over = true;
        let ticket = self.shared.port.commit(request);
        self.end();
        ticket
    }

    /// Rolls everything back and lets go of all locks.
    pub fn rollback(&mut self) {
        self.branch_rolled_back();
        self.temp.rollback();
        self.end();
    }

    pub(super) fn end(&mut self) {
        self.temp.settle();
        self.aside = None;
        self.definition = None;
        self.writes.clear();
        self.memory.ended();
        self.cache.clear();
        self.events.end();
        self.covers.clear();
        self.sequences.clear();
        self.deltas.clear();
        self.savepoints.clear();
        self.drop_snapshot();
        self.snapshot_position = None;
        self.position.clear();
        self.open = false;
        self.read_only = false;
        if !self.locked_tables {
            self.tables.clear();
        }
        match (self.handed_over, self.locked_tables) {
            (true, _) => {}
            (false, true) => {
                self.locks.release_records();
                self.unlock_definitions();
            }
            (false, false) => self.locks.release_all(),
        }
    }

    /// A commit's ticket has been waited for within the statement that began it.
    pub(crate) fn commit_is_over(&mut self) {
        self.handed_over = false;
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
