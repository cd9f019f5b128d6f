//! EXPLAIN FORMAT=JSON: a tree of query blocks as MySQL 8 has it (version 1), or as MariaDB, whose ANALYZE adds what happened.

use super::names::{Known, query_of};
use super::table::{Key, access_type, set_of};
use super::{Change, Subject};
use crate::catalog::Table;
use crate::expr::Expr;
use crate::expr::print::{self, Names};
use crate::expr::profile::{Measure, Profile, Step};
use crate::logical::{SetOperation, SortBy, Windows};
use crate::plan::cost::filtered;
use crate::plan::physical::path::{Access, TableAccess};
use crate::plan::physical::{Block, Body, Node, NodeSource, QueryPlan, ScanNode};
use crate::plan::rules::needed::Needed;
use std::fmt::Write;
use std::sync::Arc;

/// A document being made; members stay in their order.
enum Json {
    Text(String),
    Raw(String),
    List(Vec<Json>),
    Object(Members),
}

type Members = Vec<(&'static str, Json)>;

fn text(value: impl Into<String>) -> Json {
    Json::Text(value.into())
}

fn number(value: impl ToString) -> Json {
    Json::Raw(value.to_string())
}

fn truth(value: bool) -> Json {
    Json::Raw(value.to_string())
}

fn texts(all: impl IntoIterator<Item = String>) -> Json {
    Json::List(all.into_iter().map(Json::Text).collect())
}

fn write(json: &Json, depth: usize, out: &mut String) {
    let line = |depth: usize, out: &mut String| {
        let _ = write!(out, "\n{}", "  ".repeat(depth));
    };
    match json {
        Json::Raw(raw) => out.push_str(raw),
        Json::Text(text) => quoted(text, out),
        Json::List(list) => {
            out.push('[');
            for (at, one) in list.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                line(depth + 1, out);
                write(one, depth + 1, out);
            }
            line(depth, out);
            out.push(']');
        }
        Json::Object(members) => {
            out.push('{');
            for (at, (name, value)) in members.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                line(depth + 1, out);
                let _ = write!(out, "\"{name}\": ");
                write(value, depth + 1, out);
            }
            line(depth, out);
            out.push('}');
        }
    }
}

fn quoted(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// The document of a statement.
pub(super) fn document(subject: &Subject<'_>, mariadb: bool, profile: Option<&Profile>) -> String {
    let mut builder =
        Builder { known: Known::default(), mariadb, profile, changed: Vec::new(), needed: Needed::default() };
    let block = match subject {
        Subject::Query(plan) => builder.query(plan),
        Subject::Changing(plan, changed) => {
            builder.changed.clone_from(changed);
            builder.query(plan)
        }
        Subject::Change(change) => builder.change(change),
    };
    let mut out = String::new();
    write(&Json::Object(vec![("query_block", Json::Object(block))]), 0, &mut out);
    out
}

struct Builder<'p> {
    known: Known,
    mariadb: bool,
    profile: Option<&'p Profile>,
    changed: Vec<(&'p str, &'static str)>,
    /// What the block that is being written reads.
    needed: Needed,
}

/// The columns of a table that a block reads, in the table's order.
fn used_columns(needed: &Needed, slot: u16, table: &Table) -> Vec<String> {
    let read = needed.of(slot);
    let columns = table.columns().iter().enumerate();
    let used = columns.filter(|(at, _)| read.is_none_or(|read| read.contains(&(*at as u16))));
    used.map(|(_, column)| column.shown().to_owned()).collect()
}

/// MySQL's four figures of a table: `rows` is how many rows come out of it and those before it, `prefix` what they cost.
fn costs(table: &Table, path: &TableAccess, rows: f64, prefix: f64) -> Json {
    let figure = |n: f64| text(format!("{n:.2}"));
    let bytes = rows.max(0.0)
        * table.columns().iter().map(|column| f64::from(column.ty.length.min(1 << 16))).sum::<f64>();
    let unit = ["", "K", "M", "G", "T"].iter().zip(0..).find(|(_, power)| bytes < 1024_f64.powi(power + 1));
    let (unit, power) = unit.unwrap_or((&"P", 5));
    Json::Object(vec![
        ("read_cost", figure(path.cost)),
        ("eval_cost", figure(0.0)),
        ("prefix_cost", figure(prefix)),
        ("data_read_per_join", text(format!("{:.0}{unit}", bytes / 1024_f64.powi(power)))),
    ])
}

/// What the table of a changing statement is.
fn role(does: &str) -> &'static str {
    match does {
        "INSERT" => "insert",
        "REPLACE" => "replace",
        "UPDATE" => "update",
        _ => "delete",
    }
}

fn milliseconds(measure: &Measure) -> Json {
    Json::Raw(format!("{:.4}", measure.total.as_secs_f64() * 1000.0))
}

impl Builder<'_> {
    fn did<T>(&self, part: &T) -> Option<&Measure> {
        self.profile.and_then(|profile| profile.of(part, Step::Whole))
    }

    fn change(&mut self, change: &Change<'_>) -> Members {
        let mut block = vec![("select_id", number(self.known.next_id()))];
        let mut members =
            vec![(role(change.kind), truth(true)), ("table_name", text(change.table.def.name.to_string()))];
        match change.path {
            Some((path, sorted)) => {
                self.path(change.table, change.slot, path, None, &mut members);
                let table = vec![("table", Json::Object(members))];
                if sorted {
                    let sort = [("using_filesort", truth(true))].into_iter().chain(table).collect();
                    block.push(("ordering_operation", Json::Object(sort)));
                } else {
                    block.extend(table);
                }
            }
            None => {
                members.push(("access_type", text("ALL")));
                block.push(("table", Json::Object(members)));
            }
        }
        if let Some(query) = change.query {
            block.push(("insert_from", Json::Object(self.content(query))));
        }
        change.exprs.iter().for_each(|e| drop(print::expr(e, &self.known)));
        self.inner("update_value_subqueries", &mut block);
        block
    }

    fn query(&mut self, plan: &QueryPlan) -> Members {
        let id = self.known.next_id();
        self.numbered(id, plan)
    }

    fn numbered(&mut self, id: u64, plan: &QueryPlan) -> Members {
        let mut block = vec![("select_id", number(id))];
        if let Some(measure) = self.did(plan) {
            block.push(("r_loops", number(measure.loops)));
            block.push(("r_total_time_ms", milliseconds(measure)));
        }
        block.extend(self.content(plan));
        block
    }

    /// A query block without its number.
    fn content(&mut self, plan: &QueryPlan) -> Members {
        match &plan.body {
            Body::Block(block) => self.block(block),
            Body::Values(_) => vec![("message", text("No tables used"))],
            Body::Compound(compound) => {
                let deduplicates =
                    compound.rest.iter().any(|(operation, _)| *operation != SetOperation::UnionAll);
                let first = self.specification(&compound.left);
                let rest = compound.rest.iter().map(|(_, plan)| self.specification(plan)).collect::<Vec<_>>();
                let all = std::iter::once(first).chain(rest).collect();
                let result = vec![
                    ("using_temporary_table", truth(deduplicates || !compound.order.is_empty())),
                    ("query_specifications", Json::List(all)),
                ];
                vec![("union_result", Json::Object(result))]
            }
            Body::Recursive(recursive) => {
                let parts = recursive.seeds.iter().chain(&recursive.steps);
                let all = Json::List(parts.map(|plan| self.specification(plan)).collect());
                let result = vec![("using_temporary_table", truth(true)), ("query_specifications", all)];
                vec![("recursive_union", Json::Object(result))]
            }
        }
    }

    fn specification(&mut self, plan: &QueryPlan) -> Json {
        let block = Json::Object(self.query(plan));
        match self.mariadb {
            true => Json::Object(vec![("query_block", block)]),
            false => {
                let head = [("dependent", truth(false)), ("cacheable", truth(!plan.volatile))];
                Json::Object(head.into_iter().chain([("query_block", block)]).collect())
            }
        }
    }

    fn block(&mut self, block: &Block) -> Members {
        self.known.learn(block);
        let outer = std::mem::replace(&mut self.needed, Needed::of_block(block));
        let mut cost = 0.0;
        let mut tables = Vec::new();
        self.nodes(&block.nodes, &mut 1.0, &mut cost, &mut tables);
        self.needed = outer;
        let mut members: Members = Vec::new();
        if tables.is_empty() {
            members.push(("message", text("No tables used")));
        } else if self.mariadb || tables.len() > 1 {
            let tables = tables.into_iter().map(|table| Json::Object(vec![("table", table)])).collect();
            members.push(("nested_loop", Json::List(tables)));
        } else {
            members.extend(tables.into_iter().map(|table| ("table", table)));
        }
        let mut temporary = block.distinct;
        if let Some(grouping) = block.grouping.as_ref().filter(|grouping| !grouping.keys.is_empty()) {
            temporary |= !grouping.stream;
            let head =
                vec![("using_temporary_table", truth(!grouping.stream)), ("using_filesort", truth(false))];
            members = self.within("grouping_operation", head, members);
        }
        if let Some(windows) = &block.windows {
            temporary = true;
            let head = vec![
                ("using_temporary_table", truth(true)),
                ("using_filesort", truth(Windows::sorts(windows))),
            ];
            members = self.within("windowing", head, members);
        }
        if block.distinct {
            members =
                self.within("duplicates_removal", vec![("using_temporary_table", truth(true))], members);
        }
        if self.mariadb && temporary {
            members = vec![("temporary_table", Json::Object(members))];
        }
        let outputs: Vec<String> = block.outputs.iter().map(|e| print::expr(e, &self.known)).collect();
        if !block.order.is_empty() {
            let keys = block.order.iter().map(|key| {
                let text = match &key.expr {
                    SortBy::Output(at) => outputs.get(*at).cloned().unwrap_or_default(),
                    SortBy::Expr(e) => print::expr(e, &self.known),
                };
                if key.descending { format!("{text} desc") } else { text }
            });
            members = match self.mariadb {
                true => {
                    let mut head = vec![("sort_key", text(keys.collect::<Vec<_>>().join(", ")))];
                    head.extend(members);
                    vec![("filesort", Json::Object(head))]
                }
                false => self.within("ordering_operation", vec![("using_filesort", truth(true))], members),
            };
        }
        let mut all: Members = Vec::new();
        if !block.nodes.is_empty() {
            match self.mariadb {
                true => all.push(("cost", Json::Raw(format!("{:.6}", cost / 1000.0)))),
                false => {
                    all.push(("cost_info", Json::Object(vec![("query_cost", text(format!("{cost:.2}")))])));
                }
            }
        }
        if !block.constants.is_empty() {
            let condition = print::conjunction(&block.constants, &self.known);
            all.push((if self.mariadb { "outer_ref_condition" } else { "const_condition" }, text(condition)));
        }
        all.extend(members);
        if let Some(having) = &block.having {
            all.push(("having_condition", text(print::expr(having, &self.known))));
        }
        self.inner(if self.mariadb { "subqueries" } else { "select_list_subqueries" }, &mut all);
        all
    }

    /// One operation of MySQL's around others; MariaDB has other ones.
    fn within(&self, name: &'static str, mut head: Members, members: Members) -> Members {
        if self.mariadb {
            return members;
        }
        head.extend(members);
        vec![(name, Json::Object(head))]
    }

    /// The subqueries that were named since the last time.
    fn inner(&mut self, name: &'static str, members: &mut Members) {
        let mut all = Vec::new();
        loop {
            let inner = self.known.take_inner();
            if inner.is_empty() {
                break;
            }
            for inner in inner {
                let block = Json::Object(self.numbered(inner.id, &inner.plan));
                all.push(Json::Object(match self.mariadb {
                    true => vec![("query_block", block)],
                    false => vec![
                        ("dependent", truth(inner.dependent)),
                        ("cacheable", truth(!inner.dependent)),
                        ("query_block", block),
                    ],
                }));
            }
        }
        if !all.is_empty() {
            members.push((name, Json::List(all)));
        }
    }

    fn nodes(&mut self, nodes: &[Node], rows: &mut f64, cost: &mut f64, out: &mut Vec<Json>) {
        for node in nodes {
            match node {
                Node::Outer(outer) => self.nodes(&outer.nodes, rows, cost, out),
                Node::Scan(scan) => {
                    let measure = self.did(node).copied();
                    out.push(self.scan(scan, measure, rows, cost));
                }
            }
        }
    }

    fn scan(&mut self, scan: &ScanNode, measure: Option<Measure>, rows: &mut f64, cost: &mut f64) -> Json {
        let changed = self.changed.iter().find(|(alias, _)| **alias == *scan.alias);
        let mut members: Members = changed.map(|(_, does)| (role(does), truth(true))).into_iter().collect();
        members.push(("table_name", text(scan.alias.to_string())));
        let filter = match &scan.source {
            NodeSource::Table { table, path, .. } => {
                *cost += *rows * path.cost;
                *rows *= path.expected(table) * filtered(path, table, scan.slot) / 100.0;
                self.path(table, scan.slot, path, measure, &mut members);
                if !self.mariadb {
                    members.push(("rows_produced_per_join", number(rows.round())));
                    members.push(("cost_info", costs(table, path, *rows, *cost)));
                    members.push(("used_columns", texts(used_columns(&self.needed, scan.slot, table))));
                }
                &path.filter
            }
            NodeSource::Derived { plan, filter, .. } => {
                self.made(measure, plan.rows(), &mut members);
                let id = self.known.next_id();
                let block =
                    Json::Object(query_of(plan).map_or_else(Vec::new, |plan| self.numbered(id, &plan)));
                let materialized = match self.mariadb {
                    true => ("materialized", Json::Object(vec![("query_block", block)])),
                    false => {
                        let head = vec![
                            ("using_temporary_table", truth(true)),
                            ("dependent", truth(false)),
                            ("cacheable", truth(!plan.is_volatile())),
                            ("query_block", block),
                        ];
                        ("materialized_from_subquery", Json::Object(head))
                    }
                };
                members.push(materialized);
                filter
            }
            NodeSource::Virtual { filter, .. } | NodeSource::Recursion { filter, .. } => {
                self.made(measure, 1.0, &mut members);
                filter
            }
        };
        let kept = scan.keep.iter().flat_map(|keep| &keep.filter);
        let conditions: Vec<Expr> = filter.iter().chain(kept).cloned().collect();
        if scan.keep.is_some() {
            members.push(("using_join_buffer", text("hash join")));
        }
        self.condition(&conditions, &mut members);
        Json::Object(members)
    }

    fn condition(&mut self, conditions: &[Expr], members: &mut Members) {
        if conditions.is_empty() {
            return;
        }
        members.push(("attached_condition", text(print::conjunction(conditions, &self.known))));
        self.inner("attached_subqueries", members);
    }

    /// What a table says that is made by the statement.
    fn made(&self, measure: Option<Measure>, rows: f64, members: &mut Members) {
        members.push(("access_type", text("ALL")));
        self.counts(measure, (rows, 100.0), true, members);
    }

    /// `rows` of a reading, and how many of a hundred meet the conditions.
    fn counts(
        &self,
        measure: Option<Measure>,
        (rows, filtered): (f64, f64),
        made: bool,
        members: &mut Members,
    ) {
        let loops = measure.map_or(0, |measure| measure.loops);
        let of = |n: u64| format!("{:.2}", n as f64 / loops.max(1) as f64);
        if !self.mariadb {
            members.push(("rows_examined_per_scan", number(rows.round())));
            members.push(("filtered", text(format!("{filtered:.2}"))));
            return;
        }
        if self.profile.is_some() {
            members.push(("r_loops", number(loops)));
        }
        members.push(("rows", number(rows.round())));
        let examined = measure.map(|measure| if made { measure.rows } else { measure.examined });
        if self.profile.is_some() {
            members.push(("r_rows", Json::Raw(examined.map_or("null".into(), of))));
        }
        if let Some(measure) = &measure {
            members.push(("r_table_time_ms", milliseconds(measure)));
        }
        members.push((
            "filtered",
            Json::Raw(if filtered < 100.0 { format!("{filtered:.2}") } else { "100".into() }),
        ));
        if let (Some(measure), Some(examined)) = (&measure, examined) {
            let share = 100.0 * measure.rows as f64 / examined.max(1) as f64;
            members.push((
                "r_filtered",
                Json::Raw(if examined == 0 { "100".into() } else { format!("{share:.2}") }),
            ));
        } else if self.profile.is_some() {
            members.push(("r_filtered", Json::Raw("null".into())));
        }
    }

    fn path(
        &mut self,
        table: &Arc<Table>,
        slot: u16,
        path: &TableAccess,
        measure: Option<Measure>,
        members: &mut Members,
    ) {
        members.push(("access_type", text(access_type(table, path))));
        if !path.possible.is_empty() {
            let names = path.possible.iter().map(|at| table.indexes()[*at].name.to_string());
            members.push(("possible_keys", texts(names)));
        }
        if let Some(key) = Key::of(table, path) {
            members.push(("key", text(key.names.join(","))));
            let columns = key.parts.iter().map(|part| table.columns()[*part].shown().to_owned());
            members.push(("used_key_parts", texts(columns)));
            members.push(("key_length", text(key.lengths.join(","))));
            if !key.refs.is_empty() {
                members.push(("ref", texts(key.refs)));
            }
        }
        // What a key is equal to may be a subquery.
        path.implied.iter().for_each(|e| {
            let named = set_of(e).map(|set| self.known.subquery(set));
            drop(named.unwrap_or_else(|| print::expr(e, &self.known)));
        });
        self.inner("attached_subqueries", members);
        self.counts(measure, (path.expected(table), filtered(path, table, slot)), false, members);
        if path.covered {
            members.push(("using_index", truth(true)));
        }
        if path.reverse {
            members.push(("backward_index_scan", truth(true)));
        }
        if let Access::Union(_) = path.access {
            members.push(("using_union", truth(true)));
        }
    }
}
