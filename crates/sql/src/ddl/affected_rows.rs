//! The part of an ALTER TABLE's reply that counts rows: MySQL counts those that it copies. Columns that come, go or move, and another
//! primary key, it deals with in place.

use super::copy::ColumnSource;
use super::defaults::reads_new_default;
use crate::bind::scope::same;
use crate::catalog::{Column, Index, IndexKind, TableDef};
use omnibus_parser::print;

/// Returns how many of the `rows` that were copied the reply counts: all if a copy was `asked` for.
pub(super) fn counted(
    old: &TableDef,
    new: &TableDef,
    sources: &[ColumnSource],
    (strict, asked): (bool, bool),
    rows: u64,
) -> u64 {
    if asked || is_copy(old, new, sources, strict) { rows } else { 0 }
}

fn is_copy(old: &TableDef, new: &TableDef, sources: &[ColumnSource], strict: bool) -> bool {
    let added = |name: &str| {
        let mut columns = new.columns.iter().zip(sources);
        columns.any(|(column, source)| *source == ColumnSource::Added && same(&column.name, name))
    };
    let stored = |column: &Column| column.generated.as_ref().is_some_and(|generated| generated.stored);
    let reads_added = |column: &Column| {
        let generated = column.generated.as_ref().filter(|generated| generated.stored);
        generated
            .is_some_and(|generated| print::column_names(&generated.expr.tree).iter().any(|name| added(name)))
    };
    let changed = new.columns.iter().zip(sources).any(|(column, source)| match source {
        ColumnSource::Old(at) => {
            let before = &old.columns[*at];
            let computed =
                |column: &Column| column.generated.as_ref().map(|g| (g.stored, g.expr.text.clone()));
            before.ty != column.ty
                || before.auto_increment != column.auto_increment
                || computed(before) != computed(column)
                || before.nullable && !column.nullable && !strict
                || reads_added(column)
                || reads_new_default(old, new, column)
        }
        _ => stored(column),
    });
    let has_key = |def: &TableDef| {
        let never_null = |index: &Index| index.parts.iter().all(|part| !def.columns[part.column].nullable);
        def.indexes.iter().any(|index| index.unique() && !index.parts.is_empty() && never_null(index))
    };
    let has_primary = |def: &TableDef| def.indexes.iter().any(|index| index.kind == IndexKind::Primary);
    let loses = |has: &dyn Fn(&TableDef) -> bool| has(old) && !has(new);
    changed
        || *old.engine != *new.engine
        || loses(&has_key)
        || loses(&has_primary)
        || mixes_virtual(old, new, sources)
}

/// Whether virtual columns, those of indexes over expressions among them, come or go beside what is done in another way.
fn mixes_virtual(old: &TableDef, new: &TableDef, sources: &[ColumnSource]) -> bool {
    let is_virtual = |column: &Column| column.generated.as_ref().is_some_and(|generated| !generated.stored);
    let renames = new.columns.iter().zip(sources).any(|(column, source)| match source {
        ColumnSource::Old(at) => old.columns[*at].name != column.name,
        _ => false,
    });
    let coming = new.columns.iter().zip(sources).filter(|(_, source)| **source == ColumnSource::Added);
    let coming: Vec<&Column> = coming.map(|(column, _)| column).collect();
    let stays = |at: usize| sources.contains(&ColumnSource::Old(at));
    let going = old.columns.iter().enumerate().filter(|(at, _)| !stays(*at));
    let going: Vec<&Column> = going.map(|(_, column)| column).collect();
    let shown = |columns: &[&Column]| columns.iter().any(|column| !column.is_hidden());
    let plain = |columns: &[&Column]| columns.iter().any(|column| !is_virtual(column));
    coming.iter().any(|column| column.is_hidden())
        || coming.iter().any(|column| is_virtual(column)) && (renames || shown(&going))
        || going.iter().any(|column| is_virtual(column)) && (renames || plain(&coming))
        || going.iter().any(|column| column.is_hidden()) && plain(&going)
}
