//! Arithmetic and bit operations on values, with MySQL's typing.
//!
//! Integers stay 64 bits and fail beyond them, unsigned if one operand is; decimals are exact;
//! anything with a string or a double is double. NULL gives NULL, and so does division by zero,
//! which the caller tells apart by its operands. Static result types are in [`result_type`].

use std::cmp::Ordering;

use crate::Value;
use crate::column::{ColumnKind, ColumnType, NOT_FIXED};
use crate::decimal::Decimal;

/// An operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArithOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `DIV`
    IntDiv,
    /// `%`, `MOD`
    Mod,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
}

/// 1690: the result does not fit its type, whose name it carries: `BIGINT`, `BIGINT UNSIGNED`,
/// `DECIMAL` or `DOUBLE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} value is out of range")]
pub struct ArithError(pub &'static str);

/// Settings of the session that change arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArithMode {
    /// `div_precision_increment`.
    pub div_increment: u8,
    /// NO_UNSIGNED_SUBTRACTION.
    pub signed_subtraction: bool,
}

impl Default for ArithMode {
    fn default() -> Self {
        ArithMode { div_increment: crate::decimal::DIV_PRECISION_INCREMENT, signed_subtraction: false }
    }
}

/// An operand as a number.
#[derive(Clone, Copy)]
enum Number {
    Int(i128, bool),
    Decimal(Decimal),
    Double(f64),
}

fn number(value: &Value) -> Number {
    match value {
        Value::Int(n) => Number::Int(i128::from(*n), false),
        Value::UInt(n) | Value::Bit(n) => Number::Int(i128::from(*n), true),
        Value::Year(n) => Number::Int(i128::from(*n), true),
        Value::Decimal(n) => Number::Decimal(*n),
        Value::Date(_) | Value::DateTime(_) | Value::Time(_) => {
            let n = value.to_decimal().value;
            match n.to_i64() {
                Ok(int) if n.scale() == 0 => Number::Int(i128::from(int), false),
                _ => Number::Decimal(n),
            }
        }
        other => Number::Double(other.to_f64().value),
    }
}

fn as_decimal(n: Number) -> Option<Decimal> {
    match n {
        Number::Int(n, _) => Some(Decimal::from_i128(n, 0)),
        Number::Decimal(d) => Some(d),
        Number::Double(_) => None,
    }
}

fn as_f64(n: Number) -> f64 {
    match n {
        Number::Int(n, _) => n as f64,
        Number::Decimal(d) => d.to_f64(),
        Number::Double(n) => n,
    }
}

/// An exact integer as BIGINT or BIGINT UNSIGNED.
fn integer(n: i128, unsigned: bool) -> Result<Value, ArithError> {
    if unsigned {
        u64::try_from(n).map(Value::UInt).map_err(|_| ArithError("BIGINT UNSIGNED"))
    } else {
        i64::try_from(n).map(Value::Int).map_err(|_| ArithError("BIGINT"))
    }
}

fn double(n: f64) -> Result<Value, ArithError> {
    if n.is_finite() { Ok(Value::Double(n)) } else { Err(ArithError("DOUBLE")) }
}

/// `a op b` with the default mode.
pub fn apply(op: ArithOp, a: &Value, b: &Value) -> Result<Value, ArithError> {
    apply_with(op, a, b, ArithMode::default())
}

/// `a op b`.
pub fn apply_with(op: ArithOp, a: &Value, b: &Value, mode: ArithMode) -> Result<Value, ArithError> {
    if a.is_null() || b.is_null() {
        return Ok(Value::Null);
    }
    match op {
        ArithOp::Add | ArithOp::Sub | ArithOp::Mul => additive(op, number(a), number(b), mode),
        ArithOp::Div => divide(number(a), number(b), mode),
        ArithOp::IntDiv => int_divide(number(a), number(b)),
        ArithOp::Mod => modulo(number(a), number(b)),
        _ => Ok(bits(op, a, b)),
    }
}

fn additive(op: ArithOp, a: Number, b: Number, mode: ArithMode) -> Result<Value, ArithError> {
    if let (Number::Int(x, ux), Number::Int(y, uy)) = (a, b) {
        let n = match op {
            ArithOp::Add => x + y,
            ArithOp::Sub => x - y,
            // 2^64 * 2^64 does not fit; saturated it is out of range all the same.
            _ => x.saturating_mul(y),
        };
        let signed = op == ArithOp::Sub && mode.signed_subtraction;
        return integer(n, (ux || uy) && !signed);
    }
    let (Some(x), Some(y)) = (as_decimal(a), as_decimal(b)) else {
        let (x, y) = (as_f64(a), as_f64(b));
        return double(match op {
            ArithOp::Add => x + y,
            ArithOp::Sub => x - y,
            _ => x * y,
        });
    };
    let made = match op {
        ArithOp::Add => x.add(&y),
        ArithOp::Sub => x.sub(&y),
        _ => x.mul(&y),
    };
    made.map(Value::Decimal).map_err(|_| ArithError("DECIMAL"))
}

fn divide(a: Number, b: Number, mode: ArithMode) -> Result<Value, ArithError> {
    if let (Some(x), Some(y)) = (as_decimal(a), as_decimal(b)) {
        let made = x.div(&y, mode.div_increment).map_err(|_| ArithError("DECIMAL"))?;
        return Ok(made.map_or(Value::Null, Value::Decimal));
    }
    let divisor = as_f64(b);
    if divisor == 0.0 { Ok(Value::Null) } else { double(as_f64(a) / divisor) }
}

fn int_divide(a: Number, b: Number) -> Result<Value, ArithError> {
    let is_unsigned = |n: Number| matches!(n, Number::Int(_, true));
    let unsigned = is_unsigned(a) || is_unsigned(b);
    let overflow = ArithError(if unsigned { "BIGINT UNSIGNED" } else { "BIGINT" });
    if let (Number::Int(x, _), Number::Int(y, _)) = (a, b) {
        return if y == 0 { Ok(Value::Null) } else { integer(x / y, unsigned) };
    }
    let exact = |n: Number| match n {
        Number::Double(n) => Decimal::from_f64(n).map_err(|_| overflow),
        other => Ok(as_decimal(other).unwrap_or(Decimal::ZERO)),
    };
    let (x, y) = (exact(a)?, exact(b)?);
    if y.is_zero() {
        return Ok(Value::Null);
    }
    integer(x.int_div(&y).ok_or(overflow)?, unsigned)
}

fn modulo(a: Number, b: Number) -> Result<Value, ArithError> {
    if let (Number::Int(x, unsigned), Number::Int(y, _)) = (a, b) {
        return if y == 0 { Ok(Value::Null) } else { integer(x % y, unsigned) };
    }
    if let (Some(x), Some(y)) = (as_decimal(a), as_decimal(b)) {
        return Ok(x.rem(&y).map_or(Value::Null, Value::Decimal));
    }
    let divisor = as_f64(b);
    if divisor == 0.0 { Ok(Value::Null) } else { double(as_f64(a) % divisor) }
}

/// An operand of a bit operation: 64 bits, fractions rounded, negative numbers as they are.
fn bit_operand(value: &Value) -> u64 {
    match value {
        Value::Int(n) => *n as u64,
        Value::UInt(n) | Value::Bit(n) | Value::Set(n) => *n,
        Value::Decimal(n) => match n.to_i64() {
            Ok(n) => n as u64,
            Err(clipped) => n.to_u64().unwrap_or(clipped as u64),
        },
        other => other.to_u64().value,
    }
}

fn bits(op: ArithOp, a: &Value, b: &Value) -> Value {
    let (x, y) = (bit_operand(a), bit_operand(b));
    let shift = u32::try_from(y).unwrap_or(64);
    Value::UInt(match op {
        ArithOp::BitAnd => x & y,
        ArithOp::BitOr => x | y,
        ArithOp::BitXor => x ^ y,
        ArithOp::ShiftLeft => x.checked_shl(shift).unwrap_or(0),
        _ => x.checked_shr(shift).unwrap_or(0),
    })
}

/// `~a`.
pub fn bit_not(a: &Value) -> Value {
    if a.is_null() { Value::Null } else { Value::UInt(!bit_operand(a)) }
}

/// `-a`.
pub fn negate(a: &Value) -> Result<Value, ArithError> {
    if a.is_null() {
        return Ok(Value::Null);
    }
    match number(a) {
        Number::Int(n, _) => integer(-n, false),
        Number::Decimal(n) => Ok(Value::Decimal(-n)),
        Number::Double(n) => Ok(Value::Double(-n)),
    }
}

/// The numeric class of a static type: how an operand of it computes.
fn class(ty: &ColumnType) -> ColumnKind {
    use ColumnKind::*;
    match ty.kind {
        kind if kind.is_integer() => BigInt,
        Year | Bit => BigInt,
        Decimal => Decimal,
        kind if kind.is_temporal() && ty.fsp() == 0 => BigInt,
        kind if kind.is_temporal() => Decimal,
        _ => Double,
    }
}

fn is_unsigned(ty: &ColumnType) -> bool {
    ty.unsigned || matches!(ty.kind, ColumnKind::Year | ColumnKind::Bit)
}

/// Precision and scale of an exact operand.
fn digits(ty: &ColumnType) -> (u32, u8) {
    match ty.kind {
        ColumnKind::Decimal => (ty.length, ty.decimals),
        ColumnKind::BigInt => (20 - u32::from(!ty.unsigned), 0),
        ColumnKind::Int => (10, 0),
        ColumnKind::MediumInt => (8 - u32::from(!ty.unsigned), 0),
        ColumnKind::SmallInt => (5, 0),
        ColumnKind::TinyInt => (3, 0),
        ColumnKind::Year => (4, 0),
        kind if kind.is_temporal() => (14 + u32::from(ty.fsp()), ty.fsp()),
        _ => (20, 0),
    }
}

/// The type of `a op b`, for result metadata and CREATE TABLE ... SELECT.
pub fn result_type(op: ArithOp, a: &ColumnType, b: &ColumnType, mode: ArithMode) -> ColumnType {
    use ArithOp::*;
    let unsigned = is_unsigned(a) || is_unsigned(b);
    let bigint = |unsigned| ColumnType { unsigned, ..ColumnType::of(ColumnKind::BigInt) };
    let (ca, cb) = (class(a), class(b));
    match op {
        BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight => return bigint(true),
        IntDiv => return bigint(unsigned),
        _ => {}
    }
    if ca == ColumnKind::Double || cb == ColumnKind::Double {
        let places = double_places(op, a, b);
        return ColumnType { decimals: places, ..ColumnType::of(ColumnKind::Double) };
    }
    if ca == ColumnKind::BigInt && cb == ColumnKind::BigInt && op != Div {
        return bigint(match op {
            Sub if mode.signed_subtraction => false,
            Mod => is_unsigned(a),
            _ => unsigned,
        });
    }
    let ((pa, sa), (pb, sb)) = (digits(a), digits(b));
    let (ia, ib) = (pa.saturating_sub(sa.into()), pb.saturating_sub(sb.into()));
    let (int, scale) = match op {
        Mul => (ia + ib, sa + sb),
        Div => (ia + u32::from(sb), sa.saturating_add(mode.div_increment)),
        Mod => (ia.max(ib), sa.max(sb)),
        _ => (ia.max(ib) + 1, sa.max(sb)),
    };
    let scale = scale.min(crate::decimal::MAX_SCALE);
    let precision = (int + u32::from(scale)).clamp(1, 65) as u8;
    ColumnType::decimal(precision, scale)
}

/// Places of a double result: fixed only if both operands are.
fn double_places(op: ArithOp, a: &ColumnType, b: &ColumnType) -> u8 {
    let places = |ty: &ColumnType| match class(ty) {
        ColumnKind::Double if !matches!(ty.kind, ColumnKind::Float | ColumnKind::Double) => NOT_FIXED,
        _ => ty.decimals,
    };
    match (op, places(a), places(b)) {
        (ArithOp::Div, ..) => NOT_FIXED,
        (_, x, y) if x >= NOT_FIXED || y >= NOT_FIXED => NOT_FIXED,
        (ArithOp::Mul, x, y) => (x + y).min(NOT_FIXED),
        (_, x, y) => x.max(y),
    }
}

/// The sign of a number: -1, 0, 1 (SIGN); NULL stays NULL.
pub fn sign(a: &Value) -> Value {
    if a.is_null() {
        return Value::Null;
    }
    let order = match number(a) {
        Number::Int(n, _) => n.cmp(&0),
        Number::Decimal(n) => n.cmp(&Decimal::ZERO),
        Number::Double(n) => n.partial_cmp(&0.0).unwrap_or(Ordering::Equal),
    };
    Value::Int(order as i64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use bytes::Bytes;

    #[test]
    fn integers_fail_beyond_64_bits() {
        let max = Value::Int(i64::MAX);
        let one = Value::Int(1);
        assert_eq!(apply(ArithOp::Add, &max, &one).unwrap_err().0, "BIGINT");
        let zero = Value::UInt(0);
        assert_eq!(apply(ArithOp::Sub, &zero, &one).unwrap_err().0, "BIGINT UNSIGNED");
        let mode = ArithMode { signed_subtraction: true, ..ArithMode::default() };
        let difference = apply_with(ArithOp::Sub, &zero, &one, mode).unwrap();
        assert!(matches!(difference, Value::Int(-1)));
        let big = Value::UInt(u64::MAX);
        assert_eq!(apply(ArithOp::Mul, &big, &big).unwrap_err().0, "BIGINT UNSIGNED");
        assert_eq!(negate(&big).unwrap_err().0, "BIGINT");
    }

    #[test]
    fn operators_follow_the_operands_types() {
        let text = |s: &str| Value::Bytes(Bytes::copy_from_slice(s.as_bytes()));
        let dec = |s: &str| Value::Decimal(s.parse().unwrap());
        let show = |v: Value| {
            let mut out = Vec::new();
            v.write_text(&ColumnType::of(ColumnKind::VarChar), &mut out);
            String::from_utf8(out).unwrap()
        };
        for (op, a, b, want) in [
            (ArithOp::Div, Value::Int(7), Value::Int(2), "3.5000"),
            (ArithOp::Div, Value::Double(7.0), Value::Int(2), "3.5"),
            (ArithOp::Div, Value::Int(7), Value::Int(0), ""),
            (ArithOp::IntDiv, Value::Int(-7), Value::Int(2), "-3"),
            (ArithOp::IntDiv, dec("7.5"), dec("0.5"), "15"),
            (ArithOp::Mod, Value::Int(-7), Value::Int(2), "-1"),
            (ArithOp::Mod, dec("5.5"), Value::Int(2), "1.5"),
            (ArithOp::Add, text("1abc"), Value::Int(1), "2"),
            (ArithOp::Mul, dec("1.10"), dec("2.0"), "2.200"),
            (ArithOp::ShiftLeft, Value::Int(1), Value::Int(64), "0"),
            (ArithOp::BitAnd, Value::Int(-1), Value::Int(5), "5"),
        ] {
            assert_eq!(show(apply(op, &a, &b).unwrap()), want, "{op:?} {a:?} {b:?}");
        }
    }
}
