//! Runs one statement to its end: through lock waits, restarts, blocking mode, and the wait for its
//! commit. The only await points of a statement are here.

use super::sink::{ReplySink, RowFormat};
use super::{Session, SessionAccess};
use crate::process::{Process, Stage};
use crate::result_set::ResultSet;
use crate::runner::{Parsed, PreparedHandle, RunContext};
use crate::status::Counter;
use omnibus_commit::{CommitError, CommitResult, Ticket};
use omnibus_locks::{LockWait, WaitOutcome};
use omnibus_sql::{
    ExecResult, Interrupt, Mode, Outcome, Patience, RowSink, ServerStatement, SqlError, SqlResult,
};
use omnibus_value::Value;
use omnibus_wire::session_state::StateChange;
use omnibus_wire::{Capability, OkPacket, OutMark, Status};
use std::pin::Pin;
use std::sync::Arc;

/// Inline waits after which a statement is run where it may block.
const MAX_RESTARTS: u32 = 3;

/// How a statement was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replied {
    /// OK or rows.
    Good,
    /// ERR: statements behind it in the same text are not run.
    Bad,
}

/// What is run.
pub(crate) enum Job<'a> {
    /// A text statement.
    Text(&'a Arc<Parsed>),
    /// A prepared statement.
    Prepared(&'a Arc<Parsed>, &'a mut PreparedHandle, &'a [Value]),
}

impl Job<'_> {
    fn first_mode(&self) -> Mode {
        let (Job::Text(parsed) | Job::Prepared(parsed, ..)) = self;
        parsed.first_mode()
    }
}

impl Session {
    pub(crate) fn row_format(&self, binary: bool) -> RowFormat {
        let settings = &self.runner.state().settings;
        RowFormat {
            caps: self.channel.caps,
            binary,
            collation: settings.collation_results,
            status: self.status(),
            write_timeout: self.channel.write_timeout,
        }
    }

    /// One attempt.
    fn attempt(
        &mut self,
        job: &mut Job<'_>,
        mode: Mode,
        sink_state: &mut (bool, u64, Option<OutMark>),
    ) -> ExecResult<Outcome> {
        let binary = matches!(job, Job::Prepared(..)) || self.running.inside.binary;
        let format = self.row_format(binary);
        let stream = (mode == Mode::Blocking).then_some(&mut self.channel.stream);
        let mut sink = ReplySink::new(&mut self.channel.out, format, stream);
        sink.room = self.channel.outgoing.as_mut();
        sink.floor = self.replies.floor.as_deref();
        sink.process = Some(&self.process);
        let context = RunContext { mode, access: &self.identity.access };
        let result = match job {
            Job::Text(parsed) => self.runner.execute(parsed, &context, &mut sink),
            Job::Prepared(parsed, handle, params) => {
                self.runner.execute_prepared(parsed, handle, params, &context, &mut sink)
            }
        };
        *sink_state = (sink.overflow, sink.flushed, sink.complete);
        let rows = sink.rows;
        if sink.broken {
            // Nothing more may be sent: the client would read the rest of a torn packet in it.
            self.process.kill.kill_connection();
            self.channel.stream = crate::net::Stream::Gone;
        }
        self.channel.sent += sink_state.1;
        // What an attempt gives that is run again is not what the client gets.
        if matches!(result, Ok(_) | Err(Interrupt::Error(_) | Interrupt::Server(_))) && !sink_state.0 {
            self.replies.rows_sent += rows;
        }
        result
    }

    /// Runs a job until it is done and what it commits is durable (SESSION-1; what it saw is waited for in `settle`). Rows are in the output buffer; on an error
    /// nothing of it is, unless some of it was sent already.
    pub(crate) async fn drive(&mut self, mut job: Job<'_>) -> SqlResult<Outcome> {
        let mut mark = self.channel.out.mark();
        let (mut mode, mut restarts) = (job.first_mode(), 0);
        let mut sink_state = (false, 0, None);
        loop {
            let result = match mode {
                Mode::Inline => self.attempt(&mut job, mode, &mut sink_state),
                Mode::Blocking => {
                    self.process.counters.add(Counter::Blocking, 1);
                    // Replies to commands before this one leave first: this may take long.
                    tokio::task::block_in_place(|| self.attempt(&mut job, mode, &mut sink_state))
                }
            };
            let (overflow, flushed, complete) = sink_state;
            // What a procedure has given already stays.
            mark = complete.unwrap_or(mark);
            if result.is_err() && flushed == 0 {
                self.channel.out.rollback(mark);
            }
            match result {
                Ok(outcome) => return self.durable(outcome, flushed == 0, mark).await,
                Err(Interrupt::Error(_)) if overflow && mode == Mode::Inline => mode = Mode::Blocking,
                Err(Interrupt::Error(error)) => return Err(error),
                Err(Interrupt::NeedBlocking) if mode == Mode::Inline => mode = Mode::Blocking,
                Err(Interrupt::NeedBlocking) => {
                    return Err(SqlError::internal("a statement that cannot end"));
                }
                Err(Interrupt::Server(inner)) => {
                    let binary = matches!(job, Job::Prepared(..));
                    let answer = self.inner_statement(*inner, binary).await;
                    self.runner.answer(answer);
                    mark = self.channel.out.mark();
                }
                Err(Interrupt::NeedFile(name)) => {
                    match self.client_file(&name).await {
                        Ok(file) => self.runner.supply_file(file),
                        Err(error) => {
                            self.runner.give_up(&error);
                            return Err(error);
                        }
                    }
                    // What came before has been sent with the request.
                    mark = self.channel.out.mark();
                }
                Err(Interrupt::LockWait(wait)) => {
                    self.lock_wait(wait).await?;
                    restarts += 1;
                    self.process.counters.add(Counter::Restarts, 1);
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
                Some((user, host)) => Some(self.definer_access(user, host)?),
            };
            let own = access.map(|access| std::mem::replace(&mut self.identity.access, access));
            let kind = crate::status::com_index(inner.statement.node.kind());
            let parsed = Arc::new(Parsed { text: inner.text, statement: inner.statement, kind });
            let outer = std::mem::replace(&mut self.running.inside.binary, binary);
            self.running.inside.depth += 1;
            // The program's `sql_mode` ends with the program: the session's own stays what it was.
            let mode = |bits: u64| crate::sysvars::VarValue::Str(crate::sysvars::sql_mode_text(bits).into());
            let programs = mode(self.runner.state().settings.sql_mode);
            let sessions = {
                let mut vars = self.shared.vars.lock();
                let sessions = vars.named("sql_mode").clone();
                vars.set_named("sql_mode", programs);
                sessions
            };
            let replied = self.run_statement(&parsed, true).await;
            self.shared.vars.lock().set_named("sql_mode", sessions);
            self.running.inside.depth -= 1;
            self.running.inside.binary = outer;
            if let Some(own) = own {
                self.identity.access = own;
                self.shared.set_account(&self.identity.access);
            }
            match (replied, self.running.inside.error.take()) {
                (Replied::Good, _) => Ok(()),
                (Replied::Bad, error) => Err(error.unwrap_or_else(SqlError::unknown_error)),
            }
        })
    }

    fn definer_access(&self, user: &str, host: &str) -> SqlResult<SessionAccess> {
        match self.server.accounts.table().exact(user, host) {
            Some(account) => {
                let role = self.is_mariadb() && account.is_role;
                let access = SessionAccess::new(account, user, host, &self.server.accounts);
                Ok(if role { access.of_role() } else { access.logged_in() })
            }
            None => Err(crate::errors::no_such_definer(user, host)),
        }
    }

    /// Awaits the commit.
    async fn durable(
        &mut self,
        mut outcome: Outcome,
        whole: bool,
        mark: omnibus_wire::OutMark,
    ) -> SqlResult<Outcome> {
        let Some(mut ticket) = outcome.wait.take() else { return Ok(outcome) };
        let result = match ticket.poll_now() {
            Some(result) => result,
            None => {
                self.process.stage(Stage::CommitWait);
                self.process.counters.add(Counter::CommitWaits, 1);
                match committed(&self.process, &mut ticket).await {
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
                    self.channel.out.rollback(mark);
                }
                // What a refused commit would have released in the log's order is released here.
                self.runner.commit_failed();
                match error {
                    CommitError::Refused(refusal) => return Err(crate::errors::refused(&refusal)),
                    CommitError::Withdrawn => return Err(SqlError::query_interrupted()),
                    _ => {}
                }
                tracing::error!(id = self.process.id, %error, "commit failed");
                return Err(SqlError::of_commit(error));
            }
        };
        if self.runner.has_committed() {
            self.shared.committed(number.0);
            self.gtids.committed(number);
        }
        // Backpressure: after the commit, when no lock is held that others would wait for.
        let stall = self.runner.write_stall();
        if !stall.is_zero() {
            self.process.stage(Stage::CommitWait);
            tokio::time::sleep(stall).await;
        }
        Ok(outcome)
    }

    /// Awaits a lock, within the timeout, until killed.
    async fn lock_wait(&mut self, mut wait: LockWait) -> SqlResult<()> {
        self.process.stage(wait.target().as_ref().map_or(Stage::LockWait, Stage::waiting_for));
        self.process.counters.add(Counter::LockWaits, 1);
        let limit = Patience::new(&self.runner.state().settings).of(wait.target().as_ref());
        let since = wait.since();
        let left = self.process.kill.time_left(limit.saturating_sub(since.elapsed()));
        let outcome = loop {
            tokio::select! {
                biased;
                outcome = &mut wait => break outcome,
                () = self.process.killed.notified() => {
                    if self.process.kill.check().is_err() {
                        break match wait.cancel() {
                            WaitOutcome::Granted => WaitOutcome::Granted,
                            _ => WaitOutcome::Killed,
                        };
                    }
                }
                () = tokio::time::sleep(left) => break wait.cancel(),
            }
        };
        self.runner.state().budget.tally.waited(since.elapsed());
        self.process.stage(Stage::Executing);
        match outcome {
            WaitOutcome::Granted => self.process.kill.check(),
            other => Err(self.runner.wait_failed(other)),
        }
    }

    /// Adds the end of a successful statement to the reply.
    pub(crate) fn reply_outcome(&mut self, outcome: &Outcome, more: bool) {
        if outcome.result_set {
            self.end_of_rows(more);
        } else {
            let status = if more { self.status().with(Status::MORE_RESULTS) } else { self.status() };
            self.ok_packet(outcome.affected, outcome.last_insert_id, &outcome.info, status);
        }
    }

    /// Adds an OK packet.
    pub(crate) fn ok(&mut self, affected: u64, last_insert_id: u64, info: &str) {
        let status = self.status();
        self.ok_packet(affected, last_insert_id, info, status);
    }

    pub(crate) fn ok_packet(&mut self, affected: u64, last_insert_id: u64, info: &str, status: Status) {
        if self.running.inside.depth > 0 {
            return;
        }
        self.replies.rows_affected = affected;
        let warnings = self.runner.state().diagnostics.own_count();
        let caps = self.channel.caps;
        let track = std::mem::take(&mut self.replies.schema_changed) && caps.has(Capability::SESSION_TRACK);
        let database = self.runner.state().database.clone().filter(|_| track);
        let change = StateChange::Schema(database.as_deref().unwrap_or_default().as_bytes());
        let mut changes = if track { vec![change] } else { Vec::new() };
        let gtid = self.tracked_gtid();
        if let Some(gtid) = &gtid {
            changes.push(StateChange::Gtids(gtid.as_bytes()));
        }
        let changes = changes.as_slice();
        let packet = OkPacket { affected, last_insert_id, status, warnings, info: info.as_bytes(), changes };
        self.channel.out.packet(|out| packet.encode(out, caps, false));
    }

    /// What a client that tracks ids is told of the statement's.
    fn tracked_gtid(&mut self) -> Option<String> {
        let tracks = self.channel.caps.has(Capability::SESSION_TRACK);
        let coordinator = self.server.log.coordinator().filter(|_| tracks);
        self.gtids.take_told(coordinator.map(|coordinator| &**coordinator))
    }

    /// Adds the packet that ends rows.
    pub(crate) fn end_of_rows(&mut self, more: bool) {
        let mut status = self.status();
        if more {
            status = status.with(Status::MORE_RESULTS);
        }
        let caps = self.channel.caps;
        let warnings = self.runner.state().diagnostics.own_count();
        if caps.has(omnibus_wire::Capability::DEPRECATE_EOF) {
            let packet = OkPacket { status, warnings, ..OkPacket::default() };
            self.channel.out.packet(|out| packet.encode(out, caps, true));
        } else {
            self.channel.out.packet(|out| omnibus_wire::reply::encode_eof(out, warnings, status));
        }
    }

    /// Adds a result that the server itself made, with its end.
    pub(crate) fn reply_rows(&mut self, rows: &ResultSet, more: bool) -> SqlResult<()> {
        let format = self.row_format(self.running.inside.binary);
        let mut sink = ReplySink::new(&mut self.channel.out, format, None);
        sink.room = self.channel.outgoing.as_mut();
        rows.send(&mut sink as &mut dyn RowSink)?;
        self.replies.rows_sent += rows.rows.len() as u64;
        self.end_of_rows(more);
        Ok(())
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
