//! Values into variables: those of programs, which have types, and those of users.

use super::eval;
use super::into_column::into_column;
use crate::catalog::Column;
use crate::error::{SqlError, SqlResult};
use crate::state::SessionState;
use omnibus_parser::ast::AssignTarget;
use omnibus_value::{ColumnType, Value};

impl SessionState {
    /// A value as a variable or parameter of a column's type keeps it.
    ///
    /// # Errors
    /// It does not fit.
    pub(crate) fn as_column(&mut self, value: Value, ty: &ColumnType, column: &Column) -> SqlResult<Value> {
        // MariaDB counts no row here.
        let row = u64::from(!self.settings.mariadb);
        into_column(value, ty, column, row, false, self).map(eval::own)
    }

    /// Gives a value to a variable of the running program.
    ///
    /// # Errors
    /// As `as_column` and `set_local`.
    pub(crate) fn assign_local(&mut self, local: u32, value: Value, ty: &ColumnType) -> SqlResult<()> {
        let columns = self.programs.locals.columns.clone();
        let value = match columns.get(local as usize) {
            Some(column) => self.as_column(value, ty, column)?,
            None => eval::own(value),
        };
        self.set_local(local, value)
    }

    /// Gives a value to a user variable.
    ///
    /// # Errors
    /// As `set_user_variable`.
    pub(crate) fn assign_user(&mut self, name: &str, value: Value, ty: &ColumnType) -> SqlResult<()> {
        let kept = eval::for_variable(value, ty, self.settings.collation_connection);
        self.set_user_variable(name.to_owned(), kept)
    }

    /// Gives a value to a variable of either kind.
    ///
    /// # Errors
    /// As for its kind.
    pub(crate) fn assign(&mut self, target: &AssignTarget, value: Value, ty: &ColumnType) -> SqlResult<()> {
        match target {
            AssignTarget::User(name) => self.assign_user(&name.to_lowercase(), value, ty),
            AssignTarget::Local(local) => self.assign_local(*local, value, ty),
        }
    }

    /// SET NEW.column.
    ///
    /// # Errors
    /// 1054; as `assign_local`.
    pub(crate) fn assign_new(&mut self, column: &str, value: Value, ty: &ColumnType) -> SqlResult<()> {
        let local = self.programs.trigger.as_ref().and_then(|trigger| trigger.local(true, column));
        match local {
            Some(local) => self.assign_local(local, value, ty),
            None => Err(SqlError::bad_field(column, "NEW")),
        }
    }
}
