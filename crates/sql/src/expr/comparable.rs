//! Values as what they are compared with: the table of MySQL's rules for comparing operands of unlike types.
//!
//! The binder (`bind::compare`) wraps an operand in [`Kind::Comparable`](super::Kind) where the other one asks for it, so that
//! comparing two values needs nothing but their tags, and an index, a WHERE clause and a CASE all see the same operand.
//!
//! | one side | other side | compared as |
//! | --- | --- | --- |
//! | INTEGER, DECIMAL | constant text | exact numbers ([`As::Number`]) |
//! | INTEGER, DECIMAL | text that changes from row to row | doubles |
//! | DATE, DATETIME | text | date and time ([`As::DateTime`]); text that is none is the zero date, a constant an error in the mysql dialect |
//! | DATE, DATETIME | constant integer | date and time, if it is one |
//! | TIME column | constant text that is a time; in the mariadb dialect any text | times ([`As::Time`]); text that is none is the zero time |
//! | other TIME | text | texts |
//! | TIME | DATE, DATETIME | date and time, the TIME on the current day |
//! | YEAR | constant | years ([`As::Year`]): 1 is 2001 |
//! | FLOAT(M,D) | number with D or fewer decimals | rounded to D decimals ([`As::Rounded`]) |
//! | UUID, INET4, INET6 | text | the same type ([`As::Fixed`]); text that is none is NULL |
//! | JSON | a parameter that is text | a number if it is one ([`As::NumberIfAny`]), else text |
//! | everything else | | by the tags: `compare` |

use super::context::Context;
use super::convert::{is_no_double, is_quiet, text_to_f64, to_text};
use super::node::Expr;
use crate::error::{ExecResult, SqlError};
use omnibus_value::decimal::Decimal;
use omnibus_value::temporal::{DateMode, Time, datetime_from_number, year_from_number};
use omnibus_value::{FixedKind, Value};

/// The type that an operand becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum As {
    /// Text as the exact number that it is.
    Number,
    /// Text as the number that it is, if it is one.
    NumberIfAny,
    /// Text as a double.
    Double,
    /// A number or text as a year.
    Year,
    /// Converts text, a TIME, and the number that a parameter or a variable has, to date and time.
    DateTime,
    /// Converts text to a time.
    Time,
    /// Text or bytes as a UUID or an address.
    Fixed(FixedKind),
    /// A number rounded to this many decimals.
    Rounded(u8),
}

/// Evaluates `e` as `what`; what needs no conversion stays as it is.
///
/// # Errors
/// As evaluation of the operand.
pub fn eval(what: As, e: &Expr, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = e.eval(cx)?;
    Ok(match (what, &value) {
        (_, Value::Null) => value,
        (As::Number, Value::Bytes(text)) => exact(text, e, cx),
        (As::NumberIfAny, Value::Bytes(text)) => match Decimal::parse(text) {
            parsed if parsed.empty || parsed.overflow || parsed.truncated => value,
            _ => exact(text, e, cx),
        },
        (As::Double, Value::Bytes(text)) => Value::Double(double(text, e, cx)),
        (As::Double, Value::Json(_)) => Value::Double(e.to_f64(&value, cx)),
        (As::Year, _) => year(&value, e, cx),
        (As::DateTime, Value::Bytes(_) | Value::Time(_)) => {
            Value::DateTime(e.to_datetime(&value, cx).unwrap_or_default())
        }
        (As::DateTime, Value::Int(n)) => match datetime_from_number(*n, DateMode::RELAXED) {
            Ok((at, _)) => Value::DateTime(at),
            Err(_) => value,
        },
        (As::DateTime, Value::Enum(_) | Value::Set(_)) => {
            let text = Value::Bytes(to_text(&value, &e.ty.column));
            Value::DateTime(e.to_datetime(&text, cx).unwrap_or_default())
        }
        (As::Time, Value::Bytes(_)) => {
            let time = Expr::constant(value, e.ty.clone()).eval_time(cx)?;
            Value::Time(time.unwrap_or(Time::ZERO))
        }
        (As::Fixed(kind), _) => super::cast::fixed(e, &value, kind, cx),
        (As::Rounded(decimals), Value::Float(n)) => rounded(f64::from(*n), decimals),
        (As::Rounded(decimals), Value::Double(n)) => rounded(*n, decimals),
        _ => value,
    })
}

/// The number that a constant text is: an integer or a decimal if it can be one of these.
fn exact(text: &[u8], e: &Expr, cx: &mut Context<'_>) -> Value {
    let parsed = Decimal::parse(text);
    if parsed.empty || parsed.overflow || parsed.truncated {
        return Value::Double(double(text, e, cx));
    }
    let whole = parsed.value.truncate(0) == parsed.value;
    match (whole, parsed.value.to_i64(), parsed.value.to_u64()) {
        (true, Ok(n), _) => Value::Int(n),
        (true, _, Ok(n)) => Value::UInt(n),
        _ => Value::Decimal(parsed.value),
    }
}

fn double(text: &[u8], e: &Expr, cx: &mut Context<'_>) -> f64 {
    if is_no_double(text, cx) && !is_quiet(e, cx) {
        no_number(text, e.is_fixed(), cx);
    }
    text_to_f64(text).0
}

/// Complains of text that is compared with a number and is none; of a constant once, not for each row.
#[cold]
pub fn no_number(text: &[u8], constant: bool, cx: &mut Context<'_>) {
    let condition = SqlError::truncated_wrong_value("DOUBLE", String::from_utf8_lossy(text));
    let before = cx.session.diagnostics.conditions().last();
    if !(constant && before.is_some_and(|(_, before)| before.is_same(&condition))) {
        cx.warn(condition);
    }
}

/// 1 to 69 are years of this century, 70 to 99 of the one before, '0' is 2000; what is no year stays a number.
fn year(value: &Value, e: &Expr, cx: &mut Context<'_>) -> Value {
    let number = match value {
        Value::Year(_) => return value.clone(),
        Value::Date(date) => i128::from(date.year()),
        Value::DateTime(at) => i128::from(at.date().year()),
        Value::Bytes(text) => match exact(text, e, cx) {
            // Four digits are the year as it is written.
            Value::Int(0) if text.len() != 4 => 2000,
            number => e.to_int(&number, cx),
        },
        value => e.to_int(value, cx),
    };
    match i64::try_from(number).ok().and_then(|n| year_from_number(n).ok()) {
        Some(year) => Value::Int(i64::from(year)),
        None => value.clone(),
    }
}

fn rounded(n: f64, decimals: u8) -> Value {
    let power = 10f64.powi(i32::from(decimals));
    let shifted = n * power;
    Value::Double(if shifted.is_finite() { shifted.round_ties_even() / power } else { n })
}
