//! Statements that the server runs itself: SET, accounts, KILL, FLUSH, the log, and the SHOW forms
//! that are about them. Everything else is the SQL layer's.
//!
//! One file per kind of statement. Runs in the session's task; what touches files runs in
//! `block_in_place`.

mod backup;
mod evaluate;
mod flush;
mod kill;
mod log;
mod prepared;
mod replication;
mod set;
mod set_for;
mod set_gtid;
mod set_names;
mod setup;
mod show;
mod users;

use crate::query_log::Class;
use crate::runner::Parsed;
use crate::session::Session;
use omnibus_parser::ast::{Flush, FlushTarget, Show, Statement};
use omnibus_sql::{AccessCheck, SqlResult};
use std::sync::Arc;

impl Session {
    /// Runs a statement of the server's and adds its reply. `None`: it is not one.
    pub(crate) async fn administration(&mut self, parsed: &Arc<Parsed>, more: bool) -> Option<SqlResult<()>> {
        let was_on = self.server.query_log.audit.is_on();
        let done = self.administer(parsed, more).await;
        if let Some(done) = &done
            && was_on
            && Class::of(&parsed.statement.node).is_told_inside()
        {
            let code = done.as_ref().map_or_else(|error| error.code, |()| 0);
            self.shared.audit_inside(&parsed.statement.node, &parsed.text, code, was_on);
            if !self.server.query_log.audit.is_on() {
                tokio::task::block_in_place(|| self.server.query_log.end_audit());
            }
        }
        done
    }

    async fn administer(&mut self, parsed: &Arc<Parsed>, more: bool) -> Option<SqlResult<()>> {
        if let Err(error) = self.identity.access.check_statement(&parsed.statement.node) {
            return Some(Err(error));
        }
        let done = match &parsed.statement.node {
            Statement::Set(items) if let Some(alter) = users::random_password(items) => {
                return Some(self.users(&alter, &parsed.text, more).await);
            }
            Statement::Set(items) => self.set_statement(items).await,
            Statement::Kill(kill) => self.kill_statement(kill).await,
            // The locks are the SQL layer's.
            Statement::Flush(flush) if !takes_locks(flush) => self.flush(flush).await,
            Statement::Truncate(table) if flush::is_host_cache(table) => self.truncate_host_cache(),
            Statement::Truncate(table) if flush::is_digests(table) => self.truncate_digests(),
            Statement::Update(update) => {
                return self.update_setup(update).map(|done| done.map(|()| self.reply_ok(more)));
            }
            Statement::Reset(list) => self.reset(list).await,
            Statement::Purge(purge) => self.purge(purge).await,
            Statement::RotateBinlogMasterKey => {
                tokio::task::block_in_place(|| self.server.log.rotate_master_key())
            }
            Statement::Shutdown => self.shutdown(),
            Statement::Restart => self.restart(),
            Statement::ChangeSource(_)
            | Statement::ChangeReplicationFilter(_)
            | Statement::StartReplica(_)
            | Statement::StopReplica(_) => self.replication(&parsed.statement.node).await,
            Statement::SetRole(set) => self.set_role(set),
            statement if statement.is_about_accounts() => {
                return Some(self.users(statement, &parsed.text, more).await);
            }
            Statement::Backup(backup) => return Some(self.backup(backup, more).await),
            Statement::Show(show) if is_ours(show) => {
                return Some(self.show(show, more).await);
            }
            _ => return None,
        };
        Some(done.map(|()| self.reply_ok(more)))
    }

    fn reply_ok(&mut self, more: bool) {
        let status = self.status();
        let status = if more { status.with(omnibus_wire::Status::MORE_RESULTS) } else { status };
        self.ok_packet(0, 0, "", status);
    }
}

fn takes_locks(flush: &Flush) -> bool {
    let locks = |target: &FlushTarget| {
        matches!(
            target,
            FlushTarget::Tables { read_lock: true, .. } | FlushTarget::Tables { for_export: true, .. }
        )
    };
    flush.targets.iter().any(locks)
}

fn is_ours(show: &Show) -> bool {
    matches!(
        show,
        Show::Warnings { .. }
            | Show::Errors { .. }
            | Show::Grants { .. }
            | Show::CreateUser(_)
            | Show::Privileges
            | Show::BinaryLogs
            | Show::BinaryLogStatus
            | Show::BinlogEvents(_)
            | Show::Replicas { .. }
            | Show::ReplicaStatus { .. }
            | Show::Profiles
            | Show::Profile
    )
}
