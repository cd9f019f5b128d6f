//! INSERT, REPLACE, UPDATE and DELETE: plans made from trees, and their execution.
//!
//! A plan owns everything it needs (compiled expressions, the table, its access path), so a
//! prepared statement keeps it as long as the catalog stays the same.

mod access;
pub(crate) mod cast;
pub(crate) mod defaults;
mod delete;
mod insert;
mod multi;
mod plan;
mod rows;
mod update;

pub(crate) use delete::DeletePlan;
pub(crate) use insert::InsertPlan;
use multi::MultiPlan;
pub(crate) use plan::Planner;
pub(crate) use update::UpdatePlan;

use crate::error::{ExecResult, SqlError, SqlResult};
use crate::session::SessionState;
use crate::store::Trx;
use omnibus_parser::ast::Statement;
use omnibus_value::Value;

/// What a running statement works with.
pub(crate) struct Run<'a> {
    pub trx: &'a mut Trx,
    pub state: &'a mut SessionState,
    pub params: &'a [Value],
}

/// What a statement did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effect {
    /// Rows changed, or found under CLIENT_FOUND_ROWS.
    pub affected: u64,
    /// For the OK packet.
    pub last_insert_id: u64,
    /// For the OK packet.
    pub info: String,
}

/// A data-changing statement, compiled.
pub(crate) enum WritePlan {
    Insert(Box<InsertPlan>),
    Update(Box<UpdatePlan>),
    Delete(Box<DeletePlan>),
    Multi(Box<MultiPlan>),
}

impl WritePlan {
    /// Compiles INSERT, REPLACE, UPDATE or DELETE.
    pub(crate) fn build(planner: &Planner<'_>, statement: &Statement) -> SqlResult<WritePlan> {
        Ok(match statement {
            Statement::Insert(tree) => WritePlan::Insert(Box::new(InsertPlan::build(planner, tree)?)),
            Statement::Update(tree) if !tree.is_single() => {
                WritePlan::Multi(Box::new(MultiPlan::update(planner, tree)?))
            }
            Statement::Delete(tree) if !tree.is_single() => {
                WritePlan::Multi(Box::new(MultiPlan::delete(planner, tree)?))
            }
            Statement::Update(tree) => WritePlan::Update(Box::new(UpdatePlan::build(planner, tree)?)),
            Statement::Delete(tree) => WritePlan::Delete(Box::new(DeletePlan::build(planner, tree)?)),
            other => return Err(SqlError::not_supported_yet(other.kind())),
        })
    }

    /// Runs it. The session undoes everything on an error.
    pub(crate) fn run(&self, run: &mut Run<'_>) -> ExecResult<Effect> {
        match self {
            WritePlan::Insert(plan) => plan.run(run),
            WritePlan::Update(plan) => plan.run(run),
            WritePlan::Delete(plan) => plan.run(run),
            WritePlan::Multi(plan) => plan.run(run),
        }
    }
}
