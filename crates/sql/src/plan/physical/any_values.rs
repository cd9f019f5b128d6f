//! Plans that are right for whatever values their parameters have: as quick as a plan that knows them, with the same warnings and errors.
//!
//! A text whose values were taken out runs by such plans only. Anywhere else something depends on a constant that no parameter has: the estimate of a
//! range, a date that was read from a number once, the number of an ENUM's label, an expression that an index is on.

use super::expressions::Clause;
use super::frame::FrameOperator;
use super::path::{Access, Bound, Part, TableAccess, Tail};
use super::query::QueryPlan;
use crate::catalog::{IndexKind, Table};
use crate::expr::{Expr, Kind};
use omnibus_value::ColumnKind;

/// Whether a plan is right for any values: it reads rows of one table by a complete unique key, or by a range of the primary key.
#[must_use]
pub fn fits_any_values(plan: &QueryPlan) -> bool {
    let Some(project) = plan.root.project() else { return false };
    let Some((table, path)) = project.input.only_table() else { return false };
    let has_windows = project.input.chain().any(|operator| matches!(operator, FrameOperator::Window(_)));
    let statement = &plan.statement;
    let is_plain = !statement.untyped_params && statement.subqueries == 0 && !has_windows;
    is_plain && !computes_with_params(plan) && path.fits_any_values(table)
}

/// Whether a parameter is in what a plan computes of its rows; conditions are its path's.
fn computes_with_params(plan: &QueryPlan) -> bool {
    let mut found = false;
    plan.root.expressions(&mut |clause, e| {
        let elsewhere = matches!(clause, Clause::Where | Clause::OrderBy | Clause::Inside);
        found |= !elsewhere && has_params(e);
    });
    found
}

impl TableAccess {
    /// Whether parameters are nothing but values of a unique key that finds one row, or of pieces of the primary key.
    #[must_use]
    pub fn fits_any_values(&self, table: &Table) -> bool {
        let by_key = match &self.access {
            Access::Point { index, key } => is_plain(table, *index) && key.iter().all(is_value),
            Access::Ranges(ranges) => {
                // Where another index would do, the range's estimate decides.
                self.possible.iter().all(|index| *index == ranges.index)
                    && is_plain(table, ranges.index)
                    && table.def.indexes[ranges.index].kind == IndexKind::Primary
                    && ranges
                        .intervals
                        .iter()
                        .all(|interval| interval.parts.iter().all(is_part) && is_tail(&interval.tail))
            }
            Access::Full { .. } | Access::Union(_) => false,
        };
        by_key && !self.filter.iter().any(has_params)
    }
}

/// Whether an index is on numbers and texts alone, which are compared with a number or a text as they are.
fn is_plain(table: &Table, index: usize) -> bool {
    use ColumnKind as K;
    table.def.indexes[index].parts.iter().all(|part| {
        let kind = table.def.columns[part.column].ty.kind;
        matches!(
            kind,
            K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt | K::Decimal | K::Char | K::VarChar
        )
    })
}

fn is_part(part: &Part) -> bool {
    match part {
        Part::One(equal) => is_value(&equal.expr),
        Part::Any(members) => members.iter().all(is_value),
        Part::Among(_) => false,
    }
}

fn is_tail(tail: &Tail) -> bool {
    let is_bound = |bound: &Option<Bound>| bound.as_ref().is_none_or(|bound| is_value(&bound.expr));
    match tail {
        Tail::Whole => true,
        Tail::Between { low, high } => is_bound(low) && is_bound(high),
        Tail::Begins { .. } => false,
    }
}

/// Whether an expression is a constant, or a parameter that is compared as it is.
pub fn is_value(e: &Expr) -> bool {
    match &e.kind {
        Kind::Const(_) | Kind::Param(_) => true,
        Kind::Transcode(inner) => matches!(inner.kind, Kind::Param(_)),
        _ => false,
    }
}

/// Whether an expression depends on a parameter.
pub fn has_params(e: &Expr) -> bool {
    let mut found = false;
    e.walk(&mut |e| found |= matches!(e.kind, Kind::Param(_) | Kind::Subquery(_)));
    found
}
