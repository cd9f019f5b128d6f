//! INSERT and REPLACE, compiled: from a statement's tree, from a query that is planned already, or for rows that the
//! caller makes.

use crate::api::Priv;
use crate::catalog::Table;
use crate::dml::plan::{Assignment, Planner, TargetTable, bind_assignments, insert_columns};
use crate::error::{SqlError, SqlResult};
use crate::expr::bind::{Binder, Clause};
use crate::expr::node::Expr;
use crate::expr::scope::VALUES_ALIAS;
use crate::select::{self, QueryPlan};
use omnibus_parser::ast::{self, Insert, InsertSource};
use std::sync::Arc;

/// Where rows come from.
pub(super) enum Source {
    /// One expression a target column; `None` is DEFAULT.
    Values(Vec<Vec<Option<Expr>>>),
    /// A query with as many columns.
    Query(Box<QueryPlan>),
}

/// INSERT or REPLACE, compiled.
pub(crate) struct InsertPlan {
    pub target: TargetTable,
    pub(super) columns: Vec<usize>,
    /// Columns not named, which get their defaults.
    pub(super) rest: Vec<usize>,
    pub(super) source: Source,
    /// Whether an expression reads the row being made.
    pub(super) reads_row: bool,
    pub(super) on_duplicate: Vec<Assignment>,
    pub(super) assigned: Vec<usize>,
    pub(super) on_update: Vec<usize>,
    /// The slot of VALUES(column).
    pub(super) values_slot: u16,
    pub(super) replace: bool,
    pub(super) ignore: bool,
}

impl InsertPlan {
    /// Compiles.
    pub(crate) fn build(planner: &Planner<'_>, tree: &Insert) -> SqlResult<InsertPlan> {
        if !tree.returning.is_empty() {
            return Err(SqlError::not_supported_yet("RETURNING"));
        }
        if !tree.partitions.is_empty() {
            return Err(SqlError::not_supported_yet("PARTITION in INSERT"));
        }
        let table = planner.insert_target(&tree.table, tree.replace)?;
        if !tree.on_duplicate.is_empty() {
            planner.table(&tree.table, Priv::Update)?;
        }
        let (mut binder, slot) = planner.binder(&table, None);
        let all = tree.columns.is_empty();
        let columns = insert_columns(&table, &tree.columns, all)?;
        let source = bind_source(&mut binder, tree, &columns, all)?;
        let values_slot = add_values_row(&mut binder, &table, tree)?;
        let on_duplicate = bind_assignments(&mut binder, &table, &table.def.name, &tree.on_duplicate)?;
        let assigned: Vec<usize> = on_duplicate.iter().map(|assignment| assignment.column).collect();
        let defs = table.columns().iter().enumerate();
        let on_update = defs
            .filter(|(at, column)| column.on_update_now && !assigned.contains(at))
            .map(|(at, _)| at)
            .collect();
        let rest = (0..table.columns().len()).filter(|at| !columns.contains(at)).collect();
        let reads_row = match &source {
            Source::Values(rows) => rows.iter().flatten().flatten().any(|expr| expr.slots() != 0),
            Source::Query(_) => false,
        };
        Ok(InsertPlan {
            target: TargetTable::new(table, slot, &binder),
            columns,
            rest,
            source,
            reads_row,
            on_duplicate,
            assigned,
            on_update,
            values_slot,
            replace: tree.replace,
            ignore: tree.ignore,
        })
    }

    /// For rows that the caller makes and hands to `add`, with values for `columns`.
    pub(crate) fn for_rows(
        target: TargetTable,
        columns: Vec<usize>,
        replace: bool,
        ignore: bool,
    ) -> InsertPlan {
        InsertPlan {
            rest: (0..target.table.columns().len()).filter(|at| !columns.contains(at)).collect(),
            columns,
            source: Source::Values(Vec::new()),
            reads_row: false,
            on_duplicate: Vec::new(),
            assigned: Vec::new(),
            on_update: Vec::new(),
            values_slot: 0,
            replace,
            ignore,
            target,
        }
    }

    /// For the rows of a query that is planned already.
    pub(crate) fn for_query(
        table: &Arc<Table>,
        names: &[ast::Ident],
        query: QueryPlan,
        duplicates: ast::OnDuplicate,
    ) -> SqlResult<InsertPlan> {
        let columns = insert_columns(table, names, false)?;
        let target = TargetTable {
            table: table.clone(),
            slot: 0,
            slots: query.slots.max(1),
            subqueries: query.subqueries,
        };
        let replace = duplicates == ast::OnDuplicate::Replace;
        let ignore = duplicates == ast::OnDuplicate::Ignore;
        let plan = InsertPlan::for_rows(target, columns, replace, ignore);
        Ok(InsertPlan { source: Source::Query(Box::new(query)), ..plan })
    }
}

fn bind_source(binder: &mut Binder<'_>, tree: &Insert, columns: &[usize], all: bool) -> SqlResult<Source> {
    let rows = match &tree.source {
        InsertSource::Values(rows) => rows,
        InsertSource::Query(query) => {
            let plan = select::bind::query(binder, query)?;
            if plan.columns.len() != columns.len() {
                return Err(SqlError::wrong_value_count_on_row(1));
            }
            return Ok(Source::Query(Box::new(plan)));
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
    Ok(Source::Values(out))
}

/// Makes the new row's columns known to ON DUPLICATE KEY UPDATE, as VALUES(column) and by an alias.
fn add_values_row(binder: &mut Binder<'_>, table: &Arc<Table>, tree: &Insert) -> SqlResult<u16> {
    if tree.on_duplicate.is_empty() {
        return Ok(0);
    }
    let values = binder.add_table(table, Some(VALUES_ALIAS));
    let slot = values.slot;
    let mut added = vec![values.clone()];
    if let Some(alias) = &tree.row_alias {
        if !alias.columns.is_empty() {
            return Err(SqlError::not_supported_yet("column aliases of an inserted row"));
        }
        let mut named = values;
        named.alias = Arc::from(alias.name.as_str());
        added.push(named);
    }
    if let Some(block) = binder.blocks.last_mut() {
        block.scope.tables.extend(added);
    }
    binder.set_clause(Clause::FieldList);
    Ok(slot)
}
