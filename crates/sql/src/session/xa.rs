//! The statements of XA, and MySQL's rules about which may follow which.
//!
//! A branch leaves its session with XA PREPARE (as with MySQL's `xa_detach_on_prepare`), so the session that prepared
//! it has no special part in finishing it. What commits waits for the device within the statement, on a thread that
//! may block: only a durable prepare may be shown to others, and one that failed must be undone.

use super::show::answer_column;
use super::{Call, SqlSession};
use crate::api::{AccessCheck, Mode, Outcome};
use crate::error::{ExecResult, Interrupt, SqlError};
use crate::store::BranchState;
use crate::xa::{Held, Xid};
use bytes::Bytes;
use omnibus_parser::ast::Xa;
use omnibus_value::{ColumnKind, Value};
use std::sync::Arc;

/// As errors name the state of a session without a branch.
const NO_BRANCH: &str = "NON-EXISTING";

impl SqlSession {
    pub(super) fn xa(&mut self, xa: &Xa, call: &mut Call<'_>) -> ExecResult<Outcome> {
        match xa {
            Xa::Start { xid, join, resume } => self.xa_start(&xid.into(), *join, *resume),
            Xa::End { xid, suspend, .. } => self.xa_end(&xid.into(), *suspend),
            Xa::Recover { convert_xid } => self.xa_recover(*convert_xid, call),
            _ if call.mode == Mode::Inline => Err(Interrupt::NeedBlocking),
            Xa::Prepare(xid) => self.xa_prepare(&xid.into()),
            Xa::Commit { xid, one_phase } => self.xa_commit(&xid.into(), *one_phase, call.access),
            Xa::Rollback(xid) => self.xa_rollback(&xid.into(), call.access),
        }
    }

    fn branch_state(&self) -> Option<BranchState> {
        self.trx.branch.get().map(|(_, state)| state)
    }

    fn rmfail(&self) -> Interrupt {
        SqlError::xaer_rmfail(self.branch_state().map_or(NO_BRANCH, BranchState::name)).into()
    }

    fn is_own(&self, xid: &Xid) -> bool {
        self.trx.branch.get().is_some_and(|(own, _)| own == xid)
    }

    fn xa_start(&mut self, xid: &Xid, join: bool, resume: bool) -> ExecResult<Outcome> {
        if resume && self.branch_state() == Some(BranchState::Idle) {
            if !self.is_own(xid) {
                return Err(SqlError::xaer_nota().into());
            }
            self.trx.branch.set_state(BranchState::Active);
            return Ok(Outcome::ok());
        }
        if join || resume {
            return Err(SqlError::xaer_inval().into());
        }
        if self.branch_state().is_some() {
            return Err(self.rmfail());
        }
        if self.trx.is_open() || self.trx.locks.has_locked_tables() {
            return Err(SqlError::xaer_outside().into());
        }
        self.database.shared.branches.start(xid)?;
        let (isolation, read_only) = self.next_characteristics();
        self.trx.open(isolation, read_only);
        self.trx.begin_branch(xid.clone());
        Ok(Outcome::ok())
    }

    fn xa_end(&mut self, xid: &Xid, suspend: bool) -> ExecResult<Outcome> {
        if suspend {
            return Err(SqlError::xaer_inval().into());
        }
        match self.branch_state() {
            Some(BranchState::Active) if self.is_own(xid) => {
                self.trx.branch.set_state(BranchState::Idle);
                Ok(Outcome::ok())
            }
            Some(BranchState::Active) => Err(SqlError::xaer_nota().into()),
            Some(BranchState::RolledBack { deadlock }) if self.is_own(xid) => Err(rolled_back(deadlock)),
            _ => Err(self.rmfail()),
        }
    }

    fn xa_prepare(&mut self, xid: &Xid) -> ExecResult<Outcome> {
        if self.branch_state() != Some(BranchState::Idle) {
            return Err(self.rmfail());
        }
        if !self.is_own(xid) {
            return Err(SqlError::xaer_nota().into());
        }
        let prepared = self.trx.prepare_branch(omnibus_commit::now_us());
        let owner = Some(&*self.state.account).filter(|account| !account.is_empty()).map(Arc::from);
        let prepared = prepared.map(|(ticket, held)| (ticket, Held { owner, ..held }));
        let prepared = prepared.and_then(|(ticket, held)| self.settle(ticket).map(|_| held));
        match prepared {
            Ok(held) => {
                // The name is never free in between.
                self.database.shared.branches.prepared(xid, held);
                self.trx.hand_branch_over();
                Ok(Outcome::ok())
            }
            Err(error) => {
                self.trx.leave_branch();
                Err(error.into())
            }
        }
    }

    fn xa_commit(&mut self, xid: &Xid, one_phase: bool, access: &dyn AccessCheck) -> ExecResult<Outcome> {
        if !self.is_own(xid) {
            return self.xa_finish(xid, one_phase, true, access);
        }
        match self.branch_state() {
            Some(BranchState::Idle) if one_phase => {
                let done = self.commit_now();
                self.finish_own(done)
            }
            Some(BranchState::RolledBack { deadlock }) => {
                self.trx.leave_branch();
                Err(rolled_back(deadlock))
            }
            _ => Err(self.rmfail()),
        }
    }

    /// The commit of a branch in one phase is over.
    fn finish_own(&mut self, done: Result<Option<omnibus_commit::Ticket>, SqlError>) -> ExecResult<Outcome> {
        let done = done.map_err(Interrupt::from).and_then(|ticket| self.finish_commit(ticket));
        self.trx.leave_branch();
        done.map(|()| Outcome::ok())
    }

    fn xa_rollback(&mut self, xid: &Xid, access: &dyn AccessCheck) -> ExecResult<Outcome> {
        if !self.is_own(xid) {
            return self.xa_finish(xid, false, false, access);
        }
        if self.branch_state() == Some(BranchState::Active) {
            return Err(self.rmfail());
        }
        self.trx.rollback();
        self.trx.leave_branch();
        Ok(Outcome::ok())
    }

    /// The second phase of a prepared branch: by any session of the account that prepared it, and by those who may see the
    /// names of all branches (XA RECOVER).
    fn xa_finish(
        &mut self,
        xid: &Xid,
        one_phase: bool,
        commit: bool,
        access: &dyn AccessCheck,
    ) -> ExecResult<Outcome> {
        if self.branch_state().is_some() || self.trx.is_open() {
            return Err(self.rmfail());
        }
        // Either end is written to the log.
        if self.state.settings.server_read_only {
            return Err(SqlError::option_prevents_statement("--read-only").into());
        }
        let branches = &self.database.shared.branches;
        let account = &self.state.account;
        let held = branches.take(xid, |owner| match owner {
            Some(owner) if *owner == **account => Ok(()),
            _ => access.check_any_branch(),
        })?;
        match self.finish_taken(xid, &held, one_phase, commit) {
            Ok(()) => {
                self.database.shared.branches.forget(xid);
                Ok(Outcome::ok())
            }
            Err(error) => {
                self.database.shared.branches.prepared(xid, held);
                Err(error.into())
            }
        }
    }

    fn finish_taken(
        &mut self,
        xid: &Xid,
        held: &Held,
        one_phase: bool,
        commit: bool,
    ) -> Result<(), SqlError> {
        if one_phase {
            return Err(SqlError::xaer_inval());
        }
        let ticket = self.trx.finish_branch(xid, held, commit, omnibus_commit::now_us())?;
        self.state.budget.kill().settle(ticket).map(|_| ())
    }

    /// What is prepared. The server has checked the privilege.
    fn xa_recover(&mut self, convert: bool, call: &mut Call<'_>) -> ExecResult<Outcome> {
        let number = |name| answer_column(name, ColumnKind::BigInt, 21);
        // Two characters a byte, and 0x, when converted.
        let mut data = answer_column("data", ColumnKind::VarChar, 258 * 4);
        if !convert {
            // Any bytes, in no character set.
            data.ty.collation = 63;
        }
        call.sink.columns(&[number("formatID"), number("gtrid_length"), number("bqual_length"), data])?;
        for xid in self.database.shared.branches.list() {
            let mut data = xid.data();
            if convert {
                let digits: String = data.iter().map(|byte| format!("{byte:02X}")).collect();
                data = format!("0x{digits}").into_bytes();
            }
            let length = |part: &Bytes| Value::UInt(part.len() as u64);
            call.sink.row(&[
                Value::UInt(u64::from(xid.format_id)),
                length(&xid.gtrid),
                length(&xid.bqual),
                Value::Bytes(data.into()),
            ])?;
        }
        Ok(Outcome::rows())
    }
}

fn rolled_back(deadlock: bool) -> Interrupt {
    if deadlock { SqlError::xa_rbdeadlock().into() } else { SqlError::xa_rbrollback().into() }
}
