//! Values into variables: those of programs, which have types, and those of users.

use super::eval;
use super::into_column::into_column;
use crate::catalog::Column;
use crate::error::{SqlError, SqlResult};
use crate::state::SessionState;
use omnibus_parser::ast::AssignTarget;
use omnibus_value::{ColumnType, Value};

/// A value as a variable or parameter of a column's type keeps it.
///
/// # Errors
/// It does not fit.
pub(crate) fn as_column(
    state: &mut SessionState,
    value: Value,
    ty: &ColumnType,
    column: &Column,
) -> SqlResult<Value> {
    // MariaDB counts no row here.
    let row = u64::from(!state.settings.mariadb);
    into_column(value, ty, column, row, false, state).map(eval::own)
}

/// Gives a value to a variable of the running program.
///
/// # Errors
/// As `as_column` and `set_local`.
pub(crate) fn to_local(state: &mut SessionState, local: u32, value: Value, ty: &ColumnType) -> SqlResult<()> {
    let columns = state.programs.locals.columns.clone();
    let value = match columns.get(local as usize) {
        Some(column) => as_column(state, value, ty, column)?,
        None => eval::own(value),
    };
    state.set_local(local, value)
}

/// Gives a value to a user variable.
///
/// # Errors
/// As `set_user_variable`.
pub(crate) fn to_user(state: &mut SessionState, name: &str, value: Value, ty: &ColumnType) -> SqlResult<()> {
    let kept = eval::for_variable(value, ty, state.settings.collation_connection);
    state.set_user_variable(name.to_owned(), kept)
}

/// Gives a value to a variable of either kind.
///
/// # Errors
/// As for its kind.
pub(crate) fn to_target(
    state: &mut SessionState,
    target: &AssignTarget,
    value: Value,
    ty: &ColumnType,
) -> SqlResult<()> {
    match target {
        AssignTarget::User(name) => to_user(state, &name.to_lowercase(), value, ty),
        AssignTarget::Local(local) => to_local(state, *local, value, ty),
    }
}

/// SET NEW.column.
///
/// # Errors
/// 1054; as `to_local`.
pub(crate) fn to_new(state: &mut SessionState, column: &str, value: Value, ty: &ColumnType) -> SqlResult<()> {
    let local = state.programs.trigger.as_ref().and_then(|trigger| trigger.local(true, column));
    match local {
        Some(local) => to_local(state, local, value, ty),
        None => Err(SqlError::bad_field(column, "NEW")),
    }
}
