//! FROM back to SQL: tables, derived tables and joins.

use super::query::place;
use super::{Printer, json};
use crate::ast::{
    Derived, IndexHintKind, IndexHintScope, Join, JoinCondition, JoinKind, TableFactor, TableRef,
};

/// A comma is a join.
pub(super) fn list_of_tables(printer: &mut Printer<'_>, tables: &[TableRef]) {
    if tables.len() > 1 {
        (1..tables.len()).for_each(|_| printer.put("("));
    }
    for (at, table) in tables.iter().enumerate() {
        printer.put(if at > 0 { " join " } else { "" });
        table_ref(printer, table);
        printer.put(if at > 0 { ")" } else { "" });
    }
}

fn table_ref(printer: &mut Printer<'_>, table: &TableRef) {
    match table {
        TableRef::Table(factor) => table_factor(printer, factor),
        TableRef::Derived(derived) => derived_table(printer, derived),
        TableRef::JsonTable(table) => json::json_table(printer, table),
        TableRef::Group(members) => list_of_tables(printer, members),
        TableRef::Join(join) => joined(printer, join),
    }
}

fn table_factor(printer: &mut Printer<'_>, factor: &TableFactor) {
    let meant = printer.view.and_then(|view| view.meaning?.tables.get(&place(factor)));
    let schema = meant.or(factor.name.schema.as_ref());
    if let Some(schema) = schema {
        printer.facts.tables.push((schema.clone(), factor.name.name.clone()));
        if !printer.is_home(schema) {
            printer.ident(schema);
            printer.put(".");
        }
    }
    printer.ident(&factor.name.name);
    for (at, partition) in factor.partitions.iter().enumerate() {
        printer.put(if at > 0 { "," } else { " PARTITION (" });
        printer.ident(partition);
    }
    printer.put(if factor.partitions.is_empty() { "" } else { ")" });
    if let Some(alias) = &factor.alias {
        printer.put(" ");
        printer.ident(alias);
    }
    for hint in &factor.hints {
        printer.put(match hint.kind {
            IndexHintKind::Use => " use index ",
            IndexHintKind::Force => " force index ",
            IndexHintKind::Ignore => " ignore index ",
            // Stands in comments alone.
            IndexHintKind::NoRange => continue,
        });
        printer.put(match hint.scope {
            IndexHintScope::All => "(",
            IndexHintScope::Join => "for join (",
            IndexHintScope::OrderBy => "for order by (",
            IndexHintScope::GroupBy => "for group by (",
        });
        for (at, index) in hint.indexes.iter().enumerate() {
            printer.put(if at > 0 { "," } else { "" });
            printer.ident(index);
        }
        printer.put(")");
    }
}

fn derived_table(printer: &mut Printer<'_>, derived: &Derived) {
    printer.put(if derived.lateral { "lateral (" } else { "(" });
    printer.query(&derived.query, true, &[]);
    printer.put(")");
    if let Some(alias) = &derived.alias {
        printer.put(" ");
        printer.ident(alias);
    }
    printer.name_list(&derived.columns);
}

/// A RIGHT join is a LEFT one from the other side.
fn joined(printer: &mut Printer<'_>, join: &Join) {
    let (left, word, right) = match join.kind {
        JoinKind::Inner => (&join.left, " join ", &join.right),
        JoinKind::Straight => (&join.left, " straight_join ", &join.right),
        JoinKind::Left => (&join.left, " left join ", &join.right),
        JoinKind::Right => (&join.right, " left join ", &join.left),
    };
    printer.put("(");
    table_ref(printer, left);
    printer.put(word);
    table_ref(printer, right);
    let outer = matches!(join.kind, JoinKind::Left | JoinKind::Right);
    let pairs = printer.view.and_then(|view| view.meaning?.joins.get(&place(join)));
    match (&join.condition, pairs) {
        (JoinCondition::On(condition), _) => {
            printer.put(" on");
            printer.grouped(condition);
        }
        (_, Some(pairs)) if !pairs.is_empty() => {
            printer.put(" on(");
            for (at, (a, b)) in pairs.iter().enumerate() {
                printer.put(if at > 0 { " and (" } else { "(" });
                printer.column(a);
                printer.put(" = ");
                printer.column(b);
                printer.put(")");
            }
            printer.put(")");
        }
        _ if outer => printer.put(" on(true)"),
        _ => {}
    }
    printer.put(")");
}
