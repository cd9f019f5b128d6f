//! `+ - * / DIV %` and unary minus, with MySQL's result types and overflow errors.
//!
//! The operands' tags decide: a double or text on either side makes it double, else a decimal makes
//! it decimal, else it is exact integer arithmetic, unsigned if either side is.

use super::context::Context;
use super::node::{ArithOp, Expr};
use super::types::ExprType;
use crate::api::{SessionSettings, sql_mode};
use crate::error::{ExecResult, SqlError};
use omnibus_value::Value;
use omnibus_value::decimal::Decimal;

/// An operand in the family it computes in.
enum Number {
    Integer(i128, bool),
    Decimal(Decimal),
    Real(f64),
}

fn number(e: &Expr, value: &Value, cx: &mut Context<'_>) -> Number {
    match value {
        Value::Int(n) => Number::Integer(i128::from(*n), false),
        Value::UInt(n) | Value::Bit(n) => Number::Integer(i128::from(*n), true),
        Value::Year(n) => Number::Integer(i128::from(*n), true),
        Value::Decimal(d) => Number::Decimal(*d),
        Value::Date(d) => Number::Integer(i128::from(d.to_number()), false),
        Value::DateTime(_) | Value::Time(_) => {
            let d = e.to_decimal(value, cx);
            match (e.ty.column.decimals, d.to_i64()) {
                (0, Ok(n)) => Number::Integer(i128::from(n), false),
                _ => Number::Decimal(d),
            }
        }
        value => Number::Real(e.to_f64(value, cx)),
    }
}

/// As [`number`], but never a double unless it is past what a DECIMAL holds.
fn exact(e: &Expr, value: &Value, cx: &mut Context<'_>) -> Number {
    match value {
        Value::Bytes(_) => Number::Decimal(e.to_decimal(value, cx)),
        _ => match number(e, value, cx) {
            Number::Real(n) => Decimal::from_f64(n).map_or(Number::Real(n), Number::Decimal),
            number => number,
        },
    }
}

/// Evaluates `left op right`.
///
/// # Errors
/// 1690 when the result does not fit its type.
pub fn binary(
    op: ArithOp,
    left: &Expr,
    right: &Expr,
    ty: &ExprType,
    cx: &mut Context<'_>,
) -> ExecResult<Value> {
    let a = left.eval(cx)?;
    if matches!(a, Value::Null) {
        return Ok(Value::Null);
    }
    let b = right.eval(cx)?;
    match (op, &a, &b) {
        (_, _, Value::Null) => return Ok(Value::Null),
        (ArithOp::Add, Value::Int(a), Value::Int(b)) => {
            if let Some(sum) = a.checked_add(*b) {
                return Ok(Value::Int(sum));
            }
        }
        (ArithOp::Sub, Value::Int(a), Value::Int(b)) => {
            if let Some(difference) = a.checked_sub(*b) {
                return Ok(Value::Int(difference));
            }
        }
        (_, Value::Decimal(x), Value::Decimal(y)) if op != ArithOp::IntDiv => {
            let result = decimal(op, x, y, &cx.session.settings, ty);
            return outcome(result, op, left, right, cx);
        }
        _ => {}
    }
    let (x, y) = match op {
        // DIV of text or doubles is one of decimals.
        ArithOp::IntDiv => (exact(left, &a, cx), exact(right, &b, cx)),
        _ => (number(left, &a, cx), number(right, &b, cx)),
    };
    let result = match (x, y) {
        (Number::Real(x), y) => real(op, x, as_real(&y), cx),
        (x, Number::Real(y)) => real(op, as_real(&x), y, cx),
        (Number::Integer(x, xu), Number::Integer(y, yu)) if op != ArithOp::Div => {
            let no_unsigned = cx.session.settings.sql_mode & sql_mode::NO_UNSIGNED_SUBTRACTION != 0;
            let unsigned = match op {
                ArithOp::Sub => (xu || yu) && !no_unsigned,
                ArithOp::Mod => xu,
                _ => xu || yu,
            };
            integer(op, x, y, unsigned)
        }
        (x, y) => decimal(op, &as_decimal(&x), &as_decimal(&y), &cx.session.settings, ty),
    };
    outcome(result, op, left, right, cx)
}

/// A quotient of exact numbers: in MySQL 9 it has the digits that are shown and no more.
fn quotient(x: &Decimal, y: &Decimal, settings: &SessionSettings) -> Outcome {
    match x.div(y, settings.div_precision_increment) {
        Ok(None) => Outcome::ByZero,
        Ok(Some(quotient)) if settings.mariadb => Outcome::Value(Value::Decimal(quotient)),
        Ok(Some(quotient)) => Outcome::Value(Value::Decimal(quotient.as_shown())),
        Err(_) => Outcome::Overflow("DECIMAL"),
    }
}

fn outcome(
    result: Outcome,
    op: ArithOp,
    left: &Expr,
    right: &Expr,
    cx: &mut Context<'_>,
) -> ExecResult<Value> {
    match result {
        Outcome::Value(value) => Ok(value),
        Outcome::ByZero => {
            cx.division_by_zero()?;
            Ok(Value::Null)
        }
        Outcome::Overflow(kind) => {
            Err(SqlError::data_out_of_range(kind, super::print::binary(op, left, right, cx)).into())
        }
    }
}

enum Outcome {
    Value(Value),
    ByZero,
    Overflow(&'static str),
}

fn as_real(n: &Number) -> f64 {
    match n {
        Number::Integer(n, _) => *n as f64,
        Number::Decimal(d) => d.to_f64(),
        Number::Real(n) => *n,
    }
}

fn as_decimal(n: &Number) -> Decimal {
    match n {
        Number::Integer(n, _) => Decimal::from_i128(*n, 0),
        Number::Decimal(d) => *d,
        Number::Real(n) => Decimal::from_f64(*n).unwrap_or_default(),
    }
}

/// The integer as a BIGINT of the given sign.
fn big_integer(n: i128, unsigned: bool) -> Outcome {
    if unsigned {
        return u64::try_from(n)
            .map_or(Outcome::Overflow("BIGINT UNSIGNED"), |n| Outcome::Value(Value::UInt(n)));
    }
    i64::try_from(n).map_or(Outcome::Overflow("BIGINT"), |n| Outcome::Value(Value::Int(n)))
}

fn integer(op: ArithOp, x: i128, y: i128, unsigned: bool) -> Outcome {
    let result = match op {
        ArithOp::Add => x + y,
        ArithOp::Sub => x - y,
        // Two 64-bit magnitudes: the product fits 128 bits but for u64::MAX squared, which is
        // checked.
        ArithOp::Mul => match x.checked_mul(y) {
            Some(product) => product,
            None => return Outcome::Overflow(if unsigned { "BIGINT UNSIGNED" } else { "BIGINT" }),
        },
        ArithOp::IntDiv | ArithOp::Mod | ArithOp::Div if y == 0 => return Outcome::ByZero,
        ArithOp::Mod => x % y,
        ArithOp::IntDiv | ArithOp::Div => x / y,
    };
    big_integer(result, unsigned)
}

fn real(op: ArithOp, x: f64, y: f64, cx: &Context<'_>) -> Outcome {
    let result = match op {
        ArithOp::Add => x + y,
        ArithOp::Sub => x - y,
        ArithOp::Mul => x * y,
        _ if y == 0.0 => return Outcome::ByZero,
        ArithOp::Div => x / y,
        ArithOp::Mod => x % y,
        ArithOp::IntDiv => {
            let quotient = (x / y).trunc();
            if quotient.abs() >= 9.3e18 {
                return Outcome::Overflow("BIGINT");
            }
            return big_integer(quotient as i128, false);
        }
    };
    match result.is_finite() {
        true => Outcome::Value(Value::Double(with_zero(result, cx))),
        false => Outcome::Overflow("DOUBLE"),
    }
}

/// A double as it is shown: a zero of MariaDB has no sign.
pub(super) fn with_zero(n: f64, cx: &Context<'_>) -> f64 {
    if cx.session.settings.mariadb { n + 0.0 } else { n }
}

fn decimal(op: ArithOp, x: &Decimal, y: &Decimal, settings: &SessionSettings, ty: &ExprType) -> Outcome {
    let result = match op {
        ArithOp::Add => x.add(y),
        ArithOp::Sub if ty.column.unsigned => match x.sub(y) {
            Ok(difference) if difference.is_negative() => return Outcome::Overflow("DECIMAL UNSIGNED"),
            difference => difference,
        },
        ArithOp::Sub => x.sub(y),
        ArithOp::Mul => x.mul(y),
        ArithOp::Div => return quotient(x, y, settings),
        ArithOp::Mod => match x.rem(y) {
            None => return Outcome::ByZero,
            Some(rest) => Ok(rest),
        },
        ArithOp::IntDiv if y.is_zero() => return Outcome::ByZero,
        ArithOp::IntDiv => {
            return match x.int_div(y) {
                Some(quotient) => big_integer(quotient, ty.column.unsigned),
                None => Outcome::Overflow("BIGINT"),
            };
        }
    };
    result.map_or(Outcome::Overflow("DECIMAL"), |d| Outcome::Value(Value::Decimal(d)))
}

/// Evaluates `-e`.
///
/// # Errors
/// 1690 for the most negative BIGINT and unsigned values past it.
pub fn negate(e: &Expr, _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = e.eval(cx)?;
    if matches!(value, Value::Null) {
        return Ok(Value::Null);
    }
    match number(e, &value, cx) {
        Number::Integer(n, _) => match big_integer(-n, false) {
            Outcome::Value(value) => Ok(value),
            _ => Err(SqlError::data_out_of_range("BIGINT", super::print::negated(e, cx)).into()),
        },
        Number::Decimal(d) => Ok(Value::Decimal(Decimal::ZERO.sub(&d).unwrap_or(d))),
        Number::Real(n) => Ok(Value::Double(with_zero(-n, cx))),
    }
}
