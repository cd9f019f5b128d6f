//! Assignment: a value becomes what a column stores, with MySQL's errors and warnings.
//!
//! The conversion itself is `omnibus_value`'s; here are its short cuts for values that fit as they
//! are, and the session around it.

use crate::api::SessionSettings;
use crate::catalog::Column;
use crate::error::{Level, SqlError, SqlResult};
use crate::expr::types::{Family, family};
use crate::state::SessionState;
use omnibus_value::column::NOT_FIXED;
use omnibus_value::convert::{Problem, StoreContext};
use omnibus_value::decimal::Decimal;
use omnibus_value::temporal::{Date, DateMode, DateTime, Zone};
use omnibus_value::text::{write_f32_within, write_f64_within};
use omnibus_value::{ColumnKind, ColumnType, FixedKind, Value, collation};

/// A value that fits a column as it is, the usual case.
fn fits(value: &Value, source: &ColumnType, ty: &ColumnType) -> bool {
    use ColumnKind as K;
    match value {
        Value::Null => true,
        Value::Int(number) if !ty.unsigned => match ty.kind {
            K::TinyInt => i8::try_from(*number).is_ok(),
            K::SmallInt => i16::try_from(*number).is_ok(),
            K::MediumInt => (-(1 << 23)..1 << 23).contains(number),
            K::Int => i32::try_from(*number).is_ok(),
            K::BigInt => true,
            _ => false,
        },
        Value::UInt(number) if ty.unsigned => match ty.kind {
            K::TinyInt => u8::try_from(*number).is_ok(),
            K::SmallInt => u16::try_from(*number).is_ok(),
            K::MediumInt => *number < 1 << 24,
            K::Int => u32::try_from(*number).is_ok(),
            K::BigInt => true,
            _ => false,
        },
        // ASCII is the same text in every character set; as many bytes as characters.
        Value::Bytes(_) if matches!(source.kind, K::Enum | K::Set) => false,
        Value::Bytes(text) => match ty.kind {
            K::VarChar => text.len() <= ty.length as usize && text.is_ascii(),
            K::Char => text.len() <= ty.length as usize && text.last() != Some(&b' ') && text.is_ascii(),
            K::VarBinary => text.len() <= ty.length as usize,
            K::Text | K::MediumText | K::LongText => text.len() <= 0xffff && text.is_ascii(),
            K::Blob | K::MediumBlob | K::LongBlob => text.len() <= 0xffff,
            _ => false,
        },
        _ => false,
    }
}

/// The value as the column stores it. `row` counts from 1 in the statement.
pub(crate) fn into_column(
    value: Value,
    source: &ColumnType,
    column: &Column,
    row: u64,
    ignore: bool,
    state: &mut SessionState,
) -> SqlResult<Value> {
    if fits(&value, source, &column.ty) {
        return Ok(value);
    }
    let strict = state.settings.strict() && !ignore;
    let value = as_text(value, source, &column.ty);
    let value = if state.settings.mariadb { value } else { real_as_text(value, source, &column.ty) };
    let zone = state.settings.zone;
    let now = zone.local_us(state.statement.now_us);
    let context = StoreContext {
        strict,
        dates: state.settings.date_mode(),
        charset: collation::by_id_or_binary(text_collation(source, &state.settings)).charset,
        zone,
        today: DateTime::from_unix(now.div_euclid(1_000_000), 0).map_or(Date::ZERO, DateTime::date),
    };
    let mariadb = state.settings.mariadb;
    let named = |problem, refused| match mariadb {
        true => problem,
        false => in_mysql(problem, &value, &column.ty, refused),
    };
    let condition = |problem: Problem| {
        let text = value.to_bytes(source);
        SqlError::new(problem.code(), &state_of(problem), problem.message(&column.name, row, &text))
    };
    match value.cast_for_column(&column.ty, &context) {
        Err(error) => Err(condition(named(error.0, true))),
        Ok(stored) => {
            // MySQL says nothing of the date of what becomes a time.
            let told = mariadb || !matches!((&value, column.ty.kind), (Value::DateTime(_), ColumnKind::Time));
            if let Some(problem) = stored.problem.filter(|problem| told || *problem != Problem::Rounded) {
                let problem = named(problem, false);
                let level = if problem.is_note() { Level::Note } else { Level::Warning };
                let condition = condition(problem);
                state.diagnostics.push(level, condition);
            }
            // What is no value of its type is NULL, where it may be.
            if stored.value.is_null() && !column.nullable {
                return Ok(implicit_default(&column.ty));
            }
            Ok(stored.value)
        }
    }
}

/// MySQL's name of the problem of text that is no number from end to end.
fn in_mysql(problem: Problem, value: &Value, target: &ColumnType, refused: bool) -> Problem {
    match (problem, value, target.kind) {
        (Problem::Truncated, Value::Bytes(_), ColumnKind::Double) => Problem::IncorrectNumber("DOUBLE"),
        (Problem::Truncated, Value::Bytes(_), ColumnKind::Float) => Problem::IncorrectNumber("FLOAT"),
        (Problem::Truncated, Value::Bytes(_), ColumnKind::Decimal) if refused => {
            Problem::IncorrectNumber("decimal")
        }
        (Problem::Truncated, Value::Bytes(_), ColumnKind::Decimal) => Problem::Rounded,
        (Problem::Rounded, Value::Bytes(_) | Value::DateTime(_), ColumnKind::Date) => {
            Problem::Dropped("date")
        }
        (Problem::Rounded, Value::Bytes(_), ColumnKind::Time) => Problem::Dropped("time"),
        _ => problem,
    }
}

/// Whether a column's values are numbers: BIT's are bytes as well.
pub(crate) fn is_number(kind: ColumnKind) -> bool {
    let number = matches!(family(kind), Family::Integer | Family::Decimal | Family::Real);
    number && kind != ColumnKind::Bit
}

/// ENUM and SET values leave their type as text.
fn as_text(value: Value, source: &ColumnType, target: &ColumnType) -> Value {
    if matches!(value, Value::Enum(0)) && target.kind == ColumnKind::Enum {
        return value;
    }
    let labelled = matches!(value, Value::Enum(_) | Value::Set(_));
    let same = source.kind == target.kind && source.labels == target.labels;
    let number = is_number(target.kind) || target.kind == ColumnKind::Bit;
    let printed = matches!(value, Value::Time(_) | Value::DateTime(_) | Value::Fixed(_));
    let bytes = matches!(value, Value::Fixed(_)) && target.collation == collation::BINARY_ID;
    if printed && !bytes && family(target.kind) == Family::String {
        return Value::Bytes(crate::expr::convert::to_text(&value, source));
    }
    if labelled && !same && !number { Value::Bytes(value.to_bytes(source)) } else { value }
}

/// Doubles go into TEXT as functions of text take them.
fn real_as_text(value: Value, source: &ColumnType, target: &ColumnType) -> Value {
    if !target.kind.is_lob() || source.decimals < NOT_FIXED {
        return value;
    }
    let mut text = Vec::new();
    let written = match &value {
        Value::Double(n) => write_f64_within(*n, 24, &mut text),
        Value::Float(n) => write_f32_within(*n, 12, &mut text),
        _ => false,
    };
    if written { Value::Bytes(text.into()) } else { value }
}

fn text_collation(source: &ColumnType, settings: &SessionSettings) -> u16 {
    use ColumnKind as K;
    match source.kind {
        K::Char | K::VarChar | K::TinyText | K::Text | K::MediumText | K::LongText | K::Enum | K::Set => {
            source.collation
        }
        K::Binary | K::VarBinary | K::TinyBlob | K::Blob | K::MediumBlob | K::LongBlob => 63,
        _ => settings.collation_connection,
    }
}

fn state_of(problem: Problem) -> [u8; 5] {
    problem.sqlstate().as_bytes().try_into().unwrap_or(*b"HY000")
}

/// A literal as a column's default stores it.
pub(crate) fn store(value: Value, column: &Column, dates: DateMode, zone: Zone) -> SqlResult<Value> {
    let context = StoreContext { strict: true, dates, zone, ..StoreContext::default() };
    value.cast_for_column(&column.ty, &context).map(|stored| stored.value).map_err(|error| {
        let problem = in_mysql(error.0, &value, &column.ty, true);
        let text = problem.message(&column.name, 1, &value.to_bytes(&column.ty));
        SqlError::new(problem.code(), &state_of(problem), text)
    })
}

/// The value of a NOT NULL column without a default when sql_mode is not strict.
pub(crate) fn implicit_default(ty: &ColumnType) -> Value {
    use ColumnKind as K;
    match ty.kind {
        K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt if ty.unsigned => Value::UInt(0),
        K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt => Value::Int(0),
        K::Float => Value::Float(0.0),
        K::Double => Value::Double(0.0),
        K::Decimal => Value::Decimal(Decimal::from_i128(0, ty.decimals)),
        K::Bit => Value::Bit(0),
        K::Year => Value::Year(0),
        K::Date => Value::Date(Default::default()),
        K::Time => Value::Time(Default::default()),
        K::DateTime | K::Timestamp => Value::DateTime(Default::default()),
        K::Enum => Value::Enum(1),
        K::Set => Value::Set(0),
        K::Json => Value::Json(omnibus_value::json::text_to_binary(b"null").unwrap_or_default()),
        K::Uuid | K::Inet4 | K::Inet6 => match FixedKind::of(ty.kind) {
            Some(kind) => Value::Fixed(kind.zero()),
            None => Value::Null,
        },
        K::Binary => Value::Bytes(vec![0; ty.length as usize].into()),
        _ => Value::Bytes(bytes::Bytes::new()),
    }
}
