//! FLUSH, but for the forms that take locks, and RESET.

use super::Admin;
use crate::account::{Account, Privileges};
use crate::errors;
use crate::server::Server;
use omnibus_parser::ast::{Flush, FlushTarget, ObjectName, Reset};
use omnibus_sql::{SqlError, SqlResult, check_flush};

pub(super) async fn flush(admin: &mut Admin<'_>, flush: &Flush) -> SqlResult<()> {
    admin.sql.state.diagnostics.clear();
    for target in &flush.targets {
        if let FlushTarget::Tables { tables, .. } = target {
            check_flush(admin.sql, tables)?;
        }
    }
    begin_handlers_anew(admin, &flush.targets);
    if flush.local || !flush.targets.iter().all(uses_given_gtid) {
        admin.commit_first().await?;
        return flush.targets.iter().try_for_each(|target| flush_one(admin.server, target));
    }
    if !super::users::enter_given(admin)? {
        return Ok(());
    }
    admin.commit_first().await?;
    let result = flush.targets.iter().try_for_each(|target| flush_one(admin.server, target));
    super::users::leave_given(admin, result)
}

/// Tables that HANDLER has open are read from their beginnings after a FLUSH.
fn begin_handlers_anew(admin: &mut Admin<'_>, targets: &[FlushTarget]) {
    let state = &mut admin.sql.state;
    for target in targets {
        let FlushTarget::Tables { tables, .. } = target else { continue };
        if tables.is_empty() {
            state.held.handlers.flush(None);
        }
        for table in tables {
            let db = table.schema.as_deref().or(state.database.as_deref());
            if let Some(db) = db {
                state.held.handlers.flush(Some((db, &table.name)));
            }
        }
    }
}

fn flush_one(server: &Server, target: &FlushTarget) -> SqlResult<()> {
    match target {
        FlushTarget::BinaryLogs => crate::net::blocking(|| server.log.rotate()),
        FlushTarget::Logs => crate::net::blocking(|| {
            crate::error_log::reopen();
            server.query_log.reopen_all(&server.globals);
            server.log.rotate()
        }),
        FlushTarget::ErrorLogs => {
            crate::net::blocking(crate::error_log::reopen);
            Ok(())
        }
        FlushTarget::GeneralLogs => {
            crate::net::blocking(|| reopen_query_logs(server, true, false));
            Ok(())
        }
        FlushTarget::SlowLogs => {
            crate::net::blocking(|| reopen_query_logs(server, false, true));
            Ok(())
        }
        FlushTarget::Privileges => crate::net::blocking(|| server.reload_accounts()),
        FlushTarget::UserResources => {
            server.usage.begin_all_anew(false);
            Ok(())
        }
        FlushTarget::Status => {
            server.processes.all().iter().for_each(|p| p.counters.clear());
            Ok(())
        }
        FlushTarget::Hosts => {
            forgive_hosts(server);
            Ok(())
        }
        // Nothing of these is kept open or cached.
        FlushTarget::Tables { .. }
        | FlushTarget::EngineLogs
        | FlushTarget::RelayLogs { .. }
        | FlushTarget::OptimizerCosts
        | FlushTarget::QueryCache
        | FlushTarget::DesKeyFile
        | FlushTarget::Ssl
        | FlushTarget::Statistics => Ok(()),
        FlushTarget::Master => Err(SqlError::not_supported_yet("FLUSH MASTER")),
        FlushTarget::Replica => Err(SqlError::not_supported_yet("FLUSH SLAVE")),
        FlushTarget::Other(name) => Err(SqlError::not_supported_yet(format!("FLUSH {}", name.as_str()))),
    }
}

fn reopen_query_logs(server: &Server, general: bool, slow: bool) {
    server.query_log.reopen(&server.globals, general, slow);
}

fn forgive_hosts(server: &Server) {
    server.doors.public.forgive();
    server.doors.admin.forgive();
}

/// TRUNCATE of a table that is not there: what `mysqladmin flush-hosts` sends from MySQL 8.4 on.
pub(super) fn truncate_host_cache(server: &Server, account: &Account) -> SqlResult<()> {
    let droppers = Privileges::DROP.with(Privileges::RELOAD);
    if !account.rights().on_database(PERFORMANCE_SCHEMA).any(droppers) {
        return Err(errors::command_denied("DROP", &account.user, account.host.as_str(), HOST_CACHE));
    }
    forgive_hosts(server);
    Ok(())
}

/// TRUNCATE performance_schema.events_statements_summary_by_digest.
pub(super) fn truncate_digests(server: &Server, account: &Account) -> SqlResult<()> {
    if !account.rights().on_database(PERFORMANCE_SCHEMA).any(Privileges::DROP) {
        return Err(errors::command_denied("DROP", &account.user, account.host.as_str(), DIGESTS));
    }
    server.digests.forget();
    Ok(())
}

pub(super) async fn reset(admin: &mut Admin<'_>, list: &[Reset]) -> SqlResult<()> {
    admin.commit_first().await?;
    for item in list {
        match item {
            Reset::BinaryLogs { to } => crate::net::blocking(|| admin.server.log.reset(*to))?,
            Reset::QueryCache => {}
            Reset::Replica { all, channel } => {
                super::replication::reset_replica(admin.server, *all, channel.as_deref())?
            }
            Reset::Persist { if_exists, name } => {
                super::set::reset_persist(admin, name.as_ref().map(|name| name.as_str()), *if_exists)?;
            }
        }
    }
    Ok(())
}

pub(super) const PERFORMANCE_SCHEMA: &str = "performance_schema";
const HOST_CACHE: &str = "host_cache";

const DIGESTS: &str = "events_statements_summary_by_digest";

pub(super) fn is_host_cache(table: &ObjectName) -> bool {
    is_table(table, HOST_CACHE)
}

pub(super) fn is_digests(table: &ObjectName) -> bool {
    is_table(table, DIGESTS)
}

fn is_table(table: &ObjectName, name: &str) -> bool {
    table.name.eq_ignore_ascii_case(name)
        && table.schema.as_ref().is_some_and(|db| db.eq_ignore_ascii_case(PERFORMANCE_SCHEMA))
}

/// Whether sources log it, with an id that `gtid_next` then gives it here: all but what is about their own logs.
fn uses_given_gtid(target: &FlushTarget) -> bool {
    !matches!(
        target,
        FlushTarget::BinaryLogs
            | FlushTarget::Logs
            | FlushTarget::ErrorLogs
            | FlushTarget::EngineLogs
            | FlushTarget::GeneralLogs
            | FlushTarget::SlowLogs
            | FlushTarget::RelayLogs { .. }
    )
}
