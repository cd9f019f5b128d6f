//! Binding of operators: arithmetic, comparison and its type rules, logic, IN, BETWEEN, LIKE.

use super::bind::{Binder, Clause};
use super::charset;
use super::convert::bytes_as_number;
use super::like::{LikeMatcher, RegexpMatcher};
use super::node::{ArithOp, BitOp, CompareOp, Expr, IsKind, Kind, LikeExpr, RegexpExpr};
use super::scope::{ScopeTable, Source};
use super::types::{BINARY, Coercibility, ExprType, Family, NOT_FIXED, merge_collations};
use crate::error::{SqlError, SqlResult};
use crate::functions;
use omnibus_parser::ast::{self, BinaryOp, UnaryOp};
use omnibus_value::{ColumnKind, Value};

impl Binder<'_> {
    pub(super) fn unary(&mut self, op: UnaryOp, operand: &ast::Expr) -> SqlResult<Expr> {
        if let (UnaryOp::Minus, ast::Expr::Literal(ast::Literal::Int(n))) = (op, operand)
            && *n == 1 << 63
        {
            return Ok(Expr::integer(i64::MIN));
        }
        let e = self.expr(operand)?;
        let nullable = e.ty.nullable;
        Ok(match op {
            UnaryOp::Plus => e,
            UnaryOp::Minus => {
                let e = number_literal(e);
                let mut ty = match e.ty.family() {
                    Family::Decimal => e.ty.clone(),
                    Family::Integer | Family::Date => ExprType::bigint(),
                    Family::Time | Family::DateTime if e.ty.column.decimals == 0 => ExprType::bigint(),
                    Family::Time | Family::DateTime => {
                        ExprType::decimal(e.ty.integer_part() + u32::from(e.ty.scale()), e.ty.scale())
                    }
                    _ => ExprType::double(),
                };
                ty.nullable = nullable;
                self.fold(Expr { kind: Kind::Negate(Box::new(e)), ty })
            }
            UnaryOp::BitNot => {
                let e = number_literal(e);
                Expr { kind: Kind::BitNot(Box::new(e)), ty: ExprType::ubigint().nullable(nullable) }
            }
            UnaryOp::Not => Expr::boolean(Kind::Not(Box::new(e)), nullable),
            UnaryOp::Binary => binary_string(e),
        })
    }

    pub(super) fn binary(&mut self, op: BinaryOp, left: &ast::Expr, right: &ast::Expr) -> SqlResult<Expr> {
        use BinaryOp as B;
        match op {
            B::And | B::Or => return self.logic(op, left, right),
            B::Eq | B::NullSafeEq | B::Ne | B::Lt | B::Le | B::Gt | B::Ge => {
                let (l, r) = (self.expr_or_row(left)?, self.expr_or_row(right)?);
                return self.compare(compare_op(op), l, r);
            }
            _ => {}
        }
        let (l, r) = (self.expr(left)?, self.expr(right)?);
        let nullable = l.ty.nullable || r.ty.nullable;
        match op {
            B::Xor => Ok(Expr::boolean(Kind::Xor(Box::new([l, r])), nullable)),
            B::Add => Ok(self.arith(ArithOp::Add, l, r)),
            B::Sub => Ok(self.arith(ArithOp::Sub, l, r)),
            B::Mul => Ok(self.arith(ArithOp::Mul, l, r)),
            B::Div => Ok(self.arith(ArithOp::Div, l, r)),
            B::IntDiv => Ok(self.arith(ArithOp::IntDiv, l, r)),
            B::Mod => Ok(self.arith(ArithOp::Mod, l, r)),
            B::BitOr => Ok(bits(BitOp::Or, l, r)),
            B::BitAnd => Ok(bits(BitOp::And, l, r)),
            B::BitXor => Ok(bits(BitOp::Xor, l, r)),
            B::ShiftLeft => Ok(bits(BitOp::ShiftLeft, l, r)),
            B::ShiftRight => Ok(bits(BitOp::ShiftRight, l, r)),
            B::Concat => self.call_function("CONCAT", vec![l, r]),
            B::JsonExtract => self.call_function("JSON_EXTRACT", vec![l, r]),
            B::JsonUnquote => {
                let extracted = self.call_function("JSON_EXTRACT", vec![l, r])?;
                self.call_function("JSON_UNQUOTE", vec![extracted])
            }
            _ => {
                let (l, r) =
                    (self.call_function("SOUNDEX", vec![l])?, self.call_function("SOUNDEX", vec![r])?);
                self.compare(CompareOp::Eq, l, r)
            }
        }
    }

    /// AND and OR, flattened: a chain of a thousand ORs is one node, and no recursion.
    fn logic(&mut self, op: BinaryOp, left: &ast::Expr, right: &ast::Expr) -> SqlResult<Expr> {
        let mut operands = vec![self.expr(right)?];
        let mut rest = left;
        while let ast::Expr::Binary { op: inner, left, right } = rest
            && *inner == op
        {
            operands.push(self.expr(right)?);
            rest = left;
        }
        operands.push(self.expr(rest)?);
        operands.reverse();
        let nullable = operands.iter().any(|e| e.ty.nullable);
        let list = operands.into();
        Ok(Expr::boolean(if op == BinaryOp::And { Kind::And(list) } else { Kind::Or(list) }, nullable))
    }

    pub(super) fn arith(&mut self, op: ArithOp, left: Expr, right: Expr) -> Expr {
        let (left, right) = (number_literal(left), number_literal(right));
        let ty = self.arith_type(op, &left.ty, &right.ty);
        self.fold(Expr { kind: Kind::Arith(op, Box::new([left, right])), ty })
    }

    fn arith_type(&self, op: ArithOp, a: &ExprType, b: &ExprType) -> ExprType {
        let divides = matches!(op, ArithOp::Div | ArithOp::IntDiv | ArithOp::Mod);
        let nullable = a.nullable || b.nullable || divides;
        let unsigned = a.column.unsigned || b.column.unsigned;
        let inexact = |t: &ExprType| matches!(t.family(), Family::Real | Family::String | Family::Json);
        let ty = if op == ArithOp::IntDiv {
            let mut ty = ExprType::bigint();
            ty.column.unsigned = unsigned;
            ty
        } else if (inexact(a) && !a.is_null()) || (inexact(b) && !b.is_null()) {
            ExprType::double()
        } else if op == ArithOp::Div {
            let scale = (a.scale().min(30) + self.session.settings.div_precision_increment).min(30);
            ExprType::decimal(a.integer_part() + u32::from(b.scale().min(30)) + u32::from(scale), scale)
        } else if a.scale() == 0
            && b.scale() == 0
            && a.family() != Family::Decimal
            && b.family() != Family::Decimal
            || a.is_null() && b.is_null()
        {
            let mut ty = ExprType::bigint();
            ty.column.unsigned = match op {
                ArithOp::Mod => a.column.unsigned,
                _ => unsigned,
            };
            ty.column.length = (a.column.length.max(b.column.length) + 1).min(20);
            ty
        } else {
            let (x, y) = (fixed(a), fixed(b));
            match op {
                ArithOp::Mul => {
                    ExprType::decimal(a.integer_part() + b.integer_part() + u32::from(x + y), x + y)
                }
                ArithOp::Mod => {
                    let scale = x.max(y);
                    ExprType::decimal(a.integer_part().max(b.integer_part()) + u32::from(scale), scale)
                }
                _ => {
                    let scale = x.max(y);
                    ExprType::decimal(a.integer_part().max(b.integer_part()) + 1 + u32::from(scale), scale)
                }
            }
        };
        ty.nullable(nullable)
    }

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
            _ => Ok((left, right, BINARY)),
        }
    }

    fn comparable_strings(&mut self, left: Expr, right: Expr) -> SqlResult<(Expr, Expr, u16)> {
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

    pub(super) fn like(&mut self, like: &ast::Like) -> SqlResult<Expr> {
        let (text, pattern) = (self.expr(&like.expr)?, self.expr(&like.pattern)?);
        let escape = match &like.escape {
            None => {
                let off = self.session.settings.sql_mode & crate::api::sql_mode::NO_BACKSLASH_ESCAPES != 0;
                (!off).then_some(u32::from(b'\\'))
            }
            Some(escape) => {
                let escape = self.expr(escape)?;
                let value = self.evaluate(&escape).ok_or_else(|| SqlError::wrong_arguments("ESCAPE"))?;
                let text = escape.to_str(&value);
                match std::str::from_utf8(&text).unwrap_or_default().chars().collect::<Vec<_>>()[..] {
                    [] if text.is_empty() => None,
                    [c] => Some(u32::from(c)),
                    _ => return Err(SqlError::wrong_arguments("ESCAPE")),
                }
            }
        };
        let nullable = text.ty.nullable || pattern.ty.nullable;
        let (text, pattern) = (as_text(text), as_text(pattern));
        let (text, pattern, collation) = self.comparable_strings(text, pattern)?;
        let pattern = self.fold(pattern);
        let matcher = match pattern.as_const() {
            Some(value @ (Value::Bytes(_) | Value::Int(_))) => {
                Some(LikeMatcher::new(&pattern.to_str(value), escape, collation))
            }
            _ => None,
        };
        let like = LikeExpr { text, pattern, matcher, escape, collation, negated: like.negated };
        Ok(Expr::boolean(Kind::Like(Box::new(like)), nullable))
    }

    pub(super) fn regexp(&mut self, text: &ast::Expr, pattern: &ast::Expr, negated: bool) -> SqlResult<Expr> {
        let (text, pattern) = (self.expr(text)?, self.expr(pattern)?);
        let nullable = text.ty.nullable || pattern.ty.nullable;
        let (text, pattern) = (as_text(text), as_text(pattern));
        let (text, pattern, collation) = self.comparable_strings(text, pattern)?;
        let pattern = self.fold(pattern);
        let matcher = match pattern.as_const() {
            Some(Value::Bytes(bytes)) => Some(RegexpMatcher::new(bytes, collation)?),
            _ => None,
        };
        let regexp = RegexpExpr { text, pattern, matcher, collation, negated };
        Ok(Expr::boolean(Kind::Regexp(Box::new(regexp)), nullable))
    }

    pub(super) fn is(&mut self, operand: &ast::Expr, what: IsKind, negated: bool) -> SqlResult<Expr> {
        let expr = self.expr(operand)?;
        if what == IsKind::Null && !negated && self.is_new_id(&expr) {
            self.note(|noted| noted.bits |= super::uses::NEW_INSERT_ID);
            let id = self.call_function(functions::NEW_INSERT_ID, Vec::new())?;
            return self.compare(CompareOp::Eq, expr, id);
        }
        Ok(Expr::boolean(Kind::Is { expr: Box::new(expr), what, negated }, false))
    }

    /// Whether IS NULL asks for the row that was inserted last (`sql_auto_is_null`).
    fn is_new_id(&self, expr: &Expr) -> bool {
        let Kind::Column { slot, column, .. } = expr.kind else { return false };
        self.session.settings.sql_auto_is_null
            && !expr.ty.nullable
            && matches!(self.blocks.last().map(|block| block.clause), Some(Clause::Where | Clause::On))
            && matches!(
                self.slots.get(usize::from(slot)),
                Some(Some(ScopeTable { source: Source::Table(table), .. }))
                    if table.auto_column == Some(usize::from(column))
            )
    }

    pub(super) fn is_truth(
        &mut self,
        operand: &ast::Expr,
        truth: ast::Truth,
        negated: bool,
    ) -> SqlResult<Expr> {
        let what = match truth {
            ast::Truth::True => IsKind::True,
            ast::Truth::False => IsKind::False,
            ast::Truth::Unknown => IsKind::Null,
        };
        self.is(operand, what, negated)
    }
}

fn fixed(ty: &ExprType) -> u8 {
    match ty.scale() {
        NOT_FIXED => 0,
        scale => scale,
    }
}

fn compare_op(op: BinaryOp) -> CompareOp {
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

pub(super) fn comparison(op: BinaryOp) -> CompareOp {
    compare_op(op)
}

fn bits(op: BitOp, left: Expr, right: Expr) -> Expr {
    let nullable = left.ty.nullable || right.ty.nullable;
    let pair = Box::new([number_literal(left), number_literal(right)]);
    Expr { kind: Kind::Bits(op, pair), ty: ExprType::ubigint().nullable(nullable) }
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

/// `x'0A'` where a number is wanted.
pub(super) fn number_literal(e: Expr) -> Expr {
    match e.as_const() {
        Some(Value::Bytes(bytes)) if is_binary_literal(&e.ty) => {
            Expr::constant(Value::UInt(bytes_as_number(bytes)), ExprType::ubigint())
        }
        _ => e,
    }
}

fn is_binary_literal(ty: &ExprType) -> bool {
    ty.column.kind == ColumnKind::Binary && ty.coercibility == Coercibility::Literal
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

/// The expression as text, if its values are not text already.
pub(super) fn as_text(e: Expr) -> Expr {
    let is_text =
        e.ty.family() == Family::String && !matches!(e.ty.column.kind, ColumnKind::Enum | ColumnKind::Set);
    if is_text {
        return e;
    }
    let mut ty = ExprType::varchar(e.ty.display_length(), 45).nullable(e.ty.nullable);
    ty.coercibility = e.ty.coercibility;
    if e.ty.family() == Family::String || e.ty.family() == Family::Json {
        ty.column.collation = e.ty.column.collation;
    }
    Expr { kind: Kind::Text(Box::new(e)), ty }
}

/// `BINARY x`.
pub(super) fn binary_string(e: Expr) -> Expr {
    let e = as_text(e);
    let mut ty = ExprType::varchar(e.ty.display_length(), BINARY).nullable(e.ty.nullable);
    ty.coercibility = Coercibility::Implicit;
    Expr { kind: Kind::Retype(Box::new(e)), ty }
}
