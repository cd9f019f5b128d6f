//! FLUSH, but for the forms that take locks, and RESET.

use crate::session::Session;
use omnibus_parser::ast::{Flush, FlushTarget, Reset};
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
                self.server.log.rotate()
            }),
            FlushTarget::ErrorLogs => {
                tokio::task::block_in_place(crate::error_log::reopen);
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
                self.server.hosts.forgive();
                self.server.admin_hosts.forgive();
                Ok(())
            }
            // Nothing of these is kept open or cached.
            FlushTarget::Tables { .. }
            | FlushTarget::EngineLogs
            | FlushTarget::GeneralLogs
            | FlushTarget::SlowLogs
            | FlushTarget::RelayLogs { .. }
            | FlushTarget::OptimizerCosts
            | FlushTarget::QueryCache
            | FlushTarget::DesKeyFile
            | FlushTarget::Ssl => Ok(()),
            FlushTarget::Master => Err(SqlError::not_supported_yet("FLUSH MASTER")),
            FlushTarget::Replica => Err(SqlError::not_supported_yet("FLUSH SLAVE")),
            FlushTarget::Other(name) => Err(SqlError::not_supported_yet(format!("FLUSH {}", name.as_str()))),
        }
    }

    pub(super) async fn reset(&mut self, list: &[Reset]) -> SqlResult<()> {
        self.commit_first().await?;
        for item in list {
            match item {
                Reset::BinaryLogs { to } => tokio::task::block_in_place(|| self.server.log.reset(*to))?,
                Reset::QueryCache => {}
                Reset::Replica { all, channel } => self.reset_replica(*all, channel.as_deref())?,
                Reset::Persist { .. } => return Err(SqlError::not_supported_yet("RESET PERSIST")),
            }
        }
        Ok(())
    }
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
