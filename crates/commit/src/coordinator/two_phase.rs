//! The session's part of the two-phase protocols: prepares in the engines, with the syncs that belong there.
//!
//! Everything here blocks the committing session's thread, which tells its runtime so through [`Blocking`]. The
//! protocols `one-sync` and `none` do not use this module. A prepare that fails leaves only a record to roll back.

use super::Coordinator;
use crate::error::CommitError;
use crate::protocol::CommitProtocol;
use crate::request::CommitRequest;
use crate::ticket::Ticket;
use omnibus_engine::TrxId;

/// Runs a closure that will block this thread, after informing the scheduler of the tasks on it.
pub type Blocking = fn(&mut dyn FnMut());

/// A [`Blocking`] for threads that may block at any time.
pub fn just_block(work: &mut dyn FnMut()) {
    work();
}

impl Coordinator {
    /// Commits under a two-phase protocol. Blocks at least as long as the engines' redo takes.
    pub(crate) fn commit_in_two_phases(&self, request: CommitRequest) -> Ticket {
        let (mut request, mut ticket) = (Some(request), None);
        (self.blocking)(&mut || {
            if let Some(request) = request.take() {
                ticket = Some(self.prepare_and_commit(request));
            }
        });
        ticket.unwrap_or_else(|| Ticket::done(Err(CommitError::ShuttingDown)))
    }

    fn prepare_and_commit(&self, mut request: CommitRequest) -> Ticket {
        let protocol = self.settings().protocol;
        let alone = (protocol == CommitProtocol::Serialized).then(|| self.serial.lock());
        if let Err(error) = self.prepare(protocol, &mut request) {
            return Ticket::done(Err(error));
        }
        let prepared = request.prepared;
        if request.is_large()
            && let Err(error) = self.make_ready(&mut request)
        {
            if let Some(xid) = request.prepared_xid() {
                self.engine().rollback(TrxId(xid));
            }
            return Ticket::done(Err(error));
        }
        let ticket = self.pipeline().commit(request.inline());
        if alone.is_none() {
            return ticket;
        }
        // The third sync of the three: the engines' commit records.
        let result = ticket.wait();
        if prepared
            && result.is_ok()
            && let Err(error) = self.engine().flush_logs()
        {
            // The log has the transaction; what the engines lack of it they get from there.
            tracing::warn!("a commit record was not synced: {error}");
        }
        Ticket::done(result)
    }

    fn prepare(&self, protocol: CommitProtocol, request: &mut CommitRequest) -> Result<(), CommitError> {
        let Some(xid) = request.xid.filter(|_| !request.writes.is_empty()) else { return Ok(()) };
        let failed = |error: omnibus_engine::EngineError| CommitError::Prepare(error.to_string().into());
        let (engine, trx) = (self.engine(), TrxId(xid));
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
}
