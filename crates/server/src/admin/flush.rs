//! FLUSH, but for the forms that take locks, and RESET.

use crate::account::Privileges;
use crate::errors;
use crate::session::Session;
use omnibus_parser::ast::{Flush, FlushTarget, ObjectName, Reset};
use omnibus_sql::{SqlError, SqlResult};

impl Session {
    pub(super) async fn flush(&mut self, flush: &Flush) -> SqlResult<()> {
        if flush.local || !flush.targets.iter().all(uses_given_gtid) {
            self.commit_first().await?;
            return flush.targets.iter().try_for_each(|target| self.flush_one(target));
        }
        if !self.enter_given()? {
            return Ok(());
        }
        self.commit_first().await?;
        let result = flush.targets.iter().try_for_each(|target| self.flush_one(target));
        self.leave_given(result)
    }

    fn flush_one(&mut self, target: &FlushTarget) -> SqlResult<()> {
        match target {
            FlushTarget::BinaryLogs => tokio::task::block_in_place(|| self.server.log.rotate()),
            FlushTarget::Logs => tokio::task::block_in_place(|| {
                crate::error_log::reopen();
                self.server.query_log.reopen_all(&self.server.globals);
                self.server.log.rotate()
            }),
            FlushTarget::ErrorLogs => {
                tokio::task::block_in_place(crate::error_log::reopen);
                Ok(())
            }
            FlushTarget::GeneralLogs => {
                tokio::task::block_in_place(|| self.reopen_query_logs(true, false));
                Ok(())
            }
            FlushTarget::SlowLogs => {
                tokio::task::block_in_place(|| self.reopen_query_logs(false, true));
                Ok(())
            }
            FlushTarget::Privileges => tokio::task::block_in_place(|| self.server.reload_accounts()),
            FlushTarget::UserResources => {
                self.server.usage.begin_all_anew(false);
                Ok(())
            }
            FlushTarget::Status => {
                self.server.processes.all().iter().for_each(|p| p.counters.clear());
                Ok(())
            }
            FlushTarget::Hosts => {
                self.forgive_hosts();
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

    fn reopen_query_logs(&self, general: bool, slow: bool) {
        self.server.query_log.reopen(&self.server.globals, general, slow);
    }

    fn forgive_hosts(&self) {
        self.server.hosts.forgive();
        self.server.admin_hosts.forgive();
    }

    /// TRUNCATE of a table that is not there: what `mysqladmin flush-hosts` sends from MySQL 8.4 on.
    pub(super) fn truncate_host_cache(&self) -> SqlResult<()> {
        let account = self.account();
        let droppers = Privileges::DROP.with(Privileges::RELOAD);
        if !account.on_database(PERFORMANCE_SCHEMA).any(droppers) {
            return Err(errors::command_denied("DROP", &account.user, account.host.as_str(), HOST_CACHE));
        }
        self.forgive_hosts();
        Ok(())
    }

    /// TRUNCATE performance_schema.events_statements_summary_by_digest.
    pub(super) fn truncate_digests(&self) -> SqlResult<()> {
        let account = self.account();
        if !account.on_database(PERFORMANCE_SCHEMA).any(Privileges::DROP) {
            return Err(errors::command_denied("DROP", &account.user, account.host.as_str(), DIGESTS));
        }
        self.server.digests.forget();
        Ok(())
    }

    pub(super) async fn reset(&mut self, list: &[Reset]) -> SqlResult<()> {
        self.commit_first().await?;
        for item in list {
            match item {
                Reset::BinaryLogs { to } => tokio::task::block_in_place(|| self.server.log.reset(*to))?,
                Reset::QueryCache => {}
                Reset::Replica { all, channel } => self.reset_replica(*all, channel.as_deref())?,
                Reset::Persist { if_exists, name } => {
                    self.reset_persist(name.as_ref().map(|name| name.as_str()), *if_exists)?;
                }
            }
        }
        Ok(())
    }
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
