//! Why a statement may do something else on another server, although it has the same data and the same text.
//!
//! Under binlog_format=MIXED such a statement is logged as rows; under STATEMENT as it is, with a note for each reason.
//! Decided once per plan, from the tree, the target table and what the binder met. Too strict is harmless (MIXED logs
//! rows), too lax is not.

use crate::bind::uses::{self, Uses};
use crate::catalog::Table;
use omnibus_parser::ast::{Delete, Expr, Insert, InsertSource, Limit, OrderItem, Statement, Update};

/// A limit on rows whose order is not settled.
const LIMIT: u32 = 1 << 16;
/// INSERT IGNORE ... SELECT.
const INSERT_IGNORE_SELECT: u32 = 1 << 17;
/// INSERT ... SELECT ... ON DUPLICATE KEY UPDATE.
const INSERT_SELECT_UPDATE: u32 = 1 << 18;
/// REPLACE ... SELECT.
const REPLACE_SELECT: u32 = 1 << 19;
/// UPDATE IGNORE.
const UPDATE_IGNORE: u32 = 1 << 20;
/// ON DUPLICATE KEY UPDATE, and several keys may be the one.
const SEVERAL_KEYS: u32 = 1 << 21;
/// An AUTO_INCREMENT column that is not the first of its key.
const AUTO_NOT_FIRST: u32 = 1 << 22;
/// AUTO_INCREMENT values for rows in the order that a SELECT found them.
const AUTO_OF_SELECT: u32 = 1 << 23;
/// RAND() or `@a := ..` once a row, in an order that is not settled.
const ROW_ORDER: u32 = 1 << 24;

/// LOAD DATA.
pub(crate) const LOAD: u32 = 1 << 25;

/// Bits and what a client is told.
const REASONS: [(u32, &str); 13] = [
    (
        LOAD,
        "LOAD DATA: the order of the rows decides which of them are ignored or replaced, and their values.",
    ),
    (LIMIT, "The statement uses a LIMIT clause, so the set of rows that it changes cannot be predicted."),
    (uses::SYSTEM_TABLE, "The statement uses a system table, which may differ on the replica."),
    (
        uses::SYSTEM_VARIABLE,
        "The statement uses a system variable that may have a different value on the replica.",
    ),
    (
        uses::SYSTEM_FUNCTION,
        "The statement uses a system function that may return a different value on the replica.",
    ),
    (
        INSERT_IGNORE_SELECT,
        "INSERT IGNORE... SELECT: the order of the rows decides which of them are ignored.",
    ),
    (
        INSERT_SELECT_UPDATE,
        "INSERT... SELECT... ON DUPLICATE KEY UPDATE: the order of the rows decides which of them are updated.",
    ),
    (REPLACE_SELECT, "REPLACE... SELECT: the order of the rows decides which of them are replaced."),
    (UPDATE_IGNORE, "UPDATE IGNORE: the order of the rows decides which of them are ignored."),
    (SEVERAL_KEYS, "INSERT... ON DUPLICATE KEY UPDATE on a table with more than one UNIQUE KEY."),
    (AUTO_NOT_FIRST, "INSERT into an AUTO_INCREMENT column that is not the first part of its key."),
    (
        AUTO_OF_SELECT,
        "INSERT... SELECT into a table with an AUTO_INCREMENT column: the order of the rows decides their values.",
    ),
    (
        ROW_ORDER,
        "The statement uses RAND() or assigns a user variable once a row, in an order that may differ.",
    ),
];

/// All bits that make a statement unsafe.
const UNSAFE: u32 = {
    let (mut bits, mut at) = (0, 0);
    while at < REASONS.len() {
        bits |= REASONS[at].0;
        at += 1;
    }
    bits
};

/// The reasons of a statement as bits; 0 if it is safe. `target` is the table of a statement that changes one.
pub(crate) fn unsafe_bits(statement: &Statement, target: Option<&Table>, uses: &Uses) -> u32 {
    let own = match statement {
        Statement::Insert(tree) => of_insert(tree, target),
        Statement::Update(tree) => of_update(tree, target),
        Statement::Delete(tree) => of_delete(tree, target),
        _ => 0,
    };
    let by_row = uses.bits & (uses::RAND | uses::ASSIGNS) != 0;
    let one_row =
        matches!(statement, Statement::Insert(tree) if matches!(tree.source, InsertSource::Values(_)));
    let rows = if by_row && (!one_row || uses.bits & uses::READS != 0) { ROW_ORDER } else { 0 };
    (own | rows | uses.bits) & UNSAFE
}

/// The text of each reason, as a client is told it.
pub(crate) fn reasons(bits: u32) -> impl Iterator<Item = &'static str> {
    REASONS.iter().filter(move |(bit, _)| bits & bit != 0).map(|(_, text)| *text)
}

fn bit(on: bool, bit: u32) -> u32 {
    if on { bit } else { 0 }
}

fn of_insert(tree: &Insert, target: Option<&Table>) -> u32 {
    let select = matches!(tree.source, InsertSource::Query(_));
    let auto = target.and_then(|table| Some((table, table.auto_column?)));
    let first_of_key = |table: &Table, column: usize| {
        table.def.indexes.iter().any(|index| index.parts.first().is_some_and(|part| part.column == column))
    };
    let unique = target.map_or(0, |table| {
        table.def.indexes.iter().filter(|index| index.unique() && !index.parts.is_empty()).count()
    });
    let limited = match &tree.source {
        InsertSource::Query(query) => query.limit.is_some(),
        InsertSource::Values(_) => false,
    };
    bit(limited, LIMIT)
        | bit(select && tree.ignore, INSERT_IGNORE_SELECT)
        | bit(select && !tree.on_duplicate.is_empty(), INSERT_SELECT_UPDATE)
        | bit(select && tree.replace, REPLACE_SELECT)
        | bit(!tree.on_duplicate.is_empty() && unique > 1, SEVERAL_KEYS)
        | bit(auto.is_some_and(|(table, column)| !first_of_key(table, column)), AUTO_NOT_FIRST)
        | bit(select && auto.is_some(), AUTO_OF_SELECT)
}

fn of_update(tree: &Update, target: Option<&Table>) -> u32 {
    bit(tree.ignore, UPDATE_IGNORE) | of_limit(tree.limit.as_ref(), &tree.order_by, target)
}

fn of_delete(tree: &Delete, target: Option<&Table>) -> u32 {
    of_limit(tree.limit.as_ref(), &tree.order_by, target)
}

/// A limit is harmless where ORDER BY names a whole unique key, so that the order is total.
fn of_limit(limit: Option<&Limit>, order: &[OrderItem], target: Option<&Table>) -> u32 {
    if limit.is_none() {
        return 0;
    }
    let ordered = |table: &Table, column: usize| {
        let name = &table.def.columns[column].name;
        order.iter().any(|item| matches!(&item.expr, Expr::Column(of) if of.name.eq_ignore_ascii_case(name)))
    };
    let total = target.is_some_and(|table| {
        table.def.indexes.iter().any(|index| {
            let whole = |part: &crate::catalog::IndexPart| {
                part.prefix.is_none()
                    && !table.def.columns[part.column].nullable
                    && ordered(table, part.column)
            };
            index.unique() && !index.parts.is_empty() && index.parts.iter().all(whole)
        })
    });
    bit(!total, LIMIT)
}
