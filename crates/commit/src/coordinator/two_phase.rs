//! The session's part of the two-phase protocols: prepares in the engines, with the syncs that belong there.
//!
//! Everything here blocks the committing session's thread, which tells its runtime so through [`Blocking`]. The
//! protocols `one-sync` and `none` do not use this module. A prepare that fails leaves only a record to roll back.

use super::large::make_ready;
use crate::error::CommitError;
use crate::log_env::LogEnv;
use crate::pipeline::Pipeline;
use crate::protocol::CommitProtocol;
use crate::request::CommitRequest;
use crate::ticket::Ticket;
use omnibus_engine::{Engine, TrxId};
use omnibus_sync::Mutex;

/// Runs a closure that will block this thread, after informing the scheduler of the tasks on it.
pub type Blocking = fn(&mut dyn FnMut());

/// A [`Blocking`] for threads that may block at any time.
pub fn just_block(work: &mut dyn FnMut()) {
    work();
}

/// How the threads of sessions commit in two phases.
pub(super) struct TwoPhase {
    /// `commit_protocol=serialized`: held from prepare to commit.
    serial: Mutex<()>,
    blocking: Blocking,
}

impl TwoPhase {
    pub(super) fn new(blocking: Blocking) -> TwoPhase {
        TwoPhase { serial: Mutex::new(()), blocking }
    }

    /// Commits under a two-phase protocol. Blocks at least as long as the engines' redo takes.
    pub(super) fn commit(
        &self,
        pipeline: &Pipeline<LogEnv>,
        engine: &dyn Engine,
        protocol: CommitProtocol,
        request: CommitRequest,
    ) -> Ticket {
        let (mut request, mut ticket) = (Some(request), None);
        (self.blocking)(&mut || {
            if let Some(request) = request.take() {
                let alone = (protocol == CommitProtocol::Serialized).then(|| self.serial.lock());
                let submitted = prepare_and_submit(pipeline, engine, protocol, request);
                ticket = Some(match submitted {
                    Ok((submitted, prepared)) if alone.is_some() => {
                        await_records(engine, submitted, prepared)
                    }
                    Ok((submitted, _)) => submitted,
                    Err(error) => Ticket::done(Err(error)),
                });
            }
        });
        ticket.unwrap_or_else(|| Ticket::done(Err(CommitError::ShuttingDown)))
    }
}

/// The first phase, and the request for the second one. Whether engines hold the transaction prepared.
fn prepare_and_submit(
    pipeline: &Pipeline<LogEnv>,
    engine: &dyn Engine,
    protocol: CommitProtocol,
    mut request: CommitRequest,
) -> Result<(Ticket, bool), CommitError> {
    prepare(engine, protocol, &mut request)?;
    let prepared = request.prepared;
    if request.is_large()
        && let Err(error) = make_ready(&mut request, engine)
    {
        if let Some(xid) = request.prepared_xid() {
            engine.rollback(TrxId(xid));
        }
        return Err(error);
    }
    Ok((pipeline.commit(request.inline()), prepared))
}

/// Waits for a commit, and for the third sync of the three: the engines' commit records.
fn await_records(engine: &dyn Engine, ticket: Ticket, prepared: bool) -> Ticket {
    let result = ticket.wait();
    if prepared
        && result.is_ok()
        && let Err(error) = engine.flush_logs()
    {
        // The log has the transaction; what the engines lack of it they get from there.
        tracing::warn!("a commit record was not synced: {error}");
    }
    Ticket::done(result)
}

fn prepare(
    engine: &dyn Engine,
    protocol: CommitProtocol,
    request: &mut CommitRequest,
) -> Result<(), CommitError> {
    let Some(xid) = request.xid.filter(|_| !request.writes.is_empty()) else { return Ok(()) };
    let failed = |error: omnibus_engine::EngineError| CommitError::Prepare(error.to_string().into());
    let trx = TrxId(xid);
    let prepared = engine.prepare(trx, &request.writes).and_then(|()| match protocol {
        // In `group-redo` the leader syncs for everybody.
        CommitProtocol::GroupRedo => Ok(()),
        _ => engine.flush_logs(),
    });
    if prepared.is_err() {
        engine.rollback(trx);
    }
    prepared.map_err(failed)?;
    request.prepared = true;
    Ok(())
}
