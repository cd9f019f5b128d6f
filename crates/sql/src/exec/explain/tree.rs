//! EXPLAIN FORMAT=TREE and EXPLAIN ANALYZE: operators, one a line, each with those that it takes its rows from below.
//!
//! The loops of this server push rows, so an operator is what a part of the plan does: how often it ran, the rows that it gave
//! and the time until then are those of the parts below it, too.

use super::names::{Known, query_of};
use super::{Change, Subject};
use crate::catalog::Table;
use crate::expr::Expr;
use crate::expr::print::{self, Names};
use crate::expr::profile::{Measure, Profile, Step};
use crate::logical::{Limit, SetOperation, SortBy, SortKey};
use crate::plan::physical::path::{Access, IndexRanges, Interval, Part, TableAccess, Tail};
use crate::plan::physical::{Block, Body, Compound, Node, NodeSource, QueryPlan, ScanNode};
use omnibus_value::Value;
use std::fmt::Write;
use std::time::Duration;

/// An operator.
#[derive(Default)]
struct Operator {
    text: String,
    /// What it costs, and how many rows are expected of it.
    expected: Option<(f64, f64)>,
    actual: Actual,
    below: Vec<Operator>,
}

/// What it did.
#[derive(Clone, Copy, Default)]
enum Actual {
    /// It is not known.
    #[default]
    Unknown,
    /// It was never begun.
    Never,
    Did(Measure),
}

struct Outliner<'p> {
    known: Known,
    profile: Option<&'p Profile>,
}

/// The text of a statement's operators.
pub(super) fn text(subject: &Subject<'_>, profile: Option<&Profile>) -> String {
    let mut outliner = Outliner { known: Known::default(), profile };
    let operator = match subject {
        Subject::Query(plan) => outliner.query(plan),
        Subject::Changing(plan, changed) => {
            let does = |(name, does): &(&str, &str)| match *does {
                "DELETE" => format!("Delete from {name} (buffered)"),
                _ => format!("Update {name} (buffered)"),
            };
            let text = changed.iter().map(does).collect::<Vec<_>>().join(", ");
            over(text, vec![outliner.query(plan)])
        }
        Subject::Change(change) => outliner.change(change),
    };
    let mut out = String::new();
    write(&operator, 0, &mut out);
    out
}

fn over(text: impl Into<String>, below: Vec<Operator>) -> Operator {
    Operator { text: text.into(), below, ..Operator::default() }
}

/// Three digits that count, as far as there are any before the point.
fn digits(n: f64) -> String {
    match n {
        _ if n == 0.0 => "0".into(),
        _ if n >= 100.0 => format!("{n:.0}"),
        _ if n >= 10.0 => format!("{n:.1}").trim_end_matches(".0").into(),
        _ if n >= 1.0 => format!("{n:.2}").trim_end_matches('0').trim_end_matches('.').into(),
        _ => {
            let places = (-n.log10().floor()) as usize + 2;
            format!("{n:.places$}").trim_end_matches('0').into()
        }
    }
}

fn write(operator: &Operator, depth: usize, out: &mut String) {
    let _ = write!(out, "{}-> {}", " ".repeat(4 * depth), operator.text);
    if let Some((cost, rows)) = operator.expected {
        let _ = write!(out, "  (cost={} rows={})", digits(cost), digits(rows));
    }
    match &operator.actual {
        Actual::Unknown => {}
        Actual::Never => out.push_str(" (never executed)"),
        Actual::Did(measure) => {
            let loops = measure.loops.max(1) as f64;
            let ms = |time: Duration| digits(time.as_secs_f64() * 1000.0 / loops);
            let (first, total) = (ms(measure.first), ms(measure.total));
            let rows = digits(measure.rows as f64 / loops);
            let _ = write!(out, " (actual time={first}..{total} rows={rows} loops={})", measure.loops);
        }
    }
    out.push('\n');
    operator.below.iter().for_each(|below| write(below, depth + 1, out));
}

/// One behind the other.
fn sum(one: Actual, other: Actual) -> Actual {
    match (one, other) {
        (Actual::Did(one), Actual::Did(other)) => Actual::Did(Measure {
            loops: one.loops,
            rows: other.rows,
            examined: one.examined + other.examined,
            first: one.first + other.first,
            total: one.total + other.total,
        }),
        // The loops inside never began: nothing came out.
        (Actual::Did(one), Actual::Never) => Actual::Did(Measure { rows: 0, ..one }),
        (one, _) => one,
    }
}

impl Outliner<'_> {
    fn did<T>(&self, part: &T, step: Step) -> Actual {
        match self.profile {
            None => Actual::Unknown,
            Some(profile) => profile.of(part, step).map_or(Actual::Never, |measure| Actual::Did(*measure)),
        }
    }

    /// With the subqueries that were named since the last time.
    fn with_inner(&mut self, mut operator: Operator, place: &str) -> Operator {
        for inner in self.known.take_inner() {
            let how = if inner.dependent { "dependent" } else { "run only once" };
            let text = format!("Select #{} (subquery in {place}; {how})", inner.id);
            operator.below.push(over(text, vec![self.numbered(&inner.plan)]));
        }
        operator
    }

    fn change(&mut self, change: &Change<'_>) -> Operator {
        self.known.next_id();
        let table = &change.table.def.name;
        let below = match (change.path, change.query) {
            (Some((path, sorted)), _) => {
                let read = self.table(change.table, table, path, Actual::Unknown);
                if sorted { over("Sort", vec![read]) } else { read }
            }
            (None, Some(query)) => self.numbered(query),
            (None, None) => over("Rows fetched before execution", vec![]),
        };
        let text = match change.kind {
            "DELETE" => format!("Delete from {table} (buffered)"),
            "UPDATE" => format!("Update {table} (buffered)"),
            "REPLACE" => format!("Replace into {table}"),
            _ => format!("Insert into {table}"),
        };
        change.exprs.iter().for_each(|e| drop(print::expr(e, &self.known)));
        self.with_inner(over(text, vec![below]), "projection")
    }

    fn query(&mut self, plan: &QueryPlan) -> Operator {
        self.known.next_id();
        self.numbered(plan)
    }

    /// A query whose number has been taken.
    fn numbered(&mut self, plan: &QueryPlan) -> Operator {
        let mut operator = match &plan.body {
            Body::Block(block) => self.block(block),
            Body::Compound(compound) => self.compound(compound),
            Body::Values(_) => over("Rows fetched before execution", vec![]),
            Body::Recursive(recursive) => {
                let mut parts = Vec::new();
                for (at, seed) in recursive.seeds.iter().enumerate() {
                    parts.push(if at == 0 { self.numbered(seed) } else { self.query(seed) });
                }
                let steps = recursive.steps.iter().map(|step| self.query(step)).collect();
                parts.push(over("Repeat until convergence", steps));
                over("Recursive rows", parts)
            }
        };
        operator.actual = self.did(plan, Step::Whole);
        operator
    }

    fn compound(&mut self, compound: &Compound) -> Operator {
        let mut operands = vec![self.numbered(&compound.left)];
        operands.extend(compound.rest.iter().map(|(_, plan)| self.query(plan)));
        let append = compound.rest.iter().all(|(operation, _)| *operation == SetOperation::UnionAll);
        let operator = match compound.rest.last().map(|(operation, _)| *operation) {
            None => operands.remove(0),
            _ if append => over("Append", operands),
            Some(SetOperation::Intersect(_)) => over("Intersect", operands),
            Some(SetOperation::Except(_)) => over("Except", operands),
            Some(_) => over("Union with deduplication", operands),
        };
        let columns = |at: usize| format!("`{}`", at + 1);
        self.ordered(operator, &compound.order, &compound.limit, &columns)
    }

    fn ordered(
        &self,
        mut operator: Operator,
        order: &[SortKey],
        limit: &Limit,
        output: &dyn Fn(usize) -> String,
    ) -> Operator {
        if !order.is_empty() {
            let keys = order.iter().map(|key| {
                let text = match &key.expr {
                    SortBy::Output(at) => output(*at),
                    SortBy::Expr(e) => print::expr(e, &self.known),
                };
                if key.descending { format!("{text} DESC") } else { text }
            });
            let mut text = format!("Sort: {}", keys.collect::<Vec<_>>().join(", "));
            if let (Some(count), None) = (&limit.count, &limit.offset) {
                let _ = write!(text, ", limit input to {} row(s) per chunk", print::expr(count, &self.known));
            }
            operator = over(text, vec![operator]);
        }
        let number = |e: &Expr| print::expr(e, &self.known);
        match (&limit.count, &limit.offset) {
            (Some(count), Some(offset)) => {
                over(format!("Limit/Offset: {}/{} row(s)", number(count), number(offset)), vec![operator])
            }
            (Some(count), None) => over(format!("Limit: {} row(s)", number(count)), vec![operator]),
            _ => operator,
        }
    }

    fn block(&mut self, block: &Block) -> Operator {
        self.known.learn(block);
        let mut operator = self.joins(&block.nodes);
        if let Actual::Did(measure) = self.did(block, Step::Joined)
            && block.nodes.is_empty()
        {
            operator.actual = Actual::Did(measure);
        }
        if !block.constants.is_empty() {
            operator = self.filter(operator, &block.constants, Actual::Unknown);
            operator.actual = self.did(block, Step::Joined);
        }
        if let Some(grouping) = &block.grouping {
            let mut aggregates: Vec<String> = Vec::new();
            for text in grouping.aggregates.iter().map(|a| self.known.aggregate(a)) {
                if !aggregates.contains(&text) {
                    aggregates.push(text);
                }
            }
            let list = aggregates.join(", ");
            let text = match (grouping.keys.is_empty(), grouping.stream) {
                (true, _) => format!("Aggregate: {list}"),
                (false, true) if list.is_empty() => "Group (no aggregates)".into(),
                (false, true) => format!("Group aggregate: {list}"),
                (false, false) if list.is_empty() => "Temporary table with deduplication".into(),
                (false, false) => format!("Aggregate using temporary table: {list}"),
            };
            operator = self.with_inner(over(text, vec![operator]), "projection");
            operator.actual = self.did(block, Step::Grouped);
        }
        if let Some(having) = &block.having {
            operator = self.filter(operator, std::slice::from_ref(having), Actual::Unknown);
        }
        if let Some(windows) = &block.windows {
            for window in &windows.windows {
                let order = window.partition.iter().map(|e| (e, false));
                let order = order.chain(window.order.iter().map(|(e, descending)| (e, *descending)));
                let keys: Vec<String> = order
                    .map(|(e, descending)| {
                        print::expr(e, &self.known) + if descending { " DESC" } else { "" }
                    })
                    .collect();
                if window.sorts() {
                    operator = over(format!("Sort: {}", keys.join(", ")), vec![operator]);
                }
                operator = over("Window aggregate", vec![operator]);
            }
            operator = self.with_inner(operator, "projection");
        }
        if block.distinct {
            operator = over("Temporary table with deduplication", vec![operator]);
        }
        let outputs: Vec<String> = block.outputs.iter().map(|e| print::expr(e, &self.known)).collect();
        let output = |at: usize| outputs.get(at).cloned().unwrap_or_default();
        let operator = self.ordered(operator, &block.order, &block.limit, &output);
        self.with_inner(operator, "projection")
    }

    fn filter(&mut self, below: Operator, conditions: &[Expr], actual: Actual) -> Operator {
        let text = format!("Filter: {}", print::conjunction(conditions, &self.known));
        let expected = below.expected;
        self.with_inner(Operator { text, expected, actual, below: vec![below] }, "condition")
    }

    fn joins(&mut self, nodes: &[Node]) -> Operator {
        let mut left: Option<Operator> = None;
        for node in nodes {
            let actual = self.did(node, Step::Whole);
            left = Some(match (left, node) {
                (None, Node::Scan(scan)) => self.scan(scan, actual),
                (None, Node::Outer(outer)) => {
                    let right = self.joins(&outer.nodes);
                    let nothing = over("Rows fetched before execution", vec![]);
                    self.joined("Nested loop left join".into(), nothing, right, actual)
                }
                (Some(left), Node::Scan(scan)) => match &scan.keep {
                    Some(keep) => {
                        let equal = |(probe, own): (&Expr, &Expr)| {
                            format!(
                                "({} = {})",
                                print::expr(own, &self.known),
                                print::expr(probe, &self.known)
                            )
                        };
                        let on: Vec<String> = keep.probe.iter().zip(&keep.own).map(equal).collect();
                        let on = if on.is_empty() { "no condition".into() } else { on.join(", ") };
                        let read = self.scan(scan, Actual::Unknown);
                        let hash = over("Hash", vec![read]);
                        let mut operator = self.joined(format!("Inner hash join ({on})"), left, hash, actual);
                        if !keep.filter.is_empty() {
                            let extra = print::conjunction(&keep.filter, &self.known);
                            let _ = write!(operator.text, ", extra conditions: {extra}");
                            operator = self.with_inner(operator, "condition");
                        }
                        operator
                    }
                    None => {
                        let right = self.scan(scan, actual);
                        self.joined("Nested loop inner join".into(), left, right, actual)
                    }
                },
                (Some(left), Node::Outer(outer)) => {
                    let right = self.joins(&outer.nodes);
                    let mut text = String::from("Nested loop left join");
                    if !outer.on.is_empty() {
                        let _ = write!(text, ", on {}", print::conjunction(&outer.on, &self.known));
                    }
                    let operator = self.joined(text, left, right, actual);
                    match outer.filter.is_empty() {
                        true => operator,
                        false => {
                            let actual = operator.actual;
                            self.filter(operator, &outer.filter, actual)
                        }
                    }
                }
            });
        }
        left.unwrap_or_else(|| over("Rows fetched before execution", vec![]))
    }

    fn joined(&self, text: String, left: Operator, right: Operator, actual: Actual) -> Operator {
        let expected = match (left.expected, right.expected) {
            (Some((cost, rows)), Some((each, many))) => Some((cost + rows * each, rows * many)),
            _ => None,
        };
        let actual = sum(left.actual, actual);
        Operator { text, expected, actual, below: vec![left, right] }
    }

    fn scan(&mut self, scan: &ScanNode, actual: Actual) -> Operator {
        let alias = &scan.alias;
        match &scan.source {
            NodeSource::Table { table, path, .. } => self.table(table, alias, path, actual),
            NodeSource::Derived { plan, filter, .. } => {
                let inner = query_of(plan).map_or_else(Operator::default, |plan| self.query(&plan));
                let read = over(format!("Table scan on {alias}"), vec![over("Materialize", vec![inner])]);
                self.filtered(read, filter, actual)
            }
            NodeSource::Virtual { filter, .. } => {
                self.filtered(over(format!("Table scan on {alias}"), vec![]), filter, actual)
            }
            NodeSource::Recursion { filter, .. } => {
                self.filtered(over(format!("Scan new records on {alias}"), vec![]), filter, actual)
            }
        }
    }

    /// A reading that gives `actual` rows behind its filter.
    fn filtered(&mut self, mut read: Operator, filter: &[Expr], actual: Actual) -> Operator {
        if filter.is_empty() {
            read.actual = actual;
            return read;
        }
        self.filter(read, filter, actual)
    }

    fn table(&mut self, table: &Table, alias: &str, path: &TableAccess, actual: Actual) -> Operator {
        let text = self.access(table, alias, path);
        let mut read = over(text, vec![]);
        read.expected = Some((path.cost, path.expected(table)));
        if let (Actual::Did(measure), false) = (actual, path.filter.is_empty()) {
            // What came before the filter.
            read.actual = Actual::Did(Measure { rows: measure.examined, ..measure });
        } else if matches!(actual, Actual::Never) {
            read.actual = Actual::Never;
        }
        self.filtered(read, &path.filter, actual)
    }

    fn access(&self, table: &Table, alias: &str, path: &TableAccess) -> String {
        let index = |at: usize| &*table.indexes()[at].name;
        let backwards = if path.reverse { " (reverse)" } else { "" };
        let capital = |text: &str| match path.covered {
            true => format!("Covering {text}"),
            false => format!("{}{}", text[..1].to_uppercase(), &text[1..]),
        };
        match &path.access {
            Access::Full { index: 0 } if !path.reverse => format!("Table scan on {alias}"),
            Access::Full { index: at } => {
                format!("{} on {alias} using {}{backwards}", capital("index scan"), index(*at))
            }
            Access::Point { index: at, key } => {
                let columns =
                    table.indexes()[*at].parts.iter().map(|part| table.columns()[part.column].shown());
                let equal =
                    columns.zip(key).map(|(name, e)| format!("{name}={}", print::expr(e, &self.known)));
                let covering = if path.covered { "covering " } else { "" };
                let key = equal.collect::<Vec<_>>().join(", ");
                format!("Single-row {covering}index lookup on {alias} using {} ({key})", index(*at))
            }
            Access::Ranges(ranges) => match &ranges.intervals[..] {
                [only] if only.is_equality() => {
                    let key = self.interval(table, ranges.index, only, ", ", "=");
                    format!(
                        "{} on {alias} using {} ({key}){backwards}",
                        capital("index lookup"),
                        index(ranges.index)
                    )
                }
                _ => {
                    let over = self.ranges(table, ranges);
                    let name = index(ranges.index);
                    format!("{} on {alias} using {name} over {over}{backwards}", capital("index range scan"))
                }
            },
            Access::Union(branches) => {
                let one = |ranges: &IndexRanges| {
                    format!("{} over {}", index(ranges.index), self.ranges(table, ranges))
                };
                let all: Vec<String> = branches.iter().map(|branch| one(&branch.ranges)).collect();
                format!("Index merge of {alias} using {}", all.join(", "))
            }
        }
    }

    /// The ranges, the first few of many.
    fn ranges(&self, table: &Table, ranges: &IndexRanges) -> String {
        let shown = ranges.intervals.iter().take(3);
        let texts = shown
            .map(|interval| format!("({})", self.interval(table, ranges.index, interval, " AND ", " = ")));
        let mut text = texts.collect::<Vec<_>>().join(" OR ");
        if let more @ 1.. = ranges.intervals.len().saturating_sub(3) {
            let _ = write!(text, " OR ({more} more)");
        }
        text
    }

    fn interval(&self, table: &Table, index: usize, interval: &Interval, and: &str, equals: &str) -> String {
        let text = |e: &Expr| print::expr(e, &self.known);
        let mut columns =
            table.indexes()[index].parts.iter().map(|part| table.columns()[part.column].shown());
        let mut all: Vec<String> = Vec::new();
        for part in &interval.parts {
            let Some(name) = columns.next() else { break };
            all.push(match part {
                Part::One(equal) if matches!(equal.expr.as_const(), Some(Value::Null)) => {
                    format!("{name} is null")
                }
                Part::One(equal) => format!("{name}{equals}{}", text(&equal.expr)),
                Part::Any(any) => format!("{name} in ({})", print::list(any, ",", &self.known)),
                Part::Among(among) => format!("{name} in {}", self.known.subquery(&among.subquery)),
            });
        }
        let Some(name) = columns.next() else { return all.join(and) };
        match &interval.tail {
            Tail::Whole => {}
            Tail::Between { low, high } => {
                let less = |inclusive: bool| if inclusive { "<=" } else { "<" };
                let low = low
                    .as_ref()
                    .map_or(String::new(), |b| format!("{} {} ", text(&b.expr), less(b.inclusive)));
                let high = high
                    .as_ref()
                    .map_or(String::new(), |b| format!(" {} {}", less(b.inclusive), text(&b.expr)));
                all.push(format!("{low}{name}{high}"));
            }
            Tail::Begins { pattern, .. } => all.push(format!("{name} like {}", text(pattern))),
        }
        all.join(and)
    }
}
