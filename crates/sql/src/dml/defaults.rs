//! What columns get that nobody gives a value: defaults, CURRENT_TIMESTAMP, and the implicit values
//! of a lenient sql_mode.

use crate::catalog::{Column, ColumnDefault};
use crate::error::{SqlError, SqlResult};
use crate::state::SessionState;
use omnibus_value::decimal::Decimal;
use omnibus_value::temporal::{DateTime, UTC};
use omnibus_value::{ColumnKind, ColumnType, FixedKind, Value};

/// The value of CURRENT_TIMESTAMP for a column: TIMESTAMP is kept in UTC.
pub(crate) fn now_for(column: &Column, state: &SessionState) -> Value {
    let zone = if column.ty.kind == ColumnKind::Timestamp { UTC } else { state.settings.zone };
    let us = zone.local_us(state.now_us);
    let now = DateTime::from_unix(us.div_euclid(1_000_000), us.rem_euclid(1_000_000) as u32);
    Value::DateTime(now.unwrap_or_default().truncate(column.ty.decimals))
}

/// What DEFAULT gives a column; NULL for what an expression gives, until `RowExpressions` has computed it.
pub(crate) fn default_value(column: &Column, state: &SessionState) -> SqlResult<Value> {
    match &column.default {
        _ if column.generated.is_some() => Ok(Value::Null),
        ColumnDefault::Value(value) => Ok(value.clone()),
        ColumnDefault::CurrentTimestamp => Ok(now_for(column, state)),
        ColumnDefault::Expression(_) => Ok(Value::Null),
        ColumnDefault::None if column.auto_increment => Ok(Value::Null),
        ColumnDefault::None if column.ty.kind == ColumnKind::Enum && !column.nullable => Ok(Value::Enum(1)),
        ColumnDefault::None => Err(SqlError::no_default_for_field(&column.name)),
    }
}

/// What a NOT NULL column without a default gets when sql_mode is not strict.
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

/// NULL for a NOT NULL column: error 1048, or a warning and the implicit default.
pub(crate) fn null_value(column: &Column, lenient: bool, state: &mut SessionState) -> SqlResult<Value> {
    let error = SqlError::bad_null(&column.name);
    if !lenient {
        return Err(error);
    }
    state.diagnostics.warn(error);
    Ok(implicit_default(&column.ty))
}
