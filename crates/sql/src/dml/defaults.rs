//! Values of columns that nobody gives one: defaults, CURRENT_TIMESTAMP, and the implicit values
//! of a lenient sql_mode.

pub(crate) use crate::expr::into_column::implicit_default;

use crate::catalog::{Column, ColumnDefault};
use crate::error::{SqlError, SqlResult};
use crate::state::SessionState;
use omnibus_value::temporal::{DateTime, UTC};
use omnibus_value::{ColumnKind, Value};

/// The value of CURRENT_TIMESTAMP for a column: TIMESTAMP is kept in UTC.
pub(crate) fn now_for(column: &Column, state: &SessionState) -> Value {
    let zone = if column.ty.kind == ColumnKind::Timestamp { UTC } else { state.settings.zone };
    let us = zone.local_us(state.statement.now_us);
    let now = DateTime::from_unix(us.div_euclid(1_000_000), us.rem_euclid(1_000_000) as u32);
    Value::DateTime(now.unwrap_or_default().truncate(column.ty.decimals))
}

/// The value that DEFAULT gives a column; NULL for what an expression gives, until `RowExpressions` has computed it.
pub(crate) fn default_value(column: &Column, state: &SessionState) -> SqlResult<Value> {
    match &column.default {
        _ if column.generated.is_some() => Ok(Value::Null),
        ColumnDefault::Value(value) => Ok(value.clone()),
        ColumnDefault::CurrentTimestamp => Ok(now_for(column, state)),
        ColumnDefault::Expression(_) => Ok(Value::Null),
        ColumnDefault::None if column.auto_increment => Ok(Value::Null),
        ColumnDefault::None if column.ty.kind == ColumnKind::Enum => Ok(without_default(column)),
        ColumnDefault::None => Err(SqlError::no_default_for_field(&column.name)),
    }
}

/// The value of a column without a default where that is no error.
pub(crate) fn without_default(column: &Column) -> Value {
    if column.nullable { Value::Null } else { implicit_default(&column.ty) }
}

/// Whether nothing but an implicit value is there for a column that is given none.
pub(crate) fn has_no_default(column: &Column) -> bool {
    let has_one = column.auto_increment || column.generated.is_some();
    matches!(column.default, ColumnDefault::None) && !has_one
}

/// NULL for a NOT NULL column: error 1048, or a warning and the implicit default.
pub(crate) fn null_value(column: &Column, lenient: bool, state: &mut SessionState) -> SqlResult<Value> {
    let error = SqlError::bad_null(&column.name);
    if !lenient {
        return Err(error);
    }
    state.diagnostics.warn(error);
    // A member that is missing is the first; NULL is none of them.
    match column.ty.kind {
        ColumnKind::Enum => Ok(Value::Enum(0)),
        _ => Ok(implicit_default(&column.ty)),
    }
}
