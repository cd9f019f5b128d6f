//! `CAST(document AS type ARRAY)` of multi-valued keys: members of the document are values of the type, or the row is refused. The key itself has NULL
//! for each row.

use super::Def;
use super::json::document;
use crate::error::{ExecResult, SqlError};
use crate::expr::types::{Family, family};
use crate::expr::{Context, Expr, ExprType};
use omnibus_value::json::Json;
use omnibus_value::{ColumnKind, Value};

/// No name that a statement can have. Its arguments are the document and a NULL of the members' type.
pub(crate) const CAST_ARRAY: &str = "\0CAST_ARRAY";

pub(super) const DEFS: &[Def] =
    &[Def::new(CAST_ARRAY, 2, 2, |args, _| Ok(args[1].ty.clone().nullable(true)), check)];

fn check(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(doc) = document(args, 0, "cast_as_array", cx)? else { return Ok(Value::Null) };
    let members = match &doc {
        Json::Array(members) => members.as_slice(),
        other => std::slice::from_ref(other),
    };
    match members.iter().all(|member| is_of(member, ty)) {
        true => Ok(Value::Null),
        false => {
            let message = "Invalid JSON value for CAST for functional index.";
            Err(SqlError::new(3903, b"22018", message).into())
        }
    }
}

/// Whether a member may be a value of a type.
fn is_of(member: &Json, ty: &ExprType) -> bool {
    match (family(ty.column.kind), member) {
        (Family::Integer, Json::Int(n)) => !ty.is_unsigned() || *n >= 0,
        (Family::Integer, Json::UInt(n)) => ty.is_unsigned() || i64::try_from(*n).is_ok(),
        (Family::Decimal, Json::Int(_) | Json::UInt(_) | Json::Decimal(_) | Json::Double(_)) => true,
        (Family::String, Json::String(text)) => {
            let longest = ty.column.length as usize;
            longest == 0 || text.chars().count() <= longest
        }
        (Family::String, Json::Opaque(..)) => {
            matches!(ty.column.kind, ColumnKind::Binary | ColumnKind::VarBinary)
        }
        (Family::Date, Json::Date(_))
        | (Family::Time, Json::Time(_))
        | (Family::DateTime, Json::DateTime(_) | Json::Date(_)) => true,
        _ => false,
    }
}
