//! SELECT, DO and the data-changing statements as a session runs them: plan, check, run.

use super::{Call, SqlSession};
use crate::api::{AccessCheck, Mode, Outcome, Priv, ResultColumn, Rights, RowSink, VariableScope};
use crate::bind::scope::Scope;
use crate::bind::uses::UsesCell;
use crate::bind::{Binder, Clause};
use crate::catalog::{Catalog, Table, View};
use crate::dml::{Planner, Run, WritePlan};
use crate::error::{ExecResult, Interrupt, Level, SqlError, SqlResult};
use crate::expr::{Context, Kind};
use crate::plan::QueryPlan;
use crate::state::{Inside, SessionState};
use crate::storage::{LockMode, Storage};
use crate::{bind, exec};
use omnibus_parser::ast::{self, Query, Statement};
use omnibus_value::{ColumnType, Value};
use std::sync::Arc;

/// EXPLAIN tells what a view is made of.
fn may_explain(plan: &QueryPlan, access: &dyn AccessCheck) -> SqlResult<()> {
    let shown = |view: &Arc<View>| access.check(&view.def.db, Some(&view.def.name), Priv::ShowView);
    let read = |table: &Arc<Table>| access.check(&table.def.db, Some(&table.def.name), Priv::Select);
    let mut tables = plan.tables.iter().filter(|table| !table.temporary && !plan.views.is_empty());
    plan.views.iter().try_for_each(shown).and_then(|()| tables.try_for_each(read)).map_err(|_| {
        let message = "EXPLAIN/SHOW can not be issued; lacking privileges for underlying table";
        SqlError::new(1345, b"HY000", message)
    })
}

/// Takes a result of one value.
#[derive(Default)]
struct OneValue(Value);

impl RowSink for OneValue {
    fn columns(&mut self, _: &[ResultColumn]) -> SqlResult<()> {
        Ok(())
    }
    fn row(&mut self, values: &[Value]) -> SqlResult<()> {
        self.0 = values.first().cloned().unwrap_or_default();
        Ok(())
    }
}

/// A compiled statement.
pub(super) enum Plan {
    Query(Box<QueryPlan>),
    Write(WritePlan),
}

impl SqlSession {
    pub(super) fn query(&mut self, statement: &Statement, call: &mut Call<'_>) -> ExecResult<Outcome> {
        match statement {
            Statement::Select(query) => {
                let plan = self.plan_query(query, call.access, Some(call.params))?;
                self.run_query(&plan, call)
            }
            Statement::Do(list) => {
                for expr in list {
                    self.evaluate_with(expr, call.params, false, call.access)?;
                }
                Ok(Outcome::ok())
            }
            other => Err(SqlError::not_supported_yet(other.kind()).into()),
        }
    }

    /// Compiles a query and checks that the account may read its tables.
    pub(crate) fn plan_query(
        &self,
        query: &Query,
        access: &dyn AccessCheck,
        params: Option<&[Value]>,
    ) -> SqlResult<QueryPlan> {
        let plan = self.plan_reads(query, access, params, LockMode::None)?;
        if plan.locks && self.state.settings.server_read_only {
            return Err(SqlError::option_prevents_statement("--read-only"));
        }
        Ok(plan)
    }

    /// Compiles a query whose rows are locked as they are read.
    pub(super) fn plan_reads(
        &self,
        query: &Query,
        access: &dyn AccessCheck,
        params: Option<&[Value]>,
        lock: LockMode,
    ) -> SqlResult<QueryPlan> {
        let catalog = self.catalog_to_plan();
        let virtuals = self.database.virtual_tables();
        let plan = bind::prepare(query, &self.state, &catalog, virtuals, access, params, lock)?;
        if !plan.tables.is_empty() || !plan.views.is_empty() {
            self.trx.floor().see_definitions();
        }
        Ok(plan)
    }

    /// What goes before running a query.
    fn begin_query(&mut self, plan: &QueryPlan) -> ExecResult<()> {
        let tables = &mut self.state.programs.tables;
        tables.clear();
        tables.extend(plan.tables.iter().map(|table| table.def.id));
        if !plan.tables.is_empty() || !plan.views.is_empty() {
            self.enter();
            self.trx.locks.lock_views(&plan.views)?;
        }
        if self.state.settings.max_join_size != u64::MAX
            && plan.examines() > self.state.settings.max_join_size as f64
        {
            return Err(SqlError::too_big_select().into());
        }
        if !plan.locks {
            self.trx.start_query(&plan.tables)?;
        }
        Ok(())
    }

    pub(crate) fn run_query(&mut self, plan: &QueryPlan, call: &mut Call<'_>) -> ExecResult<Outcome> {
        self.begin_query(plan)?;
        if let Some(outfile) = &plan.outfile {
            return self.write_file(plan, outfile, call);
        }
        warn(&mut self.state, &plan.warnings);
        let rows = exec::execute(plan, &mut self.state, &mut self.trx, call.params, call.sink)?;
        if plan.into.is_empty() {
            Ok(Outcome::rows())
        } else {
            Ok(Outcome { affected: rows, ..Outcome::ok() })
        }
    }

    /// EXPLAIN, EXPLAIN ANALYZE and MariaDB's ANALYZE, where it is to be understood, and into where it goes.
    pub(super) fn explain(&mut self, explain: &ast::Explain, call: &mut Call<'_>) -> ExecResult<Outcome> {
        if let Some(schema) = &explain.schema {
            let own = self.state.database.clone();
            self.use_database(schema, call)?;
            let done = self.explain(&ast::Explain { schema: None, ..explain.clone() }, call);
            self.state.database = own;
            return done;
        }
        let Some(name) = &explain.into else { return self.explain_here(explain, call) };
        if explain.analyze || !explain.format.as_ref().is_some_and(|format| format.is("JSON")) {
            return Err(SqlError::not_supported_yet("EXPLAIN INTO without FORMAT=JSON").into());
        }
        let mut only = OneValue::default();
        self.explain_here(explain, &mut Call { sink: &mut only, ..*call })?;
        let ty = crate::expr::types::string_column(u32::MAX, 45);
        self.state.set_user_variable(name.to_lowercase(), (only.0, ty))?;
        Ok(Outcome::ok())
    }

    fn explain_here(&mut self, explain: &ast::Explain, call: &mut Call<'_>) -> ExecResult<Outcome> {
        let statement = match &explain.target {
            ast::ExplainTarget::Statement(statement) => statement,
            ast::ExplainTarget::Connection(id) => return self.explain_connection(explain, *id, call),
        };
        let mariadb = self.state.settings.mariadb;
        let form = explain_form(&self.state, explain)?;
        if explain.analyze && !mariadb && form != exec::Form::Tree {
            return Err(SqlError::not_supported_yet("EXPLAIN ANALYZE in another format than TREE").into());
        }
        match &**statement {
            Statement::Select(query) => {
                let mut plan = self.plan_query(query, call.access, Some(call.params))?;
                may_explain(&plan, call.access)?;
                // Who decides by the number of rows asks for it before anybody has read the table.
                let unknown: Vec<_> =
                    plan.tables.iter().filter(|table| table.rows_estimate() == 0).cloned().collect();
                if !unknown.is_empty() {
                    for table in &unknown {
                        self.trx.estimate_rows(table);
                    }
                    plan = self.plan_query(query, call.access, Some(call.params))?;
                }
                let mut profile = None;
                if explain.analyze {
                    self.begin_query(&plan)?;
                    profile = Some(exec::profiled(&plan, &mut self.state, &mut self.trx, call.params)?);
                }
                warn(&mut self.state, &plan.warnings);
                exec::explain(&exec::Subject::Query(&plan), form, profile.as_ref(), call.sink)?;
            }
            Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => {
                if explain.analyze {
                    let message = "EXPLAIN ANALYZE of a statement that changes rows";
                    return Err(SqlError::not_supported_yet(message).into());
                }
                let catalog = self.catalog();
                let plan = self.plan_write(statement, &catalog, call.access, Some(call.params))?;
                warn(&mut self.state, &plan.uses.warnings);
                exec::explain(&plan.subject(), form, None, call.sink)?;
            }
            _ => {
                let message = "EXPLAIN of a statement that neither asks for rows nor changes them";
                return Err(SqlError::not_supported_yet(message).into());
            }
        }
        Ok(Outcome::rows())
    }

    /// EXPLAIN FOR CONNECTION: of what another session runs, planned anew in its database.
    fn explain_connection(
        &mut self,
        explain: &ast::Explain,
        id: u64,
        call: &mut Call<'_>,
    ) -> ExecResult<Outcome> {
        let mariadb = self.state.settings.mariadb;
        let lines = self.state.host.processlist();
        let line = lines.into_iter().find(|line| line[0] == Value::UInt(id));
        let Some([_, _, _, database, command, _, _, info]) = line else {
            return Err(SqlError::new(1094, b"HY000", format!("Unknown thread id: {id}")).into());
        };
        let unsupported = || match mariadb {
            true => SqlError::new(1933, b"HY000", "Target is not executing an operation with a query plan"),
            false => SqlError::new(
                3012,
                b"HY000",
                "EXPLAIN FOR CONNECTION command is supported only for SELECT/UPDATE/INSERT/DELETE/REPLACE",
            ),
        };
        let (Value::Bytes(text), Value::Bytes(command)) = (info, command) else {
            return if mariadb { Err(unsupported().into()) } else { Ok(Outcome::ok()) };
        };
        if !matches!(&command[..], b"Query" | b"Execute") {
            return if mariadb { Err(unsupported().into()) } else { Ok(Outcome::ok()) };
        }
        let parsed = omnibus_parser::parse(&text, &self.state.settings.parse_options());
        let statement = parsed.ok().and_then(|statements| statements.into_iter().next()).map(|s| s.node);
        use Statement as S;
        let Some(statement @ (S::Select(_) | S::Insert(_) | S::Update(_) | S::Delete(_))) = statement else {
            return Err(unsupported().into());
        };
        let target = ast::ExplainTarget::Statement(Box::new(statement));
        let explain = ast::Explain { target, ..explain.clone() };
        let database = match database {
            Value::Bytes(name) => Some(String::from_utf8_lossy(&name).into()),
            _ => None,
        };
        let own = std::mem::replace(&mut self.state.database, database);
        let done = self.explain(&explain, call);
        self.state.database = own;
        done
    }

    pub(super) fn write(&mut self, statement: &Statement, call: &mut Call<'_>) -> ExecResult<Outcome> {
        let catalog = self.catalog();
        let plan = self.plan_write(statement, &catalog, call.access, Some(call.params))?;
        self.run_write(&plan, call)
    }

    pub(super) fn plan_write(
        &self,
        statement: &Statement,
        catalog: &Catalog,
        access: &dyn AccessCheck,
        params: Option<&[Value]>,
    ) -> SqlResult<WritePlan> {
        let virtuals = self.database.virtual_tables();
        let (uses, read_lock) = (UsesCell::default(), self.read_lock(statement));
        let planner =
            Planner { session: &self.state, catalog, access, virtuals, params, uses: &uses, read_lock };
        let plan = WritePlan::build(&planner, statement)?;
        if self.state.settings.server_read_only && !plan.only_temporary() {
            return Err(SqlError::option_prevents_statement("--read-only"));
        }
        Ok(plan)
    }

    pub(super) fn run_write(&mut self, plan: &WritePlan, call: &mut Call<'_>) -> ExecResult<Outcome> {
        self.enter();
        self.trx.locks.lock_views(&plan.uses.views)?;
        let nested = self.state.programs.inside == Inside::Statement;
        note_tables(&mut self.state, plan, nested)?;
        let as_text = if nested { None } else { self.choose_format(plan)? };
        warn(&mut self.state, &plan.uses.warnings);
        let outcome = self.run_as_rows(plan, call)?;
        if let Some(before) = as_text {
            self.log_text(&before, None, call)?;
        }
        Ok(outcome)
    }

    /// Runs a plan whose rows are logged, unless the transaction was told otherwise.
    pub(super) fn run_as_rows(&mut self, plan: &WritePlan, call: &mut Call<'_>) -> ExecResult<Outcome> {
        self.hold_back(call.mode)?;
        let effect =
            plan.run(&mut Run { trx: &mut self.trx, state: &mut self.state, params: call.params })?;
        let returning = plan.returning();
        if let Some(returning) = returning {
            returning.send(effect.rows, call.sink)?;
        }
        Ok(Outcome {
            affected: effect.affected,
            last_insert_id: effect.last_insert_id,
            info: effect.info,
            result_set: returning.is_some(),
            ..Outcome::ok()
        })
    }

    /// Waits when the engine's background work lags behind its writers.
    pub(super) fn hold_back(&mut self, mode: Mode) -> ExecResult<()> {
        let stall = self.database.port().engine().write_stall();
        if stall.is_zero() {
            return Ok(());
        }
        if mode == Mode::Inline {
            return Err(Interrupt::NeedBlocking);
        }
        std::thread::sleep(stall);
        Ok(())
    }

    /// The value and type of an expression without tables: SET and its kind. Subqueries read what
    /// the open transaction sees.
    ///
    /// # Errors
    /// As any statement.
    pub fn evaluate(
        &mut self,
        expr: &ast::Expr,
        access: &dyn AccessCheck,
    ) -> ExecResult<(Value, ColumnType)> {
        self.evaluate_with(expr, &[], false, access)
    }

    /// The same; `strict`: bad data is an error if `sql_mode` is strict, as it is where the value goes into something that has a type.
    pub(crate) fn evaluate_with(
        &mut self,
        expr: &ast::Expr,
        params: &[Value],
        strict: bool,
        access: &dyn AccessCheck,
    ) -> ExecResult<(Value, ColumnType)> {
        let catalog = self.catalog_to_plan();
        let (bound, slots, subqueries) = {
            let mut binder = Binder::new(&self.state, &catalog);
            binder.virtuals = self.database.virtual_tables();
            binder.params = Some(params);
            binder.author.access = Rights::Session(access);
            binder.open(Scope::default(), Clause::FieldList);
            (binder.expr(expr)?, binder.slots.len(), binder.subqueries)
        };
        if subqueries > 0 {
            self.trx.floor().see_definitions();
        }
        let mut exec = Context::new(&mut self.state, &mut self.trx, params);
        exec.reserve(slots, subqueries);
        exec.strict = strict && exec.session.settings.strict();
        let value = bound.eval(&mut exec)?;
        Ok((value, bound.ty.column))
    }

    /// As `evaluate_with`, if nothing but the session is asked; an expression with subqueries or stored functions is a part of
    /// a statement.
    pub(crate) fn evaluate_plainly(
        &mut self,
        expr: &ast::Expr,
        strict: bool,
        access: &dyn AccessCheck,
    ) -> ExecResult<Option<(Value, ColumnType)>> {
        let catalog = self.catalog_to_plan();
        let (bound, subqueries) = {
            let mut binder = Binder::new(&self.state, &catalog);
            binder.virtuals = self.database.virtual_tables();
            binder.author.access = Rights::Session(access);
            binder.open(Scope::default(), Clause::FieldList);
            (binder.expr(expr)?, binder.subqueries)
        };
        let mut stored = false;
        bound.walk(&mut |e| stored |= matches!(e.kind, Kind::Stored(_)));
        if subqueries > 0 || stored {
            return Ok(None);
        }
        let mut exec = Context::new(&mut self.state, &mut self.trx, &[]);
        exec.strict = strict && exec.session.settings.strict();
        let value = bound.eval(&mut exec)?;
        Ok(Some((value, bound.ty.column)))
    }
}

/// The form that an EXPLAIN names, or `explain_format`.
fn explain_form(state: &SessionState, explain: &ast::Explain) -> SqlResult<exec::Form> {
    let mariadb = state.settings.mariadb;
    if let Some(name) = &explain.format {
        return exec::Form::named(name, mariadb);
    }
    if mariadb {
        return Ok(exec::Form::Table);
    }
    let usual = state.host.variable(VariableScope::Session, "explain_format");
    let form = match usual {
        Ok((Value::Bytes(name), _)) => exec::Form::named(&String::from_utf8_lossy(&name), mariadb)?,
        _ => exec::Form::Table,
    };
    Ok(if explain.analyze && form == exec::Form::Table { exec::Form::Tree } else { form })
}

/// Notes which tables the running statement uses. One of a function or trigger changes none that the statement around
/// it uses.
fn note_tables(state: &mut SessionState, plan: &WritePlan, nested: bool) -> SqlResult<()> {
    let programs = &mut state.programs;
    for table in plan.targets() {
        if nested && programs.used.contains(&table.def.id) {
            return Err(SqlError::cant_update_used_table_in_sf_or_trg(&table.def.name));
        }
    }
    programs.tables.clear();
    programs.tables.extend(&plan.uses.tables);
    programs.tables.extend(plan.targets().map(|table| table.def.id));
    Ok(())
}

fn warn(state: &mut SessionState, warnings: &[SqlError]) {
    warnings.iter().for_each(|warning| state.diagnostics.push(Level::Warning, warning.clone()));
}
