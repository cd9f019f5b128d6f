//! Subqueries in expressions: scalar, EXISTS, IN, ANY and ALL.

use super::binder::{Binder, OuterReads};
use super::compare::comparison;
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

impl Binder<'_> {
    fn subquery(&mut self, query: &ast::Query, kind: SubqueryKind, operands: Vec<Expr>) -> SqlResult<Expr> {
        let exists = kind == SubqueryKind::Exists;
        let around = std::mem::replace(&mut self.exists, exists.then(|| Sought::at(self.blocks.len() + 1)));
        let bound = bind_subquery(self, query);
        let sought = std::mem::replace(&mut self.exists, around);
        let (query, outer) = bound?;
        if !exists && query.types.len() != operands.len() {
            return Err(SqlError::operand_columns(operands.len()));
        }
        let is_block = matches!(query.body, Body::Block(_));
        let plan = planned(self, query, if exists { Reader::Exists } else { Reader::Query })?;
        let slot = self.new_slot();
        let (mut sides, mut members) =
            (Vec::with_capacity(operands.len()), Vec::with_capacity(operands.len()));
        for (at, (operand, ty)) in operands.into_iter().zip(&plan.types).enumerate() {
            let column = Expr { kind: Kind::Column { slot, column: at as u16, utc: false }, ty: ty.clone() };
            let (operand, compared, collation) = self.comparable(operand, column)?;
            sides.push(operand);
            members.push(Member { compared, collation });
        }
        let ty = ExprType::boolean().nullable(!exists);
        let mut e = self.subquery_of(&Arc::new(plan), outer, kind, ty);
        if let Kind::Subquery(subquery) = &mut e.kind {
            (subquery.operands, subquery.members, subquery.slot) = (sides, members, slot);
            if is_block && let Some(found) = sought.and_then(|sought| sought.found) {
                subquery.set = self.row_set(found, subquery)?;
            }
        }
        Ok(e)
    }

    pub(super) fn subquery_of(
        &mut self,
        plan: &Arc<QueryPlan>,
        outer: OuterReads,
        kind: SubqueryKind,
        ty: ExprType,
    ) -> Expr {
        let id = self.subqueries;
        self.subqueries += 1;
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
    pub(super) fn scalar_subquery(&mut self, query: &ast::Query) -> SqlResult<Expr> {
        let (plan, outer) = subquery(self, query)?;
        let plan = Arc::new(plan);
        let mut members = Vec::with_capacity(plan.types.len());
        for (column, ty) in plan.types.iter().enumerate() {
            let (kind, ty) = (SubqueryKind::Scalar { column }, ty.clone().nullable(true));
            members.push(self.subquery_of(&plan, outer.clone(), kind, ty));
        }
        Ok(match members.len() {
            1 => members.remove(0),
            _ => Expr { kind: Kind::Row(members.into()), ty: ExprType::null() },
        })
    }

    pub(super) fn exists(&mut self, query: &ast::Query) -> SqlResult<Expr> {
        self.subquery(query, SubqueryKind::Exists, Vec::new())
    }

    fn row_members(&mut self, operand: &ast::Expr) -> SqlResult<Vec<Expr>> {
        let e = self.expr_or_row(operand)?;
        Ok(match e.kind {
            Kind::Row(members) => members.into_vec(),
            _ => vec![e],
        })
    }

    pub(super) fn in_subquery(
        &mut self,
        operand: &ast::Expr,
        query: &ast::Query,
        negated: bool,
    ) -> SqlResult<Expr> {
        let operands = self.row_members(operand)?;
        self.subquery(query, SubqueryKind::In { negated }, operands)
    }

    pub(super) fn quantified(
        &mut self,
        op: BinaryOp,
        quantifier: Quantifier,
        left: &ast::Expr,
        query: &ast::Query,
    ) -> SqlResult<Expr> {
        let operands = self.row_members(left)?;
        let kind = match (comparison(op), quantifier) {
            (CompareOp::Eq, Quantifier::Any) => SubqueryKind::In { negated: false },
            (CompareOp::Ne, Quantifier::All) => SubqueryKind::In { negated: true },
            _ if operands.len() > 1 => return Err(SqlError::operand_columns(1)),
            (op, quantifier) => SubqueryKind::Quantified { op, all: quantifier == Quantifier::All },
        };
        self.subquery(query, kind, operands)
    }
}
