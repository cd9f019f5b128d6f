//! `CAST(document AS type ARRAY)` of multi-valued keys: members of the document are values of the type, or the row is refused. The key itself has NULL
//! for each row.

use super::Def;
use super::json::document;
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::types::{Family, family};
use crate::expr::{Context, Expr, ExprType};
use omnibus_value::convert::{Problem, StoreContext};
use omnibus_value::json::Json;
use omnibus_value::{ColumnType, Value};

/// No name that a statement can have. Its arguments are the document and a NULL of the members' type.
pub(crate) const CAST_ARRAY: &str = "\0CAST_ARRAY";

pub(super) const DEFS: &[Def] =
    &[Def::new(CAST_ARRAY, 2, 2, |args, _| Ok(args[1].ty.clone().nullable(true)), check)];

fn check(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(doc) = document(args, 0, "cast_as_array", cx)? else { return Ok(Value::Null) };
    let members = match &doc {
        Json::Object(_) => {
            return Err(SqlError::not_supported_yet("CAST-ing JSON OBJECT type to array").into());
        }
        Json::Bool(_) => {
            return Err(SqlError::not_supported_yet("CAST-ing JSON BOOLEAN type to array").into());
        }
        Json::Array(members) => members.as_slice(),
        other => std::slice::from_ref(other),
    };
    for member in members {
        store(scalar(member)?, &ty.column, cx)?;
    }
    Ok(Value::Null)
}

/// A member as a value to store.
fn scalar(member: &Json) -> SqlResult<Value> {
    Ok(match member {
        Json::Null => return Err(invalid()),
        Json::Array(_) | Json::Object(_) => {
            let message = "Cannot store an array or an object in a scalar key part of the index.";
            return Err(SqlError::new(3908, b"22018", message));
        }
        Json::Bool(truth) => Value::Int(i64::from(*truth)),
        Json::Int(n) => Value::Int(*n),
        Json::UInt(n) => Value::UInt(*n),
        Json::Double(n) => Value::Double(*n),
        Json::Decimal(n) => Value::Decimal(*n),
        Json::String(text) => Value::Bytes(text.clone().into()),
        Json::Date(date) => Value::Date(*date),
        Json::DateTime(at) | Json::Timestamp(at) => Value::DateTime(*at),
        Json::Time(time) => Value::Time(*time),
        Json::Opaque(_, bytes) => Value::Bytes(bytes.clone()),
    })
}

fn invalid() -> SqlError {
    SqlError::new(3903, b"22018", "Invalid JSON value for CAST for functional index.")
}

/// Converts a value as a column of the type would take it.
fn store(value: Value, ty: &ColumnType, cx: &Context<'_>) -> SqlResult<()> {
    // CHAR without a length takes any text.
    if family(ty.kind) == Family::String && ty.length == 0 {
        return Ok(());
    }
    let settings = &cx.session.settings;
    let context = StoreContext {
        strict: true,
        dates: settings.date_mode(),
        zone: settings.zone,
        ..StoreContext::default()
    };
    let number = family(ty.kind) == Family::Integer;
    match (value.cast_for_column(ty, &context), &value) {
        (Ok(_), _) => Ok(()),
        (Err(_), Value::Double(_)) if number => {
            let message = "Out of range JSON value for CAST for functional index.";
            Err(SqlError::new(3904, b"22003", message))
        }
        (Err(error), _) => Err(match error.0 {
            Problem::OutOfRange => {
                SqlError::new(3752, b"22003", "Value is out of range for functional index.")
            }
            Problem::TooLong => SqlError::new(3907, b"22001", "Data too long for functional index."),
            Problem::IncorrectNumber(_) => invalid(),
            Problem::Truncated if number => invalid(),
            _ => SqlError::new(3751, b"01000", "Data truncated for functional index."),
        }),
    }
}
