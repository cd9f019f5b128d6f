//! Small results that the server itself makes.

use omnibus_sql::{ResultColumn, RowSink, SqlResult};
use omnibus_value::{ColumnType, Value};
use std::sync::Arc;

/// A column of text, for results that the server itself makes.
#[must_use]
pub fn text_column(name: &str, chars: u32) -> ResultColumn {
    column(name, crate::sysvars::text_type(chars))
}

/// A column of unsigned numbers, for results that the server itself makes.
#[must_use]
pub fn integer_column(name: &str) -> ResultColumn {
    column(name, crate::sysvars::integer_type(true))
}

/// A column of any type, for results that the server itself makes.
#[must_use]
pub fn column(name: &str, ty: ColumnType) -> ResultColumn {
    let empty: Arc<str> = "".into();
    ResultColumn {
        schema: empty.clone(),
        table: empty.clone(),
        org_table: empty.clone(),
        name: name.into(),
        org_name: empty,
        ty,
        flags: 0,
    }
}

/// A small result that the server itself makes.
#[derive(Debug, Default)]
pub struct ResultSet {
    /// Its columns.
    pub columns: Vec<ResultColumn>,
    /// Its rows.
    pub rows: Vec<Vec<Value>>,
}

impl ResultSet {
    /// Sends it.
    pub fn send(&self, sink: &mut dyn RowSink) -> SqlResult<()> {
        sink.columns(&self.columns)?;
        self.rows.iter().try_for_each(|row| sink.row(row))
    }
}
