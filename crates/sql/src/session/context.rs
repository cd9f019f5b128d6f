//! The part of a session that a running statement may touch, and the steps that statements of many kinds share.
//!
//! Each kind of statement is a module of functions over it. What runs statements again, keeps them prepared, or runs those of stored
//! programs is the session's own (`run`, `prepared`, `programs`).

use super::attempt::Attempts;
use super::next_gtid::NextGtid;
use super::session::{NextTransaction, Replayed};
use super::{Call, Database, SqlSession};
use crate::api::{Isolation, Outcome, Priv};
use crate::catalog::Catalog;
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::state::SessionState;
use crate::store::Trx;
use omnibus_commit::Ticket;
use omnibus_engine::CommitNo;
use omnibus_parser::ast::ObjectName;
use std::sync::Arc;

/// A session without its prepared statements and programs.
pub(crate) struct StatementContext<'s> {
    pub(crate) state: &'s mut SessionState,
    pub(crate) trx: &'s mut Trx,
    pub(crate) database: &'s Arc<Database>,
    pub(super) replayed: &'s mut Replayed,
    pub(super) attempts: &'s mut Attempts,
    pub(super) next: &'s mut NextTransaction,
    pub(super) gtid: &'s mut NextGtid,
}

impl SqlSession {
    /// Its own part in a statement.
    pub(crate) fn context(&mut self) -> StatementContext<'_> {
        StatementContext {
            state: &mut self.state,
            trx: &mut self.trx,
            database: &self.database,
            replayed: &mut self.replayed,
            attempts: &mut self.attempts,
            next: &mut self.next,
            gtid: &mut self.gtid,
        }
    }
}

impl StatementContext<'_> {
    /// The catalog now, this session's temporary tables in front.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.trx.temp.over(self.trx.stored_catalog())
    }

    /// As `catalog`, for a plan: who finds something in it, or misses it, must see to it that the reply waits.
    pub(crate) fn catalog_to_plan(&self) -> Arc<Catalog> {
        let stored = self.trx.transaction.open_catalog().cloned().unwrap_or_else(|| self.database.catalog());
        self.trx.temp.over(stored)
    }

    /// The schema of a name, or the default one.
    pub(crate) fn schema_of(&self, name: &ObjectName) -> SqlResult<String> {
        crate::state::schema_of(self.state, name)
    }

    pub(super) fn use_database(&mut self, name: &str, call: &Call<'_>) -> ExecResult<Outcome> {
        let known = ["information_schema", "performance_schema", "sys"];
        if let Some(known) = known.iter().find(|known| name.eq_ignore_ascii_case(known)) {
            self.state.database = Some((*known).into());
            return Ok(Outcome::ok());
        }
        call.access.check(name, None, Priv::Any)?;
        self.state.database = Some(self.catalog().schema(name)?.name.clone());
        Ok(Outcome::ok())
    }

    /// Opens a transaction if autocommit is off and the statement needs one.
    pub(crate) fn enter(&mut self) {
        if !self.trx.is_open() && !self.state.settings.transactions.autocommit {
            let (isolation, read_only) = self.next_characteristics();
            self.trx.open(isolation, read_only);
        }
    }

    /// The characteristics of the transaction that begins.
    pub(super) fn next_characteristics(&mut self) -> (Isolation, bool) {
        self.next.take(&self.state.settings)
    }

    /// Commits what is open.
    pub(crate) fn commit_now(&mut self) -> SqlResult<Option<Ticket>> {
        self.next.forget();
        if self.gtid.is_used_up_now() {
            self.trx.log.finish_applied(&self.trx.statement, &mut self.trx.transaction)?;
        }
        self.trx.commit(omnibus_commit::now_us())
    }

    /// Waits for a commit of the session that has more to do once it is committed (`KillFlag::settle`). Blocks.
    ///
    /// # Errors
    /// KILL, what the commit ended with: it has left nothing behind.
    pub(super) fn settle(&mut self, ticket: Ticket) -> SqlResult<CommitNo> {
        let done = self.state.budget.kill().settle(ticket);
        self.trx.commit_is_over(done.is_ok());
        done
    }

    /// Waits for a commit within a statement that goes on (`KillFlag::finish`). Blocks.
    pub(crate) fn finish_commit(&mut self, ticket: Option<Ticket>) -> ExecResult<()> {
        let Some(ticket) = ticket else { return Ok(()) };
        let Some(done) = self.state.budget.kill().finish(ticket) else {
            // It gives its locks back itself.
            return Err(SqlError::query_interrupted().into());
        };
        self.trx.commit_is_over(done.is_ok());
        Ok(done.map(drop)?)
    }

    /// Makes what is open durable before a definition begins, whatever becomes of that. LOCK TABLES stays in force.
    pub(super) fn commit_before_definition(&mut self) -> ExecResult<()> {
        self.trx.branch.check_none()?;
        self.trx.locks.check_no_read_lock()?;
        let ticket = self.commit_now()?;
        self.finish_commit(ticket)
    }

    /// A definition has ended with this.
    pub(super) fn end_definition(&mut self, result: ExecResult<Outcome>) -> ExecResult<Outcome> {
        self.state.budget.progress.end();
        if result.is_err() {
            self.trx.rollback();
            // What it found in the way may not be durable yet.
            self.trx.floor().see_everything();
        }
        result
    }
}
