//! Decides in which order a block's tables are read, and where each condition is checked.
//!
//! The order is the one of least cumulative cost (`cost`): for up to [`EXHAUSTIVE`] members of a nest every set of them is extended by
//! each of the others, and of each set only the cheapest order is kept; beyond that the cheapest next member is taken each time.
//! What a member costs depends on what was read before it only through how many rows that gave and which slots are known.

use super::late_conditions;
use super::node::{Node, joined};
use super::scan::{Step, Stored, keep_joined};
use crate::error::SqlResult;
use crate::expr::is_volatile;
use crate::expr::node::CompareOp;
use crate::expr::{Expr, Kind, SlotSet};
use crate::logical::VirtualTable;
use crate::logical::hints::order_joins;
use crate::logical::nest::{Item, ItemSource, Nest, TableItem, column_of};
use crate::plan::cost::{self, ANYTHING, Known, Sampled};
use crate::plan::physical::{FrameOperator, Keep, OuterJoin, Scan, Source};
use crate::plan::rules::equalities::{Equated, equal_columns};
use crate::plan::rules::needed::Needed;
use crate::plan::rules::simplify::{add_implied, simplify};
use crate::state::SessionState;
use omnibus_parser::ast::Hint;
use std::collections::HashMap;

/// Members of a nest up to which every order is looked at. Ten tables would be five thousand steps of some microseconds.
const EXHAUSTIVE: usize = 8;
/// Rows of a computed table.
const COMPUTED_ROWS: f64 = 400.0;
/// The share of the rows of a computed or derived table that meet a condition.
const COMPUTED_SHARE: f64 = 0.1;

/// Joins and what is checked before them.
#[derive(Debug)]
pub(in crate::plan) struct Planned {
    pub joins: FrameOperator,
    pub constants: Vec<Expr>,
    pub volatile: bool,
    /// Rows expected of the joins.
    pub rows: f64,
}

/// The rest of a block, as far as its loops depend on it.
pub(in crate::plan) struct Rest<'b> {
    /// The slots that belong to it.
    pub own: &'b SlotSet,
    /// STRAIGHT_JOIN.
    pub straight: bool,
    pub hints: &'b [Hint],
    pub needed: &'b Needed,
    /// A query around it reads the block's rows, so that it matters how many they are.
    pub read: bool,
}

/// Plans the loops of a block; `subqueries` counts those of the statement and the tables kept for its joins.
pub(in crate::plan) fn plan(
    session: &SessionState,
    subqueries: &mut usize,
    nest: Nest,
    rest: &Rest<'_>,
) -> SqlResult<Planned> {
    let Rest { own, hints, needed, read, .. } = *rest;
    let mut constants = Vec::new();
    let mut nest = simplify(nest);
    order_joins(&mut nest, hints);
    let straight = rest.straight || hints.contains(&Hint::JoinFixedOrder);
    let volatile = nest.is_volatile();
    let has_tables = !nest.items.is_empty();
    let (checked_first, rest): (Vec<Expr>, Vec<Expr>) = std::mem::take(&mut nest.conditions)
        .into_iter()
        .partition(|c| !has_tables || (!c.slots().meets(own) && !is_volatile(c)));
    constants.extend(checked_first);
    nest.conditions = rest;
    add_implied(&mut nest, own);
    let sampled = Sampled::new(session);
    let known = Known { zone: session.settings.zone, sampled: Some(&sampled) };
    let (joins, rows) =
        Planner { session, subqueries, known, straight, needed, read }.nest(nest, own.clone(), None)?;
    sampled.finish()?;
    Ok(Planned { joins, constants, volatile, rows })
}

/// An order of a nest's members so far.
#[derive(Clone)]
struct Prefix {
    order: Vec<usize>,
    missing: SlotSet,
    cost: f64,
    rows: f64,
}

/// A nest's members and conditions, as the search looks at them.
struct Members<'n> {
    items: &'n [Item],
    conditions: Vec<(&'n Expr, SlotSet)>,
    /// Whether some equalities may follow from others.
    chained: bool,
    /// Nodes of the conditions: what a step may have to look at.
    nodes: u32,
}

struct Planner<'b> {
    session: &'b SessionState,
    subqueries: &'b mut usize,
    known: Known<'b>,
    straight: bool,
    needed: &'b Needed,
    read: bool,
}

impl Planner<'_> {
    /// Orders the members of a nest, and how many rows they give for each of the `outside` rows that it is read for (`None`: it is
    /// read once, or nobody knows); `missing` are the block's slots that are not read yet.
    fn nest(
        &mut self,
        mut nest: Nest,
        mut missing: SlotSet,
        outside: Option<f64>,
    ) -> SqlResult<(FrameOperator, f64)> {
        let late = late_conditions::take(&mut nest);
        let order = self.order(&nest, &missing, outside)?;
        let Nest { items, mut conditions, .. } = nest;
        let mut items: Vec<Option<Item>> = items.into_iter().map(Some).collect();
        let mut nodes: Vec<Node> = Vec::with_capacity(items.len());
        let mut steps: Vec<late_conditions::Step> = Vec::with_capacity(items.len());
        let mut rows = 1.0;
        let mut equated = Equated::default();
        for (number, at) in order.iter().enumerate() {
            let Some(item) = items[*at].take() else { continue };
            let last = number + 1 == order.len();
            let so_far = if number > 0 { Some(rows * outside.unwrap_or(1.0)) } else { outside };
            match item {
                Item::Table(table) => {
                    let before = missing.clone();
                    missing.remove(&SlotSet::of(table.slot));
                    let mut concerning = take_ready(&mut conditions, &missing, last);
                    concerning.retain(|c| equated.add(c));
                    let (scan, keep, each) = self.scan(*table, concerning, &before, so_far);
                    rows *= each;
                    nodes.push(Node::Read(Box::new(scan), keep));
                }
                Item::Outer { nest: inner, slots, .. } => {
                    let within: SlotSet = slots.iter().copied().collect();
                    let mut inner = simplify(inner);
                    let (on, inside): (Vec<Expr>, Vec<Expr>) = std::mem::take(&mut inner.conditions)
                        .into_iter()
                        .partition(|c| !c.slots().meets(&within) && !is_volatile(c));
                    inner.conditions = inside;
                    let (inner, each) = self.nest(inner, missing.clone(), so_far)?;
                    rows *= each.max(1.0);
                    missing.remove(&within);
                    let mut filter = take_ready(&mut conditions, &missing, last);
                    filter.retain(|c| equated.add(c));
                    nodes.push(Node::Outer(Box::new(OuterJoin { left: None, inner, on, slots, filter })));
                }
            }
            rows = rows.max(1.0 / outside.unwrap_or(1.0).max(1.0));
            steps.push(late_conditions::Step { missing: missing.clone(), rows });
        }
        rows *= ANYTHING.powi(late.len() as i32);
        late_conditions::place(late, &steps, &mut nodes);
        Ok((joined(nodes), rows))
    }

    /// The cheapest order of a nest's members.
    fn order(&self, nest: &Nest, missing: &SlotSet, outside: Option<f64>) -> SqlResult<Vec<usize>> {
        if nest.items.len() < 2 {
            return Ok((0..nest.items.len()).collect());
        }
        let members = Members::of(nest);
        let start =
            Prefix { order: Vec::new(), missing: missing.clone(), cost: 0.0, rows: outside.unwrap_or(1.0) };
        if self.straight {
            return Ok(self.in_text_order(&members, start));
        }
        let found = if nest.items.len() <= EXHAUSTIVE {
            self.exhaustive(&members, start)?
        } else {
            self.greedy(&members, start)?
        };
        Ok(found.map_or_else(|| (0..nest.items.len()).collect(), |prefix| prefix.order))
    }

    /// STRAIGHT_JOIN: each member as soon as what it needs is read.
    fn in_text_order(&self, members: &Members<'_>, mut prefix: Prefix) -> Vec<usize> {
        while let Some(next) =
            (0..members.items.len()).find(|at| !prefix.order.contains(at) && members.may_follow(*at, &prefix))
        {
            prefix.missing.remove(&members.items[next].slots());
            prefix.order.push(next);
        }
        prefix.order
    }

    fn exhaustive(&self, members: &Members<'_>, start: Prefix) -> SqlResult<Option<Prefix>> {
        let count = members.items.len();
        // A bound from the start: what costs more already than a complete order is not followed.
        let mut best = self.greedy(members, start.clone())?;
        let mut layer: HashMap<u32, Prefix> = HashMap::from([(0, start)]);
        for _ in 0..count {
            let mut longer: HashMap<u32, Prefix> = HashMap::new();
            for (set, prefix) in &layer {
                for at in (0..count).filter(|at| set & (1 << at) == 0 && members.may_follow(*at, prefix)) {
                    let next = self.extended(members, prefix, at)?;
                    if best.as_ref().is_some_and(|best| next.cost >= best.cost) {
                        continue;
                    }
                    let kept = longer.entry(set | 1 << at).or_insert_with(|| next.clone());
                    if next.cost < kept.cost || next.cost == kept.cost && next.order < kept.order {
                        *kept = next;
                    }
                }
            }
            layer = longer;
        }
        if let Some(complete) = layer.into_values().next() {
            best = Some(complete);
        }
        Ok(best)
    }

    fn greedy(&self, members: &Members<'_>, mut prefix: Prefix) -> SqlResult<Option<Prefix>> {
        for _ in 0..members.items.len() {
            let mut best: Option<Prefix> = None;
            for at in (0..members.items.len()).filter(|at| !prefix.order.contains(at)) {
                if !members.may_follow(at, &prefix) {
                    continue;
                }
                let next = self.extended(members, &prefix, at)?;
                // Rows that come out have to be joined with all that follows.
                let price = |prefix: &Prefix| prefix.cost + prefix.rows * cost::LOOKUP;
                if best.as_ref().is_none_or(|best| price(&next) < price(best)) {
                    best = Some(next);
                }
            }
            let Some(next) = best else { return Ok(None) };
            prefix = next;
        }
        Ok(Some(prefix))
    }

    fn extended(&self, members: &Members<'_>, prefix: &Prefix, at: usize) -> SqlResult<Prefix> {
        self.session.budget.spend_plan(members.nodes)?;
        let item = &members.items[at];
        let mut missing = prefix.missing.clone();
        missing.remove(&item.slots());
        let step = match item {
            Item::Table(table) => {
                let concerning = members.concerning(&SlotSet::of(table.slot), &missing);
                self.step(table, &concerning, &prefix.missing, prefix.rows)
            }
            Item::Outer { nest, .. } => {
                let inner = self.inner(nest, prefix)?;
                let concerning = members.concerning(&item.slots(), &missing);
                let left = 0.5f64.powi(concerning.len() as i32);
                let each = (inner.rows / prefix.rows).max(1.0);
                Step { once: inner.cost, each: 0.0, rows: each * left, hashed: false }
            }
        };
        let mut order = prefix.order.clone();
        order.push(at);
        // A part of a row is one row or none: what follows is read once at least.
        let rows = (prefix.rows * step.rows).max(1.0);
        Ok(Prefix { order, missing, cost: prefix.cost + step.cost(prefix.rows), rows })
    }

    /// Prices the inner side of an outer join for the rows before it, in the order written: its own search comes later.
    fn inner(&self, nest: &Nest, before: &Prefix) -> SqlResult<Prefix> {
        let members = Members::of(nest);
        let (missing, rows) = (before.missing.clone(), before.rows);
        let mut prefix = Prefix { order: Vec::new(), missing, cost: 0.0, rows };
        for at in 0..nest.items.len() {
            prefix = self.extended(&members, &prefix, at)?;
        }
        Ok(prefix)
    }

    fn step(&self, item: &TableItem, conditions: &[&Expr], missing: &SlotSet, before: f64) -> Step {
        match &item.source {
            ItemSource::Table(table) => {
                let needed = self.needed.of(item.slot);
                Stored { item, table, missing, known: self.known, needed }.step(conditions, before)
            }
            source => {
                let rows = computed_rows(source);
                let shares = conditions.iter().map(|c| share_of_computed(item, c, rows));
                let left = shares.product::<f64>().max(1e-3f64.min(1.0 / rows.max(1.0)));
                let each = if conditions.is_empty() { rows * cost::ROW } else { cost::HASH_PROBE };
                Step { once: rows * cost::ROW, each, rows: rows * left, hashed: false }
            }
        }
    }

    fn new_id(&mut self) -> usize {
        *self.subqueries += 1;
        *self.subqueries - 1
    }

    /// A table to be read for each of `before` rows of the tables before it (`None`: it is the first), by a hash table if that is cheaper, and
    /// how many rows it gives for each.
    fn scan(
        &mut self,
        item: TableItem,
        conditions: Vec<Expr>,
        missing: &SlotSet,
        before: Option<f64>,
    ) -> (Scan, Option<Keep>, f64) {
        let own = SlotSet::of(item.slot);
        let concerning: Vec<&Expr> = conditions.iter().collect();
        let rows = match before {
            // Nobody asks of a table by itself.
            None if !self.read && matches!(item.source, ItemSource::Table(_)) && missing.within(&own) => 1.0,
            before => self.step(&item, &concerning, missing, before.unwrap_or(1.0)).rows,
        };
        let (source, keep) = match &item.source {
            ItemSource::Table(table) => {
                let needed = self.needed.of(item.slot);
                let stored = Stored { item: &item, table, missing, known: self.known, needed };
                let (path, keep) = stored.path(conditions, before);
                let (lock, wait) = (item.lock, item.wait);
                (Source::Table { table: table.clone(), path, lock, wait }, keep)
            }
            ItemSource::Derived { plan, outer, store } => {
                let mut filter = conditions;
                let keep = if outer.is_empty() { keep_joined(&mut filter, &own) } else { None };
                let id = store.unwrap_or_else(|| self.new_id());
                let (plan, outer_slots) = (plan.clone(), outer.clone());
                (Source::Derived { plan, filter, id, outer_slots }, keep)
            }
            ItemSource::Virtual(table) => {
                let mut filter = conditions;
                let keep = match table.outer() {
                    None => keep_joined(&mut filter, &own),
                    Some(_) => None,
                };
                let (table, id) = (table.clone(), self.new_id());
                (Source::Virtual { table, filter, id }, keep)
            }
            ItemSource::Recursion(id) => (Source::Recursion { id: *id, filter: conditions }, None),
        };
        let mut keep = keep;
        if let Some(keep) = &mut keep {
            keep.id = self.new_id();
        }
        (Scan { slot: item.slot, alias: item.alias, source }, keep, rows)
    }
}

/// How many rows a virtual table is taken to have.
fn virtual_rows(table: &dyn VirtualTable) -> f64 {
    table.numbers().map_or(COMPUTED_ROWS, |numbers| numbers.count() as f64)
}

impl<'n> Members<'n> {
    fn of(nest: &'n Nest) -> Members<'n> {
        let conditions: Vec<(&Expr, SlotSet)> =
            nest.conditions.iter().filter(|c| !is_volatile(c)).map(|c| (c, c.slots())).collect();
        let mut nodes = 1;
        conditions.iter().for_each(|(condition, _)| condition.walk(&mut |_| nodes += 1));
        let chained = conditions.iter().filter(|(c, _)| equal_columns(c).is_some()).nth(2).is_some();
        Members { items: &nest.items, conditions, chained, nodes }
    }

    /// Whether all that a member needs has been read.
    fn may_follow(&self, at: usize, prefix: &Prefix) -> bool {
        match &self.items[at] {
            Item::Table(table) => !table.after.meets(&prefix.missing),
            Item::Outer { required, .. } => !required.meets(&prefix.missing),
        }
    }

    /// The conditions that read `own` and nothing that is missing when it has been read, but for those that follow from what
    /// was asked before.
    fn concerning(&self, own: &SlotSet, missing: &SlotSet) -> Vec<&'n Expr> {
        let (mut concerning, mut equated) = (Vec::new(), Equated::default());
        let known = self.conditions.iter().filter(|(_, slots)| !slots.meets(missing));
        if self.chained {
            known.clone().filter(|(_, slots)| !slots.meets(own)).for_each(|(condition, _)| {
                equated.add(condition);
            });
        }
        for (condition, _) in known.filter(|(_, slots)| slots.meets(own)) {
            if !self.chained || equated.add(condition) {
                concerning.push(*condition);
            }
        }
        concerning
    }
}

/// Rows of what is not a stored table.
fn computed_rows(source: &ItemSource) -> f64 {
    match source {
        ItemSource::Derived { plan, .. } => plan.rows(),
        ItemSource::Recursion(_) => 1.0,
        ItemSource::Virtual(table) => virtual_rows(table.as_ref()),
        _ => COMPUTED_ROWS,
    }
}

/// The share of the rows of what is not a stored table that meet a condition.
fn share_of_computed(item: &TableItem, condition: &Expr, rows: f64) -> f64 {
    let Some((column, value)) = column_equality(condition, item.slot) else { return COMPUTED_SHARE };
    match &item.source {
        _ if value.slots().is_empty() => COMPUTED_SHARE,
        ItemSource::Derived { plan, .. } if plan.is_unique(column) => 1.0 / rows.max(1.0),
        // Joins are by columns of many values.
        _ => (1.0 / rows.max(1.0).sqrt()).min(COMPUTED_SHARE),
    }
}

/// The column of a slot that a condition says is equal to a value that reads no row of it.
fn column_equality(condition: &Expr, slot: u16) -> Option<(usize, &Expr)> {
    let Kind::Compare(CompareOp::Eq, _, pair) = &condition.kind else { return None };
    let [a, b] = &**pair;
    let of = |e: &Expr, other: &Expr| column_of(e, slot).filter(|_| !other.slots().contains(slot));
    of(a, b).map(|column| (column, b)).or_else(|| of(b, a).map(|column| (column, a)))
}

/// Takes the conditions that can be checked while `missing` slots are not there; all of them behind
/// the last table.
fn take_ready(conditions: &mut Vec<Expr>, missing: &SlotSet, last: bool) -> Vec<Expr> {
    let (ready, later): (Vec<Expr>, Vec<Expr>) = std::mem::take(conditions)
        .into_iter()
        .partition(|c| last || (!c.slots().meets(missing) && !is_volatile(c)));
    *conditions = later;
    ready
}
