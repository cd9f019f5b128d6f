//! The statements of XA, and MySQL's rules about which may follow which.
//!
//! A branch leaves its session with XA PREPARE (as with MySQL's `xa_detach_on_prepare`), so the session that prepared
//! it has no special part in finishing it. What commits waits for the device within the statement, on a thread that
//! may block: only a durable prepare may be shown to others, and one that failed must be undone.

use super::show::answer_column;
use super::{Call, StatementContext};
use crate::api::{AccessCheck, Mode, Outcome};
use crate::error::{ExecResult, Interrupt, SqlError};
use crate::memory::MemoryLimits;
use crate::store::{BranchState, branch_memory};
use crate::xa::{Held, Xid};
use bytes::Bytes;
use omnibus_parser::ast::Xa;
use omnibus_value::{ColumnKind, Value};
use std::sync::Arc;

/// As errors name the state of a session without a branch.
const NO_BRANCH: &str = "NON-EXISTING";

pub(super) fn execute(cx: &mut StatementContext<'_>, xa: &Xa, call: &mut Call<'_>) -> ExecResult<Outcome> {
    match xa {
        Xa::Start { xid, join, resume } => start(cx, &xid.into(), *join, *resume),
        Xa::End { xid, suspend, .. } => end(cx, &xid.into(), *suspend),
        Xa::Recover { convert_xid } => recover(cx, *convert_xid, call),
        _ if call.mode == Mode::Inline => Err(Interrupt::NeedBlocking),
        Xa::Prepare(xid) => prepare(cx, &xid.into()),
        Xa::Commit { xid, one_phase } => commit(cx, &xid.into(), *one_phase, call.access),
        Xa::Rollback(xid) => rollback(cx, &xid.into(), call.access),
    }
}

fn branch_state(cx: &StatementContext<'_>) -> Option<BranchState> {
    cx.trx.branch.get().map(|(_, state)| state)
}

fn rmfail(cx: &StatementContext<'_>) -> Interrupt {
    SqlError::xaer_rmfail(branch_state(cx).map_or(NO_BRANCH, BranchState::name)).into()
}

fn is_own(cx: &StatementContext<'_>, xid: &Xid) -> bool {
    cx.trx.branch.get().is_some_and(|(own, _)| own == xid)
}

fn start(cx: &mut StatementContext<'_>, xid: &Xid, join: bool, resume: bool) -> ExecResult<Outcome> {
    if resume && branch_state(cx) == Some(BranchState::Idle) {
        if !is_own(cx, xid) {
            return Err(SqlError::xaer_nota().into());
        }
        cx.trx.branch.set_state(BranchState::Active);
        return Ok(Outcome::ok());
    }
    if join || resume {
        return Err(SqlError::xaer_inval().into());
    }
    if branch_state(cx).is_some() {
        return Err(rmfail(cx));
    }
    if cx.trx.is_open() || cx.trx.locks.has_locked_tables() {
        return Err(SqlError::xaer_outside().into());
    }
    cx.database.shared.branches.start(xid)?;
    let (isolation, read_only) = cx.next_characteristics();
    cx.trx.open(isolation, read_only);
    cx.trx.branch.begin(xid.clone(), &mut cx.trx.log);
    Ok(Outcome::ok())
}

fn end(cx: &mut StatementContext<'_>, xid: &Xid, suspend: bool) -> ExecResult<Outcome> {
    if suspend {
        return Err(SqlError::xaer_inval().into());
    }
    match branch_state(cx) {
        Some(BranchState::Active) if is_own(cx, xid) => {
            cx.trx.branch.set_state(BranchState::Idle);
            Ok(Outcome::ok())
        }
        Some(BranchState::Active) => Err(SqlError::xaer_nota().into()),
        Some(BranchState::RolledBack { deadlock }) if is_own(cx, xid) => Err(rolled_back(deadlock)),
        _ => Err(rmfail(cx)),
    }
}

fn prepare(cx: &mut StatementContext<'_>, xid: &Xid) -> ExecResult<Outcome> {
    if branch_state(cx) != Some(BranchState::Idle) {
        return Err(rmfail(cx));
    }
    if !is_own(cx, xid) {
        return Err(SqlError::xaer_nota().into());
    }
    let memory = branch_memory(cx.trx, MemoryLimits::of(&cx.state.settings))?;
    let prepared = cx.trx.prepare_branch(omnibus_commit::now_us(), memory);
    let owner = Some(&*cx.state.login.account).filter(|account| !account.is_empty()).map(Arc::from);
    let prepared = prepared.map(|(ticket, held)| (ticket, Held { owner, ..held }));
    let prepared = prepared.and_then(|(ticket, held)| cx.settle(ticket).map(|_| held));
    match prepared {
        Ok(held) => {
            // The name is never free in between.
            cx.database.shared.branches.prepared(xid, held);
            cx.trx.branch.hand_over(&mut cx.trx.log);
            Ok(Outcome::ok())
        }
        Err(error) => {
            cx.trx.leave_branch();
            Err(error.into())
        }
    }
}

fn commit(
    cx: &mut StatementContext<'_>,
    xid: &Xid,
    one_phase: bool,
    access: &dyn AccessCheck,
) -> ExecResult<Outcome> {
    if !is_own(cx, xid) {
        return finish(cx, xid, one_phase, true, access);
    }
    match branch_state(cx) {
        Some(BranchState::Idle) if one_phase => {
            let done = cx.commit_now();
            finish_own(cx, done)
        }
        Some(BranchState::RolledBack { deadlock }) => {
            cx.trx.leave_branch();
            Err(rolled_back(deadlock))
        }
        _ => Err(rmfail(cx)),
    }
}

/// The commit of a branch in one phase is over.
fn finish_own(
    cx: &mut StatementContext<'_>,
    done: Result<Option<omnibus_commit::Ticket>, SqlError>,
) -> ExecResult<Outcome> {
    let done = done.map_err(Interrupt::from).and_then(|ticket| cx.finish_commit(ticket));
    cx.trx.leave_branch();
    done.map(|()| Outcome::ok())
}

fn rollback(cx: &mut StatementContext<'_>, xid: &Xid, access: &dyn AccessCheck) -> ExecResult<Outcome> {
    if !is_own(cx, xid) {
        return finish(cx, xid, false, false, access);
    }
    if branch_state(cx) == Some(BranchState::Active) {
        return Err(rmfail(cx));
    }
    cx.trx.rollback();
    cx.trx.leave_branch();
    Ok(Outcome::ok())
}

/// The second phase of a prepared branch: by any session of the account that prepared it, and by those who may see the
/// names of all branches (XA RECOVER).
fn finish(
    cx: &mut StatementContext<'_>,
    xid: &Xid,
    one_phase: bool,
    commit: bool,
    access: &dyn AccessCheck,
) -> ExecResult<Outcome> {
    if branch_state(cx).is_some() || cx.trx.is_open() {
        return Err(rmfail(cx));
    }
    // Either end is written to the log.
    if cx.state.settings.server_read_only {
        return Err(SqlError::option_prevents_statement("--read-only").into());
    }
    let branches = &cx.database.shared.branches;
    let account = &cx.state.login.account;
    let kill = cx.state.budget.kill();
    let held = branches.take(xid, kill, |owner| match owner {
        Some(owner) if *owner == **account => Ok(()),
        _ => access.check_any_branch(),
    })?;
    match finish_taken(cx, xid, &held, one_phase, commit) {
        Ok(()) => {
            cx.database.shared.branches.forget(xid);
            Ok(Outcome::ok())
        }
        Err(error) => {
            cx.database.shared.branches.prepared(xid, held);
            Err(error.into())
        }
    }
}

fn finish_taken(
    cx: &mut StatementContext<'_>,
    xid: &Xid,
    held: &Held,
    one_phase: bool,
    commit: bool,
) -> Result<(), SqlError> {
    if one_phase {
        return Err(SqlError::xaer_inval());
    }
    let ticket = cx.trx.finish_branch(xid, held, commit, omnibus_commit::now_us())?;
    cx.state.budget.kill().settle(ticket).map(|_| ())
}

/// XA RECOVER: lists the prepared branches. The server has checked the privilege.
fn recover(cx: &mut StatementContext<'_>, convert: bool, call: &mut Call<'_>) -> ExecResult<Outcome> {
    let number = |name| answer_column(name, ColumnKind::BigInt, 21);
    // Two characters a byte, and 0x, when converted.
    let mut data = answer_column("data", ColumnKind::VarChar, 258 * 4);
    if !convert {
        // Any bytes, in no character set.
        data.ty.collation = 63;
    }
    call.sink.columns(&[number("formatID"), number("gtrid_length"), number("bqual_length"), data])?;
    for xid in cx.database.shared.branches.list() {
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

fn rolled_back(deadlock: bool) -> Interrupt {
    if deadlock { SqlError::xa_rbdeadlock().into() } else { SqlError::xa_rbrollback().into() }
}
