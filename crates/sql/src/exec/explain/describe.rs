//! Plans as trees of operators: the one walk over a plan that EXPLAIN makes, whatever its form.
//!
//! First all queries get numbers, in the order of the text as far as a plan has it: of a block the select list, FROM, WHERE, GROUP BY,
//! HAVING, ORDER BY. Then each part says what it does. The loops of this server push rows, so an operator is what a part of the plan does:
//! how often it ran, the rows that it gave and the time until then are those of the parts below it, too.

use super::paths;
use super::{Change, Subject};
use crate::expr::functions::aggregate::AggregateSpec;
use crate::expr::outline::{self, Actual, Does, HashJoin, Key, Numbers, Operator, Outliner, Select, Union};
use crate::expr::print::{self, Names};
use crate::expr::profile::{Measure, Profile, Step};
use crate::expr::{Expr, Kind};
use crate::logical::{Limit, SetOperation, SortBy, SortKey};
use crate::plan::physical::{Block, Body, Compound, Grouping, Keep, Node, NodeSource, QueryPlan, ScanNode};
use crate::plan::rules::needed::Needed;

/// The operators of a statement, and how many queries it has.
pub(super) fn statement(subject: &Subject<'_>, profile: Option<&Profile>) -> (Operator, u64) {
    let mut out = Outliner::new(profile);
    let operator = match subject {
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
    (operator, out.numbers.count())
}

fn over(does: Does, below: Vec<Operator>) -> Operator {
    Operator { does, below, ..Operator::default() }
}

fn changing(change: &Change<'_>, out: &mut Outliner<'_>) -> Operator {
    let id = out.numbers.next_id();
    change.exprs.iter().for_each(|e| number_inside(e, &mut out.numbers));
    let below = match (change.path, change.query) {
        (Some((path, sorted)), _) => {
            path.filter.iter().chain(&path.implied).for_each(|e| number_inside(e, &mut out.numbers));
            let needed = Needed::default();
            let table =
                paths::Read { table: change.table, alias: &change.table.def.name, slot: change.slot, path };
            let read = table.operator(&needed, Actual::Unknown, out);
            let sort = Does::Sort { keys: Vec::new(), most: None };
            if sorted { over(sort, vec![read]) } else { read }
        }
        (None, Some(plan)) => {
            // Its rows are those of the same part of the statement.
            numbered(plan, id, &mut out.numbers);
            query(plan, out)
        }
        (None, None) => Operator::default(),
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
    match &plan.body {
        Body::Block(block) => number_block(block, numbers),
        Body::Values(rows) => rows.iter().flatten().for_each(|e| number_inside(e, numbers)),
        Body::Compound(compound) => {
            numbered(&compound.left, id, numbers);
            compound.rest.iter().for_each(|(_, plan)| number(plan, None, numbers));
            number_order(&compound.order, numbers);
        }
        Body::Recursive(recursive) => {
            for (at, part) in recursive.seeds.iter().chain(&recursive.steps).enumerate() {
                if at == 0 { numbered(part, id, numbers) } else { number(part, None, numbers) }
            }
        }
    }
}

fn number_block(block: &Block, numbers: &mut Numbers) {
    block.outputs.iter().for_each(|e| number_inside(e, numbers));
    if let Some(grouping) = &block.grouping {
        grouping.aggregates.iter().flat_map(|a| &a.args).for_each(|e| number_inside(e, numbers));
    }
    if let Some(windows) = &block.windows {
        windows.visit(&mut |e| number_inside(e, numbers));
    }
    let mut scans = Vec::new();
    scans_of(&block.nodes, &mut scans);
    scans.sort_by_key(|scan| scan.slot);
    for scan in scans {
        if let NodeSource::Derived { plan, .. } = &scan.source {
            plan.number(None, numbers);
        }
    }
    number_conditions(&block.nodes, numbers);
    block.constants.iter().for_each(|e| number_inside(e, numbers));
    let keys = block.grouping.iter().flat_map(|grouping| &grouping.keys);
    keys.chain(&block.having).for_each(|e| number_inside(e, numbers));
    number_order(&block.order, numbers);
}

fn number_order(order: &[SortKey], numbers: &mut Numbers) {
    for key in order {
        if let SortBy::Expr(e) = &key.expr {
            number_inside(e, numbers);
        }
    }
}

/// Tables of loops.
fn scans_of<'p>(nodes: &'p [Node], scans: &mut Vec<&'p ScanNode>) {
    for node in nodes {
        match node {
            Node::Scan(scan) => scans.push(scan),
            Node::Outer(outer) => scans_of(&outer.nodes, scans),
        }
    }
}

fn number_conditions(nodes: &[Node], numbers: &mut Numbers) {
    for node in nodes {
        match node {
            Node::Scan(scan) => {
                let filter = match &scan.source {
                    NodeSource::Table { path, .. } => {
                        path.implied.iter().for_each(|e| number_inside(e, numbers));
                        &path.filter
                    }
                    NodeSource::Derived { filter, .. }
                    | NodeSource::Virtual { filter, .. }
                    | NodeSource::Recursion { filter, .. } => filter,
                };
                let kept = scan.keep.iter();
                let kept = kept.flat_map(|keep| keep.own.iter().chain(&keep.probe).chain(&keep.filter));
                filter.iter().chain(kept).for_each(|e| number_inside(e, numbers));
            }
            Node::Outer(outer) => {
                outer.on.iter().for_each(|e| number_inside(e, numbers));
                number_conditions(&outer.nodes, numbers);
                outer.filter.iter().for_each(|e| number_inside(e, numbers));
            }
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
pub(in crate::exec) fn query(plan: &QueryPlan, out: &mut Outliner<'_>) -> Operator {
    let below = match &plan.body {
        Body::Block(block) => self::block(block, out),
        Body::Compound(compound) => self::compound(compound, out),
        Body::Values(_) => Operator::default(),
        Body::Recursive(recursive) => {
            let parts = recursive.seeds.iter().chain(&recursive.steps);
            let parts = parts.map(|part| query(part, out)).collect();
            over(Does::Recursive(recursive.seeds.len()), parts)
        }
    };
    let select = Select { id: out.numbers.of(plan), volatile: plan.volatile, rows: plan.rows };
    Operator { actual: out.did(plan, Step::Whole), ..over(Does::Select(select), vec![below]) }
}

fn compound(compound: &Compound, out: &mut Outliner<'_>) -> Operator {
    let mut operands = vec![query(&compound.left, out)];
    operands.extend(compound.rest.iter().map(|(_, plan)| query(plan, out)));
    let append = compound.rest.iter().all(|(operation, _)| *operation == SetOperation::UnionAll);
    let name = compound.rest.last().map(|(operation, _)| match operation {
        _ if append => "Append",
        SetOperation::Intersect(_) => "Intersect",
        SetOperation::Except(_) => "Except",
        _ => "Union with deduplication",
    });
    let operator = over(Does::Union(Union { name, deduplicates: !append }), operands);
    ordered(operator, &compound.order, &compound.limit, &[], out)
}

/// ORDER BY and LIMIT of what has these outputs; none are those of a set operation, which have numbers.
fn ordered(
    mut operator: Operator,
    order: &[SortKey],
    limit: &Limit,
    outputs: &[String],
    out: &mut Outliner<'_>,
) -> Operator {
    let count = limit.count.as_ref().map(|e| print::expr(e, out));
    let offset = limit.offset.as_ref().map(|e| print::expr(e, out));
    if !order.is_empty() {
        let key = |key: &SortKey| Key {
            text: match &key.expr {
                SortBy::Output(at) => outputs.get(*at).cloned().unwrap_or_else(|| format!("`{}`", at + 1)),
                SortBy::Expr(e) => print::expr(e, out),
            },
            descending: key.descending,
        };
        let keys = order.iter().map(key).collect();
        let most = count.clone().filter(|_| offset.is_none());
        operator = over(Does::Sort { keys, most }, vec![operator]);
    }
    match count {
        Some(count) => over(Does::Limit(count, offset), vec![operator]),
        None => operator,
    }
}

fn block(block: &Block, out: &mut Outliner<'_>) -> Operator {
    learn(&block.nodes, out);
    let needed = Needed::of_block(block);
    let mut operator = joins(&block.nodes, &needed, out);
    let joined = out.did(block, Step::Joined);
    if block.nodes.is_empty() && matches!(joined, Actual::Did(_)) {
        operator.actual = joined;
    }
    if !block.constants.is_empty() {
        operator = filter(operator, Does::If, &block.constants, joined, out);
    }
    if let Some(grouping) = &block.grouping {
        operator = group(operator, grouping, out);
        operator.actual = out.did(block, Step::Grouped);
    }
    if let Some(having) = &block.having {
        let text = print::expr(having, out);
        let expected = operator.expected;
        operator = out.with_inner(Operator { expected, ..over(Does::Having(text), vec![operator]) }, true);
    }
    if let Some(windows) = &block.windows {
        for window in &windows.windows {
            let partition = window.partition.iter().map(|e| (e, false));
            let order = window.order.iter().map(|(e, descending)| (e, *descending));
            let key = |(e, descending)| Key { text: print::expr(e, out), descending };
            operator = over(Does::Window(partition.chain(order).map(key).collect()), vec![operator]);
        }
        windows.visit(&mut |e| drop(print::expr(e, out)));
        operator = out.with_inner(operator, false);
    }
    if block.distinct {
        operator = over(Does::Distinct, vec![operator]);
    }
    let outputs: Vec<String> = block.outputs.iter().map(|e| print::expr(e, out)).collect();
    let operator = ordered(operator, &block.order, &block.limit, &outputs, out);
    out.with_inner(operator, false)
}

fn group(below: Operator, grouping: &Grouping, out: &mut Outliner<'_>) -> Operator {
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
    let does = Does::Group(outline::Grouping {
        aggregates,
        by: !grouping.keys.is_empty(),
        stream: grouping.stream,
        first: grouping.first_only,
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

/// Names the columns of tables.
fn learn(nodes: &[Node], out: &mut Outliner<'_>) {
    let mut scans = Vec::new();
    scans_of(nodes, &mut scans);
    for scan in scans {
        let of = |name: &str| format!("{}.{name}", scan.alias);
        match &scan.source {
            NodeSource::Table { table, .. } => {
                let shown = |column: &crate::catalog::Column| match column.is_hidden() {
                    true => column.shown().to_owned(),
                    false => of(&column.name),
                };
                out.learn(scan.slot, table.columns().iter().map(shown));
                out.learn_schema(scan.slot, table.def.db.clone());
            }
            NodeSource::Derived { plan, .. } => {
                out.learn(scan.slot, plan.columns().iter().map(|column| of(&column.name)));
            }
            NodeSource::Virtual { table, .. } => {
                out.learn(scan.slot, table.columns().iter().map(|column| of(&column.name)));
            }
            NodeSource::Recursion { .. } => {}
        }
    }
}

fn texts(conditions: &[Expr], names: &dyn Names) -> Vec<String> {
    conditions.iter().map(|e| print::expr(e, names)).collect()
}

/// Conditions over what an operator gives.
pub(super) fn filter(
    below: Operator,
    does: impl FnOnce(Vec<String>) -> Does,
    conditions: &[Expr],
    actual: Actual,
    out: &mut Outliner<'_>,
) -> Operator {
    let does = does(texts(conditions, out));
    let expected = below.expected;
    out.with_inner(Operator { expected, actual, ..over(does, vec![below]) }, true)
}

fn joins(nodes: &[Node], needed: &Needed, out: &mut Outliner<'_>) -> Operator {
    let mut left: Option<Operator> = None;
    for node in nodes {
        let actual = out.did(node, Step::Whole);
        left = Some(match (left, node) {
            (left, Node::Scan(scan)) => match (&scan.keep, left) {
                (Some(keep), left) => hash_join(left, scan, keep, needed, actual, out),
                (None, None) => self::scan(scan, needed, actual, out),
                (None, Some(left)) => {
                    let right = self::scan(scan, needed, actual, out);
                    joined(Does::Join, left, right, actual)
                }
            },
            (left, Node::Outer(outer)) => {
                let right = joins(&outer.nodes, needed, out);
                let on = texts(&outer.on, out);
                let operator = joined(Does::LeftJoin(on), left.unwrap_or_default(), right, actual);
                let operator = out.with_inner(operator, true);
                let actual = operator.actual;
                match outer.filter.is_empty() {
                    true => operator,
                    false => filter(operator, Does::Filter, &outer.filter, actual, out),
                }
            }
        });
    }
    left.unwrap_or_default()
}

/// Nothing is on the left where the rows outside of the loops look the table up.
fn hash_join(
    left: Option<Operator>,
    scan: &ScanNode,
    keep: &Keep,
    needed: &Needed,
    own: Actual,
    out: &mut Outliner<'_>,
) -> Operator {
    let equal =
        |(probe, own): (&Expr, &Expr)| format!("({} = {})", print::expr(own, out), print::expr(probe, out));
    let on = keep.probe.iter().zip(&keep.own).map(equal).collect();
    let read = self::scan(scan, needed, Actual::Unknown, out);
    let filter = texts(&keep.filter, out);
    let does = Does::HashJoin(HashJoin { on, filter, own });
    // What it costs depends on how many rows find one, which is not known here.
    let operator = match left {
        Some(left) => Operator { expected: None, ..joined(does, left, read, own) },
        None => Operator { actual: own, ..over(does, vec![read]) },
    };
    out.with_inner(operator, true)
}

fn joined(does: Does, left: Operator, right: Operator, actual: Actual) -> Operator {
    let expected = match (left.expected, right.expected) {
        (Some((cost, rows)), Some((each, many))) => Some((cost + rows * each, rows * many)),
        _ => None,
    };
    let actual = sum(left.actual, actual);
    Operator { expected, actual, ..over(does, vec![left, right]) }
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

fn scan(scan: &ScanNode, needed: &Needed, actual: Actual, out: &mut Outliner<'_>) -> Operator {
    let alias = &scan.alias;
    let (read, conditions) = match &scan.source {
        NodeSource::Table { table, path, .. } => {
            return paths::Read { table, alias, slot: scan.slot, path }.operator(needed, actual, out);
        }
        NodeSource::Derived { plan, filter, .. } => {
            (over(Does::Derived(alias.to_string()), vec![out.described_once(&**plan)]), filter)
        }
        NodeSource::Virtual { filter, .. } => (over(Does::Computed(alias.to_string()), vec![]), filter),
        NodeSource::Recursion { filter, .. } => (over(Does::Recursion(alias.to_string()), vec![]), filter),
    };
    match conditions.is_empty() {
        true => Operator { actual, ..read },
        false => filter(read, Does::Filter, conditions, actual, out),
    }
}
