//! COM_QUERY: splits a text into statements, one after the other, and runs each.

use super::Session;
use super::drive::{Job, Replied};
use super::observe::{self, Observed};
use crate::process::Activity;
use crate::runner::{Parsed, first_mode};
use crate::status::{Counter, com_index};
use bytes::Bytes;
use omnibus_parser::ParseError;
use omnibus_parser::ast::Statement;
use omnibus_sql::{Level, Mode, SqlError, SqlResult};
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
    /// The first statement of a text, and where the next one starts.
    pub(crate) fn parse(&mut self, text: &Bytes) -> SqlResult<(Arc<Parsed>, Option<usize>)> {
        parse_by(self, text, false)
    }

    /// Runs a text and adds all its replies.
    /// Returns when the last statement ended, if one was run; the first one began when the command came.
    pub(crate) async fn query(&mut self, mut text: Bytes, came_us: i64) -> Option<i64> {
        let mut ended = None;
        loop {
            let begun = self.begin_observed(ended.unwrap_or(came_us));
            let (parsed, next) = match self.parse(&text) {
                Ok(found) => found,
                // A comment alone is a statement, and does nothing: tools send settings of other versions so.
                Err(error) if error.code == EMPTY_QUERY && text.iter().any(|c| b"*-#".contains(c)) => {
                    self.ok(0, 0, "");
                    return ended;
                }
                Err(error) => {
                    self.audit_unparsed(&text, error.code);
                    self.log_command(Activity::Query, text);
                    self.failed(error);
                    return ended;
                }
            };
            self.log_command(Activity::Query, parsed.text.clone());
            if let Some(at) = next
                && !self.replies.multi_statements
            {
                let near =
                    String::from_utf8_lossy(&text[at.min(text.len())..]).chars().take(80).collect::<String>();
                let line = text[..at.min(text.len())].iter().filter(|c| **c == b'\n').count() as u32 + 1;
                self.failed(parse_error(&ParseError::Syntax { near, line }));
                return ended;
            }
            self.process.counters.add(Counter::Questions, 1);
            self.process.counters.add(Counter::Queries, 1);
            let replied = self.statement(&parsed, next.is_some()).await;
            let text_of = |_: &Session| parsed.text.clone();
            let failed = replied == Replied::Bad;
            let statement = observe::Statement { parsed: &parsed, text: &text_of, failed, kept: None };
            ended = Some(self.end_observed(begun, Observed::Statement(statement)));
            if replied == Replied::Bad {
                return ended;
            }
            match next {
                Some(at) if at < text.len() && !self.process.kill.connection_killed() => {
                    text = text.slice(at..)
                }
                _ => return ended,
            }
        }
    }

    /// Runs one statement and adds its reply, which may be sent then.
    pub(crate) async fn statement(&mut self, parsed: &Arc<Parsed>, more: bool) -> Replied {
        let start = self.reply_start();
        let replied = self.run_statement(parsed, more).await;
        if self.settle(start).await { replied } else { Replied::Bad }
    }

    pub(crate) async fn run_statement(&mut self, parsed: &Arc<Parsed>, more: bool) -> Replied {
        if let Statement::SetStatement(tree) = &parsed.statement.node {
            // Boxed: what runs inside may be one again.
            return Box::pin(self.set_for(tree, more)).await;
        }
        self.process.counters.statement(parsed.kind);
        self.note_conditions();
        self.refresh();
        if let Err(error) = self.count_use(parsed) {
            return self.failed(error);
        }
        if self.passes_over(&parsed.statement.node) {
            let status = self.status();
            let status = if more { status.with(omnibus_wire::Status::MORE_RESULTS) } else { status };
            self.ok_packet(0, 0, "", status);
            return Replied::Good;
        }
        let computed;
        let parsed = match &parsed.statement.node {
            Statement::ExecuteImmediate { .. } => {
                computed = match self.with_text(parsed).await {
                    Ok(computed) => computed,
                    Err(error) => return self.failed_in_sql(error),
                };
                &computed
            }
            _ => parsed,
        };
        let handled = match self.named_administration(parsed, more).await {
            Some(handled) => Some(handled),
            None => self.administration(parsed, more).await,
        };
        if let Some(handled) = handled {
            return match handled {
                Ok(()) => Replied::Good,
                Err(error) => self.failed(error),
            };
        }
        let waited = self.wait_first(&parsed.statement.node).await;
        let result = match waited {
            Ok(()) => self.drive(Job::Text(parsed)).await,
            Err(error) => Err(error),
        };
        self.shared.set_waited(None);
        self.follow_statement(parsed);
        match result {
            Ok(outcome) => {
                self.reply_outcome(&outcome, more);
                Replied::Good
            }
            Err(error) => self.failed_in_sql(error),
        }
    }

    /// What the statement before left, for `@@warning_count`.
    pub(super) fn note_conditions(&self) {
        let state = self.runner.state();
        let (all, errors) = state.diagnostics.counts();
        self.shared.statement_ended(all, errors, state.last_insert_id);
    }

    /// MAX_QUERIES_PER_HOUR and MAX_UPDATES_PER_HOUR of the account.
    pub(crate) fn count_use(&self, parsed: &Parsed) -> SqlResult<()> {
        let account = self.account();
        if account.options.resources.is_unlimited() {
            return Ok(());
        }
        self.server.usage.statement(account, parsed.statement.node.changes(), crate::clock::now_us())
    }

    /// Adds an error that the SQL layer has noted in its diagnostics itself.
    pub(crate) fn failed_in_sql(&mut self, error: SqlError) -> Replied {
        if self.runner.state().diagnostics.has(&error) {
            let error = self.in_dialect(error);
            return self.error_reply(error);
        }
        self.failed(error)
    }

    fn in_dialect(&self, error: SqlError) -> SqlError {
        crate::errors::in_dialect(error, self.server.log.dialect())
    }

    /// Adds an error, and notes it for SHOW WARNINGS.
    pub(crate) fn failed(&mut self, error: SqlError) -> Replied {
        let error = self.in_dialect(error);
        let diagnostics = &mut self.runner.state_mut().diagnostics;
        diagnostics.clear();
        diagnostics.push(Level::Error, error.clone());
        self.error_reply(error)
    }

    /// Tells the client, or the procedure whose statement it was.
    fn error_reply(&mut self, error: SqlError) -> Replied {
        if self.running.inside.depth > 0 {
            self.running.inside.error = Some(error);
        } else {
            self.channel.error(&error);
        }
        Replied::Bad
    }

    /// What the server must know after any statement: figures, and the default database, which USE
    /// and DROP DATABASE change.
    pub(super) fn follow_statement(&mut self, parsed: &Arc<Parsed>) {
        if self.shared.take_changed_inside() {
            self.apply_settings();
        }
        let state = self.runner.state();
        let warnings = u64::from(state.diagnostics.count());
        self.shared.statement_ended(warnings, state.diagnostics.error_count(), state.last_insert_id);
        if matches!(parsed.statement.node, Statement::Use(_) | Statement::DropDatabase { .. }) {
            self.process.identity.lock().db = self.runner.state().database.clone();
            self.replies.schema_changed = true;
        }
        // Rows do not begin or end a transaction that has a snapshot of its own.
        if !matches!(
            parsed.statement.node,
            Statement::Select(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)
        ) {
            let place = self.runner.snapshot_place();
            self.shared.follow_snapshot(place);
        }
        self.end_of_insert_id();
        self.follow_sequence();
    }
}

/// As `Session::parse`, of a text that is prepared: it may have `?`.
pub(crate) fn parse_to_prepare(
    session: &mut Session,
    text: &Bytes,
) -> SqlResult<(Arc<Parsed>, Option<usize>)> {
    parse_by(session, text, true)
}

fn parse_by(
    session: &mut Session,
    text: &Bytes,
    to_prepare: bool,
) -> SqlResult<(Arc<Parsed>, Option<usize>)> {
    let runner = &mut session.runner;
    let (statement, next) = match first_mode(text) {
        Mode::Inline => runner.parse(text, to_prepare)?,
        Mode::Blocking => tokio::task::block_in_place(|| runner.parse(text, to_prepare))?,
    };
    let kind = com_index(statement.node.kind());
    let text = text.slice_ref(statement.span.of(text));
    Ok((Arc::new(Parsed { text, statement, kind }), next))
}
