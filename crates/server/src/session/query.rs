//! COM_QUERY: splits a text into statements, one after the other, and runs each.

use super::Session;
use super::drive::Job;
use super::foreign_dump::passes_over;
use super::observe::{self, Observed};
use super::wait_first::wait_first;
use crate::account::Account;
use crate::admin::{named_administration, with_text};
use crate::connection::Replied;
use crate::parsed::{Parsed, read};
use crate::process::Activity;
use crate::server::Server;
use crate::status::Counter;
use bytes::Bytes;
use omnibus_parser::ParseError;
use omnibus_parser::ast::Statement;
use omnibus_sql::{SqlError, SqlResult};
use std::sync::Arc;

/// "Query was empty".
const EMPTY_QUERY: u16 = 1065;

/// A parse error as the client sees it.
pub(crate) fn parse_error(error: &ParseError) -> SqlError {
    let mut state = *b"HY000";
    if let Ok(s) = <[u8; 5]>::try_from(error.state().as_bytes()) {
        state = s;
    }
    SqlError { code: error.code(), state, message: error.to_string() }
}

impl Session {
    /// Runs a text and adds all its replies.
    /// Returns when the last statement ended, if one was run; the first one began when the command came.
    pub(super) async fn query(&mut self, mut text: Bytes, came_us: i64) -> Option<i64> {
        let mut ended = None;
        loop {
            let begun = self.begin_observed(ended.unwrap_or(came_us));
            let (parsed, next) = match read(&mut self.sql, &text) {
                Ok(found) => found,
                // A comment alone is a statement, and does nothing: tools send settings of other versions so.
                Err(error) if error.code == EMPTY_QUERY && text.iter().any(|c| b"*-#".contains(c)) => {
                    self.ok();
                    return ended;
                }
                Err(error) => {
                    self.observer().audit_unparsed(&text, error.code);
                    self.observer().log_command(Activity::Query, text);
                    self.failed(error);
                    return ended;
                }
            };
            if !parsed.values.is_empty() {
                self.client.process.counters.add(Counter::StatementCacheHits, 1);
            }
            self.observer().log_command(Activity::Query, parsed.text.clone());
            if let Some(at) = next
                && !self.client.replies.multi_statements
            {
                let near =
                    String::from_utf8_lossy(&text[at.min(text.len())..]).chars().take(80).collect::<String>();
                let line = text[..at.min(text.len())].iter().filter(|c| **c == b'\n').count() as u32 + 1;
                self.failed(parse_error(&ParseError::Syntax { near, line }));
                return ended;
            }
            self.client.process.counters.add(Counter::Questions, 1);
            self.client.process.counters.add(Counter::Queries, 1);
            let replied = self.statement(&parsed, next.is_some()).await;
            let text_of = || parsed.text.clone();
            let failed = replied == Replied::Bad;
            let mut digests = std::mem::take(&mut self.digests);
            let kept = (!parsed.values.is_empty()).then(|| digests.of(&parsed.statement));
            let statement = observe::Statement { parsed: &parsed, text: &text_of, failed, kept };
            ended = Some(self.observer().end(begun, Observed::Statement(statement)));
            self.digests = digests;
            if replied == Replied::Bad || self.settings.leaves {
                return ended;
            }
            match next {
                Some(at) if at < text.len() && !self.client.process.kill.connection_killed() => {
                    text = text.slice(at..)
                }
                _ => return ended,
            }
        }
    }

    /// Runs one statement and adds its reply, which may be sent then.
    pub(super) async fn statement(&mut self, parsed: &Arc<Parsed>, more: bool) -> Replied {
        let start = self.client.reply_start();
        let replied = self.run_statement(parsed, more).await;
        if self.client.settle(&mut self.sql, start).await { replied } else { Replied::Bad }
    }

    pub(super) async fn run_statement(&mut self, parsed: &Arc<Parsed>, more: bool) -> Replied {
        if let Statement::SetStatement(tree) = &parsed.statement.node {
            // Boxed: what runs inside may be one again.
            return Box::pin(self.set_for(tree, more)).await;
        }
        self.client.process.counters.statement(parsed.kind);
        self.settings.note_conditions(&self.sql);
        self.refresh();
        if let Err(error) = count_use(&self.server, self.login.account(), parsed) {
            return self.failed(error);
        }
        if passes_over(self.login.account(), &mut self.sql, &parsed.statement.node) {
            self.client.ok(&self.sql, more);
            return Replied::Good;
        }
        let computed;
        let parsed = match &parsed.statement.node {
            Statement::ExecuteImmediate { .. } => {
                computed = match with_text(&mut self.admin(), parsed).await {
                    Ok(computed) => computed,
                    Err(error) => return self.client.failed_in_sql(&mut self.sql, error),
                };
                &computed
            }
            _ => parsed,
        };
        let mut admin = self.admin();
        let handled = match named_administration(&mut admin, parsed, more).await {
            Some(handled) => Some(handled),
            None => admin.run(parsed, more).await,
        };
        if let Some(handled) = handled {
            return match handled {
                Ok(()) => Replied::Good,
                Err(error) => self.failed(error),
            };
        }
        let waited = wait_first(self, &parsed.statement.node).await;
        let result = match waited {
            Ok(()) => self.drive(Job::Text(parsed)).await,
            Err(error) => Err(error),
        };
        self.settings.shared.set_waited(None);
        self.follow_statement(parsed);
        match result {
            Ok(outcome) => {
                if let Statement::Commit(how) | Statement::Rollback(how) = &parsed.statement.node {
                    self.settings.leaves = self.sql.state.settings.transactions.completion.releases(*how);
                }
                self.client.reply_outcome(&self.sql, &outcome, more);
                Replied::Good
            }
            Err(error) => self.client.failed_in_sql(&mut self.sql, error),
        }
    }

    /// Follows any statement: figures, and the default database, which USE
    /// and DROP DATABASE change.
    pub(super) fn follow_statement(&mut self, parsed: &Arc<Parsed>) {
        if self.settings.shared.take_changed_inside() {
            self.admin().apply_settings();
        }
        self.settings.note_conditions(&self.sql);
        if matches!(parsed.statement.node, Statement::Use(_) | Statement::DropDatabase { .. }) {
            self.client.process.identity.lock().db = self.sql.state.database.clone();
            self.client.told.schema_changed();
        }
        // Rows do not begin or end a transaction that has a snapshot of its own.
        if !matches!(
            parsed.statement.node,
            Statement::Select(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)
        ) {
            let place = self.sql.trx().snapshot_place();
            self.settings.shared.follow_snapshot(place);
        }
        self.settings.statement_is_over(&mut self.sql);
    }
}

/// MAX_QUERIES_PER_HOUR and MAX_UPDATES_PER_HOUR of the account.
pub(super) fn count_use(server: &Server, account: &Account, parsed: &Parsed) -> SqlResult<()> {
    if account.options.resources.is_unlimited() {
        return Ok(());
    }
    server.usage.statement(account, parsed.statement.node.changes(), crate::clock::now_us())
}
