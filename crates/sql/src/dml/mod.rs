//! INSERT, REPLACE, UPDATE and DELETE: plans made from trees, and their execution.
//!
//! A plan owns everything it needs (compiled expressions, the table, its access path), so a
//! prepared statement keeps it as long as the catalog stays the same.

mod access;
mod change;
mod chosen;
pub(crate) mod defaults;
mod delete;
mod insert;
mod multi;
mod plan;
mod read_targets;
mod returning;
mod row_expressions;
mod rows;
pub(crate) mod safety;
mod triggers;
mod update;
mod view;

use delete::DeletePlan;
pub(crate) use insert::{Counts, InsertPlan};
use multi::MultiPlan;
pub(crate) use plan::{Assignment, Planner, TargetTable, bind_assignments, generated_given};
pub(crate) use returning::Returning;
pub(crate) use row_expressions::{ExpressionOf, NewRow, RowExpressions};
pub(crate) use rows::cast_into;
pub(crate) use update::UpdatePlan;
pub(crate) use view::Names;
use view::ViewCheck;

pub(crate) use crate::expr::into_column as cast;

use crate::api::Info;
use crate::bind::uses::Uses;
use crate::catalog::Table;
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::exec::{Subject, TableChange};
use crate::plan::physical::any_values::{has_params, is_value};
use crate::rows::collected::Rows;
use crate::state::SessionState;
use crate::store::Trx;
use omnibus_parser::ast::Statement;
use omnibus_value::Value;
use std::sync::Arc;

/// The state that a running statement works with.
pub(crate) struct Run<'a> {
    pub trx: &'a mut Trx,
    pub state: &'a mut SessionState,
    pub params: &'a [Value],
}

/// The counts of what a statement did.
#[derive(Default)]
pub(crate) struct Effect {
    /// Rows changed, or found under CLIENT_FOUND_ROWS.
    pub affected: u64,
    /// For the OK packet.
    pub last_insert_id: u64,
    /// For the OK packet.
    pub info: Info,
    /// The rows of RETURNING.
    pub rows: Option<Rows>,
}

/// A data-changing statement, compiled.
pub(crate) struct WritePlan {
    kind: WriteKind,
    /// The uses that a log of statements must say beside the text.
    pub uses: Uses,
    /// Why it is not safe to log the text ([`safety::reasons`]); 0 if it is.
    pub unsafe_bits: u32,
}

/// The kinds.
enum WriteKind {
    Insert(Box<InsertPlan>),
    Update(Box<UpdatePlan>),
    Delete(Box<DeletePlan>),
    Multi(Box<MultiPlan>),
}

impl WritePlan {
    /// Compiles INSERT, REPLACE, UPDATE or DELETE.
    pub(crate) fn build(planner: &Planner<'_>, statement: &Statement) -> SqlResult<WritePlan> {
        let kind = match statement {
            Statement::Insert(tree) => WriteKind::Insert(Box::new(InsertPlan::build(planner, tree)?)),
            Statement::Update(tree) if !tree.is_single() => {
                WriteKind::Multi(Box::new(MultiPlan::update(planner, tree)?))
            }
            Statement::Delete(tree) if !tree.is_single() => {
                WriteKind::Multi(Box::new(MultiPlan::delete(planner, tree)?))
            }
            Statement::Update(tree) => match UpdatePlan::build(planner, tree)? {
                Some(plan) => WriteKind::Update(Box::new(plan)),
                None => WriteKind::Multi(Box::new(MultiPlan::update(planner, tree)?)),
            },
            Statement::Delete(tree) => WriteKind::Delete(Box::new(DeletePlan::build(planner, tree)?)),
            other => return Err(SqlError::not_supported_yet(other.kind())),
        };
        let uses = planner.uses.take();
        read_targets::check(planner, statement, &kind, &uses.subquery_reads)?;
        let target = match &kind {
            WriteKind::Insert(plan) => Some(&*plan.target.table),
            WriteKind::Update(plan) => Some(&*plan.target.table),
            WriteKind::Delete(plan) => Some(&*plan.target.table),
            WriteKind::Multi(_) => None,
        };
        let unsafe_bits = safety::unsafe_bits(statement, target, &uses);
        Ok(WritePlan { kind, uses, unsafe_bits })
    }

    /// Whether it is right for whatever values its parameters have (`plan::physical::any_values`).
    pub(crate) fn fits_any_values(&self) -> bool {
        let fits = |change: TableChange<'_>| {
            let read = change.rows.and_then(|(rows, _)| rows.only_table());
            let by_key = read.is_some_and(|(table, path)| path.fits_any_values(table));
            by_key && change.exprs.iter().all(|e| is_value(e) || !has_params(e))
        };
        match &self.kind {
            WriteKind::Insert(plan) => insert::fits_any_values(plan),
            WriteKind::Update(plan) => fits(plan.change()),
            WriteKind::Delete(plan) => fits(plan.change()),
            WriteKind::Multi(_) => false,
        }
    }

    /// For a plan whose rows are logged, if any are.
    pub(crate) fn of_insert(plan: InsertPlan) -> WritePlan {
        WritePlan { kind: WriteKind::Insert(Box::new(plan)), uses: Uses::default(), unsafe_bits: 0 }
    }

    /// Whether only temporary tables change.
    pub(crate) fn only_temporary(&self) -> bool {
        match &self.kind {
            WriteKind::Insert(plan) => plan.target.table.temporary,
            WriteKind::Update(plan) => plan.target.table.temporary,
            WriteKind::Delete(plan) => plan.target.table.temporary,
            WriteKind::Multi(plan) => plan.only_temporary(),
        }
    }

    /// RETURNING.
    pub(crate) fn returning(&self) -> Option<&Returning> {
        match &self.kind {
            WriteKind::Insert(plan) => plan.returning.as_ref(),
            WriteKind::Delete(plan) => plan.returning.as_ref(),
            WriteKind::Update(_) | WriteKind::Multi(_) => None,
        }
    }

    /// The tables that it may change.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &Arc<Table>> {
        let (one, many) = match &self.kind {
            WriteKind::Insert(plan) => (Some(&plan.target.table), None),
            WriteKind::Update(plan) => (Some(&plan.target.table), None),
            WriteKind::Delete(plan) => (Some(&plan.target.table), None),
            WriteKind::Multi(plan) => (None, Some(plan)),
        };
        one.into_iter().chain(many.into_iter().flat_map(|plan| plan.targets()))
    }

    /// The tables that a multi-table UPDATE changes, as a bitmap of their places in its text; `None` for others.
    pub(crate) fn updated_tables(&self) -> Option<u64> {
        match &self.kind {
            WriteKind::Multi(plan) => plan.updated_tables(),
            _ => None,
        }
    }

    /// The part of it that EXPLAIN shows: how its rows are found.
    pub(crate) fn subject(&self) -> Subject<'_> {
        match &self.kind {
            WriteKind::Insert(plan) => Subject::Change(plan.change()),
            WriteKind::Update(plan) => Subject::Change(plan.change()),
            WriteKind::Delete(plan) => Subject::Change(plan.change()),
            WriteKind::Multi(plan) => plan.subject(),
        }
    }

    /// Runs it. The session undoes everything on an error.
    pub(crate) fn run(&self, run: &mut Run<'_>) -> ExecResult<Effect> {
        match &self.kind {
            WriteKind::Insert(plan) => plan.run(run),
            WriteKind::Update(plan) => plan.run(run),
            WriteKind::Delete(plan) => plan.run(run),
            WriteKind::Multi(plan) => plan.run(run),
        }
    }
}
