//! Where the rows of an INSERT come from, and what ON DUPLICATE KEY UPDATE sees of them. Compiling only: `insert` runs it.

use crate::bind::scope::{Scope, ScopeTable, VALUES_ALIAS};
use crate::bind::{Binder, Clause};
use crate::dml::Names;
use crate::dml::plan::Assignment;
use crate::error::{SqlError, SqlResult};
use crate::expr::SlotSet;
use crate::expr::context::{Row, Slot};
use crate::expr::node::{Expr, Kind};
use crate::plan::QueryPlan;
use omnibus_parser::ast::{self, Insert, InsertSource};
use omnibus_value::Value;
use std::sync::Arc;

/// Where rows come from.
pub(super) enum RowSource {
    /// One expression a target column; `None` is DEFAULT.
    Values(Vec<Vec<Option<Expr>>>),
    /// A query with as many columns.
    Query(Box<QueryPlan>),
}

/// A table of the SELECT whose columns ON DUPLICATE KEY UPDATE reads: they come behind the select list.
pub(super) struct Beside {
    slot: u16,
    width: usize,
}

/// Binds VALUES or the query. A query sees nothing of the target.
pub(super) fn bind(
    binder: &mut Binder<'_>,
    tree: &Insert,
    columns: &[usize],
    all: bool,
) -> SqlResult<RowSource> {
    let rows = match &tree.source {
        InsertSource::Values(rows) => rows,
        InsertSource::Query(query) => {
            let target = std::mem::take(&mut binder.blocks);
            let plan = crate::bind::query::query(binder, query);
            binder.blocks = target;
            let plan = plan?;
            if plan.columns.len() != columns.len() {
                return Err(SqlError::wrong_value_count_on_row(1));
            }
            return Ok(RowSource::Query(Box::new(plan)));
        }
    };
    let mut out = Vec::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate() {
        // `VALUES ()` is a row of defaults, and no column may be named then.
        if row.is_empty() && all {
            out.push(columns.iter().map(|_| None).collect());
            continue;
        }
        if row.len() != columns.len() {
            return Err(SqlError::wrong_value_count_on_row(at + 1));
        }
        let bind = |expr: &ast::Expr| match expr {
            ast::Expr::Default => Ok(None),
            expr => binder.expr(expr).map(Some),
        };
        out.push(row.iter().map(bind).collect::<SqlResult<Vec<_>>>()?);
    }
    Ok(RowSource::Values(out))
}

/// The names of a SELECT that ON DUPLICATE KEY UPDATE may use: those of one block without groups.
pub(super) fn select_scope(binder: &mut Binder<'_>, source: &RowSource, tree: &Insert) -> Scope {
    match source {
        RowSource::Query(plan) if !tree.on_duplicate.is_empty() => match plan.root.project() {
            Some(project) if project.input.grouping().is_none() => std::mem::take(&mut binder.last_scope),
            _ => Scope::default(),
        },
        _ => Scope::default(),
    }
}

/// Makes known to ON DUPLICATE KEY UPDATE: the new row's columns, as VALUES(column) and by an alias, and those of the
/// SELECT. Returns the new row's slot.
pub(super) fn add_names(
    binder: &mut Binder<'_>,
    names: &Names,
    tree: &Insert,
    columns: &[usize],
    select: &Scope,
) -> SqlResult<u16> {
    if tree.on_duplicate.is_empty() {
        return Ok(0);
    }
    let mut values = binder.add_table(&names.table, Some(VALUES_ALIAS));
    let slot = values.slot;
    values.source = names.values_source(slot);
    let mut added = vec![values.clone()];
    if let Some(alias) = &tree.row_alias {
        let mut named = values;
        named.alias = Arc::from(alias.name.as_str());
        named.names = row_names(&named, &alias.columns, columns)?;
        added.push(named);
    }
    added.extend(select.tables.iter().cloned());
    if let Some(block) = binder.blocks.last_mut() {
        block.scope.tables.extend(added);
        block.scope.merged.extend(select.merged.iter().cloned());
    }
    binder.set_clause(Clause::FieldList);
    Ok(slot)
}

/// The names that `AS new(a, b)` gives to the columns that the statement names.
fn row_names(
    row: &ScopeTable,
    aliases: &[ast::Ident],
    columns: &[usize],
) -> SqlResult<Option<Arc<[Arc<str>]>>> {
    if aliases.is_empty() {
        return Ok(None);
    }
    if !matches!(row.source, crate::bind::scope::Source::Table(_)) {
        return Err(SqlError::not_supported_yet("column aliases of a row that goes into a view"));
    }
    if aliases.len() != columns.len() {
        return Err(SqlError::view_wrong_list());
    }
    let mut names = vec![Arc::from(""); row.width()];
    for (at, (alias, column)) in aliases.iter().zip(columns).enumerate() {
        if aliases[..at].iter().any(|other| other.is(alias)) {
            return Err(SqlError::dup_fieldname(alias));
        }
        names[*column] = Arc::from(alias.as_str());
    }
    Ok(Some(names.into()))
}

/// Has the query yield the columns of those of its tables that the assignments read.
pub(super) fn read_beside(source: &mut RowSource, select: &Scope, assignments: &[Assignment]) -> Vec<Beside> {
    let RowSource::Query(plan) = source else { return Vec::new() };
    let Some(project) = plan.root.project_mut() else { return Vec::new() };
    let mut read = SlotSet::default();
    assignments.iter().filter_map(|a| a.value.as_ref()).for_each(|e| read.extend(&e.slots()));
    let mut beside = Vec::new();
    // More columns are wanted than those for which an index was enough.
    project.input.scans_mut(&mut |scan| {
        if let Some((_, path)) = scan.stored_mut() {
            path.covered = false;
        }
    });
    for table in select.tables.iter().filter(|table| read.contains(table.slot)) {
        project.outputs.extend((0..table.width()).map(|at| {
            let mut column = table.expr(at);
            // As it is stored: whoever reads it converts it.
            if let Kind::Column { utc, .. } = &mut column.kind {
                *utc = false;
            }
            column
        }));
        beside.push(Beside { slot: table.slot, width: table.width() });
    }
    beside
}

/// Puts the values behind a select list where the assignments read them.
pub(super) fn place(beside: &[Beside], mut values: &[Value], frame: &mut [Slot]) {
    for table in beside {
        let (row, rest) = values.split_at(table.width.min(values.len()));
        frame[usize::from(table.slot)] = Slot { table: None, row: Row::Values(row.into()) };
        values = rest;
    }
}
