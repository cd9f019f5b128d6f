//! The target: transactions, statements and what they must end with, commits with their position.

use super::{context, position};
use crate::api::{AllowAll, BinlogFormat, Isolation, Mode, Outcome};
use crate::error::{ExecResult, Interrupt, SqlError};
use crate::load;
use crate::row_events::{Conversions, RowApplier, RowRules};
use crate::session::{Nowhere, SqlSession};
use crate::store::{Applied, TemporaryTables};
use bytes::Bytes;
use omnibus_commit::Ticket;
use omnibus_engine::CommitNo;
use omnibus_format::events::XaPrepare;
use omnibus_format::{AnyGtid, Unnamed};
use omnibus_parser::ast::{Commits, Spanned, Statement};
use omnibus_replication::changes::{ApplyError, ApplyTarget, Position};
use omnibus_replication::model::{RowsView, StatementView, TrxHeader};
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// How changes are applied.
#[derive(Clone)]
pub struct ApplySettings {
    /// `replica_exec_mode=IDEMPOTENT`.
    pub idempotent: bool,
    /// `replica_type_conversions`.
    pub conversions: Conversions,
    /// `log_replica_updates`: what is applied is written to our log too, with its GTID.
    pub log_updates: bool,
    /// The treatment of transactions that come without a GTID.
    pub unnamed: Unnamed,
    /// `replica_skip_errors`: statements and rows that fail so are left out.
    pub skip_errors: BTreeSet<u16>,
    /// Commits that are handed over and have no place yet. Appliers of one channel share it, so that a statement of one
    /// waits for the commits of the others before it reads.
    pub in_flight: Arc<AtomicU64>,
    /// Temporary tables of the source's connections, by server and connection id. Shared as `in_flight` is.
    pub temporary: Arc<Mutex<HashMap<(u32, u32), TemporaryTables>>>,
}

impl Default for ApplySettings {
    fn default() -> Self {
        ApplySettings {
            idempotent: false,
            conversions: Conversions::default(),
            log_updates: true,
            unnamed: Unnamed::Automatic,
            skip_errors: BTreeSet::new(),
            in_flight: Arc::default(),
            temporary: Arc::default(),
        }
    }
}

impl std::fmt::Debug for ApplySettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApplySettings")
            .field("idempotent", &self.idempotent)
            .field("conversions", &self.conversions)
            .field("log_updates", &self.log_updates)
            .field("skip_errors", &self.skip_errors)
            .finish_non_exhaustive()
    }
}

/// Statements that the SQL layer leaves to the server: accounts and their kind.
pub trait ServerStatements: Send {
    /// Runs a statement that is the server's, in a transaction of its own through `session`; its context is set.
    /// `None`: it is not the server's.
    fn execute(
        &mut self,
        session: &mut SqlSession,
        statement: &Arc<Spanned<Statement>>,
        text: &Bytes,
    ) -> Option<ExecResult<Outcome>>;
}

/// See the module's text. Dropping it rolls back.
pub struct Applier {
    session: SqlSession,
    settings: ApplySettings,
    server: Option<Box<dyn ServerStatements>>,
    rows: RowApplier,
    /// The transaction between `begin` and its end.
    ongoing: Ongoing,
    /// The server is of MariaDB's dialect. Statements are read as their source's dialect has it, too.
    mariadb: bool,
}

/// A transaction of the source, as far as it has come.
#[derive(Default)]
struct Ongoing {
    /// The header that it began with; none between transactions.
    header: Option<TrxHeader>,
    stage: Stage,
    /// The statement that comes is the last one, and takes the position along if it commits by itself.
    at_last: bool,
    /// The owner of the temporary tables that the session has, and the session's own ones.
    swapped: Option<((u32, u32), TemporaryTables)>,
}

/// How far a transaction has come here.
#[derive(Default)]
enum Stage {
    /// It has changed nothing yet.
    #[default]
    Begun,
    /// Changes, each to its end.
    Changed,
    /// The last of its changes is a statement's rows, and more of them may come.
    InRows,
    /// The statement was a definition, which commits by itself; the ticket of that commit.
    Committed(Ticket),
}

/// Why a statement was not run to its end.
enum Stopped {
    /// It failed.
    Failed(SqlError),
    /// It would end the transaction before its own end.
    WouldTear,
}

impl From<SqlError> for Stopped {
    fn from(error: SqlError) -> Stopped {
        Stopped::Failed(error)
    }
}

/// A statement of the log, with what SET STATEMENT says around it taken off.
struct Meant {
    statement: Arc<Spanned<Statement>>,
    text: Bytes,
}

impl Applier {
    /// Over a session of its own, whose settings are the server's defaults; `host` and the like are set already.
    #[must_use]
    pub fn new(mut session: SqlSession, settings: ApplySettings) -> Applier {
        session.state.settings.server_read_only = false;
        session.state.settings.sql_log_bin = settings.log_updates;
        // Rows are read under locks, newest version; what was serial at the source is here too.
        session.state.settings.isolation = Isolation::RepeatableRead;
        // A snapshot would be of what is durable, and the transaction before may not be that yet.
        session.replayed.reads_newest = true;
        session.state.budget.take_no_turns();
        session.trx().log.count_commits(settings.in_flight.clone());
        Applier {
            mariadb: session.state.settings.mariadb,
            session,
            settings,
            server: None,
            rows: RowApplier::default(),
            ongoing: Ongoing::default(),
        }
    }

    /// Gives statements that the SQL layer does not know to the server.
    #[must_use]
    pub fn with_server(mut self, server: Box<dyn ServerStatements>) -> Applier {
        self.server = Some(server);
        self
    }

    /// Changes how the next transactions are applied.
    pub fn set_settings(&mut self, settings: ApplySettings) {
        self.session.state.settings.sql_log_bin = settings.log_updates;
        self.settings = settings;
    }

    /// The session: its state, lock waiter and kill flag.
    pub fn session(&mut self) -> &mut SqlSession {
        &mut self.session
    }

    fn rules(&self) -> RowRules {
        RowRules { idempotent: self.settings.idempotent, conversions: self.settings.conversions }
    }

    fn open(&mut self) {
        let isolation = self.session.state.settings.isolation;
        let trx = self.session.trx();
        if !trx.is_open() {
            trx.open(isolation, false);
        }
    }

    /// Sets what the coming commit takes along.
    fn take_along(&mut self, position: Option<&Position>) {
        let Some(trx) = &self.ongoing.header else { return };
        let applied = Applied {
            origin: Some(trx.origin()),
            guard: None,
            position: position.map(position::pair),
            even_empty: trx.gtid.is_some(),
        };
        self.session.trx().log.set_applied(applied);
    }

    fn end_rows(&mut self) -> Result<(), ApplyError> {
        if matches!(self.ongoing.stage, Stage::InRows) {
            self.ongoing.stage = Stage::Changed;
            self.session.trx().end_statement().map_err(failed)?;
        }
        Ok(())
    }

    /// The text that is to be run for a statement of the log.
    fn text_of(&mut self, view: &dyn StatementView) -> Result<Bytes, SqlError> {
        if let Some(file) = view.loaded_file() {
            let input = load::event::collect(file, &self.session.state.settings.tmpdir)
                .map_err(|error| SqlError::new(1594, b"HY000", format!("The file of LOAD DATA: {error}")))?;
            self.session.supply_file(input);
            return Ok(load::event::executable(view.sql(), file).into());
        }
        // MariaDB logs the names of tables that were not there as well, and no error: its DROP TABLE is not atomic.
        if self.session.state.settings.mariadb
            && view.sql().ends_with(b"/* generated by server */")
            && let Some(tables) = view.sql().strip_prefix(b"DROP TABLE `")
        {
            return Ok([b"DROP TABLE IF EXISTS `", tables].concat().into());
        }
        Ok(Bytes::copy_from_slice(view.sql()))
    }

    /// Parses a statement in its context, to which what SET STATEMENT says is added.
    fn read(&mut self, mut text: Bytes) -> Result<Meant, SqlError> {
        loop {
            let (statement, _) = self.session.parse(&text, false)?;
            let Statement::SetStatement(tree) = &statement.node else { return Ok(Meant { statement, text }) };
            super::set_statement::set(&mut self.session.state.settings, &tree.items)?;
            text = tree.text.clone();
        }
    }

    fn execute(&mut self, Meant { statement, text }: &Meant) -> ExecResult<Outcome> {
        if is_harmless(&statement.node) {
            return Ok(Outcome::ok());
        }
        if self.reads_snapshot(&statement.node, text) {
            self.session.trx().log.await_published();
        }
        if let Some(server) = &mut self.server
            && let Some(result) = server.execute(&mut self.session, statement, text)
        {
            return result;
        }
        self.session.execute(statement, text, &[], Mode::Blocking, &AllowAll, &mut Nowhere)
    }

    /// Runs a statement with its context; `first` is whether nothing of the transaction came before it.
    fn run(&mut self, view: &dyn StatementView, first: bool) -> Result<(), Stopped> {
        let text = self.text_of(view)?;
        let saved = context::enter(&mut self.session, view)?;
        if view.error_code() != 0 {
            // Tables that know no transactions kept what the statement did before it failed. Only rows can say that.
            self.session.state.settings.binlog_format = BinlogFormat::Row;
            self.session.replayed.keep_failed = Some(view.error_code());
        }
        let result = self.run_in_context(view, text, first);
        self.session.replayed.keep_failed = None;
        context::leave(&mut self.session, saved);
        let outcome = result?;
        if self.session.in_transaction() {
            return Ok(());
        }
        // A definition is a transaction of its own. What follows must see it.
        if let Some(ticket) = outcome.wait {
            let done = ticket.wait().map_err(SqlError::of_commit)?;
            self.session.trx().commit_is_over(true);
            self.ongoing.stage = Stage::Committed(Ticket::done(Ok(done)));
        }
        Ok(())
    }

    fn run_in_context(
        &mut self,
        view: &dyn StatementView,
        text: Bytes,
        first: bool,
    ) -> Result<Outcome, Stopped> {
        let meant = self.read(text)?;
        let statement = &meant.statement.node;
        // CREATE TABLE ... SELECT as rows: the table, and rows that follow in the same transaction.
        let leaves_open =
            !self.ongoing.at_last && matches!(statement, Statement::CreateTable(tree) if !tree.temporary);
        let whole = first && (self.ongoing.at_last || leaves_open);
        // What came before it would be committed without the transaction's id and position.
        if self.ongoing.header.is_some() && !whole && statement.traits().commits == Commits::First {
            return Err(Stopped::WouldTear);
        }
        self.take_temporary_tables(view, statement);
        if !matches!(statement, Statement::Xa(_)) {
            self.open();
        }
        self.session.replayed.leaves_open = leaves_open;
        let result = self.execute(&meant);
        self.session.replayed.leaves_open = false;
        Ok(result.map_err(error_of)?)
    }

    /// Whether a statement may have ended as it did.
    fn judge(&self, view: &dyn StatementView, result: Result<(), SqlError>) -> Result<(), ApplyError> {
        let expected = view.error_code();
        let actual = result.as_ref().err().map_or(0, |error| error.code);
        if actual == expected || actual != 0 && self.settings.skip_errors.contains(&actual) {
            return Ok(());
        }
        if let Err(error) = &result
            && (expected == 0 || is_temporary(error.code))
        {
            let text = format!("Error '{}' on query. {}", error.message, place(view));
            return Err(ApplyError { message: text, ..failed(error.clone()) });
        }
        let here = result.err().map_or("no error".to_owned(), |error| error.message);
        Err(ApplyError::new(
            3002,
            format!(
                "Query caused different errors on source and replica. Error on source: error code={expected}; Error on \
                 replica: actual message='{here}', error code={actual}. {}",
                place(view)
            ),
        ))
    }

    /// The error of a definition among other changes.
    fn torn(&self, view: &dyn StatementView) -> ApplyError {
        let gtid = self.ongoing.header.and_then(|trx| trx.gtid);
        let id = gtid.map_or("ANONYMOUS".to_owned(), |gtid| gtid.to_string());
        ApplyError::new(
            1778,
            format!(
                "Cannot execute statements with implicit commit inside a transaction when @@SESSION.GTID_NEXT == '{id}'. {}",
                place(view)
            ),
        )
    }

    /// Ends what is open with what was said to be taken along.
    fn finish(&mut self) -> Result<Ticket, ApplyError> {
        self.open();
        if !self.session.trx().log.has_events() {
            self.session.context().begin_rows(b"", Mode::Blocking);
        }
        let trx = self.session.trx();
        trx.log.finish_applied(&trx.statement, &mut trx.transaction).map_err(failed)?;
        let ticket = self.session.context().commit_now().map_err(failed)?;
        Ok(ticket.unwrap_or_else(nothing))
    }

    fn over(&mut self) {
        self.session.trx().log.take_applied();
        let Some((owner, mut tables)) = std::mem::take(&mut self.ongoing).swapped else { return };
        self.session.trx().temp.swap(&mut tables);
        if !tables.is_empty() {
            self.settings.temporary.lock().insert(owner, tables);
        }
    }

    /// Gives the session the temporary tables of the connection that ran the statement, if it has any to do with them.
    fn take_temporary_tables(&mut self, view: &dyn StatementView, statement: &Statement) {
        if self.ongoing.swapped.is_some() {
            return;
        }
        let owner = (self.ongoing.header.map_or(0, |trx| trx.server_id), view.thread_id());
        let theirs = self.settings.temporary.lock().remove(&owner);
        let makes = matches!(statement, Statement::CreateTable(tree) if tree.temporary);
        if theirs.is_some() || view.uses_temporary_tables() || makes {
            let mut tables = theirs.unwrap_or_default();
            self.session.trx().temp.swap(&mut tables);
            self.ongoing.swapped = Some((owner, tables));
        }
    }

    /// Whether a statement may read rows without locking them, and so must not run beside commits that it is to see.
    fn reads_snapshot(&self, statement: &Statement, text: &[u8]) -> bool {
        match statement {
            Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => {
                // Triggers and functions read what the statement's text does not say.
                let programs = self.session.database().catalog().programs().next().is_some();
                programs || has_word(text, b"select") || has_word(text, b"table")
            }
            _ => true,
        }
    }
}

impl ApplyTarget for Applier {
    type Ticket = Ticket;

    fn begin(&mut self, trx: &TrxHeader) -> Result<(), ApplyError> {
        self.over();
        self.ongoing.header = Some(*trx);
        let state = &mut self.session.state;
        state.statement.now_us = i64::from(trx.timestamp) * 1_000_000;
        state.settings.server_id = trx.server_id;
        state.settings.skip_replication = trx.skip;
        // Another dialect's GTID counts for having one: such a source does not know anonymous transactions.
        state.settings.gtid_unnamed =
            if trx.gtid.is_some() { Unnamed::Automatic } else { self.settings.unnamed };
        state.settings.mariadb = self.mariadb || matches!(trx.gtid, Some(AnyGtid::Mariadb(_)));
        Ok(())
    }

    fn ends_with(&mut self, position: Option<&Position>) {
        self.take_along(position);
        self.ongoing.at_last = true;
    }

    fn statement(&mut self, view: &dyn StatementView) -> Result<(), ApplyError> {
        self.end_rows()?;
        let before = std::mem::replace(&mut self.ongoing.stage, Stage::Changed);
        let result = self.run(view, matches!(before, Stage::Begun));
        if !self.ongoing.at_last {
            self.session.trx().log.take_applied();
        }
        let result = match result {
            Ok(()) => Ok(()),
            Err(Stopped::Failed(error)) => Err(error),
            Err(Stopped::WouldTear) => return Err(self.torn(view)),
        };
        self.judge(view, result)
    }

    fn rows(&mut self, view: &dyn RowsView) -> Result<(), ApplyError> {
        self.open();
        let state = &mut self.session.state;
        state.statement.now_us = view.timestamp_us();
        state.settings.foreign_key_checks = view.foreign_key_checks();
        state.settings.unique_checks = view.unique_checks();
        if !matches!(std::mem::replace(&mut self.ongoing.stage, Stage::InRows), Stage::InRows) {
            self.session.context().begin_rows(view.query().unwrap_or_default(), Mode::Blocking);
        }
        let rules = self.rules();
        let SqlSession { state, trx, .. } = &mut self.session;
        match self.rows.apply(state, trx, view, &rules).map_err(error_of) {
            Err(error) if self.settings.skip_errors.contains(&error.code) => {}
            Err(error) => return Err(failed(of_rows(view, error))),
            Ok(()) => {}
        }
        if view.ends_statement() { self.end_rows() } else { Ok(()) }
    }

    fn commit(&mut self, position: Option<&Position>) -> Result<Ticket, ApplyError> {
        self.end_rows()?;
        let left = self.session.trx().log.take_applied().is_some();
        let ticket = if self.ongoing.at_last && !left {
            // A definition, or the end of an XA transaction, has taken everything along.
            match std::mem::take(&mut self.ongoing.stage) {
                Stage::Committed(ticket) => ticket,
                _ => nothing(),
            }
        } else {
            self.take_along(position);
            let ticket = self.finish()?;
            // An XA branch of one phase ends with its transaction; no statement tells of it.
            self.session.trx().leave_branch();
            ticket
        };
        self.over();
        Ok(ticket)
    }

    fn prepare(&mut self, xid: &XaPrepare<'_>, position: Option<&Position>) -> Result<Ticket, ApplyError> {
        self.end_rows()?;
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let name = format!("X'{}',X'{}',{}", hex(xid.gtrid), hex(xid.bqual), xid.format_id);
        self.take_along(position);
        // Waits for the device: only a durable prepare may be seen.
        let meant = self.read(Bytes::from(format!("XA PREPARE {name}"))).map_err(failed)?;
        self.execute(&meant).map_err(error_of).map_err(failed)?;
        self.over();
        Ok(nothing())
    }

    fn rollback(&mut self) {
        let trx = self.session.trx();
        trx.rollback();
        trx.leave_branch();
        self.over();
    }
}

impl Drop for Applier {
    fn drop(&mut self) {
        self.session.close();
    }
}

/// A row event's error says which one it was, and of which table.
fn of_rows(view: &dyn RowsView, error: SqlError) -> SqlError {
    // These name the table already.
    if matches!(error.code, 1146 | 1594 | 1677) {
        return error;
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (db, table) = (text(view.table().database()), text(view.table().name()));
    let (event, code) = (view.kind().event_type().name(), error.code);
    let message = format!(
        "Could not execute {event} event on table {db}.{table}; {}, Error_code: {code}",
        error.message
    );
    SqlError { message, ..error }
}

/// A ticket that is complete.
fn nothing() -> Ticket {
    Ticket::done(Ok(CommitNo::ZERO))
}

/// Statements that change nothing that another server would miss.
fn is_harmless(statement: &Statement) -> bool {
    match statement {
        Statement::Flush(_) => true,
        Statement::Maintenance(what) => what.histograms.is_none(),
        _ => false,
    }
}

fn has_word(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}

fn place(view: &dyn StatementView) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let query: String = text(view.sql()).chars().take(1024).collect();
    format!("Default database: '{}'. Query: '{query}'", text(view.database()))
}

/// Whether the same may succeed if it is tried again.
fn is_temporary(code: u16) -> bool {
    matches!(code, 1205 | 1213 | 1614)
}

fn failed(error: SqlError) -> ApplyError {
    ApplyError {
        code: error.code,
        sqlstate: error.state,
        temporary: is_temporary(error.code),
        message: error.message,
    }
}

fn error_of(interrupt: Interrupt) -> SqlError {
    match interrupt {
        Interrupt::Error(error) => error,
        // Neither is asked for on a thread that may block.
        Interrupt::LockWait(_) | Interrupt::NeedBlocking | Interrupt::NeedFile(_) | Interrupt::Server(_) => {
            SqlError::internal("a change asked to be run again")
        }
    }
}
