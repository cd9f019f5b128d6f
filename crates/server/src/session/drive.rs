//! Runs one statement to its end: through lock waits, restarts, blocking mode, and the wait for its
//! commit. The only await points of a statement are here.

use super::Session;
use crate::connection::{Client, Replied, ReplySink, SessionAccess, SessionShared};
use crate::parsed::Parsed;
use crate::process::{Process, Stage};
use crate::server::Server;
use crate::status::Counter;
use omnibus_commit::{CommitError, CommitResult, Ticket};
use omnibus_locks::{LockWait, WaitOutcome};
use omnibus_sql::{
    ExecResult, Interrupt, Mode, Outcome, Patience, Prepared, ServerStatement, SqlError, SqlResult,
    SqlSession,
};
use omnibus_value::Value;
use omnibus_wire::OutMark;
use std::pin::Pin;
use std::sync::Arc;

/// Inline waits after which a statement is run where it may block.
const MAX_RESTARTS: u32 = 3;

/// The work that is run.
pub(super) enum Job<'a> {
    /// A text statement.
    Text(&'a Arc<Parsed>),
    /// A prepared statement.
    Prepared(&'a Arc<Parsed>, &'a mut Prepared, &'a [Value]),
}

impl Job<'_> {
    fn first_mode(&self) -> Mode {
        let (Job::Text(parsed) | Job::Prepared(parsed, ..)) = self;
        parsed.first_mode()
    }
}

impl Session {
    /// One attempt.
    fn attempt(
        &mut self,
        job: &mut Job<'_>,
        mode: Mode,
        sink_state: &mut (bool, u64, Option<OutMark>),
    ) -> ExecResult<Outcome> {
        let binary = matches!(job, Job::Prepared(..)) || self.client.replies.inside.binary;
        let format = self.client.row_format(&self.sql, binary);
        let stream = (mode == Mode::Blocking).then_some(&mut self.client.packets.stream);
        let mut sink = ReplySink::new(&mut self.client.packets.out, format, stream);
        sink.room = self.client.packets.outgoing.as_mut();
        sink.floor = Some(&self.client.replies.floor);
        sink.process = Some(&self.client.process);
        let access = &self.login.access;
        let result = match job {
            Job::Text(parsed) => {
                let Parsed { statement, text, values, .. } = &***parsed;
                self.sql.execute(statement, text, values, mode, access, &mut sink)
            }
            Job::Prepared(_, prepared, params) => {
                self.sql.execute_prepared(prepared, params, mode, access, &mut sink)
            }
        };
        *sink_state = (sink.overflow, sink.flushed, sink.results.complete);
        let rows = sink.rows;
        if sink.broken {
            // Nothing more may be sent: the client would read the rest of a torn packet in it.
            self.client.cut();
        }
        self.client.packets.sent += sink_state.1;
        // What an attempt gives that is run again is not what the client gets.
        if matches!(result, Ok(_) | Err(Interrupt::Error(_) | Interrupt::Server(_))) && !sink_state.0 {
            self.client.replies.rows_sent += rows;
        }
        result
    }

    /// Runs a job until it is done and what it commits is durable (SESSION-1; what it saw is waited for in `reply_floor`). Rows are in the output buffer; on an error
    /// nothing of it is, unless some of it was sent already.
    pub(super) async fn drive(&mut self, mut job: Job<'_>) -> SqlResult<Outcome> {
        let mut mark = self.client.packets.out.mark();
        let (mut mode, mut restarts) = (job.first_mode(), 0);
        let mut sink_state = (false, 0, None);
        loop {
            let result = match mode {
                Mode::Inline => {
                    crate::net::end_turn();
                    self.attempt(&mut job, mode, &mut sink_state)
                }
                Mode::Blocking => {
                    self.client.process.counters.add(Counter::Blocking, 1);
                    // Replies to commands before this one leave first: this may take long.
                    crate::net::blocking(|| self.attempt(&mut job, mode, &mut sink_state))
                }
            };
            let (overflow, flushed, complete) = sink_state;
            // What a procedure has given already stays.
            mark = complete.unwrap_or(mark);
            if result.is_err() && flushed == 0 {
                self.client.packets.out.rollback(mark);
            }
            match result {
                Ok(outcome) => {
                    return durable(
                        &mut self.client,
                        &self.settings.shared,
                        &mut self.sql,
                        outcome,
                        flushed == 0,
                        mark,
                    )
                    .await;
                }
                Err(Interrupt::Error(_)) if overflow && mode == Mode::Inline => mode = Mode::Blocking,
                Err(Interrupt::Error(error)) => return Err(error),
                Err(Interrupt::NeedBlocking) if mode == Mode::Inline => mode = Mode::Blocking,
                Err(Interrupt::NeedBlocking) => {
                    return Err(SqlError::internal("a statement that cannot end"));
                }
                Err(Interrupt::Server(inner)) => {
                    let binary = matches!(job, Job::Prepared(..));
                    let answer = self.inner_statement(*inner, binary).await;
                    self.sql.answer(answer);
                    mark = self.client.packets.out.mark();
                }
                Err(Interrupt::NeedFile(name)) => {
                    match self.client.file(&mut self.sql, &self.settings.shared, &name).await {
                        Ok(file) => self.sql.supply_file(file),
                        Err(error) => {
                            self.sql.give_up(&error);
                            return Err(error);
                        }
                    }
                    // What came before has been sent with the request.
                    mark = self.client.packets.out.mark();
                }
                Err(Interrupt::LockWait(wait)) => {
                    lock_wait(&self.client.process, &mut self.sql, wait).await?;
                    restarts += 1;
                    self.client.process.counters.add(Counter::Restarts, 1);
                    if restarts >= MAX_RESTARTS {
                        mode = Mode::Blocking;
                    }
                }
            }
        }
    }

    /// Runs a statement of a procedure as one of the client's, without the reply that has no rows.
    fn inner_statement(
        &mut self,
        inner: ServerStatement,
        binary: bool,
    ) -> Pin<Box<dyn Future<Output = SqlResult<()>> + Send + '_>> {
        // Boxed: what runs inside may be a call again.
        Box::pin(async move {
            let access = match &inner.account {
                None => None,
                Some((user, host)) => Some(definer_access(&self.server, user, host)?),
            };
            let own = access.map(|access| std::mem::replace(&mut self.login.access, access));
            let kind = crate::status::com_index(inner.statement.node.kind());
            let parsed =
                Arc::new(Parsed { text: inner.text, statement: inner.statement, kind, values: Vec::new() });
            let outer = std::mem::replace(&mut self.client.replies.inside.binary, binary);
            self.client.replies.inside.depth += 1;
            // The program's `sql_mode` ends with the program: the session's own stays what it was.
            let mode = |bits: u64| crate::sysvars::VarValue::Str(crate::sysvars::sql_mode_text(bits).into());
            let programs = mode(self.sql.state.settings.sql_mode);
            let sessions = {
                let mut vars = self.settings.shared.vars.lock();
                let sessions = vars.named("sql_mode").clone();
                vars.put_named("sql_mode", programs);
                sessions
            };
            let replied = self.run_statement(&parsed, true).await;
            self.settings.shared.vars.lock().put_named("sql_mode", sessions);
            self.client.replies.inside.depth -= 1;
            self.client.replies.inside.binary = outer;
            if let Some(own) = own {
                self.login.access = own;
                self.settings.shared.set_account(&self.login.access);
            }
            match (replied, self.client.replies.inside.error.take()) {
                (Replied::Good, _) => Ok(()),
                (Replied::Bad, error) => Err(error.unwrap_or_else(SqlError::unknown_error)),
            }
        })
    }
}

/// The rights of a program's definer.
fn definer_access(server: &Server, user: &str, host: &str) -> SqlResult<SessionAccess> {
    match server.accounts.table().exact(user, host) {
        Some(account) => {
            let role = server.is_mariadb() && account.is_role;
            let access = SessionAccess::new(account, user, host, &server.accounts);
            Ok(if role { access.of_role() } else { access.logged_in() })
        }
        None => Err(crate::errors::no_such_definer(user, host)),
    }
}

/// Awaits the commit.
async fn durable(
    client: &mut Client,
    shared: &SessionShared,
    sql: &mut SqlSession,
    mut outcome: Outcome,
    whole: bool,
    mark: omnibus_wire::OutMark,
) -> SqlResult<Outcome> {
    let Some(mut ticket) = outcome.wait.take() else { return Ok(outcome) };
    let result = match ticket.poll_now() {
        Some(result) => result,
        None => {
            client.process.stage(Stage::CommitWait);
            client.process.counters.add(Counter::CommitWaits, 1);
            match committed(&client.process, &mut ticket).await {
                Some(result) => result,
                // The commit goes on without the session, and gives its locks back itself.
                None => return Err(SqlError::query_interrupted()),
            }
        }
    };
    let number = match result {
        Ok(number) => number,
        Err(error) => {
            if whole {
                client.packets.out.rollback(mark);
            }
            sql.trx().commit_is_over(false);
            match error {
                CommitError::Refused(refusal) => return Err(crate::errors::refused(&refusal)),
                CommitError::Withdrawn => return Err(SqlError::query_interrupted()),
                _ => {}
            }
            tracing::error!(id = client.process.id, %error, "commit failed");
            return Err(SqlError::of_commit(error));
        }
    };
    if sql.trx().has_committed() {
        shared.committed(number.0);
        client.told.committed(number);
    }
    sql.trx().commit_is_over(true);
    // Backpressure: after the commit, when no lock is held that others would wait for.
    let stall = sql.database().port().engine().write_stall();
    if !stall.is_zero() {
        client.process.stage(Stage::CommitWait);
        tokio::time::sleep(stall).await;
    }
    Ok(outcome)
}

/// Awaits a lock, within the timeout, until killed.
async fn lock_wait(process: &Process, sql: &mut SqlSession, mut wait: LockWait) -> SqlResult<()> {
    process.stage(wait.target().as_ref().map_or(Stage::LockWait, Stage::waiting_for));
    process.counters.add(Counter::LockWaits, 1);
    let limit = Patience::new(&sql.state.settings).of(wait.target().as_ref());
    let since = wait.since();
    let left = process.kill.time_left(limit.saturating_sub(since.elapsed()));
    let outcome = loop {
        tokio::select! {
            biased;
            outcome = &mut wait => break outcome,
            () = process.killed.notified() => {
                if process.kill.check().is_err() {
                    break match wait.cancel() {
                        WaitOutcome::Granted => WaitOutcome::Granted,
                        _ => WaitOutcome::Killed,
                    };
                }
            }
            () = tokio::time::sleep(left) => break wait.cancel(),
        }
    };
    sql.state.budget.tally.waited(since.elapsed());
    process.stage(Stage::Executing);
    match outcome {
        WaitOutcome::Granted => process.kill.check(),
        other => Err(sql.wait_failed(other)),
    }
}

/// The end of a commit: a KILL takes it back while it has no place in the log (COMMIT-4). Nothing if it has one and the
/// connection is to end.
async fn committed(process: &Process, ticket: &mut Ticket) -> Option<CommitResult> {
    loop {
        if process.kill.is_killed() && ticket.withdraw() {
            return Some(Err(CommitError::Withdrawn));
        }
        if process.kill.connection_killed() {
            return None;
        }
        tokio::select! {
            biased;
            result = &mut *ticket => return Some(result),
            () = process.killed.notified() => {}
        }
    }
}
