//! A compiled query: everything that needs no value of a parameter and no row is decided.
//!
//! Plain data, `Send + Sync`, reused by every execution until the catalog changes. Made by
//! `plan::query` of what `bind` has bound, run by `exec`.

use super::results::ResultOperator;
use crate::api::ResultColumn;
use crate::catalog::{Table, View};
use crate::error::SqlError;
use crate::expr::{Expr, ExprType};
use crate::logical::Limit;
use crate::storage::LockMode;
use omnibus_parser::ast::AssignTarget;
use omnibus_value::Value;
use std::sync::Arc;

/// A query and what it yields.
#[derive(Debug)]
pub struct QueryPlan {
    /// The operator that gives its results, with all others below it.
    pub root: ResultOperator,
    /// Result columns.
    pub columns: Arc<[ResultColumn]>,
    /// Their types as expressions.
    pub types: Vec<ExprType>,
    /// The statement around it (on the outermost plan).
    pub statement: OfStatement,
    /// Whether two runs with the same outer rows may differ.
    pub volatile: bool,
    /// SELECT ... INTO @a, @b.
    pub into: Vec<AssignTarget>,
    /// SELECT ... INTO OUTFILE or DUMPFILE.
    pub(crate) outfile: Option<Box<crate::text_file::Outfile>>,
    /// SQL_CALC_FOUND_ROWS: the outermost LIMIT, applied while the rows behind it are counted.
    pub late_limit: Option<Limit>,
    /// How rows are locked.
    pub locks: LockMode,
    /// Rows expected.
    pub rows: f64,
}

/// All that a statement's queries read and need together.
#[derive(Debug, Default)]
pub struct OfStatement {
    /// Slots of the frame.
    pub slots: usize,
    /// Subqueries and kept tables.
    pub subqueries: usize,
    /// Stored tables that are read.
    pub tables: Vec<Arc<Table>>,
    /// Views that are read.
    pub views: Vec<Arc<View>>,
    /// Warnings of names.
    pub warnings: Vec<SqlError>,
    /// Whether a result type depends on a parameter's type: bind again with the values.
    pub untyped_params: bool,
    /// The memory of the columns that `*` stood for.
    pub stars: Option<crate::memory::Account>,
}

impl QueryPlan {
    /// Whether a stored table of its FROM is read without a key.
    #[must_use]
    pub fn reads_all_of_a_table(&self) -> bool {
        self.root.project().is_some_and(|project| project.input.reads_all_of_a_table())
    }

    /// How many combinations of rows its tables make, as EXPLAIN counts them: what `max_join_size` bounds. Of a set operation, those of all
    /// operands. `most`: results that are asked for; where they are given as they are read, no more are.
    #[must_use]
    pub fn examines(&self, most: u64) -> f64 {
        match (self.root.project(), &self.root) {
            (Some(project), _) if project.input.counts_a_table() => 1.0,
            (Some(project), root) => {
                let gathers = root.sorts() || root.distinct().is_some() || project.input.gathers();
                let all = project.input.combinations();
                if gathers { all } else { all.min(self.asked_for().unwrap_or(most) as f64) }
            }
            // Nobody knows how many steps there are.
            (None, ResultOperator::Recursion(_)) => 1.0,
            (None, root) => {
                let all = root.operands().iter().map(|plan| plan.examines(u64::MAX)).sum();
                let gathers = root.sorts() || !root.appends();
                if gathers { all } else { f64::min(all, self.asked_for().unwrap_or(most) as f64) }
            }
        }
    }

    /// The rows that a constant LIMIT asks for, those that it leaves out among them.
    fn asked_for(&self) -> Option<u64> {
        let number = |e: &Expr| match e.as_const() {
            Some(Value::Int(n)) => u64::try_from(*n).ok(),
            _ => None,
        };
        let limit = self.root.limit()?;
        let left_out = limit.offset.as_ref().map_or(Some(0), number)?;
        Some(number(limit.count.as_ref()?)?.saturating_add(left_out))
    }
}
