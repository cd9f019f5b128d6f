//! The lines of a plan: for each of its operators the one that says what it does, above those of the operators below. The one walk over a plan that
//! EXPLAIN makes, whatever its form.
//!
//! First all queries get numbers, in the order of the text as far as a plan has it, by the clauses that expressions are of.
//! The loops of this server push rows, so a line is what a part of the plan does:
//! how often it ran, the rows that it gave and the time until then are those of the parts below it, too.

use super::paths;
use super::{Subject, TableChange};
use crate::expr::functions::aggregate::AggregateSpec;
use crate::expr::outline::{self, Actual, Does, Key, Line, Numbers, Outliner, Select, Union};
use crate::expr::print::{self, Names};
use crate::expr::profile::{Measure, Profile};
use crate::expr::{Expr, Kind};
use crate::logical::{Limit, SetOperation, SortBy, SortKey, Windows};
use crate::plan::physical::{
    Clause, Compound, FrameOperator, GroupMethod, GroupPlan, HashJoin, OuterJoin, Project, QueryPlan,
    ResultOperator, Scan, Source,
};
use crate::plan::rules::needed::Needed;

/// The operators of a statement, and how many queries it has.
pub(super) fn statement(subject: &Subject<'_>, profile: Option<&Profile>) -> (Line, u64) {
    let mut out = Outliner::new(profile);
    let line = match subject {
        Subject::Query(plan) => {
            number(plan, None, &mut out.numbers);
            query(plan, &mut out)
        }
        Subject::Changing(plan, changed) => {
            number(plan, None, &mut out.numbers);
            let tables = changed.iter().map(|(name, does)| (*does, (*name).to_owned())).collect();
            over(Does::Change(tables), vec![query(plan, &mut out)])
        }
        Subject::Change(change) => changing(change, &mut out),
    };
    (line, out.numbers.count())
}

fn over(does: Does, below: Vec<Line>) -> Line {
    Line { does, below, ..Line::default() }
}

fn changing(change: &TableChange<'_>, out: &mut Outliner<'_>) -> Line {
    let id = out.numbers.next_id();
    change.exprs.iter().for_each(|e| number_inside(e, &mut out.numbers));
    let below = match (change.rows, change.query) {
        (Some((rows, sorted)), _) => {
            rows.expressions(&mut |clause, e| {
                if clause != Clause::Inside {
                    number_inside(e, &mut out.numbers);
                }
            });
            let read = frame(rows, &Needed::default(), out);
            let sort = Does::Sort { keys: Vec::new(), most: None };
            if sorted { over(sort, vec![read]) } else { read }
        }
        (None, Some(plan)) => {
            // Its rows are those of the same part of the statement.
            numbered(plan, id, &mut out.numbers);
            query(plan, out)
        }
        (None, None) => Line::default(),
    };
    let does = Does::Change(vec![(change.kind, change.table.def.name.to_string())]);
    change.exprs.iter().for_each(|e| drop(print::expr(e, out)));
    out.with_inner(over(does, vec![below]), false)
}

/// Gives numbers to a query, this one or the next, and to those inside of it.
pub(in crate::exec) fn number(plan: &QueryPlan, id: Option<u64>, numbers: &mut Numbers) {
    if !numbers.knows(plan) {
        let id = id.unwrap_or_else(|| numbers.next_id());
        numbered(plan, id, numbers);
    }
}

fn numbered(plan: &QueryPlan, id: u64, numbers: &mut Numbers) {
    numbers.give(plan, id);
    let mut expressions = Vec::new();
    plan.root.expressions(&mut |clause, e| {
        // A value inside of a key is in its condition, too.
        if clause != Clause::Inside {
            expressions.push((clause, e));
        }
    });
    expressions.sort_by_key(|(clause, _)| *clause);
    let (list, rest) =
        expressions.split_at(expressions.partition_point(|(clause, _)| *clause < Clause::Where));
    list.iter().for_each(|(_, e)| number_inside(e, numbers));
    number_from(&plan.root, id, numbers);
    rest.iter().for_each(|(_, e)| number_inside(e, numbers));
}

/// Gives numbers to the queries of FROM, or to operands, the first of which has that of the whole.
fn number_from(root: &ResultOperator, id: u64, numbers: &mut Numbers) {
    for (at, operand) in root.operands().into_iter().enumerate() {
        if at == 0 { numbered(operand, id, numbers) } else { number(operand, None, numbers) }
    }
    let mut scans = Vec::new();
    root.scans(&mut |scan| scans.push(scan));
    scans.sort_by_key(|scan| scan.slot);
    for scan in scans {
        if let Source::Derived { plan, .. } = &scan.source {
            plan.number(None, numbers);
        }
    }
}

/// Gives numbers to the subqueries inside an expression. An EXISTS and the set that it can become are one.
fn number_inside(e: &Expr, numbers: &mut Numbers) {
    e.walk(&mut |e| {
        let Kind::Subquery(subquery) = &e.kind else { return };
        subquery.plan.number(None, numbers);
        if let Some(set) = &subquery.set {
            set.list.plan.number(Some(numbers.of(&*subquery.plan)), numbers);
        }
    });
}

/// The operators of a query that has a number.
pub(in crate::exec) fn query(plan: &QueryPlan, out: &mut Outliner<'_>) -> Line {
    plan.root.scans(&mut |scan| learn(scan, out));
    let needed = Needed::of_plan(&plan.root);
    let mut below = results(&plan.root, &needed, out);
    if plan.root.project().is_some() {
        below = out.with_inner(below, false);
    }
    let select = Select { id: out.numbers.of(plan), volatile: plan.volatile, rows: plan.rows };
    Line { actual: out.did(plan), ..over(Does::Select(select), vec![below]) }
}

fn results(operator: &ResultOperator, needed: &Needed, out: &mut Outliner<'_>) -> Line {
    match operator {
        ResultOperator::Project(of) => project(of, needed, out),
        ResultOperator::Distinct(of) => over(Does::Distinct, vec![project(&of.project, needed, out)]),
        ResultOperator::Sort(of) => {
            let below = results(&of.input, needed, out);
            sort(below, &of.keys, of.input.outputs(), out)
        }
        ResultOperator::Limit(of) => {
            let below = results(&of.input, needed, out);
            limit(below, &of.limit, out)
        }
        ResultOperator::SetOperation(of) => compound(of, out),
        ResultOperator::Values(_) => Line::default(),
        ResultOperator::Recursion(of) => {
            let parts = of.seeds.iter().chain(&of.steps).map(|part| query(part, out)).collect();
            over(Does::Recursive(of.seeds.len()), parts)
        }
    }
}

fn frame(operator: &FrameOperator, needed: &Needed, out: &mut Outliner<'_>) -> Line {
    let actual = out.did(operator);
    match operator {
        FrameOperator::OneRow => match actual {
            // It is described elsewhere that nobody asked for it.
            Actual::Never => Line::default(),
            actual => Line { actual, ..Line::default() },
        },
        FrameOperator::Scan(of) => scan(of, needed, actual, out),
        FrameOperator::NestedLoop(of) => {
            let left = frame(&of.left, needed, out);
            let right = frame(&of.right, needed, out);
            let own = right.actual;
            joined(Does::Join, left, right, own)
        }
        FrameOperator::HashJoin(of) => hash_join(of, needed, actual, out),
        FrameOperator::OuterJoin(of) => outer_join(of, needed, actual, out),
        FrameOperator::If(of) => {
            let below = frame(&of.input, needed, out);
            filter(below, Does::If, &of.conditions, actual, out)
        }
        FrameOperator::Filter(of) => {
            let below = frame(&of.input, needed, out);
            let does = Does::Having(print::expr(&of.condition, out));
            out.with_inner(Line { expected: below.expected, ..over(does, vec![below]) }, true)
        }
        FrameOperator::Group(of) => {
            let below = frame(&of.input, needed, out);
            Line { actual, ..group(below, &of.grouping, out) }
        }
        FrameOperator::Window(of) => {
            let below = frame(&of.input, needed, out);
            windows(below, &of.windows, out)
        }
        FrameOperator::Sort(of) => {
            let below = frame(&of.input, needed, out);
            sort(below, &of.keys, &[], out)
        }
    }
}

/// A select list has no line: what it asks is said at the end of its query.
fn project(of: &Project, needed: &Needed, out: &mut Outliner<'_>) -> Line {
    let below = frame(&of.input, needed, out);
    of.outputs.iter().for_each(|e| drop(print::expr(e, out)));
    below
}

fn compound(compound: &Compound, out: &mut Outliner<'_>) -> Line {
    let mut operands = vec![query(&compound.left, out)];
    operands.extend(compound.rest.iter().map(|(_, plan)| query(plan, out)));
    let append = compound.rest.iter().all(|(operation, _)| *operation == SetOperation::UnionAll);
    let name = compound.rest.last().map(|(operation, _)| match operation {
        _ if append => "Append",
        SetOperation::Intersect(_) => "Intersect",
        SetOperation::Except(_) => "Except",
        _ => "Union with deduplication",
    });
    over(Does::Union(Union { name, deduplicates: !append }), operands)
}

/// ORDER BY of what has these outputs; those of a set operation, which are not known, have numbers.
fn sort(below: Line, keys: &[SortKey], outputs: &[Expr], out: &Outliner<'_>) -> Line {
    let text = |key: &SortKey| match &key.expr {
        SortBy::Output(at) => outputs.get(*at).map_or(format!("`{}`", at + 1), |e| print::expr(e, out)),
        SortBy::Expr(e) => print::expr(e, out),
    };
    let keys = keys.iter().map(|key| Key { text: text(key), descending: key.descending }).collect();
    over(Does::Sort { keys, most: None }, vec![below])
}

/// LIMIT, of which a sort below it knows, too.
fn limit(mut below: Line, limit: &Limit, out: &Outliner<'_>) -> Line {
    let Some(count) = limit.count.as_ref().map(|e| print::expr(e, out)) else { return below };
    let offset = limit.offset.as_ref().map(|e| print::expr(e, out));
    if let (Does::Sort { most, .. }, None) = (&mut below.does, &offset) {
        *most = Some(count.clone());
    }
    over(Does::Limit(count, offset), vec![below])
}

fn windows(mut line: Line, windows: &Windows, out: &mut Outliner<'_>) -> Line {
    for window in &windows.windows {
        let partition = window.partition.iter().map(|e| (e, false));
        let order = window.order.iter().map(|(e, descending)| (e, *descending));
        let key = |(e, descending)| Key { text: print::expr(e, out), descending };
        line = over(Does::Window(partition.chain(order).map(key).collect()), vec![line]);
    }
    windows.visit(&mut |e| drop(print::expr(e, out)));
    out.with_inner(line, false)
}

fn group(below: Line, grouping: &GroupPlan, out: &mut Outliner<'_>) -> Line {
    let texts: Vec<String> = grouping.aggregates.iter().map(|spec| aggregate(spec, out)).collect();
    grouping.keys.iter().for_each(|e| drop(print::expr(e, out)));
    let mut aggregates: Vec<String> = Vec::new();
    for text in &texts {
        if !aggregates.contains(text) {
            aggregates.push(text.clone());
        }
    }
    if let Some(slot) = grouping.slot {
        out.learn(slot, texts.into_iter());
    }
    let does = Does::Group(outline::GroupLine {
        aggregates,
        by: !grouping.keys.is_empty(),
        stream: grouping.method == GroupMethod::Stream,
        first: grouping.method == GroupMethod::First,
    });
    out.with_inner(over(does, vec![below]), false)
}

/// `count(t.a)`.
fn aggregate(spec: &AggregateSpec, names: &dyn Names) -> String {
    let name = spec.kind.name().to_ascii_lowercase();
    let distinct = if spec.distinct { "distinct " } else { "" };
    let args = if spec.args.is_empty() { "0".into() } else { print::list(&spec.args, ",", names) };
    format!("{name}({distinct}{args})")
}

/// Names the columns of a table.
fn learn(scan: &Scan, out: &mut Outliner<'_>) {
    let of = |name: &str| format!("{}.{name}", scan.alias);
    match &scan.source {
        Source::Table { table, .. } => {
            let shown = |column: &crate::catalog::Column| match column.is_hidden() {
                true => column.shown().to_owned(),
                false => of(&column.name),
            };
            out.learn(scan.slot, table.columns().iter().map(shown));
            out.learn_schema(scan.slot, table.def.db.clone());
        }
        Source::Derived { plan, .. } => {
            out.learn(scan.slot, plan.columns().iter().map(|column| of(&column.name)));
        }
        Source::Virtual { table, .. } => {
            out.learn(scan.slot, table.columns().iter().map(|column| of(&column.name)));
        }
        Source::Recursion { .. } => {}
    }
}

fn texts(conditions: &[Expr], names: &dyn Names) -> Vec<String> {
    conditions.iter().map(|e| print::expr(e, names)).collect()
}

/// Conditions over what an operator gives.
pub(super) fn filter(
    below: Line,
    does: impl FnOnce(Vec<String>) -> Does,
    conditions: &[Expr],
    actual: Actual,
    out: &mut Outliner<'_>,
) -> Line {
    let does = does(texts(conditions, out));
    let expected = below.expected;
    out.with_inner(Line { expected, actual, ..over(does, vec![below]) }, true)
}

fn outer_join(join: &OuterJoin, needed: &Needed, own: Actual, out: &mut Outliner<'_>) -> Line {
    let left = join.left.as_ref().map(|left| frame(left, needed, out)).unwrap_or_default();
    let right = frame(&join.inner, needed, out);
    let does = Does::LeftJoin(texts(&join.on, out));
    let line = out.with_inner(joined(does, left, right, own), true);
    let actual = line.actual;
    match join.filter.is_empty() {
        true => line,
        false => filter(line, Does::Filter, &join.filter, actual, out),
    }
}

fn hash_join(join: &HashJoin, needed: &Needed, own: Actual, out: &mut Outliner<'_>) -> Line {
    let left = join.left.as_ref().map(|left| frame(left, needed, out));
    let keep = &join.keep;
    let equal =
        |(probe, own): (&Expr, &Expr)| format!("({} = {})", print::expr(own, out), print::expr(probe, out));
    let on = keep.probe.iter().zip(&keep.own).map(equal).collect();
    let read = scan(&join.scan, needed, Actual::Unknown, out);
    let filter = texts(&keep.filter, out);
    let does = Does::HashJoin(outline::HashJoin { on, filter, own });
    // What it costs depends on how many rows find one, which is not known here.
    let line = match left {
        Some(left) => Line { expected: None, ..joined(does, left, read, own) },
        None => Line { actual: own, ..over(does, vec![read]) },
    };
    out.with_inner(line, true)
}

fn joined(does: Does, left: Line, right: Line, actual: Actual) -> Line {
    let expected = match (left.expected, right.expected) {
        (Some((cost, rows)), Some((each, many))) => Some((cost + rows * each, rows * many)),
        _ => None,
    };
    let actual = sum(left.actual, actual);
    Line { expected, actual, ..over(does, vec![left, right]) }
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

fn scan(scan: &Scan, needed: &Needed, actual: Actual, out: &mut Outliner<'_>) -> Line {
    let alias = &scan.alias;
    let does = match &scan.source {
        Source::Table { table, path, .. } => {
            return paths::Read { table, alias, slot: scan.slot, path }.line(needed, actual, out);
        }
        Source::Derived { .. } => Does::Derived(alias.to_string()),
        Source::Virtual { .. } => Does::Computed(alias.to_string()),
        Source::Recursion { .. } => Does::Recursion(alias.to_string()),
    };
    let below = match &scan.source {
        Source::Derived { plan, .. } => vec![out.described_once(&**plan)],
        _ => Vec::new(),
    };
    match scan.filter() {
        [] => Line { actual, ..over(does, below) },
        conditions => filter(over(does, below), Does::Filter, conditions, actual, out),
    }
}
