//! Binding of operators: arithmetic and its types, bits, logic, LIKE, IS. Comparisons are in `compare`.

use super::binder::Binder;
use super::block::Clause;
use super::calls;
use super::compare;
use super::compare::comparison;
use super::scope::{ScopeTable, Source};
use super::times_beside::refuse_no_dates;
use crate::api::sql_mode;
use crate::error::{SqlError, SqlResult};
use crate::expr::bits as expr_bits;
use crate::expr::charset;
use crate::expr::convert::bytes_as_number;
use crate::expr::functions;
use crate::expr::like::{DEFAULT_ESCAPE, LikeMatcher, escape_of};
use crate::expr::node::{ArithOp, BitOp, CompareOp, Expr, IsKind, Kind, LikeExpr, RegexpExpr};
use crate::expr::regexp::RegexpMatcher;
use crate::expr::slot_set::SlotSet;
use crate::expr::types::{
    BINARY, Coercibility, ExprType, Family, NOT_FIXED, bytes, illegal_types, refuse_fixed,
};
use omnibus_parser::ast::{self, BinaryOp, UnaryOp};
use omnibus_value::decimal::Decimal;
use omnibus_value::temporal::DateTime;
use omnibus_value::{ColumnKind, Value};

pub(super) fn unary(binder: &mut Binder<'_>, op: UnaryOp, operand: &ast::Expr) -> SqlResult<Expr> {
    if let (UnaryOp::Minus, ast::Expr::Literal(ast::Literal::Int(n))) = (op, operand)
        && *n == 1 << 63
    {
        return Ok(Expr::integer(i64::MIN));
    }
    let e = binder.expr(operand)?;
    let nullable = e.ty.nullable;
    match op {
        UnaryOp::Minus => refuse_fixed(&e.ty, "-")?,
        UnaryOp::BitNot => refuse_fixed(&e.ty, "~")?,
        _ => {}
    }
    Ok(match op {
        UnaryOp::Plus => e,
        UnaryOp::Minus => {
            let e = number_literal(e);
            if let Some(beyond) = beyond_bigint(&e) {
                return Ok(beyond);
            }
            let mut ty = match e.ty.family() {
                Family::Decimal => ExprType::decimal(e.ty.column.length, e.ty.column.decimals),
                Family::Integer | Family::Date => {
                    let mut ty = ExprType::bigint();
                    ty.column.length = digits(&e) + 1;
                    ty
                }
                Family::Time | Family::DateTime if e.ty.column.decimals == 0 => ExprType::bigint(),
                Family::Time | Family::DateTime => {
                    ExprType::decimal(e.ty.integer_part() + u32::from(e.ty.scale()), e.ty.scale())
                }
                Family::Real => ExprType::double().decimals(e.ty.column.decimals),
                _ => ExprType::double(),
            };
            ty.nullable = nullable;
            binder.fold(Expr { kind: Kind::Negate(Box::new(e)), ty })
        }
        UnaryOp::BitNot if has_bits_of_bytes(binder, &e) => {
            let ty = ExprType::varchar(bytes(&e.ty), BINARY).nullable(nullable);
            Expr { kind: Kind::BitNot(Box::new(e)), ty }
        }
        UnaryOp::BitNot => {
            let e = number_literal(e);
            Expr { kind: Kind::BitNot(Box::new(e)), ty: ExprType::ubigint().nullable(nullable) }
        }
        UnaryOp::Not => Expr::boolean(Kind::Not(Box::new(e)), nullable),
        UnaryOp::Binary => binary_string(e),
    })
}

pub(super) fn binary(
    binder: &mut Binder<'_>,
    op: BinaryOp,
    left: &ast::Expr,
    right: &ast::Expr,
) -> SqlResult<Expr> {
    use BinaryOp as B;
    match op {
        B::And | B::Or => return logic(binder, op, left, right),
        B::Eq | B::NullSafeEq | B::Ne | B::Lt | B::Le | B::Gt | B::Ge => {
            let (l, r) = (binder.expr_or_row(left)?, binder.expr_or_row(right)?);
            refuse_no_dates(binder, &l, &r)?;
            return compare::compare(binder, comparison(op), l, r);
        }
        _ => {}
    }
    let (l, r) = (binder.expr(left)?, binder.expr(right)?);
    let nullable = l.ty.nullable || r.ty.nullable;
    refuse_fixed_operands(op, &l.ty, &r.ty)?;
    match op {
        B::Xor => Ok(Expr::boolean(Kind::Xor(Box::new([l, r])), nullable)),
        B::Add => Ok(arith(binder, ArithOp::Add, l, r)),
        B::Sub => Ok(arith(binder, ArithOp::Sub, l, r)),
        B::Mul => Ok(arith(binder, ArithOp::Mul, l, r)),
        B::Div => Ok(arith(binder, ArithOp::Div, l, r)),
        B::IntDiv => Ok(arith(binder, ArithOp::IntDiv, l, r)),
        B::Mod => Ok(arith(binder, ArithOp::Mod, l, r)),
        B::BitOr => Ok(bits(binder, BitOp::Or, l, r)),
        B::BitAnd => Ok(bits(binder, BitOp::And, l, r)),
        B::BitXor => Ok(bits(binder, BitOp::Xor, l, r)),
        B::ShiftLeft => Ok(bits(binder, BitOp::ShiftLeft, l, r)),
        B::ShiftRight => Ok(bits(binder, BitOp::ShiftRight, l, r)),
        B::Concat => calls::call_function(binder, "CONCAT", vec![l, r]),
        B::JsonExtract => calls::call_function(binder, "JSON_EXTRACT", vec![l, r]),
        B::JsonUnquote => {
            let extracted = calls::call_function(binder, "JSON_EXTRACT", vec![l, r])?;
            calls::call_function(binder, "JSON_UNQUOTE", vec![extracted])
        }
        _ => {
            let (l, r) = (
                calls::call_function(binder, "SOUNDEX", vec![l])?,
                calls::call_function(binder, "SOUNDEX", vec![r])?,
            );
            compare::compare(binder, CompareOp::Eq, l, r)
        }
    }
}

/// AND and OR, flattened: a chain of a thousand ORs is one node, and no recursion.
fn logic(binder: &mut Binder<'_>, op: BinaryOp, left: &ast::Expr, right: &ast::Expr) -> SqlResult<Expr> {
    let mut operands = vec![binder.expr(right)?];
    let mut rest = left;
    while let ast::Expr::Binary { op: inner, left, right } = rest
        && *inner == op
    {
        operands.push(binder.expr(right)?);
        rest = left;
    }
    operands.push(binder.expr(rest)?);
    operands.reverse();
    let nullable = operands.iter().any(|e| e.ty.nullable);
    let list = operands.into();
    Ok(Expr::boolean(if op == BinaryOp::And { Kind::And(list) } else { Kind::Or(list) }, nullable))
}

pub(super) fn arith(binder: &mut Binder<'_>, op: ArithOp, left: Expr, right: Expr) -> Expr {
    let [left, right] = [left, right].map(|e| dated_number(binder, number_literal(e)));
    let ty = arith_type(binder, op, &left, &right);
    binder.fold(Expr { kind: Kind::Arith(op, Box::new([left, right])), ty })
}

/// GREATEST and LEAST of dates and text as the date that they are, where a number is wanted of them; those of times and numbers are
/// compared as numbers then.
pub(super) fn dated_extreme(binder: &Binder<'_>, e: Expr) -> Expr {
    match functions::extreme_date(&e) {
        None if functions::is_extreme_time(&e) && !binder.session.settings.mariadb => {
            let Kind::Call(def, args) = e.kind else { return e };
            let ty = ExprType::double().nullable(true);
            let number = |arg: Expr| Expr { kind: Kind::Cast(Box::new(arg)), ty: ty.clone() };
            let args = args.into_vec().into_iter().map(number).collect();
            Expr { kind: Kind::Call(def, args), ty }
        }
        Some(ty) if !binder.session.settings.mariadb => Expr { kind: Kind::Cast(Box::new(e)), ty },
        _ => e,
    }
}

/// IF and CASE of dates and what makes text of them, as numbers: MySQL asks the branch that is taken for its own. `ty` is a number's.
pub(super) fn chosen_number(binder: &Binder<'_>, e: Expr, ty: &ExprType) -> Expr {
    fn is_dated(e: &Expr) -> bool {
        e.ty.is_temporal()
            || e.ty.family() == Family::String && functions::branches(e).into_iter().any(is_dated)
    }
    fn as_number(mut e: Expr, ty: &ExprType) -> Expr {
        let ty = ty.clone().nullable(true);
        if e.ty.is_temporal() || !is_dated(&e) {
            return Expr { kind: Kind::Cast(Box::new(e)), ty };
        }
        for branch in functions::branches_mut(&mut e) {
            *branch = as_number(std::mem::replace(branch, Expr::null()), &ty);
        }
        Expr { kind: e.kind, ty }
    }
    let chosen = e.ty.family() == Family::String && is_dated(&e) && !binder.session.settings.mariadb;
    if chosen { as_number(e, ty) } else { e }
}

/// The same as the number that it is in arithmetic.
fn dated_number(binder: &Binder<'_>, e: Expr) -> Expr {
    let text = e.ty.family() == Family::String;
    match chosen_number(binder, dated_extreme(binder, e), &ExprType::double()) {
        date if text && date.ty.is_temporal() => {
            let ty = ExprType::double().nullable(true);
            Expr { kind: Kind::Cast(Box::new(date)), ty }
        }
        e => e,
    }
}

fn arith_type(binder: &Binder<'_>, op: ArithOp, left: &Expr, right: &Expr) -> ExprType {
    let (a, b) = (&left.ty, &right.ty);
    let (left, right) = (digits(left), digits(right));
    let divides = matches!(op, ArithOp::Div | ArithOp::IntDiv | ArithOp::Mod);
    let nullable = a.nullable || b.nullable || divides;
    let signed =
        op == ArithOp::Sub && binder.session.settings.sql_mode & sql_mode::NO_UNSIGNED_SUBTRACTION != 0;
    let unsigned = !signed && (a.is_unsigned() || b.is_unsigned());
    let both_unsigned = !binder.session.settings.mariadb && !signed && a.is_unsigned() && b.is_unsigned();
    let inexact = |t: &ExprType| matches!(t.family(), Family::Real | Family::String | Family::Json);
    let ty = if op == ArithOp::IntDiv {
        let mut ty = ExprType::bigint();
        ty.column.unsigned = unsigned;
        // A fraction makes more digits of it.
        if b.family() == Family::Integer {
            ty.column.length = (left + 1).min(20);
        }
        ty
    } else if inexact(a) || inexact(b) {
        let more = if op == ArithOp::Div { binder.session.settings.div_precision_increment } else { 0 };
        ExprType::double().decimals(fixed_decimals(a, b).saturating_add(more).min(NOT_FIXED))
    } else if op == ArithOp::Div {
        let scale = (a.scale().min(30) + binder.session.settings.div_precision_increment).min(30);
        without_sign(
            ExprType::decimal(left + u32::from(b.scale().min(30)) + u32::from(scale), scale),
            both_unsigned,
        )
    } else if a.scale() == 0
        && b.scale() == 0
        && a.family() != Family::Decimal
        && b.family() != Family::Decimal
    {
        let mut ty = ExprType::bigint();
        ty.column.unsigned = match op {
            ArithOp::Mod => a.is_unsigned(),
            _ => unsigned,
        };
        let digits = match op {
            ArithOp::Mul => left + right,
            ArithOp::Mod => left.max(right),
            _ => left.max(right) + 1,
        };
        ty.column.length = digits + u32::from(!ty.column.unsigned);
        ty
    } else {
        let (x, y) = (fixed(a), fixed(b));
        let ty = match op {
            ArithOp::Mul => ExprType::decimal(left + right + u32::from(x + y), x + y),
            ArithOp::Mod => {
                let scale = x.max(y);
                ExprType::decimal(left.max(right) + u32::from(scale), scale)
            }
            _ => {
                let scale = x.max(y);
                ExprType::decimal(left.max(right) + 1 + u32::from(scale), scale)
            }
        };
        without_sign(ty, both_unsigned)
    };
    ty.nullable(nullable)
}

/// The type without a sign, if nothing in it has one.
fn without_sign(mut ty: ExprType, unsigned: bool) -> ExprType {
    ty.column.unsigned = unsigned;
    ty
}

pub(super) fn like(binder: &mut Binder<'_>, like: &ast::Like) -> SqlResult<Expr> {
    let (text, pattern) = (binder.expr(&like.expr)?, binder.expr(&like.pattern)?);
    let (escape, given_escape) = like_escape(binder, like.escape.as_ref())?;
    let nullable = text.ty.nullable || pattern.ty.nullable;
    let (text, pattern) = (as_text(text), as_text(pattern));
    let (text, pattern, collation) = compare::comparable_strings(binder, text, pattern)?;
    let pattern = binder.fold(pattern);
    let matcher = match pattern.as_const() {
        Some(value @ (Value::Bytes(_) | Value::Int(_))) if given_escape.is_none() => {
            Some(LikeMatcher::new(&pattern.to_str(value), escape, collation))
        }
        _ => None,
    };
    let like = LikeExpr { text, pattern, matcher, escape, given_escape, collation, negated: like.negated };
    Ok(Expr::boolean(Kind::Like(Box::new(like)), nullable))
}

/// The escape character of LIKE, or what gives it when the statement runs.
///
/// # Errors
/// 1210 for what is no single character, or differs between rows.
fn like_escape(
    binder: &mut Binder<'_>,
    written: Option<&ast::Expr>,
) -> SqlResult<(Option<u32>, Option<Expr>)> {
    let Some(written) = written else {
        let off = binder.session.settings.sql_mode & sql_mode::NO_BACKSLASH_ESCAPES != 0;
        return Ok(((!off).then_some(DEFAULT_ESCAPE), None));
    };
    let escape = binder.expr(written)?;
    let known = if escape.is_foldable() { binder.evaluate(&escape) } else { None };
    if let Some(value) = known {
        let escape = escape_of(&escape, &value)?;
        let off = binder.session.settings.sql_mode & sql_mode::NO_BACKSLASH_ESCAPES != 0;
        if escape.is_none() && off && !binder.session.settings.mariadb {
            return Err(SqlError::wrong_arguments("ESCAPE"));
        }
        return Ok((escape, None));
    }
    let session = matches!(escape.kind, Kind::UserVariable(_) | Kind::Subquery(_)) || escape.is_fixed();
    if !session || !escape.slots().within(&SlotSet::default()) {
        return Err(SqlError::wrong_arguments("ESCAPE"));
    }
    Ok((None, Some(escape)))
}

pub(super) fn regexp(
    binder: &mut Binder<'_>,
    text: &ast::Expr,
    pattern: &ast::Expr,
    negated: bool,
) -> SqlResult<Expr> {
    let both = [binder.expr(text)?, binder.expr(pattern)?];
    super::calls::refuse_bytes_beside_text(binder, &both, "regexp_like")?;
    let nullable = both.iter().any(|e| e.ty.nullable);
    let [text, pattern] = both.map(as_text);
    let (text, pattern, collation) = compare::comparable_strings(binder, text, pattern)?;
    let collation = charset::in_utf8(collation);
    let [text, pattern] = [text, pattern].map(|e| compare::in_collation(binder, e, collation));
    let pattern = binder.fold(pattern);
    let matcher = match pattern.as_const() {
        Some(Value::Bytes(bytes)) => Some(RegexpMatcher::new(bytes, collation)?.counted(binder.session)?),
        _ => None,
    };
    let regexp = RegexpExpr { text, pattern, matcher, collation, negated };
    Ok(Expr::boolean(Kind::Regexp(Box::new(regexp)), nullable))
}

pub(super) fn is(
    binder: &mut Binder<'_>,
    operand: &ast::Expr,
    what: IsKind,
    negated: bool,
) -> SqlResult<Expr> {
    let expr = binder.expr(operand)?;
    if what == IsKind::Null && !negated && is_new_id(binder, &expr) {
        binder.note(|noted| noted.bits |= super::uses::NEW_INSERT_ID);
        let id = calls::call_function(binder, functions::NEW_INSERT_ID, Vec::new())?;
        return compare::compare(binder, CompareOp::Eq, expr, id);
    }
    Ok(Expr::boolean(Kind::Is { expr: Box::new(expr), what, negated }, false))
}

/// Whether IS NULL asks for the row that was inserted last (`sql_auto_is_null`).
fn is_new_id(binder: &Binder<'_>, expr: &Expr) -> bool {
    let Kind::Column { slot, column, .. } = expr.kind else { return false };
    binder.session.settings.sql_auto_is_null
        && !expr.ty.nullable
        && matches!(binder.blocks.last().map(|block| block.clause), Some(Clause::Where | Clause::On))
        && matches!(
            binder.collected.slots.get(usize::from(slot)),
            Some(Some(ScopeTable { source: Source::Table(table), .. }))
                if table.auto_column == Some(usize::from(column))
        )
}

pub(super) fn is_truth(
    binder: &mut Binder<'_>,
    operand: &ast::Expr,
    truth: ast::Truth,
    negated: bool,
) -> SqlResult<Expr> {
    let what = match truth {
        ast::Truth::True => IsKind::True,
        ast::Truth::False => IsKind::False,
        ast::Truth::Unknown => IsKind::Null,
    };
    is(binder, operand, what, negated)
}

/// Refuses UUIDs and addresses as numbers, as MariaDB does.
fn refuse_fixed_operands(op: BinaryOp, a: &ExprType, b: &ExprType) -> SqlResult<()> {
    use BinaryOp as B;
    let both = match op {
        B::Add => "+",
        B::Sub => "-",
        B::Mul => "*",
        B::Div => "/",
        B::Mod => "MOD",
        B::BitOr => return refuse_fixed(a, "|").and(refuse_fixed(b, "|")),
        B::BitAnd => return refuse_fixed(a, "&").and(refuse_fixed(b, "&")),
        B::BitXor => return refuse_fixed(a, "^").and(refuse_fixed(b, "^")),
        B::ShiftLeft => return refuse_fixed(a, "<<").and(refuse_fixed(b, "<<")),
        B::ShiftRight => return refuse_fixed(a, ">>").and(refuse_fixed(b, ">>")),
        _ => return Ok(()),
    };
    let fixed = a.family() == Family::Fixed || b.family() == Family::Fixed;
    if fixed { Err(illegal_types(a, b, both)) } else { Ok(()) }
}

/// The decimals of arithmetic of which one side is a FLOAT or DOUBLE, if both have a fixed number of them.
fn fixed_decimals(a: &ExprType, b: &ExprType) -> u8 {
    a.fixed_decimals().max(b.fixed_decimals()).min(NOT_FIXED)
}

/// The negative of a constant integer that no BIGINT holds: a DECIMAL.
fn beyond_bigint(e: &Expr) -> Option<Expr> {
    let n = match e.as_const()? {
        Value::Int(i64::MIN) => 1 << 63,
        Value::UInt(n) if *n > 1 << 63 => -i128::from(*n),
        _ => return None,
    };
    Some(Expr::constant(Value::Decimal(Decimal::from_i128(n, 0)), ExprType::decimal(20, 0)))
}

fn fixed(ty: &ExprType) -> u8 {
    match ty.scale() {
        NOT_FIXED => 0,
        scale => scale,
    }
}

/// `x'0A'` where a number is wanted.
pub(super) fn number_literal(e: Expr) -> Expr {
    match e.as_const() {
        // What is no number is said where it is computed.
        Some(Value::Bytes(bytes)) if e.ty.is_binary_literal() && bytes.len() > 8 => {
            Expr { kind: Kind::Cast(Box::new(e)), ty: ExprType::ubigint() }
        }
        Some(Value::Bytes(bytes)) if e.ty.is_binary_literal() => {
            Expr::constant(Value::UInt(bytes_as_number(bytes)), ExprType::ubigint())
        }
        _ => e,
    }
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
    } else if e.ty.column.kind == ColumnKind::Bit {
        ty.column.collation = BINARY;
    }
    Expr { kind: Kind::Text(Box::new(e)), ty }
}

/// `BINARY x`.
/// Digits in front of the point that a number can have: of a literal those that it has.
fn digits(e: &Expr) -> u32 {
    match e.as_const() {
        Some(Value::Int(n)) => n.unsigned_abs().checked_ilog10().unwrap_or(0) + 1,
        Some(Value::UInt(n)) => n.checked_ilog10().unwrap_or(0) + 1,
        _ => e.ty.integer_part(),
    }
}

pub(super) fn binary_string(e: Expr) -> Expr {
    if e.ty.family() == Family::Fixed {
        // Not its text: its bytes.
        let ty = ExprType::varchar(16, BINARY).nullable(e.ty.nullable).coercible(Coercibility::Implicit);
        return Expr { kind: Kind::Cast(Box::new(e)), ty };
    }
    let e = as_text(e);
    let mut ty = ExprType::varchar(bytes(&e.ty), BINARY).nullable(e.ty.nullable);
    ty.coercibility = Coercibility::Implicit;
    Expr { kind: Kind::Retype(Box::new(e)), ty }
}

/// Whether MySQL has the bits of an operand as bytes. MariaDB takes them for a number.
fn has_bits_of_bytes(binder: &Binder<'_>, e: &Expr) -> bool {
    !binder.session.settings.mariadb && expr_bits::is_bits_of_bytes(&e.ty)
}

fn bits(binder: &Binder<'_>, op: BitOp, left: Expr, right: Expr) -> Expr {
    let nullable = left.ty.nullable || right.ty.nullable;
    let of_bytes = match op {
        BitOp::ShiftLeft | BitOp::ShiftRight => has_bits_of_bytes(binder, &left),
        _ => {
            (has_bits_of_bytes(binder, &left) || has_bits_of_bytes(binder, &right))
                && expr_bits::may_be_bytes(&left.ty)
                && expr_bits::may_be_bytes(&right.ty)
        }
    };
    if of_bytes {
        let length = match op {
            BitOp::ShiftLeft | BitOp::ShiftRight => bytes(&left.ty),
            _ => bytes(&left.ty).max(bytes(&right.ty)),
        };
        let ty = ExprType::varchar(length, BINARY).nullable(nullable);
        return Expr { kind: Kind::Bits(op, Box::new([left, right])), ty };
    }
    let pair = Box::new([number_literal(left), number_literal(right)]);
    Expr { kind: Kind::Bits(op, pair), ty: ExprType::ubigint().nullable(nullable) }
}

/// A condition of WHERE in which IS NULL of a column finds its zero dates, if it is one of those that AND joins: ODBC wants that of a
/// DATE or DATETIME that is NOT NULL. Inside of other conditions IS NULL means what it says.
pub(crate) fn with_zero_dates(binder: &mut Binder<'_>, condition: Expr) -> SqlResult<Expr> {
    let Expr { kind, ty } = condition;
    match kind {
        Kind::And(list) => {
            let list = list
                .into_vec()
                .into_iter()
                .map(|e| with_zero_dates(binder, e))
                .collect::<SqlResult<Vec<_>>>()?;
            Ok(Expr { kind: Kind::And(list.into()), ty })
        }
        Kind::Is { expr, what: IsKind::Null, negated: false } if may_be_zero_date(binder, &expr) => {
            let zero = Expr::constant(Value::DateTime(DateTime::ZERO), ExprType::datetime(0));
            let is_zero = compare::compare(binder, CompareOp::Eq, (*expr).clone(), zero)?;
            if !expr.ty.nullable {
                return Ok(is_zero);
            }
            // An outer join may have found no row.
            let is_null = Expr { kind: Kind::Is { expr, what: IsKind::Null, negated: false }, ty };
            Ok(Expr::boolean(Kind::Or(Box::new([is_null, is_zero])), true))
        }
        kind => Ok(Expr { kind, ty }),
    }
}

fn may_be_zero_date(binder: &Binder<'_>, expr: &Expr) -> bool {
    let Kind::Column { slot, column, .. } = expr.kind else { return false };
    let table = binder.collected.slots.get(usize::from(slot)).and_then(|table| table.as_ref());
    matches!(expr.ty.column.kind, ColumnKind::Date | ColumnKind::DateTime)
        && matches!(
            table,
            Some(ScopeTable { source: Source::Table(table), .. })
                if table.columns().get(usize::from(column)).is_some_and(|column| !column.nullable)
        )
}
