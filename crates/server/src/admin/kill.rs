//! KILL and SHUTDOWN.

use super::Admin;
use crate::account::Privileges;
use crate::connection::Login;
use crate::errors;
use crate::process::Process;
use crate::server::Server;
use omnibus_parser::ast::{Kill, KillTarget};
use omnibus_sql::{SqlError, SqlResult};
use omnibus_value::Value;

pub(super) async fn kill_statement(admin: &mut Admin<'_>, kill: &Kill) -> SqlResult<()> {
    match &kill.target {
        KillTarget::Connection(id) => {
            let (value, _) = admin.evaluate(id).await?;
            let id = match value {
                Value::UInt(id) => id,
                other => u64::try_from(other.to_i64().value).unwrap_or(0),
            };
            self::kill(admin.server, &admin.client.process, admin.login, id, kill.query)
        }
        KillTarget::User(_) => Err(SqlError::not_supported_yet("KILL USER")),
        KillTarget::QueryId(_) => Err(SqlError::not_supported_yet("KILL QUERY ID")),
    }
}

/// Ends a statement or a connection: one's own account's, or anybody's with the privilege.
pub(crate) fn kill(
    server: &Server,
    own: &Process,
    login: &Login,
    id: u64,
    query_only: bool,
) -> SqlResult<()> {
    let process = server.processes.get(id).ok_or_else(|| SqlError::no_such_thread(id))?;
    let account = process.identity.lock().account.clone();
    let admin = login.access.has(Privileges::SUPER.with(Privileges::CONNECTION_ADMIN));
    if account != login.account().plain() {
        if !admin {
            return Err(errors::kill_denied(id));
        }
        if let Some(other) = server.accounts.table().by_plain_name(&account) {
            login.account().may_change(&other)?;
        }
    }
    if query_only {
        process.kill_query();
    } else {
        process.kill_connection();
    }
    // A session that kills itself learns of it by this statement's own failure.
    own.kill.check()
}

/// RESTART, where somebody starts the server again.
pub(super) fn restart(server: &Server) -> SqlResult<()> {
    if !server.supervisor.restarts() {
        let message = "Restart server failed (mysqld is not managed by supervisor process).".into();
        return Err(omnibus_sql::SqlError { code: 3707, state: *b"HY000", message });
    }
    server.restart();
    Ok(())
}

pub(super) fn shutdown(server: &Server) -> SqlResult<()> {
    server.stop("SHUTDOWN");
    Ok(())
}
