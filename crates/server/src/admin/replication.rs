//! CHANGE REPLICATION SOURCE, START, STOP and RESET REPLICA: on to `crate::replica`.

use crate::replica::Replicas;
use crate::result_set::ResultSet;
use crate::session::Session;
use omnibus_parser::ast::Statement;
use omnibus_sql::{SqlError, SqlResult};
use std::sync::Arc;

impl Session {
    fn replicas(&self) -> SqlResult<Arc<Replicas>> {
        self.server.replicas.get().cloned().ok_or_else(|| SqlError::not_supported_yet("replication"))
    }

    /// What it waits for may take long: threads that end, connections that are closed.
    pub(super) async fn replication(&mut self, statement: &Statement) -> SqlResult<()> {
        self.commit_first().await?;
        self.runner.state_mut().diagnostics.clear();
        let replicas = self.replicas()?;
        let none = |()| Vec::new();
        let notes = tokio::task::block_in_place(|| match statement {
            Statement::ChangeSource(change) => replicas.change_source(change).map(none),
            Statement::ChangeReplicationFilter(text) => {
                replicas.change_filter(&String::from_utf8_lossy(text)).map(none)
            }
            Statement::StartReplica(start) => replicas.start(start),
            Statement::StopReplica(stop) => replicas.stop(stop),
            _ => Err(SqlError::internal("not a statement of replication")),
        })?;
        for note in notes {
            self.runner.state_mut().diagnostics.note(note);
        }
        Ok(())
    }

    /// RESET REPLICA.
    pub(super) fn reset_replica(&mut self, all: bool, channel: Option<&[u8]>) -> SqlResult<()> {
        let replicas = self.replicas()?;
        tokio::task::block_in_place(|| replicas.reset(all, channel))
    }

    /// SHOW REPLICA STATUS.
    pub(super) fn replica_status(
        &self,
        all: bool,
        channel: Option<&[u8]>,
        old_names: bool,
    ) -> SqlResult<ResultSet> {
        tokio::task::block_in_place(|| self.replicas()?.show(all, channel, old_names))
    }
}
