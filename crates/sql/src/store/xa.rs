//! The phases of XA on a transaction: see [`crate::xa`] for what a prepared branch is.
//!
//! A [`Trx`] is an XA branch from `SessionBranch::begin` to `leave_branch`; its commit is then written as XA's. Prepared, the
//! branch has left the session: writes in the engine, locks in the registry. On the session's thread.

use super::end::{count_rows, take_effect};
use super::foreign_keys;
use super::log::TrxLog;
use super::statement::StatementScope;
use super::transaction::Transaction;
use super::trx::{Trx, TrxContext, cache_error};
use crate::catalog::{Catalog, Table};
use crate::error::{SqlError, SqlResult};
use crate::memory::{Account, MemoryLimits, SessionMemory};
use crate::xa::{Held, Xid, record};
use bytes::Bytes;
use omnibus_commit::{CommitRequest, OnDurable, OnOrdered, Ticket};
use omnibus_engine::{CommitNo, Write, WriteSet};
use omnibus_locks::{Request, RowMode, TableMode};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes of a prepared branch beside its locks of rows.
const BRANCH: usize = 2 << 10;

/// Where a session is with its branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BranchState {
    /// Between XA START and XA END: statements belong to it.
    Active,
    /// After XA END: it can only be finished.
    Idle,
    /// It is rolled back already, and only waits to be told so.
    RolledBack {
        /// As the victim of a deadlock.
        deadlock: bool,
    },
}

impl BranchState {
    /// As errors name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            BranchState::Active => "ACTIVE",
            BranchState::Idle => "IDLE",
            BranchState::RolledBack { .. } => "ROLLBACK ONLY",
        }
    }
}

/// The XA branch that a transaction is, or was until it was rolled back.
#[derive(Default)]
pub(crate) struct SessionBranch(Option<Branch>);

struct Branch {
    xid: Xid,
    state: BranchState,
}

impl SessionBranch {
    /// The branch and where the session is with it.
    pub(crate) fn get(&self) -> Option<(&Xid, BranchState)> {
        self.0.as_ref().map(|branch| (&branch.xid, branch.state))
    }

    /// The transaction that was just opened is a branch, and its events name it.
    pub(crate) fn begin(&mut self, xid: Xid, log: &mut TrxLog) {
        log.events.branch = Some(xid.clone());
        self.0 = Some(Branch { xid, state: BranchState::Active });
    }

    /// The branch is over for the session; whoever has it now has its name.
    pub(crate) fn hand_over(&mut self, log: &mut TrxLog) -> Option<Xid> {
        log.events.branch = None;
        self.0.take().map(|branch| branch.xid)
    }

    pub(super) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// XA END, and XA START ... RESUME behind it.
    pub(crate) fn set_state(&mut self, state: BranchState) {
        if let Some(branch) = &mut self.0 {
            branch.state = state;
        }
    }

    /// The rollback that follows is that of a deadlock's victim.
    pub(crate) fn deadlocked(&mut self) {
        self.set_state(BranchState::RolledBack { deadlock: true });
    }

    pub(super) fn rolled_back(&mut self) {
        if let Some(branch) = &mut self.0
            && !matches!(branch.state, BranchState::RolledBack { .. })
        {
            branch.state = BranchState::RolledBack { deadlock: false };
        }
    }

    /// Fails if tables may not be used in the branch's state.
    pub(super) fn check_active(&self) -> SqlResult<()> {
        match &self.0 {
            Some(branch) if branch.state != BranchState::Active => {
                Err(SqlError::xaer_rmfail(branch.state.name()))
            }
            _ => Ok(()),
        }
    }

    /// Fails inside a branch: only statements of XA end it.
    pub(crate) fn check_none(&self) -> SqlResult<()> {
        match &self.0 {
            Some(branch) => Err(SqlError::xaer_rmfail(branch.state.name())),
            None => Ok(()),
        }
    }
}

impl Transaction {
    /// Makes the record of the first phase of XA of the branch's writes; also tells whether it has a GTID.
    fn write_record(
        &mut self,
        xid: &Xid,
        statement: &StatementScope,
        log: &mut TrxLog,
    ) -> SqlResult<(WriteSet, bool)> {
        let unlogged = self.unlogged_keys()?;
        let room = &statement.attempt.room;
        let writes = record::of_writes(xid, &self.writes, &mut |writes| self.memory.relieve(room, writes))?;
        let logged = log.events.prepare(&mut log.cache, &writes, &unlogged)?;
        Ok((writes, logged))
    }
}

/// Asks for what a transaction's branch keeps once it is prepared, when it is nobody's. There may be any number of them.
///
/// # Errors
/// 3170: a limit says no; the branch is as before.
pub(crate) fn branch_memory(trx: &Trx, limits: MemoryLimits) -> SqlResult<Account> {
    let mut memory = trx.shared.branches.account();
    memory.grow_exactly(BRANCH + trx.locks.rows.owned.memory(), limits)?;
    Ok(memory)
}

impl Trx {
    /// The branch is over for the session, and its name is free.
    pub(crate) fn leave_branch(&mut self) {
        if let Some(xid) = self.branch.hand_over(&mut self.log) {
            self.shared.branches.forget(&xid);
        }
    }

    /// XA PREPARE. The session is without a transaction afterwards; when the ticket is complete, the branch may be
    /// given to the registry.
    ///
    /// As in MySQL, no event tells of a branch that changed nothing: replicas could not prepare it (3898). Its record does,
    /// so that a crash takes back no prepare.
    ///
    /// # Errors
    /// The trx cache could not take the last events; the transaction is rolled back.
    pub(crate) fn prepare_branch(&mut self, now_us: u64, memory: Account) -> SqlResult<(Ticket, Held)> {
        self.log.finish_applied(&self.statement, &mut self.transaction)?;
        let record = match &self.branch.0 {
            Some(branch) => self.transaction.write_record(&branch.xid, &self.statement, &mut self.log),
            None => Err(SqlError::xaer_nota()),
        };
        let (writes, logged) = match record {
            Ok(written) => written,
            Err(error) => {
                self.rollback();
                return Err(error);
            }
        };
        let Transaction { covers, deltas, .. } = self.transaction.take();
        let request = CommitRequest {
            // Counters take effect now, whatever becomes of the rows. The locks stay.
            on_ordered: Some(Box::new(move |_| take_effect(covers))),
            ..CommitRequest::new(self.log.take_cache(), writes, logged, now_us)
        };
        let ticket = self.shared.port.commit_seen(self.budget.kill(), request);
        let held = Held {
            owner: None,
            seen: Box::new(self.locks.rows.watch.look().prepared()),
            locks: self.locks.rows.owned.clone(),
            deltas,
            _memory: memory,
        };
        self.locks.rows.replace();
        // The branch has its own locks; what it did to temporary tables waits for its outcome (COMMIT-4).
        self.locks.handed_over = Some(Vec::new());
        self.leave();
        Ok((ticket, held))
    }

    /// XA COMMIT or XA ROLLBACK of a prepared branch, which the caller has taken. Its locks go when the commit has
    /// its place.
    ///
    /// # Errors
    /// The engine failed, or the trx cache. The branch is as before.
    pub(crate) fn finish_branch(
        &mut self,
        xid: &Xid,
        held: &Held,
        commit: bool,
        now_us: u64,
    ) -> SqlResult<Ticket> {
        let latest = self.shared.port.latest();
        if !record::exists(&*latest, xid)? {
            return Err(SqlError::internal(format!("the record of XA transaction {xid} is gone")));
        }
        let (mut writes, verb) = (WriteSet::default(), if commit { "COMMIT" } else { "ROLLBACK" });
        let write = |key, value| {
            match value {
                Some(value) => writes.put(key, value),
                None => writes.delete(key),
            }
            self.transaction.memory.relieve(&self.statement.attempt.room, &mut writes)
        };
        match commit {
            true => record::commit(&*latest, xid, write)?,
            false => record::rollback(&*latest, xid, write)?,
        }
        let written = self.shared.builds.written(&writes)?;
        let mark = self.log.cache.mark();
        let told = self.log.applied.is_some() || record::has_writes(&*latest, xid)?;
        if let Some(applied) = self.log.take_applied() {
            if let Some(origin) = applied.origin {
                self.log.cache.set_given(origin, applied.guard);
            }
            if let Some((key, value)) = applied.position {
                let mut position = WriteSet::default();
                position.put(key.clone(), value.clone());
                super::write_set_event(&mut self.log.cache, &position)?;
                writes.put(key, value);
            }
        }
        let sql = format!("XA {verb} {xid}");
        let (logging, told) = (&self.statement.attempt.logging, told.then_some(&*sql));
        let logged = match self.log.events.finish_branch(logging, &mut self.log.cache, &writes, told) {
            Ok(logged) => logged,
            Err(error) => {
                self.log.cache.rollback_to(mark).map_err(cache_error)?;
                return Err(error);
            }
        };
        let (locks, late) = (held.locks.clone(), held.locks.clone());
        let early = self.shared.port.releases_early();
        let ordered = move |no: CommitNo| {
            written.leave(no);
            if early {
                locks.committed(no.0);
                locks.release_all();
            }
        };
        let request = CommitRequest {
            on_durable: (!early).then(|| Box::new(move || late.release_all()) as OnDurable),
            on_ordered: Some(Box::new(ordered) as OnOrdered),
            ..CommitRequest::new(self.log.take_cache(), writes, logged, now_us)
        };
        if commit {
            count_rows(&mut held.deltas.clone());
        }
        Ok(self.shared.port.commit_seen(self.budget.kill(), request))
    }
}

/// At start: every branch that the engine has a record of gets its locks back.
///
/// # Errors
/// The engine failed, or damage.
pub(crate) fn restore(shared: &Arc<TrxContext>) -> SqlResult<()> {
    let names = record::list(&*shared.port.latest())?;
    if names.is_empty() {
        return Ok(());
    }
    let catalog = shared.catalog.load();
    let spaces = tables_by_space(&catalog);
    let mut branches = Vec::with_capacity(names.len());
    for xid in names {
        let memory = Arc::new(SessionMemory::of(shared.memory.clone()));
        let mut trx = Trx::new(shared.clone(), 0, Arc::default(), &memory);
        let mut keys = 0usize;
        record::visit(&*shared.port.latest(), &xid, |key, write, _| {
            keys += 1;
            lock_again(&mut trx, &spaces, &key, &write)
        })?;
        tracing::warn!(%xid, keys, "found a prepared XA transaction; it waits for XA COMMIT or XA ROLLBACK");
        branches.push((xid, trx));
    }
    // What they have written is theirs first, whatever the checks of others were.
    for (number, (xid, mut trx)) in (1..).zip(branches) {
        record::visit(&*shared.port.latest(), &xid, |key, write, _| {
            lock_parents_of(&mut trx, &spaces, &key, &write)
        })?;
        let seen = Box::new(trx.locks.rows.watch.look().found(number));
        let locks = trx.locks.rows.owned.clone();
        let mut memory = shared.branches.account();
        memory.take_anyway(BRANCH + locks.memory());
        let held = Held { owner: None, locks, seen, deltas: Vec::new(), _memory: memory };
        shared.branches.start(&xid)?;
        shared.branches.prepared(&xid, held);
        trx.locks.rows.replace();
    }
    Ok(())
}

type Spaces = HashMap<u32, (Arc<Table>, usize)>;

/// Finds the index that each space is.
fn tables_by_space(catalog: &Catalog) -> Spaces {
    let indexes = |table: &Arc<Table>| {
        let table = table.clone();
        let spaces: Vec<u32> = table.def.indexes.iter().map(|index| index.space.0).collect();
        spaces.into_iter().enumerate().map(move |(at, space)| (space, (table.clone(), at)))
    };
    catalog.tables().flat_map(indexes).collect()
}

/// Locks what a write of a prepared branch had locked, and keeps its ids from being given out again.
fn lock_again(trx: &mut Trx, spaces: &Spaces, key: &Bytes, write: &Write) -> SqlResult<()> {
    let space = super::lock::space_of(key);
    let (table, index) = spaces.get(&space).ok_or_else(|| {
        SqlError::internal(format!("a prepared XA transaction writes to unknown space {space}"))
    })?;
    granted(trx.locks.rows.owned.lock_table(table.def.id, TableMode::IntentExclusive))?;
    // A key that is not there yet keeps others from locking a range around it.
    let appears = write.is_some() && trx.shared.port.latest().get(key)?.is_none();
    granted(match appears {
        true => trx.locks.rows.owned.lock_insert(space, key),
        false => trx.locks.rows.owned.lock_record(space, key, RowMode::Exclusive),
    })?;
    let (Some(row), 0) = (write, *index) else { return Ok(()) };
    if table.def.hidden_key {
        let id = key.get(4..12).and_then(|id| id.try_into().ok()).map_or(0, u64::from_be_bytes);
        trx.counters.next_row_id(table)?;
        table.state.row_id.fetch_max(id.saturating_add(1), Ordering::AcqRel);
    }
    if table.auto_column.is_some() {
        trx.counters.note_auto_value(table, &table.decode(row)?)?;
    }
    Ok(())
}

/// Locks what a row of a prepared branch refers to: it must be there when the branch is committed.
fn lock_parents_of(trx: &mut Trx, spaces: &Spaces, key: &Bytes, write: &Write) -> SqlResult<()> {
    let Some((table, 0)) = spaces.get(&super::lock::space_of(key)) else { return Ok(()) };
    let Some(row) = write.as_ref().filter(|_| !table.def.foreign_keys.is_empty()) else { return Ok(()) };
    let before = trx.shared.port.latest().get(key)?;
    let before = before.map(|row| table.decode(&row)).transpose()?;
    foreign_keys::lock_parents_again(trx, table, before.as_deref(), &table.decode(row)?)
}

fn granted(request: Request) -> SqlResult<()> {
    match request {
        Request::Granted { .. } => Ok(()),
        Request::Wait(_) => Err(SqlError::internal("two prepared XA transactions write the same row")),
    }
}
