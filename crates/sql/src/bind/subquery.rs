//! Subqueries in expressions: scalar, EXISTS, IN, ANY and ALL.

use super::binder::Binder;
use super::block::OuterReads;
use super::compare;
use super::compare::comparison;
use super::exists;
use super::exists::Sought;
use super::query::{bind_subquery, planned, subquery};
use crate::error::{SqlError, SqlResult};
use crate::expr::node::{CompareOp, Expr, Kind};
use crate::expr::subquery::{Member, Subquery, SubqueryKind};
use crate::expr::types::ExprType;
use crate::logical::Body;
use crate::plan::{QueryPlan, Reader};
use omnibus_parser::ast::{self, BinaryOp, Quantifier};
use std::sync::Arc;

fn predicate(
    binder: &mut Binder<'_>,
    query: &ast::Query,
    kind: SubqueryKind,
    operands: Vec<Expr>,
) -> SqlResult<Expr> {
    let exists = kind == SubqueryKind::Exists;
    let around =
        std::mem::replace(&mut binder.around.exists, exists.then(|| Sought::at(binder.blocks.len() + 1)));
    let bound = bind_subquery(binder, query);
    let sought = std::mem::replace(&mut binder.around.exists, around);
    let (query, outer) = bound?;
    if !exists && query.types.len() != operands.len() {
        return Err(SqlError::operand_columns(operands.len()));
    }
    let is_block = matches!(query.body, Body::Block(_));
    let plan = planned(binder, query, if exists { Reader::Exists } else { Reader::Query })?;
    let slot = binder.new_slot();
    let (mut sides, mut members) = (Vec::with_capacity(operands.len()), Vec::with_capacity(operands.len()));
    for (at, (operand, ty)) in operands.into_iter().zip(&plan.types).enumerate() {
        let column = Expr { kind: Kind::Column { slot, column: at as u16, utc: false }, ty: ty.clone() };
        let (operand, column) = super::times_beside::params_as_times(binder, operand, column);
        let (operand, column) = super::times_beside::times_as_text(binder, operand, column);
        let (operand, compared, collation) = compare::comparable(binder, operand, column)?;
        sides.push(operand);
        members.push(Member { compared, collation });
    }
    let ty = ExprType::boolean().nullable(!exists);
    let mut e = subquery_of(binder, &Arc::new(plan), outer, kind, ty);
    if let Kind::Subquery(subquery) = &mut e.kind {
        (subquery.operands, subquery.members, subquery.slot) = (sides, members, slot);
        if is_block && let Some(found) = sought.and_then(|sought| sought.found) {
            subquery.set = exists::row_set(binder, found, subquery)?;
        }
    }
    Ok(e)
}

pub(super) fn subquery_of(
    binder: &mut Binder<'_>,
    plan: &Arc<QueryPlan>,
    outer: OuterReads,
    kind: SubqueryKind,
    ty: ExprType,
) -> Expr {
    let id = binder.collected.subqueries;
    binder.collected.subqueries += 1;
    let given = Subquery::deciding(&**plan, &kind, &outer.slots, &outer.columns);
    let subquery = Subquery {
        id,
        plan: plan.clone(),
        kind,
        operands: Vec::new(),
        members: Vec::new(),
        slot: 0,
        outer_slots: outer.slots,
        outer_columns: outer.columns,
        given,
        set: None,
    };
    Expr { kind: Kind::Subquery(Box::new(subquery)), ty }
}

/// A subquery as a value, or as a row of them if it has several columns.
pub(super) fn scalar_subquery(binder: &mut Binder<'_>, query: &ast::Query) -> SqlResult<Expr> {
    let (plan, outer) = subquery(binder, query)?;
    let plan = Arc::new(plan);
    let mut members = Vec::with_capacity(plan.types.len());
    for (column, ty) in plan.types.iter().enumerate() {
        let (kind, ty) = (SubqueryKind::Scalar { column }, ty.clone().nullable(true));
        members.push(subquery_of(binder, &plan, outer.clone(), kind, ty));
    }
    Ok(match members.len() {
        1 => members.remove(0),
        _ => Expr { kind: Kind::Row(members.into()), ty: ExprType::null() },
    })
}

pub(super) fn exists(binder: &mut Binder<'_>, query: &ast::Query) -> SqlResult<Expr> {
    predicate(binder, query, SubqueryKind::Exists, Vec::new())
}

fn row_members(binder: &mut Binder<'_>, operand: &ast::Expr) -> SqlResult<Vec<Expr>> {
    let e = binder.expr_or_row(operand)?;
    Ok(match e.kind {
        Kind::Row(members) => members.into_vec(),
        _ => vec![e],
    })
}

pub(super) fn in_subquery(
    binder: &mut Binder<'_>,
    operand: &ast::Expr,
    query: &ast::Query,
    negated: bool,
) -> SqlResult<Expr> {
    let operands = row_members(binder, operand)?;
    predicate(binder, query, SubqueryKind::In { negated }, operands)
}

pub(super) fn quantified(
    binder: &mut Binder<'_>,
    op: BinaryOp,
    quantifier: Quantifier,
    left: &ast::Expr,
    query: &ast::Query,
) -> SqlResult<Expr> {
    let operands = row_members(binder, left)?;
    let kind = match (comparison(op), quantifier) {
        (CompareOp::Eq, Quantifier::Any) => SubqueryKind::In { negated: false },
        (CompareOp::Ne, Quantifier::All) => SubqueryKind::In { negated: true },
        _ if operands.len() > 1 => return Err(SqlError::operand_columns(1)),
        (op, quantifier) => SubqueryKind::Quantified { op, all: quantifier == Quantifier::All },
    };
    predicate(binder, query, kind, operands)
}
