//! UPDATE and DELETE over several tables.
//!
//! The joined rows come from a SELECT ... FOR UPDATE made from the statement's own tables and
//! conditions: the keys of the target tables' rows, then the values to assign. All of them are
//! read before the first row changes, and a row that joins more than once is changed once, with the
//! values of its first appearance, as MySQL does.

use super::cast::into_column;
use super::change::{RowUpdate, Written, assign_default, not_null, on_update_columns, passed_over};
use super::plan::{Planner, generated_given};
use super::{Effect, NewRow, RowExpressions, Run};
use crate::api::{Priv, RowSink};
use crate::catalog::{Table, same_name};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::exec::distinct::KEY_COST;
use crate::exec::rows::{Rows, RowsBuilder};
use crate::expr::node::Kind;
use crate::expr::{self, Exec, eval};
use crate::memory::Account;
use crate::plan::QueryPlan;
use crate::plan::tree::{Body, Node, NodeSource};
use crate::select;
use crate::select::run::Flow;
use crate::storage::{LockMode, WaitPolicy};
use crate::store::RowAt;
use bytes::Bytes;
use foldhash::fast::RandomState;
use omnibus_parser::ast::{
    self, ColumnRef, Delete, Expr, Ident, Join, Literal, LockStrength, LockWait, Locking, ObjectName,
    Qualifier, Query, QueryBody, Select, SelectItem, SelectOptions, TableFactor, TableRef, Update,
};
use omnibus_value::Value;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

/// A table whose rows change.
struct Target {
    table: Arc<Table>,
    alias: Ident,
    /// Which of the statement's tables it is, from 0.
    place: u32,
    /// Where its key columns begin in the joined rows.
    key_at: usize,
    /// Column, and where its value is in the joined rows (`None`: DEFAULT).
    assignments: Vec<(usize, Option<usize>)>,
    assigned: Vec<usize>,
    on_update: Vec<usize>,
    expressions: Option<RowExpressions>,
}

/// A statement over several tables, compiled.
pub(crate) struct MultiPlan {
    query: QueryPlan,
    targets: Vec<Target>,
    delete: bool,
    ignore: bool,
}

impl MultiPlan {
    /// Writes how its rows are found into a sink.
    pub(crate) fn explain(&self, sink: &mut dyn RowSink) -> ExecResult<()> {
        let does = if self.delete { "DELETE" } else { "UPDATE" };
        let changed = self.targets.iter().map(|target| (target.alias.as_str(), does)).collect();
        select::explain_changing(&self.query, changed, sink)
    }

    /// Compiles UPDATE.
    pub(crate) fn update(planner: &Planner<'_>, tree: &Update) -> SqlResult<MultiPlan> {
        if !tree.order_by.is_empty() || tree.limit.is_some() {
            return Err(SqlError::new(1221, b"HY000", "Incorrect usage of UPDATE and ORDER BY or LIMIT"));
        }
        let factors = stored(&tree.tables, tree.with.as_deref());
        let mut targets: Vec<Target> = Vec::new();
        let mut values = Vec::new();
        for assignment in &tree.assignments {
            let factor = owner(planner, &factors, &assignment.column)?;
            let at = target(planner, &mut targets, factor, place(&tree.tables, factor), Priv::Update)?;
            let table = &targets[at].table;
            let column = table
                .column_index(&assignment.column.name)
                .ok_or_else(|| SqlError::bad_field(&assignment.column.name, "field list"))?;
            let value = match &assignment.value {
                Expr::Default => None,
                _ if table.columns()[column].generated.is_some() => {
                    return Err(generated_given(table, column));
                }
                expr => {
                    values.push(expr.clone());
                    Some(values.len() - 1)
                }
            };
            targets[at].assignments.push((column, value));
        }
        for target in &mut targets {
            target.assigned = target.assignments.iter().map(|(column, _)| *column).collect();
            target.on_update = on_update_columns(&target.table, &target.assigned);
            target.expressions = planner.row_expressions(&target.table)?;
        }
        let mut items = key_items(&mut targets)?;
        let first_value = items.len();
        for value in targets.iter_mut().flat_map(|target| &mut target.assignments) {
            value.1 = value.1.map(|at| at + first_value);
        }
        items.extend(values.into_iter().map(item));
        let query = query(planner, tree.with.clone(), items, &tree.tables, tree.filter.clone(), &targets)?;
        Ok(MultiPlan { query, targets, delete: false, ignore: tree.ignore })
    }

    /// Compiles DELETE.
    pub(crate) fn delete(planner: &Planner<'_>, tree: &Delete) -> SqlResult<MultiPlan> {
        let factors = stored(&tree.from, tree.with.as_deref());
        let mut targets = Vec::new();
        for name in &tree.targets {
            let found = factors.iter().find(|factor| alias(factor).as_str() == name.name.as_str());
            let factor = found.ok_or_else(|| SqlError::unknown_table(&name.name, "MULTI DELETE"))?;
            target(planner, &mut targets, factor, place(&tree.from, factor), Priv::Delete)?;
        }
        let items = key_items(&mut targets)?;
        let query = query(planner, tree.with.clone(), items, &tree.from, tree.filter.clone(), &targets)?;
        Ok(MultiPlan { query, targets, delete: true, ignore: tree.ignore })
    }

    /// The tables that change.
    pub(crate) fn targets(&self) -> Vec<&Arc<Table>> {
        self.targets.iter().map(|target| &target.table).collect()
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
            let mut account = Account::new(&run.state.memory);
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
        let info = format!("Rows matched: {matched}  Changed: {changed}  Warnings: {warnings}");
        Ok(Effect { affected, last_insert_id: run.state.last_insert_id_set.unwrap_or(0), info })
    }

    fn joined(&self, run: &mut Run<'_>) -> ExecResult<Rows> {
        let mut exec = Exec::new(run.state, run.trx, run.params);
        exec.reserve(self.query.slots, self.query.subqueries);
        exec.strict = exec.session.settings.strict_search() && !self.ignore;
        let mut rows = RowsBuilder::new(&exec);
        select::run::run(&self.query, &mut exec, &mut |cx, row| {
            rows.push(row.iter().cloned().map(eval::own).collect(), cx)?;
            Ok(Flow::Continue)
        })?;
        Ok(rows.finish()?)
    }

    /// Changes one row of a target; whether it changed.
    fn apply(
        &self,
        run: &mut Run<'_>,
        target: &Target,
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
            let deleted = run.trx.delete_row(table, &at, &old);
            return Ok(passed_over(deleted, self.ignore, run.state)?.is_some());
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
            new[*column] = not_null(stored, def, self.ignore, run.state)?;
        }
        let update = RowUpdate {
            table,
            at: &at,
            old: &old,
            assigned: &target.assigned,
            on_update: &target.on_update,
            expressions: target.expressions.as_ref(),
            number,
            ignore: self.ignore,
        };
        Ok(update.write(run, new)? == Written::Changed)
    }
}

impl Target {
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
        Some(self.table.keys[0].prefix(values).into())
    }
}

/// The stored tables of a FROM clause: those that are not of its WITH.
fn stored<'f>(tables: &'f [TableRef], with: Option<&ast::With>) -> Vec<&'f TableFactor> {
    let common = |factor: &&TableFactor| {
        let named = |with: &ast::With| with.tables.iter().any(|t| same_name(&t.name, &factor.name.name));
        factor.name.schema.is_none() && with.is_some_and(named)
    };
    factors(tables).into_iter().filter(|factor| !common(factor)).collect()
}

/// The named tables of a FROM clause.
fn factors(tables: &[TableRef]) -> Vec<&TableFactor> {
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
            TableRef::Derived(_) => {}
        }
    }
    out
}

fn alias(factor: &TableFactor) -> &Ident {
    factor.alias.as_ref().unwrap_or(&factor.name.name)
}

/// The table that an assigned column belongs to.
/// Which of a statement's tables one is, derived ones counted.
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
            TableRef::Derived(_) => {
                *place += 1;
                false
            }
        })
    }
    let mut at = 0;
    search(tables, wanted, &mut at);
    at
}

fn owner<'f>(
    planner: &Planner<'_>,
    factors: &[&'f TableFactor],
    column: &ColumnRef,
) -> SqlResult<&'f TableFactor> {
    if let Some(table) = column.table() {
        let found = factors.iter().find(|factor| alias(factor).as_str() == table.as_str());
        let full = format!("{table}.{}", column.name);
        return found.copied().ok_or_else(|| SqlError::bad_field(full, "field list"));
    }
    let mut found = None;
    for factor in factors {
        let table = planner.table(&factor.name, Priv::Select)?;
        if table.columns().iter().any(|own| same_name(&own.name, &column.name)) {
            if found.is_some() {
                return Err(SqlError::non_uniq(&column.name, "field list"));
            }
            found = Some(*factor);
        }
    }
    found.ok_or_else(|| SqlError::bad_field(&column.name, "field list"))
}

fn target(
    planner: &Planner<'_>,
    targets: &mut Vec<Target>,
    factor: &TableFactor,
    place: usize,
    need: Priv,
) -> SqlResult<usize> {
    let alias = alias(factor);
    if let Some(at) = targets.iter().position(|target| target.alias == *alias) {
        return Ok(at);
    }
    let table = planner.table(&factor.name, need)?;
    targets.push(Target {
        table,
        alias: alias.clone(),
        place: place as u32,
        key_at: 0,
        assignments: Vec::new(),
        assigned: Vec::new(),
        on_update: Vec::new(),
        expressions: None,
    });
    Ok(targets.len() - 1)
}

fn item(expr: Expr) -> SelectItem {
    SelectItem::Expr { expr, alias: None, text: Bytes::from_static(b"value") }
}

/// The key columns of every target; a NULL, which `read_keys` replaces, for a key that is no column.
fn key_items(targets: &mut [Target]) -> SqlResult<Vec<SelectItem>> {
    let mut items = Vec::new();
    for target in targets {
        target.key_at = items.len();
        if target.table.def.hidden_key {
            items.push(item(Expr::Literal(Literal::Null)));
        }
        for &column in &target.table.key_columns {
            let name = Ident::new(&*target.table.def.columns[column].name);
            let qualifier = Some(Box::new(Qualifier { schema: None, table: target.alias.clone() }));
            items.push(item(Expr::Column(ColumnRef { qualifier, name })));
        }
    }
    Ok(items)
}

fn query(
    planner: &Planner<'_>,
    with: Option<Box<ast::With>>,
    items: Vec<SelectItem>,
    from: &[TableRef],
    filter: Option<Expr>,
    targets: &[Target],
) -> SqlResult<QueryPlan> {
    let select = Select {
        options: SelectOptions::default(),
        items,
        from: from.to_vec(),
        filter,
        group_by: Vec::new(),
        with_rollup: false,
        having: None,
        windows: Vec::new(),
    };
    let locked = |target: &Target| ObjectName { schema: None, name: target.alias.clone() };
    let locking = Locking {
        strength: LockStrength::Update,
        tables: targets.iter().map(locked).collect(),
        wait: LockWait::Wait,
    };
    let query = Query {
        with,
        body: QueryBody::Select(Box::new(select)),
        order_by: Vec::new(),
        limit: None,
        locking: vec![locking],
        into: None,
    };
    let mut plan = crate::bind::query::query(&mut planner.plain_binder(), &query)?;
    read_keys(&mut plan, targets);
    Ok(plan)
}

/// Has the plan give the clustered keys of targets that have no key of columns.
fn read_keys(plan: &mut QueryPlan, targets: &[Target]) {
    let Body::Block(block) = &mut plan.body else { return };
    for target in targets.iter().filter(|target| target.table.def.hidden_key) {
        if let Some(slot) = slot_of(&block.nodes, &target.alias) {
            let ty = block.outputs[target.key_at].ty.clone();
            block.outputs[target.key_at] = expr::Expr { kind: Kind::RowKey(slot), ty };
        }
    }
}

/// The slot of a stored table of a block, by its alias.
fn slot_of(nodes: &[Node], alias: &str) -> Option<u16> {
    nodes.iter().find_map(|node| match node {
        Node::Scan(scan) => {
            let stored = matches!(scan.source, NodeSource::Table { .. });
            (stored && &*scan.alias == alias).then_some(scan.slot)
        }
        Node::Outer(outer) => slot_of(&outer.nodes, alias),
    })
}
