//! About how many bytes definitions take in memory: of all of the catalog, which the accountant has, and of a session's temporary tables.
//! Measured on definitions that make most of few words.

use super::{Column, ColumnDefault, ProgramDef, StoredExpr, TableDef, ViewDef};

/// Of an object with a name, beside what follows from its text.
const OBJECT: usize = 2 << 10;
/// Of a column: its name, its type, and their forms in rows, keys and row events.
const COLUMN: usize = 640;
/// Of an index, a check or a foreign key.
const PART: usize = 512;
/// Of a column of an earlier form of rows.
const EARLIER: usize = 160;
/// Of a label beside its letters, in the type and in row events.
const LABEL: usize = 160;
/// Of the tree of each byte of text.
const TREE: usize = 16;

/// Of a table.
pub(crate) fn of_table(def: &TableDef) -> u64 {
    let columns = def.columns.iter().map(of_column).sum::<usize>();
    let parts = def.indexes.iter().map(|index| PART + 64 * index.parts.len()).sum::<usize>();
    let checks = def.checks.iter().map(|check| PART + of_expression(&check.expr)).sum::<usize>();
    let keys = def.foreign_keys.iter().map(|key| PART + 64 * key.columns.len()).sum::<usize>();
    let earlier = def.versions.earlier.iter().map(|form| PART + EARLIER * form.types.len()).sum::<usize>();
    (OBJECT + columns + parts + checks + keys + PART * def.options.len() + earlier) as u64
}

fn of_column(column: &Column) -> usize {
    let labels = column.ty.labels.iter().map(|label| LABEL + 3 * label.len()).sum::<usize>();
    let default = match &column.default {
        ColumnDefault::Expression(expr) => of_expression(expr),
        _ => 0,
    };
    let generated = column.generated.as_ref().map_or(0, |generated| of_expression(&generated.expr));
    COLUMN + 4 * column.name.len() + column.comment.len() + labels + default + generated
}

fn of_expression(expr: &StoredExpr) -> usize {
    of_text(expr.text.len())
}

/// Of a view: its tree, which its text is printed from.
pub(crate) fn of_view(def: &ViewDef) -> usize {
    OBJECT + of_text(def.query_text(None, false).len())
}

/// Of a program: its text and its tree.
pub(crate) fn of_program(def: &ProgramDef) -> u64 {
    of_text(def.text.len()) as u64
}

/// Of a text with its tree.
pub(crate) fn of_text(bytes: usize) -> usize {
    (TREE + 1) * bytes
}
