//! CREATE and DROP TRIGGER, and a trigger that runs.

use super::check;
use super::compile::{Compiled, Instruction};
use super::define::ProgramDdl;
use super::function::Interpreter;
use super::run::Execution;
use crate::api::{Outcome, Priv};
use crate::catalog::{ProgramDef, Table, persist};
use crate::ddl::{self, Change, check_name, trigger_text, triggers_of};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::session::SqlSession;
use crate::state::SessionState;
use crate::store::Names;
use omnibus_parser::ast::{ColumnRef, CreateTrigger, DropProgram, ObjectName, ProgramKind};
use omnibus_value::{ColumnKind, Value};
use std::sync::Arc;

fn missing() -> SqlError {
    SqlError::new(1360, b"HY000", "Trigger does not exist")
}

/// Fails if the body reads a column of NEW or OLD that the table does not have.
fn check_row_columns(tree: &CreateTrigger, table: &Table) -> SqlResult<()> {
    let missing = |read: &&ColumnRef| table.column_index(&read.name).is_none();
    match tree.program.row_columns.iter().find(missing) {
        Some(read) if read.table().is_some_and(|row| row.is("NEW")) => {
            Err(SqlError::bad_field(&read.name, "NEW"))
        }
        Some(read) => Err(SqlError::bad_field(&read.name, "OLD")),
        None => Ok(()),
    }
}

impl ProgramDdl<'_, '_> {
    /// CREATE TRIGGER.
    pub(crate) fn create_trigger(&mut self, tree: &CreateTrigger) -> ExecResult<Outcome> {
        let (db, table_db) = self.trigger_schemas(tree)?;
        let (name, table_name) = (tree.name.name.as_str(), tree.table.name.to_string());
        check_name(name)?;
        self.ddl.trx.catalog().schema(&db)?;
        self.ddl.trx.catalog().schema(&table_db)?;
        if db != table_db && db != "mysql" {
            return Err(SqlError::new(1435, b"HY000", "Trigger in wrong schema").into());
        }
        if db == "mysql" {
            return Err(SqlError::new(1465, b"HY000", "Triggers can not be created on system tables").into());
        }
        check::body(ProgramKind::Trigger, &tree.program)?;
        check::variables(self.ddl.state, &tree.program)?;
        if self.ddl.trx.temp.table(&db, &table_name).is_some() {
            let message = format!("Trigger's '{table_name}' is view or temporary table");
            return Err(SqlError::new(1361, b"HY000", message).into());
        }
        self.ddl.access.check(&db, Some(&table_name), Priv::Trigger)?;
        let definer = self.named_definer(tree.definer.as_ref())?;
        let mut change = self.ddl.begin(Names::Tables(&[(db.clone(), table_name.clone())]))?;
        let table = change.next.table(&db, &table_name)?.clone();
        let old = change.next.program(ProgramKind::Trigger, &db, name).cloned();
        if let Some(old) = old.as_ref().filter(|_| !tree.or_replace) {
            let note = is_there(old, tree, (&db, &table_name), self.ddl.state.settings.mariadb)?;
            self.ddl.state.diagnostics.note(note);
            self.ddl.trx.rollback();
            return Ok(Outcome::ok());
        }
        if let Some(old) = &old {
            change.next.remove_program(&db, &old.key());
            persist::delete_program(&mut self.ddl.trx.transaction.writes, old);
        }
        let text = trigger_text(tree, &definer.quoted(), &table_name, "");
        let def = Arc::new(self.new_program(ProgramKind::Trigger, &db, name, text));
        let compiled = Compiled::new(&def, &self.ddl.state.settings, Some(&table))?;
        for instruction in &compiled.code {
            if let Instruction::AssignNew { column, .. } = instruction
                && table.column_index(column).is_none()
            {
                return Err(SqlError::bad_field(column, "NEW").into());
            }
        }
        check_row_columns(tree, &table)?;
        self.put_in_order(&mut change, tree, &table, def)?;
        // Statements that were planned without it are planned again.
        ddl::table::replace_def(self.ddl, &mut change, &table, table.def.clone());
        let order = match &tree.order {
            None => String::new(),
            Some((follows, other)) => {
                let word = if *follows { "FOLLOWS" } else { "PRECEDES" };
                format!(" {word} {}", crate::catalog::quote_ident(other))
            }
        };
        let mut logged = trigger_text(tree, &definer.quoted(), &table_name, &order);
        if tree.or_replace {
            logged = logged.replacen("CREATE ", "CREATE OR REPLACE ", 1);
        }
        let logged = self.log_as(&logged);
        self.commit_in(change, &db, &logged)
    }

    /// The databases of a trigger and its table: MySQL's trigger is in the current one, and its table in the trigger's; MariaDB's
    /// trigger is in its table's.
    fn trigger_schemas(&self, tree: &CreateTrigger) -> SqlResult<(String, String)> {
        let named = |name: &ObjectName| name.schema.as_ref().map(ToString::to_string);
        if self.ddl.state.settings.mariadb {
            let table_db = self.ddl.schema_of(&tree.table)?;
            return Ok((named(&tree.name).unwrap_or_else(|| table_db.clone()), table_db));
        }
        let db = self.ddl.schema_of(&tree.name)?;
        Ok((db.clone(), named(&tree.table).unwrap_or(db)))
    }

    /// Puts a trigger behind the others of its table, or where FOLLOWS or PRECEDES wants it.
    fn put_in_order(
        &mut self,
        change: &mut Change,
        tree: &CreateTrigger,
        table: &Table,
        def: Arc<ProgramDef>,
    ) -> SqlResult<()> {
        let alike = |(_, other): &(Arc<ProgramDef>, CreateTrigger)| {
            (other.time, other.event) == (tree.time, tree.event)
        };
        let mut list: Vec<_> =
            triggers_of(change, table).into_iter().filter(alike).map(|(def, _)| def).collect();
        list.sort_by_key(|def| def.order);
        let at = match &tree.order {
            None => list.len(),
            Some((follows, other)) => {
                let found = list.iter().position(|def| *def.name == **other);
                let Some(found) = found else {
                    let message = format!(
                        "Referenced trigger '{other}' for the given action time and event type does not exist."
                    );
                    return Err(SqlError::new(3011, b"HY000", message));
                };
                found + usize::from(*follows)
            }
        };
        list.insert(at, def.clone());
        for (at, each) in list.into_iter().enumerate() {
            if each.order == at as u64 + 1 && !Arc::ptr_eq(&each, &def) {
                continue;
            }
            let mut placed = ProgramDef::clone(&each);
            placed.order = at as u64 + 1;
            persist::put_program(&mut self.ddl.trx.transaction.writes, &placed);
            change.next.put_program(Arc::new(placed));
        }
        Ok(())
    }

    /// DROP TRIGGER.
    pub(crate) fn drop_trigger(&mut self, drop: &DropProgram) -> ExecResult<Outcome> {
        let db = self.ddl.schema_of(&drop.name)?;
        self.ddl.trx.catalog().schema(&db)?;
        let known = self.ddl.trx.catalog().program(ProgramKind::Trigger, &db, &drop.name.name).cloned();
        let Some(known) = known else {
            if !drop.if_exists {
                return Err(missing().into());
            }
            self.ddl.state.diagnostics.note(missing());
            let change = self.ddl.begin(Names::Tables(&[]))?;
            return self.ddl.commit(change);
        };
        let table_name = crate::catalog::of_trigger(&known, |tree| tree.table.name.to_string())?;
        self.ddl.access.check(&db, Some(&table_name), Priv::Trigger)?;
        let mut change = self.ddl.begin(Names::Tables(&[(db.clone(), table_name.clone())]))?;
        let Some(def) = change.next.remove_program(&db, &known.key()) else { return Err(missing().into()) };
        persist::delete_program(&mut self.ddl.trx.transaction.writes, &def);
        if let Some(table) = change.next.find_table(&db, &table_name).cloned() {
            ddl::table::replace_def(self.ddl, &mut change, &table, table.def.clone());
        }
        self.ddl.commit(change)
    }
}

impl Interpreter {
    /// Fires a trigger for a row.
    pub(super) fn run_trigger(
        &self,
        session: &mut SqlSession,
        def: &Arc<ProgramDef>,
        table: &Arc<Table>,
        old: Option<&[Value]>,
        new: Option<&mut Vec<Value>>,
    ) -> ExecResult<()> {
        if session.state.programs.running.iter().any(|running| Arc::ptr_eq(running, def)) {
            return Err(SqlError::sp_no_recursion().into());
        }
        let program = self.compiled(def, &session.state.settings, Some(table))?;
        let Some(rows) = program.rows.clone() else { return Ok(()) };
        let width = table.columns().len();
        let given = new.as_deref().cloned();
        let row = Execution::inside(session, |execution| {
            let Execution { session, machine, .. } = execution;
            machine.frames.push(super::call::enter_program(&mut session.state, &program, Vec::new())?);
            if let Some(access) = session.state.programs.access.clone() {
                access.check(&table.def.db, Some(&table.def.name), Priv::Trigger)?;
            }
            let places = [(rows.from, given.as_deref()), (rows.from + width, old)];
            for (from, row) in places {
                for (at, value) in row.unwrap_or_default().iter().enumerate() {
                    let value = shown(&session.state, table, at, value);
                    session.state.set_local((from + at) as u32, value)?;
                }
            }
            execution.advance()?;
            Ok(std::mem::take(&mut execution.machine.row))
        })?;
        if let Some(new) = new {
            for (at, value) in row.into_iter().enumerate().take(new.len()) {
                new[at] = stored(&session.state, table, at, value);
            }
        }
        Ok(())
    }
}

/// A column's value as the session sees it: TIMESTAMP is kept in UTC.
fn shown(state: &SessionState, table: &Table, at: usize, value: &Value) -> Value {
    match (value, table.columns()[at].ty.kind) {
        (Value::DateTime(moment), ColumnKind::Timestamp) => {
            Value::DateTime(moment.utc_to_local(state.zone()).unwrap_or(*moment))
        }
        (value, _) => crate::expr::eval::own(value.clone()),
    }
}

fn stored(state: &SessionState, table: &Table, at: usize, value: Value) -> Value {
    match (&value, table.columns()[at].ty.kind) {
        (Value::DateTime(moment), ColumnKind::Timestamp) => {
            Value::DateTime(moment.local_to_timestamp(state.zone()).unwrap_or(*moment))
        }
        _ => value,
    }
}

/// The note of IF NOT EXISTS about a trigger that is there; an error without the clause, and of another table's.
fn is_there(
    old: &ProgramDef,
    tree: &CreateTrigger,
    (db, table): (&str, &str),
    mariadb: bool,
) -> SqlResult<SqlError> {
    let error = SqlError::new(1359, b"HY000", "Trigger already exists");
    let name = &tree.name.name;
    match (tree.if_not_exists, mariadb) {
        (false, _) => Err(error),
        (true, true) => Ok(error),
        (true, false) if crate::catalog::of_trigger(old, |tree| *tree.table.name != *table)? => {
            let message = format!(
                "Trigger '{db}'.'{name}' already exists on a different table. The 'IF NOT EXISTS' clause is only supported for triggers associated with the same table."
            );
            Err(SqlError::new(4100, b"HY000", message))
        }
        (true, false) => {
            let message = format!("Trigger '{name}' already exists on the table '{db}'.'{table}'.");
            Ok(SqlError::new(4099, b"HY000", message))
        }
    }
}
