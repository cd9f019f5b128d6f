//! Statements that the server runs itself: SET, accounts, KILL, FLUSH, the log, and the SHOW forms
//! that are about them. Everything else is the SQL layer's.
//!
//! One file per kind of statement, functions that take what they touch: `Admin`, which is most of a session, or less. Runs in the session's task; what touches files runs in
//! `block_in_place`.

mod backup;
mod evaluate;
mod flush;
mod kill;
mod log;
mod prepared;
mod replication;
mod set;
mod set_gtid;
mod set_names;
mod setup;
mod show;
mod users;

pub(crate) use kill::kill;
pub(crate) use prepared::{administration_with, named_administration, with_text};
pub(crate) use set::set_statement;

use crate::connection::{Client, Login, Settings};
use crate::parsed::Parsed;
use crate::query_log::Class;
use crate::server::Server;
use omnibus_parser::ast::{RoleSet, Show, Statement};
use omnibus_sql::{AccessCheck, Outcome, SqlResult, SqlSession};
use std::sync::Arc;

/// The context of a statement of the server's: the parts of its session, but for the statement that runs and those that are prepared.
pub(crate) struct Admin<'a> {
    pub(crate) server: &'a Arc<Server>,
    pub(crate) client: &'a mut Client,
    pub(crate) login: &'a mut Login,
    pub(crate) settings: &'a mut Settings,
    pub(crate) sql: &'a mut SqlSession,
}

impl Admin<'_> {
    /// Runs a statement of the server's and adds its reply. `None`: it is not one.
    pub(crate) async fn run(&mut self, parsed: &Arc<Parsed>, more: bool) -> Option<SqlResult<()>> {
        let was_on = self.server.query_log.audit.is_on();
        let done = self.administer(parsed, more).await;
        if let Some(done) = &done
            && was_on
            && Class::of(&parsed.statement.node).is_told_inside()
        {
            let code = done.as_ref().map_or_else(|error| error.code, |()| 0);
            self.settings.shared.audit_inside(&parsed.statement.node, &parsed.text, code, was_on);
            if !self.server.query_log.audit.is_on() {
                crate::net::blocking(|| self.server.query_log.end_audit());
            }
        }
        done
    }

    async fn administer(&mut self, parsed: &Arc<Parsed>, more: bool) -> Option<SqlResult<()>> {
        if let Err(error) = self.login.access.check_statement(&parsed.statement.node) {
            return Some(Err(error));
        }
        let done = match &parsed.statement.node {
            Statement::Set(items) if let Some(alter) = users::random_password(items) => {
                return Some(users::users(self, &alter, &parsed.text, more).await);
            }
            Statement::Set(items) => set_statement(self, items).await,
            Statement::Kill(kill) => kill::kill_statement(self, kill).await,
            // The locks are the SQL layer's.
            Statement::Flush(flush) if !flush.takes_locks() => flush::flush(self, flush).await,
            Statement::Truncate(table) if flush::is_host_cache(table) => {
                flush::truncate_host_cache(self.server, self.login.account())
            }
            Statement::Truncate(table) if flush::is_digests(table) => {
                flush::truncate_digests(self.server, self.login.account())
            }
            Statement::Update(update) => {
                let table = setup::table_of(update, self.sql.state.database.as_deref())?;
                // Prepared for other values, its tree has none; its text has.
                let own = match parsed.values.is_empty() {
                    true => Ok(parsed.clone()),
                    false => crate::parsed::parse(self.sql, &parsed.text).map(|(parsed, _)| parsed),
                };
                let changed = match own {
                    Ok(own) => setup::update_setup(self, &own.statement.node, table).await,
                    Err(error) => Err(error),
                };
                let reply = |affected| {
                    let outcome = Outcome { affected, ..Outcome::ok() };
                    self.client.reply_outcome(self.sql, &outcome, more);
                };
                return Some(changed.map(reply));
            }
            Statement::Reset(list) => flush::reset(self, list).await,
            Statement::Purge(purge) => log::purge(self, purge).await,
            Statement::RotateTableMasterKey => crate::net::blocking(|| self.server.log.rotate_table_key()),
            Statement::RotateBinlogMasterKey => crate::net::blocking(|| self.server.log.rotate_master_key()),
            Statement::Shutdown => kill::shutdown(self.server),
            Statement::Restart => kill::restart(self.server),
            Statement::ChangeSource(_)
            | Statement::ChangeReplicationFilter(_)
            | Statement::StartReplica(_)
            | Statement::StopReplica(_) => replication::replication(self, &parsed.statement.node).await,
            Statement::SetRole(set) => self.set_role(set),
            statement if statement.is_about_accounts() => {
                return Some(users::users(self, statement, &parsed.text, more).await);
            }
            Statement::Backup(backup) => return Some(backup::backup(self, backup, more).await),
            Statement::Show(show) if is_ours(show) => {
                return Some(show::show(self, show, more).await);
            }
            _ => return None,
        };
        Some(done.map(|()| self.client.ok(self.sql, more)))
    }

    /// SET ROLE.
    pub(crate) fn set_role(&mut self, set: &RoleSet) -> SqlResult<()> {
        self.login.access.set_role(set, self.server.is_mariadb())?;
        self.settings.shared.set_account(&self.login.access);
        self.apply_settings();
        Ok(())
    }

    /// Makes what a SET has changed act.
    pub(crate) fn apply_settings(&mut self) {
        self.settings.apply(self.client, &self.login.access, self.sql);
    }
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
