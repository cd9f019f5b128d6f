//! The name `_rowid`, which stands for a table's integer key.

use super::Table;
use omnibus_value::ColumnKind;

/// The position of a column by name, or as `rowid`.
#[must_use]
pub fn column_or_rowid(table: &Table, name: &str) -> Option<usize> {
    table.column_index(name).or_else(|| rowid(table, name))
}

/// The column that the name `_rowid` stands for: the integer that is all of the primary key, or of the unique key in its place.
#[must_use]
pub fn rowid(table: &Table, name: &str) -> Option<usize> {
    let key = table.def.indexes.first().filter(|index| index.unique())?;
    let ([part], true) = (&key.parts[..], name.eq_ignore_ascii_case("_rowid")) else { return None };
    let column = &table.def.columns[part.column];
    let is_integer = column.ty.kind.is_integer() || column.ty.kind == ColumnKind::Year;
    (is_integer && !column.nullable && !column.is_hidden()).then_some(part.column)
}
