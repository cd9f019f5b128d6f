//! UPDATE and DELETE over several tables.
//!
//! The joined rows come from a SELECT ... FOR UPDATE made from the statement's own tables and
//! conditions: the keys of the target tables' rows, then the values to assign. All of them are
//! read before the first row changes, and a row that joins more than once is changed once, with the
//! values of its first appearance, as MySQL does.

use super::cast::into_column;
use super::change::{RowUpdate, Written, assign_default, not_null, on_update_columns};
use super::delete::delete_row;
use super::plan::{Planner, generated_given};
use super::view::{ViewCheck, written_column};
use super::{Effect, NewRow, RowExpressions, Run};
use crate::api::{Columns, Info, Priv};
use crate::bind::query::changing;
use crate::bind::scope::Source;
use crate::bind::{Binder, ScopeTable};
use crate::catalog::Table;
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::exec;
use crate::exec::Subject;
use crate::expr::node::Kind;
use crate::expr::{self, Context, eval};
use crate::logical::nest::Nest;
use crate::memory::Account;
use crate::plan::QueryPlan;
use crate::rows::Flow;
use crate::rows::collected::{Rows, RowsBuilder};
use crate::rows::distinct::KEY_COST;
use crate::storage::{LockMode, WaitPolicy};
use crate::store::RowAt;
use bytes::Bytes;
use foldhash::fast::RandomState;
use omnibus_parser::ast::{
    Delete, Expr, Hint, Ident, Join, Literal, ObjectName, Select, SelectItem, SelectOptions, TableFactor,
    TableRef, TriggerEvent, TriggerTime, Update,
};
use omnibus_value::Value;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

/// A table whose rows change.
struct ChangedTable {
    table: Arc<Table>,
    slot: u16,
    /// The name that the statement has for it, or for the view that it is behind.
    alias: String,
    /// Its name in EXPLAIN.
    shown: Arc<str>,
    /// Its number among the statement's tables, from 0.
    place: u32,
    /// Where its key columns begin in the joined rows.
    key_at: usize,
    /// WITH CHECK OPTION, and where the values that it reads begin in the joined rows.
    check: Option<(ViewCheck, usize)>,
    /// The columns that may be assigned to.
    granted: Columns,
    /// Column, and where its value is in the joined rows (`None`: DEFAULT).
    assignments: Vec<(usize, Option<usize>)>,
    assigned: Vec<usize>,
    on_update: Vec<usize>,
    expressions: Option<RowExpressions>,
}

/// A statement over several tables, compiled.
pub(crate) struct MultiPlan {
    query: QueryPlan,
    targets: Vec<ChangedTable>,
    delete: bool,
    ignore: bool,
}

impl MultiPlan {
    /// The part of it that EXPLAIN shows.
    pub(crate) fn subject(&self) -> Subject<'_> {
        let does = if self.delete { "DELETE" } else { "UPDATE" };
        let changed = self.targets.iter().map(|target| (&*target.shown, does)).collect();
        Subject::Changing(&self.query, changed)
    }

    /// Compiles UPDATE.
    pub(crate) fn update(planner: &Planner<'_>, tree: &Update) -> SqlResult<MultiPlan> {
        // Each clause by its name: one that nobody reads does not compile.
        let Update { with, hints, low_priority: _, ignore, tables, assignments, filter, order_by, limit } =
            tree;
        if !order_by.is_empty() || limit.is_some() {
            let clause = if order_by.is_empty() { "LIMIT" } else { "ORDER BY" };
            return Err(SqlError::new(1221, b"HY000", format!("Incorrect usage of UPDATE and {clause}")));
        }
        let columns = assignments.iter().map(|set| item(Expr::Column(set.column.clone())));
        let values = assignments.iter().filter(|set| !matches!(set.value, Expr::Default));
        let items = columns.chain(values.map(|set| item(set.value.clone()))).collect();
        let select = select(hints, items, tables, filter.clone());
        let (mut targets, mut binder) = (Vec::new(), planner.plain_binder());
        let query = changing(&mut binder, with.as_deref(), &select, &mut |binder, nest, outputs| {
            let values = outputs.split_off(assignments.len());
            targets = assigned(planner, binder, tree)?;
            *outputs = Vec::new();
            read_rows(binder, nest, outputs, &mut targets);
            for assignment in targets.iter_mut().flat_map(|target| &mut target.assignments) {
                assignment.1 = assignment.1.map(|at| at + outputs.len());
            }
            outputs.extend(values);
            Ok(())
        })?;
        for target in &mut targets {
            target.assigned = target.assignments.iter().map(|(column, _)| *column).collect();
            target.on_update = on_update_columns(&target.table, &target.assigned);
            target.expressions = planner.row_expressions(&target.table)?;
        }
        Ok(MultiPlan { query, targets, delete: false, ignore: *ignore })
    }

    /// Compiles DELETE.
    pub(crate) fn delete(planner: &Planner<'_>, tree: &Delete) -> SqlResult<MultiPlan> {
        let Delete {
            with,
            hints,
            low_priority: _,
            quick: _,
            ignore,
            targets: names,
            from,
            filter,
            order_by,
            limit,
            returning,
        } = tree;
        if !order_by.is_empty() || limit.is_some() || !returning.is_empty() {
            return Err(SqlError::new(
                1221,
                b"HY000",
                "Incorrect usage of DELETE and ORDER BY, LIMIT or RETURNING",
            ));
        }
        if planner.session.database.is_none() && names.iter().any(|name| name.schema.is_none()) {
            return Err(SqlError::no_db());
        }
        let items = vec![item(Expr::Literal(Literal::Null))];
        let select = select(hints, items, from, filter.clone());
        let (mut targets, mut binder) = (Vec::new(), planner.plain_binder());
        let query = changing(&mut binder, with.as_deref(), &select, &mut |binder, nest, outputs| {
            outputs.clear();
            for name in names {
                deleted(planner, binder, tree, name, &mut targets)?;
            }
            read_rows(binder, nest, outputs, &mut targets);
            Ok(())
        })?;
        for target in &mut targets {
            target.expressions = planner.row_expressions(&target.table)?.filter(|one| one.triggers.is_some());
        }
        Ok(MultiPlan { query, targets, delete: true, ignore: *ignore })
    }

    /// The tables that change.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.targets.iter().map(|target| &target.table)
    }

    /// Whether only temporary tables change.
    pub(crate) fn only_temporary(&self) -> bool {
        self.targets.iter().all(|target| target.table.temporary)
    }

    /// The tables that an UPDATE changes: a bitmap of their places among those of the statement.
    pub(crate) fn updated_tables(&self) -> Option<u64> {
        if self.delete {
            return None;
        }
        Some(self.targets.iter().fold(0, |bits, target| bits | 1u64.checked_shl(target.place).unwrap_or(0)))
    }

    /// Runs it.
    pub(crate) fn run(&self, run: &mut Run<'_>) -> ExecResult<Effect> {
        if run.state.settings.sql_safe_updates && self.query.reads_all_of_a_table() {
            return Err(SqlError::update_without_key().into());
        }
        for target in &self.targets {
            run.trx.start_write(&target.table)?;
        }
        let joined = Rc::new(self.joined(run)?);
        let (mut matched, mut changed) = (0, 0);
        for target in &self.targets {
            let mut seen: HashSet<Bytes, RandomState> = HashSet::default();
            let mut account = Account::new(&run.state.connection.memory);
            let (mut reader, mut number) = (joined.read(), 0);
            while let Some(row) = reader.next_row()? {
                number += 1;
                let Some(key) = target.key(&row) else { continue };
                if seen.contains(&key) {
                    continue;
                }
                account.grow(key.len() + KEY_COST, &run.state.settings)?;
                seen.insert(key.clone());
                matched += 1;
                changed += u64::from(self.apply(run, target, key, &row, number)?);
            }
        }
        if self.delete {
            return Ok(Effect { affected: changed, ..Effect::default() });
        }
        let warnings = run.state.diagnostics.count();
        let affected = if run.state.settings.found_rows { matched } else { changed };
        let info = Info::Updated { matched, changed, warnings: warnings.into() };
        Ok(Effect {
            affected,
            last_insert_id: run.state.results.last_insert_id_set.unwrap_or(0),
            info,
            rows: None,
        })
    }

    fn joined(&self, run: &mut Run<'_>) -> ExecResult<Rows> {
        let mut exec = Context::new(run.state, run.trx, run.params);
        exec.reserve(self.query.statement.slots, self.query.statement.subqueries);
        exec.strict = exec.session.settings.strict_search() && !self.ignore;
        let mut rows = RowsBuilder::new(&exec);
        exec::run(&self.query, &mut exec, &mut |cx, row| {
            rows.push(row.iter().cloned().map(eval::own).collect(), cx)?;
            Ok(Flow::Continue)
        })?;
        Ok(rows.finish()?)
    }

    /// Changes one row of a target; whether it changed.
    fn apply(
        &self,
        run: &mut Run<'_>,
        target: &ChangedTable,
        key: Bytes,
        joined: &[Value],
        number: u64,
    ) -> ExecResult<bool> {
        let table = &target.table;
        let found = run.trx.get_row(table, &key, LockMode::Exclusive, WaitPolicy::Wait)?;
        let Some(row) = found else { return Ok(false) };
        let at = RowAt { key, row };
        let old = table.decode(&at.row)?;
        if self.delete {
            return delete_row(table, &at, &old, target.expressions.as_ref(), self.ignore, run);
        }
        let mut new = old.clone();
        for (column, value) in &target.assignments {
            let def = &table.def.columns[*column];
            let Some(value) = value else {
                let mut row = NewRow { values: &mut new, number, ignore: self.ignore };
                assign_default(table, *column, target.expressions.as_ref(), &mut row, run.state, run.trx)?;
                continue;
            };
            let source = &self.query.types[*value].column;
            let stored = into_column(joined[*value].clone(), source, def, number, self.ignore, run.state)?;
            let when = (TriggerTime::Before, TriggerEvent::Update);
            let later = target.expressions.as_ref().is_some_and(|one| one.fires(when.0, when.1));
            new[*column] = if later { stored } else { not_null(stored, def, self.ignore, run.state)? };
        }
        let update = RowUpdate {
            table,
            at: &at,
            old: &old,
            assigned: &target.assigned,
            on_update: &target.on_update,
            expressions: target.expressions.as_ref(),
            check: target.check.as_ref().map(|(check, at)| (check, &joined[*at..])),
            number,
            ignore: self.ignore,
        };
        Ok(update.write(run, &mut new)? == Written::Changed)
    }
}

impl ChangedTable {
    /// The key of this table's row in a joined row; `None` where an outer join found none.
    fn key(&self, joined: &[Value]) -> Option<Bytes> {
        let parts = self.table.key_columns.len();
        let values = &joined[self.key_at..self.key_at + parts];
        if self.table.def.hidden_key {
            return match &joined[self.key_at] {
                Value::Bytes(key) => Some(key.clone()),
                _ => None,
            };
        }
        if values.iter().all(|value| matches!(value, Value::Null)) {
            return None;
        }
        Some(self.table.keys[0].prefix(values))
    }
}

/// The named tables of a FROM clause.
pub(super) fn factors(tables: &[TableRef]) -> Vec<&TableFactor> {
    let mut out = Vec::new();
    for table in tables {
        match table {
            TableRef::Table(factor) => out.push(&**factor),
            TableRef::Join(join) => {
                let Join { left, right, .. } = &**join;
                out.extend(factors(std::slice::from_ref(left)));
                out.extend(factors(std::slice::from_ref(right)));
            }
            TableRef::Group(members) => out.extend(factors(members)),
            TableRef::Derived(_) | TableRef::JsonTable(_) => {}
        }
    }
    out
}

fn alias(factor: &TableFactor) -> &Ident {
    factor.alias.as_ref().unwrap_or(&factor.name.name)
}

/// The number of one of a statement's tables, derived ones counted.
fn place(tables: &[TableRef], wanted: &TableFactor) -> usize {
    fn search(tables: &[TableRef], wanted: &TableFactor, place: &mut usize) -> bool {
        tables.iter().any(|table| match table {
            TableRef::Table(factor) => {
                let found = std::ptr::eq(&raw const **factor, wanted);
                *place += usize::from(!found);
                found
            }
            TableRef::Join(join) => {
                let Join { left, right, .. } = &**join;
                search(std::slice::from_ref(left), wanted, place)
                    || search(std::slice::from_ref(right), wanted, place)
            }
            TableRef::Group(members) => search(members, wanted, place),
            TableRef::Derived(_) | TableRef::JsonTable(_) => {
                *place += 1;
                false
            }
        })
    }
    let mut at = 0;
    search(tables, wanted, &mut at);
    at
}

/// The targets of an UPDATE, with what is assigned to each; places of values count from the first.
fn assigned(planner: &Planner<'_>, binder: &Binder<'_>, tree: &Update) -> SqlResult<Vec<ChangedTable>> {
    let mut targets: Vec<ChangedTable> = Vec::new();
    let mut values = 0;
    for assignment in &tree.assignments {
        let name = &assignment.column;
        let (schema, table) = (name.schema().map(|s| &**s), name.table().map(|t| &**t));
        let block = binder.blocks.last().ok_or_else(SqlError::no_tables_used)?;
        let found = block.scope.place(schema, table, &name.name, "field list")?;
        let (scope, at) = found.ok_or_else(|| SqlError::bad_field(&name.name, "field list"))?;
        let (slot, column) = match &scope.source {
            Source::Table(_) => (scope.slot, at),
            Source::View(merged) => {
                let column = written_column(&merged.exprs[at]);
                let (slot, column) = column.ok_or_else(|| SqlError::nonupdateable_column(&name.name))?;
                (slot, usize::from(column))
            }
            Source::Columns(_) => return Err(SqlError::non_updatable_table(&scope.alias, "UPDATE")),
        };
        if let Source::View(merged) = &scope.source
            && targets.iter().any(|target| *target.alias == *scope.alias && target.slot != slot)
        {
            return Err(SqlError::view_multiupdate(merged.view.qualified()));
        }
        let place = place_of(&tree.tables, &scope.alias);
        let at = target(planner, binder, &mut targets, (scope, slot), place, Priv::Update)?;
        targets[at].granted.check(&name.name)?;
        let table = &targets[at].table;
        let value = match &assignment.value {
            Expr::Default => None,
            _ if table.columns()[column].generated.is_some() => return Err(generated_given(table, column)),
            _ => {
                values += 1;
                Some(values - 1)
            }
        };
        targets[at].assignments.push((column, value));
    }
    // In the order of their tables in the text, as they were found.
    Ok(targets)
}

/// Adds a target of DELETE.
fn deleted(
    planner: &Planner<'_>,
    binder: &Binder<'_>,
    tree: &Delete,
    name: &ObjectName,
    targets: &mut Vec<ChangedTable>,
) -> SqlResult<()> {
    let tables = binder.blocks.last().map_or(&[][..], |block| &block.scope.tables);
    let database = binder.session.database.as_deref();
    let mut found =
        tables.iter().filter(|table| !table.is_inner() && names(name, table, &tree.from, database));
    let scope = found.next().ok_or_else(|| SqlError::unknown_table(&name.name, "MULTI DELETE"))?;
    if found.next().is_some() {
        return Err(SqlError::nonuniq_table(&name.name));
    }
    let slot = match &scope.source {
        Source::Table(_) => scope.slot,
        Source::Columns(_) => return Err(SqlError::non_updatable_table(&scope.alias, "DELETE")),
        Source::View(merged) => {
            // Those of the view stand in front of it.
            let end = tables.iter().position(|table| table.slot == scope.slot).unwrap_or(0);
            let inner = tables[..end].iter().rev().take_while(|table| table.is_inner());
            let rows: Vec<u16> = inner.filter(|table| table.has_rows()).map(|table| table.slot).collect();
            let stored = |table: &ScopeTable| matches!(table.source, Source::Table(_));
            match rows[..] {
                [slot] => slot,
                _ if !tables[..end].iter().rev().take_while(|table| table.is_inner()).any(stored) => {
                    return Err(SqlError::non_updatable_table(&scope.alias, "DELETE"));
                }
                _ => return Err(SqlError::view_delete_merge_view(merged.view.qualified())),
            }
        }
    };
    let known = targets.len();
    let at =
        target(planner, binder, targets, (scope, slot), place_of(&tree.from, &scope.alias), Priv::Delete)?;
    if at < known { Err(SqlError::nonuniq_table(&name.name)) } else { Ok(()) }
}

/// Whether a target of DELETE is this table. A table that goes by its own name is where the target says, or in the default database; one
/// that has an alias goes by it alone.
fn names(target: &ObjectName, table: &ScopeTable, from: &[TableRef], database: Option<&str>) -> bool {
    let is_it = |factor: &&&TableFactor| {
        let schema = factor.name.schema.as_deref().or(database);
        **alias(factor) == *table.alias && schema.is_none_or(|schema| *schema == *table.schema)
    };
    let factors = factors(from);
    let factor = factors.iter().find(is_it);
    match (&target.schema, factor) {
        (Some(schema), Some(factor)) if factor.alias.is_none() => {
            *factor.name.name == *target.name && **schema == *table.schema
        }
        (None, Some(factor)) if factor.alias.is_none() => {
            *factor.name.name == *target.name && database == Some(&*table.schema)
        }
        (None, _) => *table.alias == *target.name,
        (Some(_), _) => false,
    }
}

/// The target of a slot, which a table or view of the statement has.
fn target(
    planner: &Planner<'_>,
    binder: &Binder<'_>,
    targets: &mut Vec<ChangedTable>,
    (scope, slot): (&ScopeTable, u16),
    place: usize,
    need: Priv,
) -> SqlResult<usize> {
    if let Some(at) = targets.iter().position(|target| target.slot == slot) {
        return Ok(at);
    }
    let verb = if need == Priv::Delete { "DELETE" } else { "UPDATE" };
    let stored = binder.collected.slots.get(usize::from(slot)).and_then(|table| table.as_ref());
    let Some(Source::Table(table)) = stored.map(|table| &table.source) else {
        return Err(SqlError::non_updatable_table(&scope.alias, verb));
    };
    let named = |db: &str, name: &str| ObjectName { schema: Some(db.into()), name: name.into() };
    let granted;
    let check = match &scope.source {
        Source::View(merged) => {
            let view = &merged.view.def;
            granted = planner.access.columns(&view.db, &view.name, need)?;
            planner.may_change(&merged.view, table, need)?;
            ViewCheck::new(merged, slot, binder).filter(|_| need == Priv::Update)
        }
        _ => {
            (_, granted) = planner.table(&named(&table.def.db, &table.def.name), need)?;
            None
        }
    };
    targets.push(ChangedTable {
        table: table.clone(),
        slot,
        alias: scope.alias.to_string(),
        shown: scope.alias.clone(),
        place: place as u32,
        key_at: 0,
        check: check.map(|check| (check, 0)),
        granted,
        assignments: Vec::new(),
        assigned: Vec::new(),
        on_update: Vec::new(),
        expressions: None,
    });
    Ok(targets.len() - 1)
}

/// Locks the rows of the targets, and reads their keys and what is to be checked of them.
fn read_rows(
    binder: &Binder<'_>,
    nest: &mut Nest,
    outputs: &mut Vec<expr::Expr>,
    targets: &mut [ChangedTable],
) {
    let slots: Vec<u16> = targets.iter().map(|target| target.slot).collect();
    nest.lock_exclusively(&slots);
    let scope_of = |slot: u16| binder.collected.slots.get(usize::from(slot)).and_then(|table| table.as_ref());
    for target in &mut *targets {
        target.key_at = outputs.len();
        target.shown = nest.alias_of(target.slot).unwrap_or_else(|| target.shown.clone());
        if target.table.def.hidden_key {
            outputs.push(expr::Expr { kind: Kind::RowKey(target.slot), ty: expr::ExprType::null() });
        }
        let Some(scope) = scope_of(target.slot) else { continue };
        outputs.extend(target.table.key_columns.iter().map(|column| stored(scope, *column)));
    }
    for (check, at) in targets.iter_mut().filter_map(|target| target.check.as_mut()) {
        *at = outputs.len();
        for (slot, width) in &check.beside {
            let Some(scope) = scope_of(*slot) else { continue };
            outputs.extend((0..*width).map(|column| stored(scope, column)));
        }
    }
}

/// A column as it is stored: whoever reads it converts it.
fn stored(scope: &ScopeTable, column: usize) -> expr::Expr {
    let mut e = scope.expr(column);
    if let Kind::Column { utc, .. } = &mut e.kind {
        *utc = false;
    }
    e
}

fn place_of(tables: &[TableRef], name: &str) -> usize {
    let named = factors(tables).into_iter().find(|factor| **alias(factor) == *name);
    named.map_or(0, |factor| place(tables, factor))
}

fn item(expr: Expr) -> SelectItem {
    SelectItem::Expr { expr, alias: None, text: Bytes::from_static(b"value") }
}

fn select(hints: &[Hint], items: Vec<SelectItem>, from: &[TableRef], filter: Option<Expr>) -> Select {
    Select {
        options: SelectOptions::default(),
        hints: hints.to_vec(),
        items,
        from: from.to_vec(),
        filter,
        group_by: Vec::new(),
        with_rollup: false,
        having: None,
        windows: Vec::new(),
    }
}
