//! EXPLAIN as a table: a row for each table that is read, as MySQL has it; as MariaDB's ANALYZE has it if the statement has run.

use super::parts::{Parts, TableOf, is_never, select};
use crate::api::{ResultColumn, RowSink};
use crate::error::ExecResult;
use crate::expr::ExprType;
use crate::expr::outline::{self, Actual, Does, Line, Table};
use crate::expr::profile::Measure;
use crate::expr::types::string_column;
use omnibus_value::Value;
use omnibus_value::decimal::Decimal;
use std::sync::Arc;

/// Rows of EXPLAIN's table.
#[derive(Default)]
struct Explainer<'p> {
    rows: Vec<Vec<Value>>,
    /// The changes that a statement makes in tables of its query, by the tables' names there.
    changed: Vec<(&'p str, &'static str)>,
}

const COLUMNS: [&str; 12] = [
    "id",
    "select_type",
    "table",
    "partitions",
    "type",
    "possible_keys",
    "key",
    "key_len",
    "ref",
    "rows",
    "filtered",
    "Extra",
];

/// MariaDB's ANALYZE has other columns; the numbers are those of the rows here.
const ANALYZED: [(&str, usize); 13] = [
    ("id", 0),
    ("select_type", 1),
    ("table", 2),
    ("type", 4),
    ("possible_keys", 5),
    ("key", 6),
    ("key_len", 7),
    ("ref", 8),
    ("rows", 9),
    ("r_rows", R_ROWS),
    ("filtered", 10),
    ("r_filtered", R_FILTERED),
    ("Extra", 11),
];
const R_ROWS: usize = 12;
const R_FILTERED: usize = 13;
const WIDTH: usize = 14;

/// Writes a statement's tables into a sink; it has `queries` queries. `ran`: what happened is shown, too.
///
/// # Errors
/// Those of the sink.
pub(super) fn write(line: &Line, queries: u64, ran: bool, sink: &mut dyn RowSink) -> ExecResult<()> {
    let mut explainer = Explainer::default();
    match &line.does {
        Does::Change(tables) => {
            explainer.changed = tables.iter().map(|(does, name)| (&**name, *does)).collect();
            explainer.change(line);
        }
        _ => explainer.query(line, "SIMPLE"),
    }
    explainer.finish(queries, ran, sink)
}

fn write_columns(names: &[&str], sink: &mut dyn RowSink) -> ExecResult<()> {
    let columns: Vec<ResultColumn> = names
        .iter()
        .map(|name| {
            let ty = match *name {
                "id" | "rows" => ExprType::ubigint().column,
                "r_rows" => ExprType::decimal(20, 2).column,
                "filtered" | "r_filtered" => ExprType::double().decimals(2).column,
                _ => string_column(1024, 45),
            };
            let none: Arc<str> = Arc::from("");
            ResultColumn {
                schema: none.clone(),
                table: none.clone(),
                org_table: none.clone(),
                name: Arc::from(*name),
                org_name: none,
                ty,
                flags: 0,
            }
        })
        .collect();
    sink.columns(&columns)?;
    Ok(())
}

fn text(value: impl Into<String>) -> Value {
    Value::Bytes(value.into().into())
}

fn extras(extra: &[String]) -> Value {
    if extra.is_empty() { Value::Null } else { text(extra.join("; ")) }
}

fn list(names: Vec<String>) -> Value {
    if names.is_empty() { Value::Null } else { text(names.join(",")) }
}

impl Explainer<'_> {
    /// A statement that changes tables: one along a path, or those of a query.
    fn change(&mut self, line: &Line) {
        let [below] = &line.below[..] else { return };
        let Some((name, does)) = self.changed.first().copied() else { return };
        let is_query = matches!(below.does, Does::Select(_));
        if is_query && !matches!(does, "INSERT" | "REPLACE") {
            return self.query(below, "SIMPLE");
        }
        self.changed.clear();
        let mut row = table_row(1, does, name);
        row[10] = Value::Null;
        let mut inner = Vec::new();
        let parts = Parts::of(below);
        let never = |table: &TableOf<'_>| table.conditions.iter().any(|text| is_never(text));
        match parts.tables.first() {
            Some(table) if !is_query && never(table) => row = bare_row(1, does, "Impossible WHERE"),
            Some(TableOf {
                read: Line { does: Does::Table(table), .. },
                conditions,
                keyed,
                inner: asked,
                ..
            }) if !is_query => {
                let mut extra = path_columns(&mut row, table, !conditions.is_empty() || table.implied);
                // Changes ask their conditions of rows.
                extra.retain(|words| words != "Using index condition");
                // One row found for a change is a range of one for MySQL's clients.
                if matches!(table.access, "const" | "eq_ref") {
                    row[4] = text("range");
                }
                if does == "DELETE" && table.access == "ALL" && extra.is_empty() && parts.sort.is_none() {
                    extra.push("Deleting all rows".into());
                }
                if parts.sort.is_some() {
                    extra.push("Using filesort".into());
                }
                row[11] = extras(&extra);
                inner.extend(keyed.iter().chain(asked).copied());
            }
            _ => {}
        }
        self.rows.push(row);
        if is_query {
            self.query(below, "SIMPLE");
        }
        inner.extend(&line.inner);
        for inner in inner {
            self.query(&inner.query, if inner.dependent { "DEPENDENT SUBQUERY" } else { "SUBQUERY" });
        }
    }

    fn finish(mut self, queries: u64, ran: bool, sink: &mut dyn RowSink) -> ExecResult<()> {
        let shown: Vec<(&str, usize)> = match ran {
            true => ANALYZED.to_vec(),
            false => COLUMNS.iter().enumerate().map(|(at, name)| (*name, at)).collect(),
        };
        write_columns(&shown.iter().map(|(name, _)| *name).collect::<Vec<_>>(), sink)?;
        if queries > 1 {
            // A query with parts is not simple.
            for row in &mut self.rows {
                if row[1].to_bytes(&string_column(64, 45)).as_ref() == b"SIMPLE" {
                    row[1] = text("PRIMARY");
                }
            }
        }
        for row in &self.rows {
            sink.row(&shown.iter().map(|(_, at)| row[*at].clone()).collect::<Vec<_>>())?;
        }
        Ok(())
    }

    fn query(&mut self, line: &Line, kind: &str) {
        let (id, [below]) = (select(line).0, &line.below[..]) else { return };
        let (mut union, mut sorted) = (below, false);
        let mut inner = Vec::new();
        while let (Does::Limit(..) | Does::Sort { .. }, [below]) = (&union.does, &union.below[..]) {
            inner.extend(&union.inner);
            sorted |= matches!(union.does, Does::Sort { .. });
            union = below;
        }
        match union.does {
            Does::Union(_) | Does::Recursive(_) => {
                let from = self.rows.len();
                for (at, part) in union.below.iter().enumerate() {
                    self.query(part, if at == 0 { kind } else { operation(&union.does) });
                }
                self.union_result(union, sorted, from);
                for inner in inner.into_iter().chain(&union.inner) {
                    self.query(&inner.query, if inner.dependent { "DEPENDENT SUBQUERY" } else { "SUBQUERY" });
                }
            }
            _ => self.block(id, below, kind),
        }
    }

    /// The row of a set operation's own table, behind those of its parts: where rows are left out, or sorted.
    fn union_result(&mut self, union: &Line, sorted: bool, from: usize) {
        let Does::Union(outline::Union { name: Some(_), deduplicates }) = &union.does else { return };
        if !deduplicates && !sorted {
            return;
        }
        let name = operation(&union.does);
        let parts: Vec<String> = union.below.iter().map(|part| select(part).0.to_string()).collect();
        let last = self.rows[from..].iter().filter_map(|row| match row[0] {
            Value::UInt(id) => Some(id),
            _ => None,
        });
        let id = last.max().unwrap_or(0) + 1;
        let mut row = bare_row(id, &format!("{name} RESULT"), "Using temporary");
        if sorted {
            row[11] = text("Using temporary; Using filesort");
        }
        (row[2], row[4]) = (text(format!("<{}{}>", name.to_lowercase(), parts.join(","))), text("ALL"));
        self.rows.push(row);
    }

    fn block(&mut self, id: u64, line: &Line, kind: &str) {
        let parts = Parts::of(line);
        if let Some(why) = parts.nothing().filter(|_| matches!(line.actual, Actual::Unknown)) {
            return self.rows.push(bare_row(id, kind, why));
        }
        if optimized_away(&parts) {
            return self.rows.push(bare_row(id, kind, "Select tables optimized away"));
        }
        let mut extra = Vec::new();
        if parts.group.is_some_and(|group| group.by && !group.stream)
            || parts.distinct
            || parts.windows.is_some()
        {
            extra.push("Using temporary");
        }
        if parts.sort.is_some() || parts.windows == Some(true) {
            extra.push("Using filesort");
        }
        let from = self.rows.len();
        // Queries inside, by their numbers.
        let mut inside: Vec<(&Line, &str)> = Vec::new();
        let kind_of = |dependent: bool| if dependent { "DEPENDENT SUBQUERY" } else { "SUBQUERY" };
        for table in &parts.tables {
            self.table(table, id, kind);
            inside.extend(table.read.below.iter().map(|query| (query, "DERIVED")));
            let inner = table.keyed.iter().chain(&table.inner);
            inside.extend(inner.map(|inner| (&inner.query, kind_of(inner.dependent))));
        }
        inside.extend(parts.inner.iter().map(|inner| (&inner.query, kind_of(inner.dependent))));
        if self.rows.len() == from {
            self.rows.push(bare_row(id, kind, "No tables used"));
        } else if !extra.is_empty() {
            let first = &mut self.rows[from][11];
            let before = match first {
                Value::Bytes(text) if !text.is_empty() => format!("{}; ", String::from_utf8_lossy(text)),
                _ => String::new(),
            };
            *first = text(before + &extra.join("; "));
        }
        inside.sort_by_key(|(query, _)| select(query).0);
        for (query, kind) in inside {
            self.query(query, kind);
        }
    }

    fn table(&mut self, table: &TableOf<'_>, id: u64, kind: &str) {
        let (Does::Derived(alias) | Does::Computed(alias) | Does::Recursion(alias)) = &table.read.does else {
            let Does::Table(read) = &table.read.does else { return };
            let mut row = table_row(id, self.kind_of(&read.alias, kind), &read.alias);
            let extra = path_columns(&mut row, read, table.own_conditions > 0);
            return self.push(row, extra, table);
        };
        let mut row = table_row(id, self.kind_of(alias, kind), alias);
        if let (Does::Derived(_), [query]) = (&table.read.does, &table.read.below[..]) {
            row[2] = text(format!("<derived{}>", select(query).0));
            row[9] = Value::UInt(select(query).2.round().max(1.0) as u64);
        }
        let extra = if table.own_conditions > 0 { vec!["Using where".into()] } else { Vec::new() };
        self.push(row, extra, table);
    }

    fn kind_of<'k>(&self, alias: &str, kind: &'k str) -> &'k str {
        self.changed.iter().find(|(name, _)| *name == alias).map_or(kind, |(_, does)| does)
    }

    fn push(&mut self, mut row: Vec<Value>, mut extra: Vec<String>, table: &TableOf<'_>) {
        if table.hashed {
            if !extra.iter().any(|words| words == "Using where") {
                extra.push("Using where".into());
            }
            extra.push("Using join buffer (hash join)".into());
        }
        row[11] = extras(&extra);
        if let Actual::Did(measure) = &table.actual {
            analyzed(&mut row, measure, !matches!(table.read.does, Does::Table(_)));
        }
        self.rows.push(row);
    }
}

/// Whether a MIN or MAX is read off the end of an index, which MySQL does before it plans.
fn optimized_away(parts: &Parts<'_>) -> bool {
    let first = parts.group.is_some_and(|group| group.first && !group.by);
    let bare = |table: &TableOf<'_>| {
        matches!(table.actual, Actual::Unknown) && table.conditions.is_empty() && table.keyed.is_empty()
    };
    first && parts.inner.is_empty() && matches!(&parts.tables[..], [table] if bare(table))
}

/// MySQL's word for a set operation.
fn operation(does: &Does) -> &'static str {
    match does {
        Does::Union(outline::Union { name: Some("Intersect"), .. }) => "INTERSECT",
        Does::Union(outline::Union { name: Some("Except"), .. }) => "EXCEPT",
        _ => "UNION",
    }
}

/// The row of a query that reads no table.
fn bare_row(id: u64, kind: &str, extra: &str) -> Vec<Value> {
    let mut row = vec![Value::Null; WIDTH];
    (row[0], row[1], row[11]) = (Value::UInt(id), text(kind), text(extra));
    row
}

fn table_row(id: u64, kind: &str, alias: &str) -> Vec<Value> {
    let mut row = vec![Value::Null; WIDTH];
    row[0] = Value::UInt(id);
    row[1] = text(kind);
    row[2] = text(alias);
    row[4] = text("ALL");
    row[10] = Value::Double(100.0);
    row
}

/// Fills what a table gave: rows of each reading, and how many of a hundred were left behind the conditions.
fn analyzed(row: &mut [Value], measure: &Measure, made: bool) {
    let examined = if made { measure.rows } else { measure.examined };
    let read = i128::from(examined) * 100 / i128::from(measure.loops.max(1));
    row[R_ROWS] = Value::Decimal(Decimal::from_i128(read, 2));
    let of_hundred = |n: u64| (n as f64 * 10_000.0 / examined.max(1) as f64).floor() / 100.0;
    row[R_FILTERED] = Value::Double(if examined == 0 { 100.0 } else { of_hundred(measure.rows) });
}

/// Fills what a path says of its table; the members of Extra.
fn path_columns(row: &mut [Value], table: &Table, has_conditions: bool) -> Vec<String> {
    row[4] = text(table.access);
    row[5] = list(table.possible.clone());
    if let Some(index) = &table.index {
        (row[6], row[7], row[8]) =
            (list(index.names.clone()), list(index.lengths.clone()), list(index.refs.clone()));
    }
    row[9] = Value::UInt(table.estimate.rows as u64);
    row[10] = Value::Double((table.estimate.filtered * 100.0).round() / 100.0);
    let mut extra = Vec::new();
    if !table.united.is_empty() {
        extra.push(format!("Using union({})", table.united.join(",")));
    }
    let primary = table.index.as_ref().is_some_and(|index| index.names.iter().any(|name| name == "PRIMARY"));
    let ranges = table.access == "range" && table.implied;
    // Conditions on an index's columns are asked of its entries; a clustered key's rows are its entries.
    if ranges && !primary && !table.covered {
        extra.push("Using index condition".into());
    }
    if has_conditions || ranges && (primary || table.covered) {
        extra.push("Using where".into());
    }
    if table.covered {
        extra.push("Using index".into());
    }
    if table.reverse {
        extra.push("Backward index scan".into());
    }
    extra
}
