//! CHANGE REPLICATION SOURCE, START, STOP and RESET REPLICA: on to `crate::replica`.

use super::Admin;
use crate::replica::Replicas;
use crate::result_set::ResultSet;
use crate::server::Server;
use omnibus_parser::ast::Statement;
use omnibus_sql::{SqlError, SqlResult};
use std::sync::Arc;

fn replicas(server: &Server) -> SqlResult<Arc<Replicas>> {
    server.replicas.get().cloned().ok_or_else(|| SqlError::not_supported_yet("replication"))
}

/// Statements about replication. Their waits may take long: threads that end, connections that are closed.
pub(super) async fn replication(admin: &mut Admin<'_>, statement: &Statement) -> SqlResult<()> {
    admin.commit_first().await?;
    admin.sql.state.diagnostics.clear();
    let replicas = replicas(admin.server)?;
    let none = |()| Vec::new();
    let notes = crate::net::blocking(|| match statement {
        Statement::ChangeSource(change) => replicas.change_source(change).map(none),
        Statement::ChangeReplicationFilter(text) => {
            replicas.change_filter(&String::from_utf8_lossy(text)).map(none)
        }
        Statement::StartReplica(start) => replicas.start(start),
        Statement::StopReplica(stop) => replicas.stop(stop),
        _ => Err(SqlError::internal("not a statement of replication")),
    })?;
    for note in notes {
        admin.sql.state.diagnostics.note(note);
    }
    Ok(())
}

/// RESET REPLICA.
pub(super) fn reset_replica(server: &Server, all: bool, channel: Option<&[u8]>) -> SqlResult<()> {
    let replicas = replicas(server)?;
    crate::net::blocking(|| replicas.reset(all, channel))
}

/// SHOW REPLICA STATUS.
pub(super) fn replica_status(
    server: &Server,
    all: bool,
    channel: Option<&[u8]>,
    old_names: bool,
) -> SqlResult<ResultSet> {
    crate::net::blocking(|| replicas(server)?.show(all, channel, old_names))
}
