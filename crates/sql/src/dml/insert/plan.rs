//! INSERT and REPLACE, compiled: from a statement's tree, from a query that is planned already, or for rows that the
//! caller makes.

use super::source::{self, Beside, RowSource};
use crate::api::{Columns, Priv};
use crate::bind::Binder;
use crate::catalog::Table;
use crate::dml::access::hinted_indexes;
use crate::dml::change::on_update_columns;
use crate::dml::plan::{Assignment, Planner, TargetTable, bind_assignments, insert_columns};
use crate::dml::view::{InsertInto, Opened};
use crate::dml::{Names, Returning, RowExpressions, ViewCheck};
use crate::error::{SqlError, SqlResult};
use crate::exec::TableChange;
use crate::plan::QueryPlan;
use crate::plan::physical::any_values::{has_params, is_value};
use omnibus_parser::ast::{self, Insert};
use std::sync::Arc;

/// INSERT or REPLACE, compiled.
pub(crate) struct InsertPlan {
    pub target: TargetTable,
    pub(super) columns: Vec<usize>,
    /// Columns not named, which get their defaults.
    pub(super) rest: Vec<usize>,
    pub(super) source: RowSource,
    /// Whether an expression reads the row being made.
    pub(super) reads_row: bool,
    pub(super) on_duplicate: Vec<Assignment>,
    pub(super) assigned: Vec<usize>,
    pub(super) on_update: Vec<usize>,
    /// The slot of VALUES(column).
    pub(super) values_slot: u16,
    /// Tables of the SELECT that `on_duplicate` reads.
    pub(super) beside: Vec<Beside>,
    pub(super) replace: bool,
    pub(super) ignore: bool,
    pub(super) expressions: Option<RowExpressions>,
    /// A generated column that the statement gives values.
    pub(super) generated: Option<usize>,
    /// The view that the rows go through.
    pub(super) view: Option<String>,
    pub(super) check: Option<ViewCheck>,
    /// Whether LAST_INSERT_ID() may tell the row's number: a view without its column does not.
    pub(super) tells_number: bool,
    pub(crate) returning: Option<Returning>,
}

/// Warns of hints that do not act: those about tables are the SELECT's if there is one, and the table that rows go into is not searched.
fn warn_of_hints(binder: &mut Binder<'_>, names: &Names, tree: &Insert) {
    let from_query = matches!(tree.source, ast::InsertSource::Query(_));
    let own: Vec<_> = tree.hints.iter().filter(|hint| !from_query || !hint.is_of_tables()).cloned().collect();
    hinted_indexes(binder, names, &[], &own);
}

/// Whether parameters are nothing but values of its rows ([`crate::dml::WritePlan::fits_any_values`]).
pub(crate) fn fits_any_values(plan: &InsertPlan) -> bool {
    let RowSource::Values(rows) = &plan.source else { return false };
    let changed = plan.on_duplicate.iter().filter_map(|assignment| assignment.value.as_ref());
    rows.iter().flatten().flatten().chain(changed).all(|e| is_value(e) || !has_params(e))
}

impl InsertPlan {
    /// For EXPLAIN.
    pub(crate) fn change(&self) -> TableChange<'_> {
        let query = match &self.source {
            RowSource::Query(query) => Some(&**query),
            RowSource::Values(_) => None,
        };
        let kind = if self.replace { "REPLACE" } else { "INSERT" };
        let exprs = self.on_duplicate.iter().filter_map(|assignment| assignment.value.as_ref()).collect();
        TableChange { kind, table: &self.target.table, rows: None, exprs, query }
    }

    /// Compiles.
    pub(crate) fn build(planner: &Planner<'_>, tree: &Insert) -> SqlResult<InsertPlan> {
        let Insert {
            replace,
            // Read where the statement begins, and by `warn_of_hints`.
            hints: _,
            // Without effect.
            priority: _,
            ignore,
            table: name,
            partitions,
            columns: listed,
            // Read by `source`.
            source: _,
            row_alias: _,
            on_duplicate: assignments,
            returning,
        } = tree;
        if !partitions.is_empty() {
            return Err(SqlError::partition_clause());
        }
        let mut needs = vec![Priv::Insert];
        needs.extend(replace.then_some(Priv::Delete));
        needs.extend((!assignments.is_empty()).then_some(Priv::Update));
        let all = listed.is_empty();
        let InsertInto { opened, columns, view } = planner.open_insert(name, listed, all, &needs)?;
        let Opened { mut binder, slot, names, .. } = opened;
        let table = names.table.clone();
        warn_of_hints(&mut binder, &names, tree);
        let mut source = source::bind(&mut binder, tree, &columns, all)?;
        let generated = generated_one(&table, &columns, &source);
        let select = source::select_scope(&mut binder, &source, tree);
        let returning = Returning::bind(&mut binder, returning)?;
        let values_slot = source::add_names(&mut binder, &names, tree, &columns, &select)?;
        let on_duplicate = bind_assignments(&mut binder, &names, assignments)?;
        let beside = source::read_beside(&mut source, &select, &on_duplicate);
        let assigned: Vec<usize> = on_duplicate.iter().map(|assignment| assignment.column).collect();
        let on_update = on_update_columns(&table, &assigned);
        let rest = (0..table.columns().len()).filter(|at| !columns.contains(at)).collect();
        let reads_row = match &source {
            RowSource::Values(rows) => rows.iter().flatten().flatten().any(|expr| !expr.slots().is_empty()),
            RowSource::Query(_) => false,
        };
        let target = TargetTable::new(table.clone(), slot, &binder);
        Ok(InsertPlan {
            expressions: planner.row_expressions(&table)?,
            generated,
            check: ViewCheck::of(&names, &target, &binder),
            tells_number: table.auto_column.is_none_or(|column| names.shows(column)),
            view,
            target,
            columns,
            rest,
            source,
            reads_row,
            on_duplicate,
            assigned,
            on_update,
            values_slot,
            beside,
            replace: *replace,
            ignore: *ignore,
            returning,
        })
    }

    /// For rows that the caller makes and hands to `add`, with values for `columns`.
    pub(crate) fn for_rows(
        target: TargetTable,
        columns: Vec<usize>,
        replace: bool,
        ignore: bool,
        expressions: Option<RowExpressions>,
    ) -> InsertPlan {
        InsertPlan {
            expressions,
            generated: None,
            view: None,
            check: None,
            tells_number: true,
            rest: (0..target.table.columns().len()).filter(|at| !columns.contains(at)).collect(),
            columns,
            source: RowSource::Values(Vec::new()),
            reads_row: false,
            on_duplicate: Vec::new(),
            assigned: Vec::new(),
            on_update: Vec::new(),
            values_slot: 0,
            beside: Vec::new(),
            replace,
            ignore,
            target,
            returning: None,
        }
    }

    /// For the rows of a query that is planned already.
    pub(crate) fn for_query(
        table: &Arc<Table>,
        names: &[ast::Ident],
        query: QueryPlan,
        duplicates: ast::OnDuplicate,
        expressions: Option<RowExpressions>,
    ) -> SqlResult<InsertPlan> {
        let columns = insert_columns(table, names, false, &Columns::All)?;
        let target = TargetTable {
            table: table.clone(),
            slot: 0,
            slots: query.statement.slots.max(1),
            subqueries: query.statement.subqueries,
        };
        let replace = duplicates == ast::OnDuplicate::Replace;
        let ignore = duplicates == ast::OnDuplicate::Ignore;
        let plan = InsertPlan::for_rows(target, columns, replace, ignore, expressions);
        let source = RowSource::Query(Box::new(query));
        let generated = generated_one(table, &plan.columns, &source);
        Ok(InsertPlan { source, generated, ..plan })
    }
}

/// The first generated column that gets a value other than DEFAULT.
fn generated_one(table: &Table, columns: &[usize], source: &RowSource) -> Option<usize> {
    let given = |nth: usize| match source {
        RowSource::Values(rows) => rows.iter().any(|row| row.get(nth).is_some_and(Option::is_some)),
        RowSource::Query(_) => true,
    };
    let generated = |(_, at): &(usize, &usize)| table.columns()[**at].generated.is_some();
    columns.iter().enumerate().filter(generated).find(|(nth, _)| given(*nth)).map(|(_, at)| *at)
}
