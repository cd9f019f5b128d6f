//! Documents that a query gives to columns of other types: what MySQL stores of them, and how its errors call them.

use crate::api::ResultColumn;
use crate::catalog::Column;
use crate::error::SqlError;
use crate::expr::node::{Expr, Kind};
use crate::plan::QueryPlan;
use crate::state::SessionState;
use omnibus_value::{ColumnKind, ColumnType, Value};
use std::borrow::Cow;

/// A value, or the text of a computed document that goes into a YEAR, and its type.
pub(super) fn as_stored<'t>(
    value: Value,
    source: &'t ColumnType,
    column: &Column,
    of: &ResultColumn,
    state: &SessionState,
) -> (Value, Cow<'t, ColumnType>) {
    let computed = of.org_name.is_empty() && column.ty.kind == ColumnKind::Year;
    if !matches!(value, Value::Json(_)) || !computed || state.settings.mariadb {
        return (value, Cow::Borrowed(source));
    }
    let text = ColumnType::of(ColumnKind::LongText);
    (Value::Bytes(value.to_bytes(&text)), Cow::Owned(text))
}

/// An error of a document that its column does not take: it names where the document comes from.
pub(super) fn refused(mut error: SqlError, column: &Column, query: &QueryPlan, at: usize) -> SqlError {
    if error.code == 3156
        && let Some(name) = source_name(query, at)
    {
        let own = format!("from column {} at row", column.name);
        error.message = error.message.replacen(&own, &format!("from column {name} at row"), 1);
    }
    error
}

fn source_name(query: &QueryPlan, at: usize) -> Option<Cow<'_, str>> {
    let of = query.columns.get(at)?;
    if !of.org_name.is_empty() {
        return Some(Cow::Borrowed(&of.org_name));
    }
    match query.root.outputs().get(at) {
        Some(Expr { kind: Kind::Call(function, _), .. }) => Some(Cow::Owned(function.name.to_lowercase())),
        _ => None,
    }
}
