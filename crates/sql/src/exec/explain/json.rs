//! EXPLAIN FORMAT=JSON: a tree of query blocks as MySQL 8 has it (version 1), or as MariaDB, whose ANALYZE adds what happened.

use super::parts::{Parts, TableOf, select};
use super::tree::all_of;
use crate::expr::outline::{Actual, Does, Inner, Key, Line, Table};
use crate::expr::profile::Measure;
use std::fmt::Write;

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
    let mut quoted = Vec::with_capacity(text.len() + 2);
    omnibus_value::json::write_quoted(text, &mut quoted);
    out.push_str(&String::from_utf8_lossy(&quoted));
}

/// The document of a statement; `ran`: what happened is shown, too.
pub(super) fn document(line: &Line, mariadb: bool, ran: bool) -> String {
    let mut builder = Builder { mariadb, ran, changed: Vec::new() };
    let block = match &line.does {
        Does::Change(tables) => {
            builder.changed = tables.iter().map(|(does, name)| (&**name, *does)).collect();
            builder.change(line)
        }
        _ => builder.query(line),
    };
    let mut out = String::new();
    write(&Json::Object(vec![("query_block", Json::Object(block))]), 0, &mut out);
    out
}

struct Builder<'p> {
    mariadb: bool,
    ran: bool,
    changed: Vec<(&'p str, &'static str)>,
}

/// MySQL's four figures of a table: `rows` is how many rows come out of it and those before it, `prefix` what they cost.
fn costs(table: &Table, rows: f64, prefix: f64) -> Json {
    let figure = |n: f64| text(format!("{n:.2}"));
    let bytes = rows.max(0.0) * table.row_bytes;
    let unit = ["", "K", "M", "G", "T"].iter().zip(0..).find(|(_, power)| bytes < 1024_f64.powi(power + 1));
    let (unit, power) = unit.unwrap_or((&"P", 5));
    Json::Object(vec![
        ("read_cost", figure(table.estimate.cost)),
        ("eval_cost", figure(0.0)),
        ("prefix_cost", figure(prefix)),
        ("data_read_per_join", text(format!("{:.0}{unit}", bytes / 1024_f64.powi(power)))),
    ])
}

/// The word for what a changing statement does with its table.
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

fn measure_of(actual: Actual) -> Option<Measure> {
    match actual {
        Actual::Did(measure) => Some(measure),
        _ => None,
    }
}

impl Builder<'_> {
    /// A statement that changes tables: one along a path, or those of a query.
    fn change(&mut self, line: &Line) -> Members {
        let [below] = &line.below[..] else { return Vec::new() };
        let Some((name, does)) = self.changed.first().copied() else { return Vec::new() };
        if matches!(below.does, Does::Select(_)) && !matches!(does, "INSERT" | "REPLACE") {
            return self.query(below);
        }
        self.changed.clear();
        let mut block = vec![("select_id", number(1))];
        let mut members = vec![(role(does), truth(true)), ("table_name", text(name))];
        let parts = Parts::of(below);
        let table = parts.tables.first().map(|table| (table, &table.read.does));
        if let Some((read, Does::Table(table))) = table.filter(|_| !matches!(below.does, Does::Select(_))) {
            self.path(table, read, &mut members);
            let table = vec![("table", Json::Object(members))];
            if parts.sort.is_some() {
                let sort = [("using_filesort", truth(true))].into_iter().chain(table).collect();
                block.push(("ordering_operation", Json::Object(sort)));
            } else {
                block.extend(table);
            }
        } else {
            members.push(("access_type", text("ALL")));
            block.push(("table", Json::Object(members)));
        }
        if let Does::Select(_) = below.does {
            block.push(("insert_from", Json::Object(self.content(below))));
        }
        let inner: Vec<&Inner> = line.inner.iter().collect();
        self.inner("update_value_subqueries", &inner, &mut block);
        block
    }

    /// A query with its number; of a set operation, its operands have numbers.
    fn query(&self, line: &Line) -> Members {
        let mut block = Vec::new();
        if !line.below.iter().any(is_union) {
            block.push(("select_id", number(select(line).0)));
        }
        if let Some(measure) = measure_of(line.actual) {
            block.push(("r_loops", number(measure.loops)));
            block.push(("r_total_time_ms", milliseconds(&measure)));
        }
        block.extend(self.content(line));
        block
    }

    /// A query block without its number.
    fn content(&self, line: &Line) -> Members {
        let [below] = &line.below[..] else { return Vec::new() };
        let (union, sorted) = union_of(below);
        let specifications = |line: &Line| {
            let all = line.below.iter().map(|below| self.specification(below)).collect();
            ("query_specifications", Json::List(all))
        };
        match &union.does {
            Does::Union(kind) => {
                let temporary = truth(kind.deduplicates || sorted);
                let result = vec![("using_temporary_table", temporary), specifications(union)];
                vec![("union_result", Json::Object(result))]
            }
            Does::Recursive(_) => {
                let result = vec![("using_temporary_table", truth(true)), specifications(union)];
                vec![("recursive_union", Json::Object(result))]
            }
            _ => self.block(below),
        }
    }

    fn specification(&self, query: &Line) -> Json {
        let block = Json::Object(self.query(query));
        match self.mariadb {
            true => Json::Object(vec![("query_block", block)]),
            false => {
                let head = [("dependent", truth(false)), ("cacheable", truth(!select(query).1))];
                Json::Object(head.into_iter().chain([("query_block", block)]).collect())
            }
        }
    }

    fn block(&self, line: &Line) -> Members {
        let parts = Parts::of(line);
        let (mut rows, mut cost) = (1.0, 0.0);
        let tables: Vec<Json> =
            parts.tables.iter().map(|table| self.table(table, &mut rows, &mut cost)).collect();
        let read = !tables.is_empty();
        let members = self.around(&parts, self.loops(tables));
        let mut all: Members = Vec::new();
        if read {
            match self.mariadb {
                true => all.push(("cost", Json::Raw(format!("{:.6}", cost / 1000.0)))),
                false => {
                    all.push(("cost_info", Json::Object(vec![("query_cost", text(format!("{cost:.2}")))])));
                }
            }
        }
        if !parts.constants.is_empty() {
            let name = if self.mariadb { "outer_ref_condition" } else { "const_condition" };
            all.push((name, text(all_of(parts.constants))));
        }
        all.extend(members);
        if let Some(having) = parts.having {
            all.push(("having_condition", text(having)));
        }
        self.inner(
            if self.mariadb { "subqueries" } else { "select_list_subqueries" },
            &parts.inner,
            &mut all,
        );
        all
    }

    fn loops(&self, tables: Vec<Json>) -> Members {
        if tables.is_empty() {
            return vec![("message", text("No tables used"))];
        }
        if self.mariadb || tables.len() > 1 {
            let tables = tables.into_iter().map(|table| Json::Object(vec![("table", table)])).collect();
            return vec![("nested_loop", Json::List(tables))];
        }
        tables.into_iter().map(|table| ("table", table)).collect()
    }

    /// The operations of a block around its loops.
    fn around(&self, parts: &Parts<'_>, mut members: Members) -> Members {
        let mut temporary = parts.distinct;
        if let Some(group) = parts.group.filter(|group| group.by) {
            temporary |= !group.stream;
            let head =
                vec![("using_temporary_table", truth(!group.stream)), ("using_filesort", truth(false))];
            members = self.within("grouping_operation", head, members);
        }
        if let Some(sorts) = parts.windows {
            temporary = true;
            let head = vec![("using_temporary_table", truth(true)), ("using_filesort", truth(sorts))];
            members = self.within("windowing", head, members);
        }
        if parts.distinct {
            let head = vec![("using_temporary_table", truth(true))];
            members = self.within("duplicates_removal", head, members);
        }
        if self.mariadb && temporary {
            members = vec![("temporary_table", Json::Object(members))];
        }
        match parts.sort {
            None => members,
            Some(keys) if self.mariadb => {
                let key = |key: &Key| match key.descending {
                    true => format!("{} desc", key.text),
                    false => key.text.clone(),
                };
                let mut head = vec![("sort_key", text(keys.iter().map(key).collect::<Vec<_>>().join(", ")))];
                head.extend(members);
                vec![("filesort", Json::Object(head))]
            }
            Some(_) => self.within("ordering_operation", vec![("using_filesort", truth(true))], members),
        }
    }

    /// One operation of MySQL's around others; MariaDB has other ones.
    fn within(&self, name: &'static str, mut head: Members, members: Members) -> Members {
        if self.mariadb {
            return members;
        }
        head.extend(members);
        vec![(name, Json::Object(head))]
    }

    fn inner(&self, name: &'static str, inner: &[&Inner], members: &mut Members) {
        let one = |inner: &&Inner| {
            let block = Json::Object(self.query(&inner.query));
            Json::Object(match self.mariadb {
                true => vec![("query_block", block)],
                false => vec![
                    ("dependent", truth(inner.dependent)),
                    ("cacheable", truth(!inner.dependent)),
                    ("query_block", block),
                ],
            })
        };
        if !inner.is_empty() {
            members.push((name, Json::List(inner.iter().map(one).collect())));
        }
    }

    /// A table of a block; `rows` and `cost` are those of the tables before it, and then of it, too.
    fn table(&self, table: &TableOf<'_>, rows: &mut f64, cost: &mut f64) -> Json {
        let mut members: Members = Vec::new();
        let mut named = |alias: &str| {
            let changed = self.changed.iter().find(|(name, _)| *name == alias);
            members.extend(changed.map(|(_, does)| (role(does), truth(true))));
            members.push(("table_name", text(alias)));
        };
        match &table.read.does {
            Does::Table(read) => {
                named(&read.alias);
                *cost += *rows * read.estimate.cost;
                *rows *= read.estimate.rows * read.estimate.filtered / 100.0;
                self.path(read, table, &mut members);
                if !self.mariadb {
                    members.push(("rows_produced_per_join", number(rows.round())));
                    members.push(("cost_info", costs(read, *rows, *cost)));
                    members.push(("used_columns", texts(read.columns.iter().cloned())));
                }
            }
            Does::Derived(alias) => {
                named(alias);
                let query = table.read.below.first();
                self.made(table, query.map_or(1.0, |query| select(query).2), &mut members);
                members.extend(query.map(|query| self.materialized(query)));
            }
            Does::Computed(alias) | Does::Recursion(alias) => {
                named(alias);
                self.made(table, 1.0, &mut members);
            }
            _ => {}
        }
        if table.hashed {
            members.push(("using_join_buffer", text("hash join")));
        }
        if !table.conditions.is_empty() {
            members.push(("attached_condition", text(all_of(&table.conditions))));
        }
        self.inner("attached_subqueries", &table.inner, &mut members);
        Json::Object(members)
    }

    fn materialized(&self, query: &Line) -> (&'static str, Json) {
        if query.below.is_empty() && !self.mariadb {
            let id = vec![("select_id", number(select(query).0))];
            let sharing = vec![("sharing_temporary_table_with", Json::Object(id))];
            return ("materialized_from_subquery", Json::Object(sharing));
        }
        let block = Json::Object(self.query(query));
        match self.mariadb {
            true => ("materialized", Json::Object(vec![("query_block", block)])),
            false => {
                let head = vec![
                    ("using_temporary_table", truth(true)),
                    ("dependent", truth(false)),
                    ("cacheable", truth(!select(query).1)),
                    ("query_block", block),
                ];
                ("materialized_from_subquery", Json::Object(head))
            }
        }
    }

    /// Adds the members of a table that the statement itself makes.
    fn made(&self, table: &TableOf<'_>, rows: f64, members: &mut Members) {
        members.push(("access_type", text("ALL")));
        self.counts(measure_of(table.actual), (rows, 100.0), true, members);
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
        if self.ran {
            members.push(("r_loops", number(loops)));
        }
        members.push(("rows", number(rows.round())));
        let examined = measure.map(|measure| if made { measure.rows } else { measure.examined });
        if self.ran {
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
        } else if self.ran {
            members.push(("r_filtered", Json::Raw("null".into())));
        }
    }

    fn path(&self, table: &Table, read: &TableOf<'_>, members: &mut Members) {
        members.push(("access_type", text(table.access)));
        if !table.possible.is_empty() {
            members.push(("possible_keys", texts(table.possible.iter().cloned())));
        }
        if let Some(index) = &table.index {
            members.push(("key", text(index.names.join(","))));
            members.push(("used_key_parts", texts(index.parts.iter().cloned())));
            members.push(("key_length", text(index.lengths.join(","))));
            if !index.refs.is_empty() {
                members.push(("ref", texts(index.refs.iter().cloned())));
            }
        }
        self.inner("attached_subqueries", &read.keyed, members);
        let estimate = (table.estimate.rows, table.estimate.filtered);
        self.counts(measure_of(read.actual), estimate, false, members);
        if table.covered {
            members.push(("using_index", truth(true)));
        }
        if table.reverse {
            members.push(("backward_index_scan", truth(true)));
        }
        if !table.united.is_empty() {
            members.push(("using_union", truth(true)));
        }
    }
}

fn is_union(line: &Line) -> bool {
    matches!(union_of(line).0.does, Does::Union(_) | Does::Recursive(_))
}

/// The set operation below LIMIT and ORDER BY, if there is one, and whether it is ordered.
fn union_of(mut line: &Line) -> (&Line, bool) {
    let mut sorted = false;
    while let (Does::Limit(..) | Does::Sort { .. }, [below]) = (&line.does, &line.below[..]) {
        sorted |= matches!(line.does, Does::Sort { .. });
        line = below;
    }
    (line, sorted)
}
