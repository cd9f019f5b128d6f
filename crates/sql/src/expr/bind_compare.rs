//! Binding of comparisons, BETWEEN and IN: which collation decides, and what is converted so that both sides compare.

use super::bind::Binder;
use super::bind_ops::{as_text, number_literal};
use super::charset;
use super::node::{CompareOp, Expr, Kind};
use super::types::{BINARY, ExprType, Family, merge_collations};
use crate::error::{SqlError, SqlResult};
use omnibus_parser::ast::{self, BinaryOp};
use omnibus_value::{ColumnKind, Value};

impl Binder<'_> {
    /// A comparison, with both sides made comparable; rows are taken apart.
    pub(crate) fn compare(&mut self, op: CompareOp, left: Expr, right: Expr) -> SqlResult<Expr> {
        match (&left.kind, &right.kind) {
            (Kind::Row(_), _) | (_, Kind::Row(_)) => return self.compare_rows(op, left, right),
            _ => {}
        }
        if matches!(op, CompareOp::Eq | CompareOp::Ne | CompareOp::NullSafeEq) {
            if let Some(number) = label_number(&left, &right) {
                return Ok(Expr::compare(op, BINARY, left, number));
            }
            if let Some(number) = label_number(&right, &left) {
                return Ok(Expr::compare(op, BINARY, number, right));
            }
        }
        let (left, right, collation) = self.comparable(left, right)?;
        let compared = Expr::compare(op, collation, left, right);
        Ok(self.fold(compared))
    }

    fn compare_rows(&mut self, op: CompareOp, left: Expr, right: Expr) -> SqlResult<Expr> {
        let width = match &left.kind {
            Kind::Row(members) => members.len(),
            _ => 1,
        };
        let (Kind::Row(a), Kind::Row(b)) = (left.kind, right.kind) else {
            return Err(SqlError::operand_columns(width));
        };
        if a.len() != b.len() {
            return Err(SqlError::operand_columns(a.len()));
        }
        let pairs: Vec<(Expr, Expr)> = a.into_vec().into_iter().zip(b.into_vec()).collect();
        match op {
            CompareOp::Eq | CompareOp::NullSafeEq | CompareOp::Ne => {
                let mut parts = Vec::with_capacity(pairs.len());
                for (a, b) in pairs {
                    parts.push(self.compare(op, a, b)?);
                }
                let nullable = parts.iter().any(|e| e.ty.nullable);
                let list = parts.into();
                Ok(Expr::boolean(
                    if op == CompareOp::Ne { Kind::Or(list) } else { Kind::And(list) },
                    nullable,
                ))
            }
            _ => self.compare_lexicographically(op, &pairs),
        }
    }

    /// `(a, b) < (c, d)` is `a < c OR (a = c AND b < d)`.
    fn compare_lexicographically(&mut self, op: CompareOp, pairs: &[(Expr, Expr)]) -> SqlResult<Expr> {
        let Some(((a, b), rest)) = pairs.split_first() else { return Ok(Expr::null()) };
        if rest.is_empty() {
            return self.compare(op, a.clone(), b.clone());
        }
        let strict = match op {
            CompareOp::Le => CompareOp::Lt,
            CompareOp::Ge => CompareOp::Gt,
            other => other,
        };
        let first = self.compare(strict, a.clone(), b.clone())?;
        let equal = self.compare(CompareOp::Eq, a.clone(), b.clone())?;
        let rest = self.compare_lexicographically(op, rest)?;
        let tail = Expr::boolean(Kind::And(Box::new([equal, rest])), true);
        Ok(Expr::boolean(Kind::Or(Box::new([first, tail])), true))
    }

    /// Converts what must be converted before two operands are compared, and says under which
    /// collation strings are.
    pub(crate) fn comparable(&mut self, left: Expr, right: Expr) -> SqlResult<(Expr, Expr, u16)> {
        let (left, right) = (prepare_side(left, &right.ty), right);
        let right = prepare_side(right, &left.ty);
        match (left.ty.family(), right.ty.family()) {
            (Family::String, Family::String) => self.comparable_strings(left, right),
            (Family::String, _) => {
                let left = self.constant_for(left, &right);
                Ok((left, right, BINARY))
            }
            (_, Family::String) => {
                let right = self.constant_for(right, &left);
                Ok((left, right, BINARY))
            }
            (Family::Date | Family::DateTime, _) => {
                let right = self.number_as_datetime(right);
                Ok((left, right, BINARY))
            }
            (_, Family::Date | Family::DateTime) => {
                let left = self.number_as_datetime(left);
                Ok((left, right, BINARY))
            }
            _ => Ok((left, right, BINARY)),
        }
    }

    pub(super) fn comparable_strings(&mut self, left: Expr, right: Expr) -> SqlResult<(Expr, Expr, u16)> {
        if left.ty.is_null() || right.ty.is_null() {
            let collation =
                if left.ty.is_null() { right.ty.column.collation } else { left.ty.column.collation };
            return Ok((left, right, collation));
        }
        let (collation, _) = merge_collations(
            (left.ty.column.collation, left.ty.coercibility),
            (right.ty.column.collation, right.ty.coercibility),
            "=",
        )?;
        Ok((self.in_collation(left, collation), self.in_collation(right, collation), collation))
    }

    /// The string in another collation's character set, if its own is a different one.
    pub(crate) fn in_collation(&mut self, e: Expr, collation: u16) -> Expr {
        if e.ty.family() != Family::String || charset::converts_as_is(e.ty.column.collation, collation) {
            return e;
        }
        let mut ty = e.ty.clone();
        ty.column.collation = collation;
        self.fold(Expr { kind: Kind::Transcode(Box::new(e)), ty })
    }

    /// A constant string that is compared with something that is no string, as that thing's kind:
    /// so that `date_column = '2024-01-01'` and `int_column = '7'` can use an index.
    fn constant_for(&mut self, constant: Expr, other: &Expr) -> Expr {
        let Some(Value::Bytes(text)) = constant.as_const() else { return constant };
        let target = match other.ty.family() {
            Family::Date | Family::DateTime => ExprType::datetime(6),
            Family::Time => ExprType::time(6),
            Family::Integer if other.ty.column.kind != ColumnKind::Year => {
                let (n, truncated) = super::convert::text_to_f64(text);
                if !truncated && n.fract() == 0.0 && n.abs() < 9e15 {
                    return Expr::integer(n as i64);
                }
                return constant;
            }
            _ => return constant,
        };
        match self.constant_as(&constant, &target) {
            Some(value) => Expr::constant(value, target),
            None => constant,
        }
    }

    /// A constant integer that is compared with a date: 20231110 is a day, however many digits a time of day would add. One
    /// that is no date stays a number.
    fn number_as_datetime(&mut self, constant: Expr) -> Expr {
        if constant.as_const().is_none() || constant.ty.family() != Family::Integer {
            return constant;
        }
        let target = ExprType::datetime(6);
        match self.constant_as(&constant, &target) {
            Some(value) => Expr::constant(value, target),
            None => constant,
        }
    }

    pub(super) fn between(
        &mut self,
        operand: &ast::Expr,
        low: &ast::Expr,
        high: &ast::Expr,
        negated: bool,
    ) -> SqlResult<Expr> {
        let (e, low, high) = (self.expr_or_row(operand)?, self.expr_or_row(low)?, self.expr_or_row(high)?);
        if let Kind::Row(_) = e.kind {
            let above = self.compare(CompareOp::Ge, e.clone(), low)?;
            let below = self.compare(CompareOp::Le, e, high)?;
            let both = Expr::boolean(Kind::And(Box::new([above, below])), true);
            return Ok(if negated { Expr::boolean(Kind::Not(Box::new(both)), true) } else { both });
        }
        let nullable = e.ty.nullable || low.ty.nullable || high.ty.nullable;
        let (e, low, collation) = self.comparable(e, low)?;
        let (e, high, second) = self.comparable(e, high)?;
        let collation = if collation == BINARY { second } else { collation };
        let args = Box::new([e, low, high]);
        Ok(Expr::boolean(Kind::Between { args, collation, negated }, nullable))
    }

    pub(super) fn is_in(
        &mut self,
        operand: &ast::Expr,
        list: &[ast::Expr],
        negated: bool,
    ) -> SqlResult<Expr> {
        let mut e = self.expr_or_row(operand)?;
        if let Kind::Row(_) = e.kind {
            let mut options = Vec::with_capacity(list.len());
            for member in list {
                let member = self.expr_or_row(member)?;
                options.push(self.compare(CompareOp::Eq, e.clone(), member)?);
            }
            let any = if options.len() == 1 {
                options.remove(0)
            } else {
                Expr::boolean(Kind::Or(options.into()), true)
            };
            return Ok(if negated { Expr::boolean(Kind::Not(Box::new(any)), true) } else { any });
        }
        let mut args = Vec::with_capacity(list.len() + 1);
        let mut collation = BINARY;
        let mut nullable = e.ty.nullable;
        for member in list {
            let member = self.expr(member)?;
            nullable |= member.ty.nullable;
            let (left, right, this) = self.comparable(e, member)?;
            e = left;
            if this != BINARY {
                collation = this;
            }
            args.push(right);
        }
        args.insert(0, e);
        Ok(Expr::boolean(Kind::In { args: args.into(), collation, negated }, nullable))
    }
}

/// The comparison that an operator of the grammar is.
pub(super) fn comparison(op: BinaryOp) -> CompareOp {
    match op {
        BinaryOp::NullSafeEq => CompareOp::NullSafeEq,
        BinaryOp::Ne => CompareOp::Ne,
        BinaryOp::Lt => CompareOp::Lt,
        BinaryOp::Le => CompareOp::Le,
        BinaryOp::Gt => CompareOp::Gt,
        BinaryOp::Ge => CompareOp::Ge,
        _ => CompareOp::Eq,
    }
}

/// The number of the label of an ENUM column that a constant text is, so that the comparison is one
/// of numbers, which an index on the column can answer.
fn label_number(column: &Expr, text: &Expr) -> Option<Expr> {
    let (Kind::Column { .. }, ColumnKind::Enum) = (&column.kind, column.ty.column.kind) else { return None };
    let Some(Value::Bytes(text)) = text.as_const() else { return None };
    let ty = &column.ty.column;
    let found = ty.labels.iter().position(|label| charset::compare(label, text, ty.collation).is_eq())?;
    let number = u16::try_from(found + 1).ok()?;
    Some(Expr::constant(Value::Enum(number), column.ty.clone().nullable(false)))
}

/// One side of a comparison, given the other: labels of ENUM and SET become text beside text,
/// binary literals numbers beside numbers.
fn prepare_side(e: Expr, other: &ExprType) -> Expr {
    let labels = matches!(e.ty.column.kind, ColumnKind::Enum | ColumnKind::Set);
    if labels && other.family() == Family::String {
        return as_text(e);
    }
    if matches!(other.family(), Family::Integer | Family::Decimal | Family::Real) {
        return number_literal(e);
    }
    e
}
