//! EXPLAIN as a table: a row for each table that is read, as MySQL has it; as MariaDB's ANALYZE has it if the statement has run.

use super::names::query_of;
use super::{Change, Subject};
use crate::api::{ResultColumn, RowSink};
use crate::catalog::Table;
use crate::error::ExecResult;
use crate::expr::node::Expr;
use crate::expr::profile::{Measure, Profile, Step};
use crate::expr::subquery::Subquery;
use crate::expr::types::string_column;
use crate::expr::{ExprType, Kind};
use crate::logical::Windows;
use crate::plan::cost::filtered;
use crate::plan::physical::path::{Access, IndexRanges, Interval, Part, TableAccess, Tail, UnionBranch};
use crate::plan::physical::{Block, Body, Node, NodeSource, QueryPlan, ScanNode};
use omnibus_value::{ColumnKind, Value};
use std::sync::Arc;

/// Rows of EXPLAIN's table.
#[derive(Default)]
struct Explainer<'p> {
    rows: Vec<Vec<Value>>,
    next_id: u64,
    /// What a statement does with tables of its query, by their names there.
    changed: Vec<(&'p str, &'static str)>,
    /// MariaDB's ANALYZE: what happened.
    profile: Option<&'p Profile>,
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

/// Writes a statement's tables into a sink.
///
/// # Errors
/// Those of the sink.
pub(super) fn write(
    subject: &Subject<'_>,
    profile: Option<&Profile>,
    sink: &mut dyn RowSink,
) -> ExecResult<()> {
    let mut explainer = Explainer { rows: Vec::new(), next_id: 1, changed: Vec::new(), profile };
    match subject {
        Subject::Query(plan) => explainer.query(plan, "SIMPLE"),
        Subject::Changing(plan, changed) => {
            explainer.changed.clone_from(changed);
            explainer.query(plan, "SIMPLE");
        }
        Subject::Change(change) => explainer.change(change),
    }
    explainer.finish(sink)
}

fn write_columns(names: &[&str], sink: &mut dyn RowSink) -> ExecResult<()> {
    let columns: Vec<ResultColumn> = names
        .iter()
        .map(|name| {
            let ty = match *name {
                "id" | "rows" => ExprType::ubigint().column,
                "r_rows" => ExprType::decimal(20, 2).column,
                "filtered" | "r_filtered" => ExprType::decimal(5, 2).column,
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

/// Bytes that a key part takes, as MySQL counts them.
fn part_length(table: &Table, column: usize) -> u32 {
    let column = &table.columns()[column];
    let ty = &column.ty;
    let width = crate::expr::charset::max_width(ty.collation);
    let bytes = match ty.kind {
        ColumnKind::TinyInt | ColumnKind::Year => 1,
        ColumnKind::SmallInt => 2,
        ColumnKind::MediumInt | ColumnKind::Date => 3,
        ColumnKind::Int | ColumnKind::Float => 4,
        ColumnKind::BigInt | ColumnKind::Double => 8,
        ColumnKind::Time => 3 + u32::from(ty.decimals).div_ceil(2),
        ColumnKind::Timestamp => 4 + u32::from(ty.decimals).div_ceil(2),
        ColumnKind::DateTime => 5 + u32::from(ty.decimals).div_ceil(2),
        ColumnKind::Decimal => ty.length.div_ceil(2),
        ColumnKind::Uuid | ColumnKind::Inet6 => 16,
        ColumnKind::Inet4 => 4,
        ColumnKind::Char | ColumnKind::Binary => ty.length * width,
        _ => ty.length * width + 2,
    };
    bytes + u32::from(column.nullable)
}

impl Explainer<'_> {
    fn change(&mut self, change: &Change<'_>) {
        let mut row = self.table_row(change.kind, &change.table.def.name);
        let mut inner = Vec::new();
        if let Some((path, sorted)) = change.path {
            let mut extra = path_columns(&mut row, change.table, change.slot, path);
            // One row found for a change is a range of one for MySQL's clients.
            if path.is_point() {
                row[4] = text("range");
            }
            if path.filter.is_empty() && !path.implied.is_empty() {
                extra.push("Using where".into());
            }
            if sorted {
                extra.push("Using filesort".into());
            }
            row[11] = extras(&extra);
            path.implied.iter().for_each(|e| implied_subqueries(e, &mut inner));
            path.filter.iter().for_each(|e| subqueries(e, &mut inner));
        } else {
            row[10] = Value::Null;
        }
        self.rows.push(row);
        change.exprs.iter().for_each(|e| subqueries(e, &mut inner));
        match change.query {
            // Its rows are those of the same part of the statement.
            Some(query) => self.query(query, "SIMPLE"),
            None => self.next_id = 2,
        }
        for (plan, correlated) in inner {
            self.query(&plan, if correlated { "DEPENDENT SUBQUERY" } else { "SUBQUERY" });
        }
    }

    fn finish(mut self, sink: &mut dyn RowSink) -> ExecResult<()> {
        let shown: Vec<(&str, usize)> = match self.profile {
            Some(_) => ANALYZED.to_vec(),
            None => COLUMNS.iter().enumerate().map(|(at, name)| (*name, at)).collect(),
        };
        write_columns(&shown.iter().map(|(name, _)| *name).collect::<Vec<_>>(), sink)?;
        if self.next_id > 2 {
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

    fn table_row(&self, kind: &str, alias: &str) -> Vec<Value> {
        let mut row = vec![Value::Null; WIDTH];
        row[0] = Value::UInt(self.next_id);
        row[1] = text(kind);
        row[2] = text(alias);
        row[4] = text("ALL");
        row[10] = Value::Decimal(omnibus_value::decimal::Decimal::from_i128(10_000, 2));
        row
    }

    fn query(&mut self, plan: &QueryPlan, kind: &str) {
        match &plan.body {
            Body::Block(block) => self.block(block, kind),
            Body::Compound(compound) => {
                self.query(&compound.left, kind);
                for (_, plan) in &compound.rest {
                    self.query(plan, "UNION");
                }
            }
            Body::Values(_) => self.line(kind, Value::Null, "No tables used"),
            Body::Recursive(recursive) => {
                for (at, plan) in recursive.seeds.iter().chain(&recursive.steps).enumerate() {
                    self.query(plan, if at == 0 { kind } else { "UNION" });
                }
            }
        }
    }

    fn line(&mut self, kind: &str, table: Value, extra: &str) {
        let mut row = vec![Value::Null; WIDTH];
        row[0] = Value::UInt(self.next_id);
        row[1] = text(kind);
        row[2] = table;
        row[11] = text(extra);
        self.rows.push(row);
        self.next_id += 1;
    }

    fn block(&mut self, block: &Block, kind: &str) {
        let id = self.next_id;
        self.next_id += 1;
        let mut extra = Vec::new();
        if block.grouping.as_ref().is_some_and(|g| !g.keys.is_empty() && !g.stream)
            || block.distinct
            || block.windows.is_some()
        {
            extra.push("Using temporary");
        }
        if !block.order.is_empty() || block.windows.as_ref().is_some_and(Windows::sorts) {
            extra.push("Using filesort");
        }
        let from = self.rows.len();
        let mut derived = Vec::new();
        self.nodes(&block.nodes, id, kind, &mut derived);
        if self.rows.len() == from {
            let mut row = vec![Value::Null; WIDTH];
            (row[0], row[1], row[11]) = (Value::UInt(id), text(kind), text("No tables used"));
            self.rows.push(row);
        } else if !extra.is_empty() {
            let first = &mut self.rows[from][11];
            let before = match first {
                Value::Bytes(text) if !text.is_empty() => format!("{}; ", String::from_utf8_lossy(text)),
                _ => String::new(),
            };
            *first = text(before + &extra.join("; "));
        }
        for plan in derived {
            self.query(&plan, "DERIVED");
        }
        let conditions = block.outputs.iter().chain(&block.constants).chain(&block.having);
        let mut inner = Vec::new();
        conditions.for_each(|e| subqueries(e, &mut inner));
        if let Some(windows) = &block.windows {
            windows.visit(&mut |e| subqueries(e, &mut inner));
        }
        node_subqueries(&block.nodes, &mut inner);
        for (plan, correlated) in inner {
            self.query(&plan, if correlated { "DEPENDENT SUBQUERY" } else { "SUBQUERY" });
        }
    }

    fn nodes(&mut self, nodes: &[Node], id: u64, kind: &str, derived: &mut Vec<Arc<QueryPlan>>) {
        for node in nodes {
            match node {
                Node::Scan(scan) => {
                    self.scan(scan, id, kind, derived);
                    let measure = self.profile.and_then(|profile| profile.of(node, Step::Whole));
                    if let (Some(measure), Some(row)) = (measure, self.rows.last_mut()) {
                        let made = !matches!(scan.source, NodeSource::Table { .. });
                        analyzed(row, measure, made);
                    }
                }
                Node::Outer(outer) => self.nodes(&outer.nodes, id, kind, derived),
            }
        }
    }

    fn scan(&mut self, scan: &ScanNode, id: u64, kind: &str, derived: &mut Vec<Arc<QueryPlan>>) {
        let changed = self.changed.iter().find(|(alias, _)| **alias == *scan.alias);
        let mut row = self.table_row(changed.map_or(kind, |(_, does)| does), &scan.alias);
        row[0] = Value::UInt(id);
        let mut extra: Vec<String> = Vec::new();
        match &scan.source {
            NodeSource::Table { table, path, .. } => extra = path_columns(&mut row, table, scan.slot, path),
            NodeSource::Derived { plan, filter, .. } => {
                derived.extend(query_of(plan));
                row[9] = Value::UInt(plan.rows().round().max(1.0) as u64);
                if !filter.is_empty() {
                    extra.push("Using where".into());
                }
            }
            NodeSource::Virtual { filter, .. } | NodeSource::Recursion { filter, .. } => {
                if !filter.is_empty() {
                    extra.push("Using where".into());
                }
            }
        }
        if scan.keep.is_some() {
            extra.push("Using where; Using join buffer (hash join)".into());
        }
        row[11] = extras(&extra);
        self.rows.push(row);
    }
}

/// Fills what a table gave: rows of each reading, and how many of a hundred were left behind the conditions.
fn analyzed(row: &mut [Value], measure: &Measure, made: bool) {
    let examined = if made { measure.rows } else { measure.examined };
    let hundredths = |n: u64, of: u64| {
        Value::Decimal(omnibus_value::decimal::Decimal::from_i128(
            i128::from(n) * 100 / i128::from(of.max(1)),
            2,
        ))
    };
    row[R_ROWS] = hundredths(examined, measure.loops);
    row[R_FILTERED] =
        if examined == 0 { hundredths(100, 1) } else { hundredths(measure.rows * 100, examined) };
}

/// Fills what a path says of its table; the members of Extra.
fn path_columns(row: &mut [Value], table: &Arc<Table>, slot: u16, path: &TableAccess) -> Vec<String> {
    row[4] = text(access_type(table, path));
    let names = path.possible.iter().map(|at| table.indexes()[*at].name.to_string());
    row[5] = list(names.collect());
    key_columns(row, table, path);
    row[9] = Value::UInt(path.expected(table) as u64);
    let filtered = (filtered(path, table, slot) * 100.0).round() as i128;
    row[10] = Value::Decimal(omnibus_value::decimal::Decimal::from_i128(filtered, 2));
    let mut extra = Vec::new();
    if let Access::Union(branches) = &path.access {
        let names = branches.iter().map(|b| &*table.indexes()[b.ranges.index].name);
        extra.push(format!("Using union({})", names.collect::<Vec<_>>().join(",")));
    }
    if !path.filter.is_empty() {
        extra.push("Using where".into());
    }
    if path.covered {
        extra.push("Using index".into());
    }
    if path.reverse {
        extra.push("Backward index scan".into());
    }
    extra
}

pub(super) fn access_type(table: &Table, path: &TableAccess) -> &'static str {
    match &path.access {
        Access::Full { index: 0 } if !path.reverse => "ALL",
        Access::Full { .. } => "index",
        Access::Point { key, .. } if key.iter().all(Expr::is_fixed) => "const",
        Access::Point { .. } => "eq_ref",
        Access::Ranges(IndexRanges { index, intervals }) => match &intervals[..] {
            [only] if only.is_equality() => {
                let nulls = only.parts.iter().any(|part| matches!(part, Part::One(e) if e.null_safe));
                let whole = only.parts.len() == table.indexes()[*index].parts.len();
                if nulls && whole { "ref_or_null" } else { "ref" }
            }
            _ => "range",
        },
        Access::Union(_) => "index_merge",
    }
}

/// What is read of a table's indexes: one, or those of a union.
pub(super) struct Key {
    pub names: Vec<String>,
    /// Bytes that are used of each.
    pub lengths: Vec<String>,
    /// Columns that are used.
    pub parts: Vec<usize>,
    /// What a key is equal to.
    pub refs: Vec<String>,
}

impl Key {
    /// Nothing if the table is read as it lies.
    pub(super) fn of(table: &Table, path: &TableAccess) -> Option<Key> {
        let index = &table.indexes()[path.index()];
        if index.parts.is_empty() {
            return None;
        }
        let mut values: Vec<&Expr> = Vec::new();
        let used = match &path.access {
            Access::Full { index: 0 } if !path.reverse => return None,
            Access::Full { .. } => usize::MAX,
            Access::Point { key, .. } => {
                values.extend(key);
                key.len()
            }
            Access::Ranges(ranges) => {
                if let [only] = &ranges.intervals[..]
                    && only.is_equality()
                {
                    only.values(&mut |e| values.push(e));
                }
                ranges.intervals.iter().map(used_parts).max().unwrap_or(0)
            }
            Access::Union(branches) => return Some(Key::of_union(table, branches)),
        };
        let refs = values.iter().map(|e| match &e.kind {
            Kind::Column { .. } => "func".to_owned(),
            _ => "const".to_owned(),
        });
        let parts: Vec<usize> = index.parts.iter().take(used).map(|part| part.column).collect();
        let length: u32 = parts.iter().map(|part| part_length(table, *part)).sum();
        let (names, lengths) = (vec![index.name.to_string()], vec![length.to_string()]);
        Some(Key { names, lengths, parts, refs: refs.collect() })
    }

    /// One key a branch.
    fn of_union(table: &Table, branches: &[UnionBranch]) -> Key {
        let mut key = Key { names: Vec::new(), lengths: Vec::new(), parts: Vec::new(), refs: Vec::new() };
        for UnionBranch { ranges, .. } in branches {
            let index = &table.indexes()[ranges.index];
            let used = ranges.intervals.iter().map(used_parts).max().unwrap_or(0);
            let parts = index.parts.iter().take(used).map(|part| part.column);
            let length: u32 = parts.clone().map(|part| part_length(table, part)).sum();
            key.parts.extend(parts);
            key.names.push(index.name.to_string());
            key.lengths.push(length.to_string());
        }
        key
    }
}

/// Fills key, key_len and ref.
fn key_columns(row: &mut [Value], table: &Table, path: &TableAccess) {
    if let Some(key) = Key::of(table, path) {
        (row[6], row[7], row[8]) = (list(key.names), list(key.lengths), list(key.refs));
    }
}

/// How many parts of an index an interval uses.
fn used_parts(interval: &Interval) -> usize {
    interval.parts.len() + usize::from(!matches!(interval.tail, Tail::Whole))
}

/// Subqueries inside an expression, and whether they are correlated.
fn subqueries(e: &Expr, out: &mut Vec<(Arc<QueryPlan>, bool)>) {
    e.walk(&mut |e| {
        if let Kind::Subquery(subquery) = &e.kind {
            out.extend(query_of(&subquery.plan).map(|plan| (plan, !subquery.outer_slots.is_empty())));
        }
    });
}

/// As `subqueries`, of a condition that a path guarantees: an EXISTS is asked as a set there.
fn implied_subqueries(e: &Expr, out: &mut Vec<(Arc<QueryPlan>, bool)>) {
    let Some(set) = set_of(e) else { return subqueries(e, out) };
    out.extend(query_of(&set.plan).map(|plan| (plan, false)));
}

/// The rows as which an EXISTS can be asked.
pub(super) fn set_of(e: &Expr) -> Option<&Subquery> {
    match &e.kind {
        Kind::Subquery(subquery) => subquery.set.as_ref().map(|set| &set.list),
        _ => None,
    }
}

fn node_subqueries(nodes: &[Node], out: &mut Vec<(Arc<QueryPlan>, bool)>) {
    for node in nodes {
        match node {
            Node::Scan(scan) => {
                if let NodeSource::Table { path, .. } = &scan.source {
                    path.implied.iter().for_each(|e| implied_subqueries(e, out));
                }
                let filter = match &scan.source {
                    NodeSource::Table { path, .. } => &path.filter,
                    NodeSource::Derived { filter, .. }
                    | NodeSource::Virtual { filter, .. }
                    | NodeSource::Recursion { filter, .. } => filter,
                };
                filter
                    .iter()
                    .chain(scan.keep.iter().flat_map(|k| &k.filter))
                    .for_each(|e| subqueries(e, out));
            }
            Node::Outer(outer) => {
                node_subqueries(&outer.nodes, out);
                outer.on.iter().chain(&outer.filter).for_each(|e| subqueries(e, out));
            }
        }
    }
}
