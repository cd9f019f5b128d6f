//! Optimizer hints of a query block: which indexes its tables may use, and the order in which they are read.
//!
//! A name in a hint that is not there is a warning. An order that cannot be, because a table needs one that the hint has behind it, is
//! left to the planner.

use super::nest::{Item, ItemSource, Nest, TableItem};
use crate::catalog::{Table, same_name};
use crate::error::{SqlError, SqlResult};
use crate::expr::SlotSet;
use omnibus_parser::ast::{Hint, HintValue, IndexHint, IndexHintKind, IndexHintScope, JoinPlace};

/// Where hints stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HintPlace {
    /// In the first block of a query that is a statement.
    Query,
    /// In a statement that changes rows.
    Change,
    /// In any other block, and in a stored program.
    #[default]
    Inner,
}

/// A table that hints may name.
pub(crate) struct Hinted<'a> {
    slot: u16,
    /// `None`: what has no indexes.
    table: Option<&'a Table>,
    hints: &'a mut Vec<IndexHint>,
}

/// The tables that the hints of a block may name.
pub(crate) trait HintedTables {
    /// The table of this alias.
    fn named(&mut self, alias: &str) -> Option<Hinted<'_>>;
}

impl HintedTables for Nest {
    fn named(&mut self, alias: &str) -> Option<Hinted<'_>> {
        let TableItem { slot, source, hints, .. } = item_of(self, alias)?;
        let table = match source {
            ItemSource::Table(table) => Some(&**table),
            _ => None,
        };
        Some(Hinted { slot: *slot, table, hints })
    }
}

/// The one table that a statement changes.
pub(crate) struct OneTable<'a> {
    pub alias: &'a str,
    pub table: &'a Table,
    /// The hints behind its name, until others say something else.
    pub hints: Vec<IndexHint>,
}

impl HintedTables for OneTable<'_> {
    fn named(&mut self, alias: &str) -> Option<Hinted<'_>> {
        let named = same_name(self.alias, alias);
        named.then_some(Hinted { slot: 0, table: Some(self.table), hints: &mut self.hints })
    }
}

/// Gives the tables of a block what hints say of their indexes, in place of what stands behind their names in FROM. Returns warnings
/// of all hints.
pub(crate) fn name_indexes(tables: &mut dyn HintedTables, hints: &[Hint], place: HintPlace) -> Vec<SqlError> {
    let mut warnings = Vec::new();
    let mut hinted: Vec<u16> = Vec::new();
    for hint in hints {
        match hint {
            Hint::Index { table, indexes, kind } => {
                let word = match kind {
                    IndexHintKind::Use | IndexHintKind::Force => "INDEX",
                    IndexHintKind::Ignore => "NO_INDEX",
                    IndexHintKind::NoRange => "NO_RANGE_OPTIMIZATION",
                };
                let Some(mut found) = tables.named(table) else {
                    warnings.push(unresolved(&table_name(table), word));
                    continue;
                };
                if *kind != IndexHintKind::NoRange && !hinted.contains(&found.slot) {
                    found.hints.clear();
                    hinted.push(found.slot);
                }
                hint_indexes(&mut found, indexes, *kind, |index| {
                    warnings.push(unresolved(&format!("{} `{index}`", table_name(table)), word));
                });
            }
            Hint::JoinOrder { place, tables: named } => {
                let word = match place {
                    JoinPlace::Order => "JOIN_ORDER",
                    JoinPlace::First => "JOIN_PREFIX",
                    JoinPlace::Last => "JOIN_SUFFIX",
                };
                let missing = named.iter().filter(|table| tables.named(table).is_none());
                warnings.extend(missing.map(|table| unresolved(&table_name(table), word)));
            }
            Hint::Wrong(message) => warnings.push(SqlError::new(1064, b"42000", message.clone())),
            Hint::MaxExecutionTime(_) if place != HintPlace::Query => {
                let message =
                    "MAX_EXECUTION_TIME hint is supported by top-level standalone SELECT statements only";
                warnings.push(SqlError::new(3125, b"HY000", message));
            }
            Hint::SetVar { name, value } if place == HintPlace::Inner => {
                warnings.push(passed_over(name, value));
            }
            Hint::JoinFixedOrder | Hint::MaxExecutionTime(_) | Hint::SetVar { .. } => {}
        }
    }
    warnings
}

/// Every hint must name indexes that are there.
///
/// # Errors
/// 1176.
pub(crate) fn check_hints(table: &Table, alias: &str, hints: &[IndexHint]) -> SqlResult<()> {
    match hints.iter().flat_map(|hint| &hint.indexes).find(|name| table.index_named(name).is_none()) {
        Some(name) => Err(SqlError::key_does_not_exist(&**name, alias)),
        None => Ok(()),
    }
}

/// The warning of a SET_VAR that another one, or its place, keeps from acting.
pub(crate) fn passed_over(name: &str, value: &HintValue) -> SqlError {
    let value = match value {
        HintValue::Int(number) => number.to_string(),
        HintValue::Real(number) => number.clone(),
        HintValue::Text(text) => format!("'{text}'"),
    };
    let message = format!("Hint SET_VAR({name}={value})  is ignored as conflicting/duplicated");
    SqlError::new(3126, b"HY000", message)
}

fn table_name(table: &str) -> String {
    format!("`{table}`@`select#1`")
}

fn unresolved(name: &str, hint: &str) -> SqlError {
    SqlError::new(3128, b"HY000", format!("Unresolved name {name} for {hint} hint"))
}

/// One hint about a table's indexes; none are named: all of them.
fn hint_indexes(
    hinted: &mut Hinted<'_>,
    indexes: &[omnibus_parser::ast::Ident],
    kind: IndexHintKind,
    mut missing: impl FnMut(&str),
) {
    let Some(table) = hinted.table else { return };
    let mut found = Vec::new();
    for index in indexes {
        match table.index_named(index) {
            Some(_) => found.push(index.clone()),
            None => missing(index),
        }
    }
    let hint = match (indexes.is_empty(), kind) {
        (true, IndexHintKind::Force | IndexHintKind::NoRange) => {
            found = table
                .indexes()
                .iter()
                .filter(|index| !index.name.is_empty())
                .map(|index| (&*index.name).into())
                .collect();
            kind
        }
        // USE INDEX ().
        (true, _) => IndexHintKind::Use,
        (false, _) if found.is_empty() => return,
        (false, kind) => kind,
    };
    hinted.hints.push(IndexHint { kind: hint, scope: IndexHintScope::All, indexes: found });
}

/// The table of this alias, inside outer joins, too.
fn item_of<'n>(nest: &'n mut Nest, alias: &str) -> Option<&'n mut TableItem> {
    nest.items.iter_mut().find_map(|item| match item {
        Item::Table(table) => same_name(&table.alias, alias).then_some(&mut **table),
        Item::Outer { nest, .. } => item_of(nest, alias),
    })
}

/// The member of a nest that is, or has inside, the table of this alias.
fn member_of(nest: &Nest, alias: &str) -> Option<usize> {
    nest.items.iter().position(|item| match item {
        Item::Table(table) => same_name(&table.alias, alias),
        Item::Outer { nest, .. } => member_of(nest, alias).is_some(),
    })
}

/// Has the members of a nest read in the order that hints say.
pub(crate) fn order_joins(nest: &mut Nest, hints: &[Hint]) {
    for hint in hints {
        let Hint::JoinOrder { place, tables } = hint else { continue };
        let mut named: Vec<usize> = tables.iter().filter_map(|table| member_of(nest, table)).collect();
        named.dedup();
        let others: Vec<usize> = (0..nest.items.len()).filter(|at| !named.contains(at)).collect();
        let mut before: Vec<(usize, SlotSet)> = Vec::new();
        let slots = |nest: &Nest, of: &[usize]| {
            let mut slots = SlotSet::default();
            of.iter().for_each(|at| slots.extend(&nest.items[*at].slots()));
            slots
        };
        for (at, member) in named.iter().enumerate() {
            before.push((*member, slots(nest, &named[..at])));
        }
        match place {
            JoinPlace::Order => {}
            JoinPlace::First => before.extend(others.iter().map(|at| (*at, slots(nest, &named)))),
            JoinPlace::Last => before.extend(named.iter().map(|at| (*at, slots(nest, &others)))),
        }
        if can_be(nest, &before) {
            before.iter().for_each(|(at, slots)| nest.items[*at].read_after(slots));
        }
    }
}

/// Whether members can be read so, beside what they need anyway.
fn can_be(nest: &Nest, before: &[(usize, SlotSet)]) -> bool {
    let mut left: Vec<usize> = (0..nest.items.len()).collect();
    while !left.is_empty() {
        let mut missing = SlotSet::default();
        left.iter().for_each(|at| missing.extend(&nest.items[*at].slots()));
        let free = |at: &usize| {
            let needs = match &nest.items[*at] {
                Item::Table(table) => &table.after,
                Item::Outer { required, .. } => required,
            };
            !needs.meets(&missing)
                && !before.iter().any(|(member, slots)| member == at && slots.meets(&missing))
        };
        let Some(next) = left.iter().position(free) else { return false };
        left.remove(next);
    }
    true
}
