//! How UPDATE and DELETE of one table find their rows, locked exclusively: along the path that SELECT would choose.

use super::chosen::{ChosenRows, Finding};
use super::plan::{Planner, TargetTable};
use super::{Names, Run};
use crate::bind::{Binder, ComputedColumns};
use crate::error::{ExecResult, SqlResult};
use crate::exec::{RowReader, TableChange};
use crate::expr::SlotSet;
use crate::expr::context::{Context, Frame, Row, Slot};
use crate::expr::node::{Expr, Kind};
use crate::logical::conjuncts::conjuncts;
use crate::logical::hints::{HintPlace, OneTable, check_hints, name_indexes};
use crate::logical::nest::column_of;
use crate::plan::access::{Wanted, choose};
use crate::plan::cost::Known;
use crate::plan::order::delivers;
use crate::plan::physical::{Access, FrameOperator, Scan, Source};
use crate::storage::{LockMode, WaitPolicy};
use crate::store::RowAt;
use omnibus_parser::ast::{Hint, IndexHint};
use omnibus_value::Value;

/// How the rows of a WHERE clause are found.
#[derive(Debug)]
pub(crate) struct Finder {
    /// The scan of the table.
    rows: FrameOperator,
    /// The sort keys, unless the path has rows in that order.
    pub order: Vec<(Expr, bool)>,
    /// IGNORE: bad data in the condition is worth a warning in strict mode too.
    ignore: bool,
}

/// Conditions on a table that is changed, in terms of its indexed generated columns.
pub(crate) fn by_computed_columns(
    planner: &Planner<'_>,
    target: &TargetTable,
    mut conditions: Vec<Expr>,
) -> SqlResult<Vec<Expr>> {
    let computed = ComputedColumns::of(&target.table, target.slot, false, planner.session, planner.catalog)?;
    if let Some(computed) = computed {
        conditions.iter_mut().for_each(|e| computed.use_in(e));
    }
    Ok(conditions)
}

/// The index hints of the table that a statement changes: those behind its name, or what optimizer hints have in their place.
pub(crate) fn hinted_indexes(
    binder: &mut Binder<'_>,
    names: &Names,
    behind_name: &[IndexHint],
    hints: &[Hint],
) -> Vec<IndexHint> {
    let mut one = OneTable { alias: &names.alias, table: &names.table, hints: behind_name.to_vec() };
    for warning in name_indexes(&mut one, hints, HintPlace::Change) {
        binder.warn(warning);
    }
    one.hints
}

impl Finder {
    /// Chooses.
    pub(crate) fn new(
        target: &TargetTable,
        conditions: Vec<Expr>,
        mut order: Vec<(Expr, bool)>,
        ignore: bool,
        known: Known<'_>,
        hints: &[IndexHint],
    ) -> SqlResult<Finder> {
        check_hints(&target.table, &target.table.def.name, hints)?;
        let mut terms = Vec::new();
        for condition in conditions {
            conjuncts(condition, &mut terms);
        }
        let missing = SlotSet::of(target.slot);
        let wanted = Wanted {
            table: &target.table,
            slot: target.slot,
            missing: &missing,
            hints,
            locks: true,
            needed: None,
            known,
        };
        let mut path = choose(&wanted, terms);
        let keys: Option<Vec<(usize, bool)>> =
            order.iter().map(|(e, descending)| Some((column_of(e, target.slot)?, *descending))).collect();
        if keys.is_some_and(|keys| !keys.is_empty() && delivers(&mut path, &target.table, &keys)) {
            order.clear();
        }
        let (lock, wait) = (LockMode::Exclusive, WaitPolicy::Wait);
        let source = Source::Table { table: target.table.clone(), path, lock, wait };
        let scan = Scan { slot: target.slot, alias: target.table.def.name.clone(), source };
        Ok(Finder { rows: FrameOperator::Scan(Box::new(scan)), order, ignore })
    }

    /// For EXPLAIN; `exprs` are evaluated beside the search.
    pub(crate) fn change<'p>(
        &'p self,
        kind: &'static str,
        target: &'p TargetTable,
        exprs: Vec<&'p Expr>,
    ) -> TableChange<'p> {
        let rows = Some((&self.rows, !self.order.is_empty()));
        TableChange { kind, table: &target.table, rows, exprs, query: None }
    }

    /// Whether no key bounds what is read.
    pub(crate) fn reads_all(&self) -> bool {
        self.rows.only_table().is_some_and(|(_, path)| matches!(path.access, Access::Full { .. }))
    }

    /// An execution that looks for rows of the target.
    pub(crate) fn exec<'r>(&self, target: &TargetTable, run: &'r mut Run<'_>) -> Context<'r> {
        let strict = run.state.settings.strict_search() && !self.ignore;
        let mut exec = target.exec(run, Row::Unset);
        exec.strict = strict;
        exec
    }
}

/// A value that no row is needed for; `strict` as in [`Context`].
pub(crate) fn evaluate(expr: &Expr, run: &mut Run<'_>, strict: bool) -> ExecResult<Value> {
    match &expr.kind {
        Kind::Const(value) => Ok(value.clone()),
        Kind::Param(at) => Ok(run.params.get(*at).cloned().unwrap_or_default()),
        _ => {
            let mut exec = Context::new(run.state, run.trx, run.params);
            exec.strict = strict;
            expr.eval(&mut exec)
        }
    }
}

impl TargetTable {
    /// An execution whose frame has the target's row in its slot.
    pub(crate) fn exec<'r>(&self, run: &'r mut Run<'_>, row: Row) -> Context<'r> {
        let mut exec = Context::new(run.state, run.trx, run.params);
        if self.subqueries > 0 {
            exec.reserve(self.slots, self.subqueries);
        }
        exec.frame = self.frame(row);
        exec
    }

    /// A frame with the target's row in its slot.
    pub(crate) fn frame(&self, row: Row) -> Frame {
        let mut frame = Frame::from_elem(Slot::default(), self.slots.max(1));
        frame[usize::from(self.slot)] = Slot { table: Some(self.table.clone()), row };
        frame
    }

    /// The rows that a statement changes, locked, in the order they were found; `limit` of them at
    /// most.
    pub(crate) fn matching(&self, run: &mut Run<'_>, finder: &Finder, limit: u64) -> ExecResult<ChosenRows> {
        run.trx.start_write(&self.table)?;
        let Some((table, path)) = finder.rows.only_table().filter(|_| limit > 0) else {
            return Ok(ChosenRows::none());
        };
        let mut exec = finder.exec(self, run);
        // No more rows are locked than are changed.
        let bounded = usize::try_from(limit).ok().filter(|_| limit != u64::MAX);
        let read_limit = bounded.map(|limit| if path.filter.is_empty() { limit } else { 1 });
        let (lock, wait) = (LockMode::Exclusive, WaitPolicy::Wait);
        let mut reader = RowReader::with_keys(table, path, lock, wait, read_limit, &mut exec)?;
        let mut rows = Finding::new();
        while rows.count() < limit {
            let Some(row) = reader.next(self.slot, &mut exec)? else { break };
            rows.push(RowAt { key: reader.key(), row }, &mut exec)?;
        }
        Ok(rows.finish()?)
    }
}
