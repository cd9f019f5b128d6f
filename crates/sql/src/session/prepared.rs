//! Prepared statements: parsed once, planned until the catalog or the session changes under them.

use super::preparable;
use super::programs::Execution;
use super::query::{self, Plan};
use super::run::{called, run};
use super::statement_log::read_lock;
use super::{Call, SqlSession, StatementContext};
use crate::api::{AccessCheck, Info, Mode, Outcome, PreparedPlace, ResultColumn, RowSink, client_text};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::charset;
use crate::memory::{Account, MemoryLimits, SessionMemory, tree};
use crate::plan::physical::any_values::fits_any_values;
use crate::state::{SessionState, same_type};
use crate::storage::LockMode;
use bytes::Bytes;
use omnibus_parser::ParseError;
use omnibus_parser::ast::{Expr, Ident, ObjectName, PrepareSource, Spanned, Statement};
use omnibus_value::Value;
use omnibus_value::temporal::Zone;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The versions and settings that a plan depends on: it is for statements that have the same.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PlanKey {
    catalog: u64,
    statistics: u64,
    /// Of the session's temporary tables.
    temporary: u64,
    sql_mode: u64,
    collation: u16,
    zone: Zone,
    access: u64,
    /// Reads lock shared; `sql_auto_is_null`; `server_read_only`, since a plan of a change is made only where it is allowed.
    switches: [bool; 3],
    /// Of the user variables.
    variable_types: u64,
    div_precision_increment: u8,
    group_concat_max_len: u64,
    /// Of LOCK TABLES.
    locked: u64,
}

impl PlanKey {
    fn of(cx: &StatementContext<'_>, statement: &Statement, access: &dyn AccessCheck) -> PlanKey {
        let settings = &cx.state.settings;
        PlanKey {
            catalog: cx.database.shared.catalog.version(),
            statistics: cx.database.shared.statistics.load(Ordering::Acquire),
            temporary: cx.trx.temp.generation(),
            sql_mode: settings.sql_mode,
            collation: settings.collation_connection,
            zone: settings.zone,
            access: access.version(),
            switches: [
                read_lock(cx, statement) != LockMode::None,
                settings.sql_auto_is_null,
                settings.server_read_only,
            ],
            variable_types: cx.state.values.types(),
            div_precision_increment: settings.div_precision_increment,
            group_concat_max_len: settings.group_concat_max_len,
            locked: cx.state.held.locked.as_ref().map_or(0, |locked| locked.number),
        }
    }
}

/// A text as long as one can be that a plan is made for before it is given.
const SOME_TEXT: Value = Value::Bytes(Bytes::from_static(&[b' '; 16_383]));

/// A prepared statement of one session.
pub struct Prepared {
    /// Its text.
    pub text: Bytes,
    /// Its tree.
    pub statement: Arc<Spanned<Statement>>,
    /// How many `?` it has.
    pub params: usize,
    /// Columns of its result set; empty if it has none.
    pub columns: Arc<[ResultColumn]>,
    plan: Option<(PlanKey, Plan)>,
    /// Whether the plan is right for whatever values the parameters have (`plan::physical::any_values`).
    fits_any_values: bool,
    /// Values of the types that the plan takes the parameters for.
    samples: Vec<Value>,
    /// Names resolve in the database that was current at prepare.
    pub(super) database: Option<Arc<str>>,
    /// The memory of all of it, if it is not counted with something else.
    account: Option<Account>,
    /// Whether a client has prepared it, by PREPARE or its protocol.
    asked_for: bool,
    /// Whether it has run.
    has_run: bool,
    /// Its place among those that the server takes, if PREPARE has made it.
    place: Option<PreparedPlace>,
}

/// Bytes of a prepared statement beside those of its words.
const PREPARED: usize = 2 << 10;
/// Bytes of a text that have a word, about.
const BYTES_A_WORD: usize = 4;

impl Prepared {
    /// Without a plan yet.
    pub(super) fn unplanned(
        text: Bytes,
        statement: Arc<Spanned<Statement>>,
        database: Option<Arc<str>>,
    ) -> Prepared {
        let params = statement.params as usize;
        let samples = vec![SOME_TEXT; params];
        Prepared {
            text,
            statement,
            params,
            columns: Arc::from(Vec::new()),
            plan: None,
            fits_any_values: false,
            samples,
            database,
            account: None,
            asked_for: false,
            has_run: false,
            place: None,
        }
    }

    /// Counts the plan of a program's statement, whose tree is the program's. Nobody has counted its words.
    ///
    /// # Errors
    /// 3170: a limit says no.
    pub(super) fn count_plan(&mut self, memory: &Arc<SessionMemory>, limits: MemoryLimits) -> SqlResult<()> {
        if self.account.is_none() {
            let mut account = Account::new(memory);
            account.grow_exactly(tree(self.text.len().div_ceil(BYTES_A_WORD)) + PREPARED, limits)?;
            self.account = Some(account);
        }
        Ok(())
    }

    /// A name where it was meant.
    pub(super) fn qualified(&self, name: &ObjectName) -> ObjectName {
        let schema = name.schema.clone().or_else(|| self.database.as_deref().map(Into::into));
        ObjectName { schema, name: name.name.clone() }
    }

    /// Whether the plan is for parameters of these types. NULL is of any.
    fn takes(&self, params: &[Value]) -> bool {
        let fits =
            |(value, sample): (&Value, &Value)| matches!(value, Value::Null) || same_type(value, sample);
        params.iter().zip(&self.samples).all(fits)
    }

    /// From now on the plan is for parameters of these types.
    fn retype(&mut self, params: &[Value]) {
        for (sample, value) in self.samples.iter_mut().zip(params) {
            match value {
                Value::Null => {}
                Value::Bytes(_) => *sample = SOME_TEXT,
                value => *sample = value.clone(),
            }
        }
    }

    /// A client's statement, with its plan if it is one that has a plan. `words`: how many it is counted as.
    fn new(
        cx: &StatementContext<'_>,
        text: &Bytes,
        statement: Arc<Spanned<Statement>>,
        words: usize,
        access: &dyn AccessCheck,
    ) -> SqlResult<Prepared> {
        preparable::check(&statement, cx.state)?;
        // The server has its text and its tree once more.
        let memory = 2 * (text.len() + tree(words)) + PREPARED;
        let mut account = Account::new(&cx.state.connection.memory);
        account.grow_exactly(memory, MemoryLimits::of(&cx.state.settings))?;
        let text = Bytes::copy_from_slice(text);
        let mut prepared = Prepared::unplanned(text, statement, cx.state.database.clone());
        prepared.account = Some(account);
        prepared.asked_for = true;
        match &prepared.statement.node {
            Statement::Select(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => {
                prepared.plan(cx, access, None)?;
            }
            Statement::CreateView(view) => {
                crate::ddl::check_view_text(&view.query)?;
            }
            _ => {}
        }
        if let Some((_, Plan::Query(plan))) = &prepared.plan
            && plan.into.is_empty()
            && plan.outfile.is_none()
        {
            prepared.columns = plan.columns.clone();
        }
        if let Some((_, Plan::Write(plan))) = &prepared.plan
            && let Some(returning) = plan.returning()
        {
            prepared.columns = returning.columns.clone();
        }
        Ok(prepared)
    }

    /// Makes the statement's plan; the database that it was prepared in is the default one.
    fn plan(
        &mut self,
        cx: &StatementContext<'_>,
        access: &dyn AccessCheck,
        params: Option<&[Value]>,
    ) -> SqlResult<()> {
        let key = PlanKey::of(cx, &self.statement.node, access);
        let plan = match &self.statement.node {
            Statement::Select(query) => Plan::Query(Box::new(query::plan_query(cx, query, access, params)?)),
            other => Plan::Write(query::plan_write(cx, other, &cx.catalog(), access, params)?),
        };
        self.fits_any_values = match &plan {
            Plan::Query(plan) => fits_any_values(plan),
            Plan::Write(plan) => plan.fits_any_values(),
        };
        self.plan = Some((key, plan));
        Ok(())
    }

    /// Makes the plan of a statement unless the one that it has is for this execution.
    fn plan_for(&mut self, cx: &StatementContext<'_>, call: &Call<'_>) -> SqlResult<()> {
        match &self.plan {
            Some((_, Plan::Query(plan))) if plan.statement.untyped_params => {
                self.plan(cx, call.access, Some(call.params))
            }
            Some((key, _))
                if *key == PlanKey::of(cx, &self.statement.node, call.access) && self.takes(call.params) =>
            {
                Ok(())
            }
            _ => {
                self.retype(call.params);
                let samples = std::mem::take(&mut self.samples);
                let before = self.plan.take();
                let planned = self.plan(cx, call.access, Some(&samples));
                self.samples = samples;
                match (&before, &self.plan) {
                    (Some((_, before)), Some((_, now)))
                        if self.asked_for && !before.has_definitions_of(now) =>
                    {
                        cx.state.budget.tally.reprepare();
                    }
                    (Some(_), None) => self.plan = before,
                    _ => {}
                }
                planned
            }
        }
    }

    fn run_planned(&self, cx: &mut StatementContext<'_>, call: &mut Call<'_>) -> ExecResult<Outcome> {
        match &self.plan {
            Some((_, Plan::Query(plan))) => query::run_query(cx, plan, call),
            Some((_, Plan::Write(plan))) => query::run_write(cx, plan, call),
            None => Err(SqlError::unknown_error().into()),
        }
    }

    /// Runs the statement, with a plan that is made anew where the one that it has is not for this execution.
    pub(super) fn run(&mut self, session: &mut SqlSession, call: &mut Call<'_>) -> ExecResult<Outcome> {
        if !is_planned(&self.statement.node) {
            let again = std::mem::replace(&mut self.has_run, true);
            // As MySQL counts it: the table that it makes is another one each time.
            if again && self.asked_for && makes_table_of_others(&self.statement.node) {
                session.state.budget.tally.reprepare();
            }
            let statement = self.statement.clone();
            return session.dispatch(&statement.node, call);
        }
        let cx = &mut session.context();
        self.plan_for(cx, call)?;
        self.run_planned(cx, call)
    }

    /// As `run`, with the default database that was current when the statement was prepared: what it names without a schema is there,
    /// and the log says so too.
    fn run_in_its_database(
        &mut self,
        session: &mut SqlSession,
        call: &mut Call<'_>,
        run: impl FnOnce(&mut Prepared, &mut SqlSession, &mut Call<'_>) -> ExecResult<Outcome>,
    ) -> ExecResult<Outcome> {
        if session.state.database == self.database {
            // Here it may drop or change the session's own.
            return run(self, session, call);
        }
        let current = std::mem::replace(&mut session.state.database, self.database.clone());
        let result = run(self, session, call);
        session.state.database = current;
        result
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared")
            .field("text", &self.text)
            .field("params", &self.params)
            .finish_non_exhaustive()
    }
}

impl SqlSession {
    /// Prepares the one statement of a text by itself; an error that `is_needs_blocking` asks for it again where it
    /// may block.
    ///
    /// # Errors
    /// As `prepare`.
    pub fn prepare_alone(
        &mut self,
        text: &Bytes,
        mode: Mode,
        access: &dyn AccessCheck,
    ) -> SqlResult<Prepared> {
        self.state.budget.begin(mode, false);
        let prepared = self.prepare(text, access);
        self.state.budget.end();
        prepared
    }

    /// Prepares the one statement of a text.
    ///
    /// # Errors
    /// As parsing and planning; 1295 for statements that cannot be prepared.
    pub fn prepare(&mut self, text: &Bytes, access: &dyn AccessCheck) -> SqlResult<Prepared> {
        let before = self.state.command.account.used();
        let statements = &mut self.statements;
        let parsed =
            statements.parse_within(text, &mut self.state).and_then(|(statement, next)| match next {
                None => Ok((statement, statements.words)),
                Some(second) => Err(super::statements::parse_error(ParseError::at(text, second))),
            });
        let prepared = parsed
            .and_then(|(statement, words)| Prepared::new(&self.context(), text, statement, words, access));
        // What was parsed is in the statement's own account from here on, or gone: a CALL may prepare any number.
        self.state.command.account.shrink_to(before);
        if prepared.is_err() {
            self.trx.floor().see_definitions();
        }
        prepared
    }

    /// The text of a statement that PREPARE has given a name.
    #[must_use]
    pub fn prepared_text(&self, name: &str) -> Option<&Bytes> {
        self.statements.prepared.get(&name.to_lowercase()).map(|prepared| &prepared.text)
    }

    /// Runs a prepared statement. As [`SqlSession::execute`] otherwise.
    ///
    /// # Errors
    /// See [`crate::Interrupt`].
    pub fn execute_prepared(
        &mut self,
        prepared: &mut Prepared,
        params: &[Value],
        mode: Mode,
        access: &dyn AccessCheck,
        sink: &mut dyn RowSink,
    ) -> ExecResult<Outcome> {
        let (text, statement) = (prepared.text.clone(), prepared.statement.clone());
        let mut call = Call { mode, access, sink, text: &text, params, inner: None };
        self.with_given_gtid(&statement.node, |session| {
            if session.waiting.answer.is_some() {
                return Execution::resume(session, &mut call);
            }
            session.context().begin(&text, false);
            session.hinted(&statement.node, access, |session| {
                execute_begun(session, prepared, &statement.node, &mut call)
            })
        })
    }
}

fn execute_begun(
    session: &mut SqlSession,
    prepared: &mut Prepared,
    statement: &Statement,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    session.context().bound_time(statement);
    if call.params.len() != prepared.params {
        return Err(SqlError::wrong_arguments("EXECUTE").into());
    }
    if let Statement::Call { name, args } = statement {
        let node = Statement::Call { name: prepared.qualified(name), args: args.clone() };
        return called(session, &node, call).unwrap_or_else(|| Err(SqlError::unknown_error().into()));
    }
    if let Some(result) = called(session, statement, call) {
        return result;
    }
    prepared.run_in_its_database(session, call, |prepared, session, call| {
        run(session, call, |session, call| prepared.run(session, call))
    })
}

/// PREPARE, EXECUTE, DEALLOCATE, EXECUTE IMMEDIATE as statements.
pub(super) fn execute(
    session: &mut SqlSession,
    statement: &Statement,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    match statement {
        Statement::Prepare { name, source } => {
            let text = match source {
                PrepareSource::Text(text) => Bytes::copy_from_slice(&client_text::of_client(
                    text,
                    session.state.settings.collation_client,
                )),
                PrepareSource::Variable(variable) => variable_text(&session.state, variable),
            };
            // One of its name goes whatever comes of this.
            session.statements.prepared.remove(&name.to_lowercase());
            let place = session.state.connection.host.prepared_place()?;
            let mut prepared = session.prepare(&text, call.access)?;
            prepared.place = Some(place);
            session.statements.prepared.insert(name.to_lowercase(), prepared);
            Ok(Outcome { info: Info::Text("Statement prepared".into()), ..Outcome::ok() })
        }
        Statement::Deallocate(name) => match session.statements.prepared.remove(&name.to_lowercase()) {
            Some(_) => Ok(Outcome::ok()),
            None => Err(unknown(name, "DEALLOCATE PREPARE").into()),
        },
        Statement::Execute { name, using } => {
            let key = name.to_lowercase();
            let params = parameters(session, using, call)?;
            let mut prepared =
                session.statements.prepared.remove(&key).ok_or_else(|| unknown(name, "EXECUTE"))?;
            let result = execute_inner(session, &mut prepared, &params, call);
            session.statements.prepared.insert(key, prepared);
            result
        }
        Statement::ExecuteImmediate { source, using } => {
            let (value, ty) = session.evaluate(source, call.access)?;
            let params = parameters(session, using, call)?;
            let client = session.state.settings.collation_client;
            let text = client_text::of_value(&value.to_bytes(&ty), ty.collation, client);
            let mut prepared = session.prepare(&text, call.access)?;
            execute_inner(session, &mut prepared, &params, call)
        }
        other => Err(SqlError::not_supported_yet(other.kind()).into()),
    }
}

/// The values of USING; text in `character_set_connection`, as which a parameter is read.
fn parameters(session: &mut SqlSession, using: &[Expr], call: &Call<'_>) -> ExecResult<Vec<Value>> {
    let mut params = Vec::with_capacity(using.len());
    for expr in using {
        let (value, ty) = session.evaluate(expr, call.access)?;
        params.push(match value {
            Value::Bytes(text) => {
                let connection = session.state.settings.collation_connection;
                Value::Bytes(charset::convert(&text, ty.collation, connection))
            }
            value => value,
        });
    }
    Ok(params)
}

fn execute_inner(
    session: &mut SqlSession,
    prepared: &mut Prepared,
    params: &[Value],
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    if params.len() != prepared.params {
        return Err(SqlError::wrong_arguments("EXECUTE").into());
    }
    let text = prepared.text.clone();
    let mut inner = Call {
        mode: call.mode,
        access: call.access,
        sink: &mut *call.sink,
        text: &text,
        params,
        inner: None,
    };
    let statement = prepared.statement.clone();
    session.hinted(&statement.node, call.access, |session| {
        session.context().bound_time(&statement.node);
        prepared.run_in_its_database(session, &mut inner, Prepared::run)
    })
}

/// Runs a text by the statement of its template, if that has a plan that is right for any values; otherwise as it is written, now and from then on.
pub(super) fn run_read(
    session: &mut SqlSession,
    prepared: &mut Prepared,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    // What a query examines is bounded by an estimate, which wants the values.
    let is_query = matches!(prepared.statement.node, Statement::Select(_));
    let bounded = is_query && session.state.settings.max_join_size != u64::MAX;
    let cx = &mut session.context();
    match prepared.plan_for(cx, call) {
        Ok(()) if prepared.fits_any_values && !bounded => return prepared.run_planned(cx, call),
        Err(error) if error.is_needs_blocking() => return Err(error.into()),
        // An error may be about a parameter where the text has none.
        Ok(()) | Err(_) => {}
    }
    if !bounded {
        session.statements.refuse(&prepared.statement);
    }
    let (statement, _) = session.statements.parse_within(call.text, &mut session.state)?;
    let Call { mode, access, text, .. } = *call;
    let mut call = Call { mode, access, sink: &mut *call.sink, text, params: &[], inner: None };
    session.dispatch(&statement.node, &mut call)
}

/// Whether a statement has a plan.
pub(super) fn is_planned(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Select(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)
    )
}

/// CREATE TABLE .. LIKE, CREATE TABLE .. SELECT.
fn makes_table_of_others(statement: &Statement) -> bool {
    matches!(statement, Statement::CreateTable(create) if create.like.is_some() || create.query.is_some())
}

fn unknown(name: &Ident, verb: &str) -> SqlError {
    SqlError::new(1243, b"HY000", format!("Unknown prepared statement handler ({name}) given to {verb}"))
}

fn variable_text(state: &SessionState, name: &Ident) -> Bytes {
    match state.values.get(&name.to_lowercase()) {
        Some((value, ty)) => {
            client_text::of_value(&value.to_bytes(ty), ty.collation, state.settings.collation_client)
        }
        None => Bytes::from_static(b"NULL"),
    }
}
