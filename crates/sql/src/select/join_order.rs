//! Decides in which order a block's tables are read, and where each condition is checked: greedily,
//! the table with the fewest expected rows first, as soon as the tables it is looked up by are there.

use super::access::{self, Access, TableAccess};
use super::bind::is_volatile;
use super::from::{Item, ItemSource, Nest, TableItem, column_of};
use super::plan::{Grouping, Keep, Node, NodeSource, OuterNode, ScanNode, SortBy, SortKey};
use crate::error::SqlResult;
use crate::expr::bind::Binder;
use crate::expr::node::{CompareOp, IsKind};
use crate::expr::types::Family;
use crate::expr::{Expr, Kind, SlotSet};
use omnibus_parser::ast::AggregateKind;

/// Loops and what is checked before them.
#[derive(Debug)]
pub(super) struct Planned {
    pub nodes: Vec<Node>,
    pub constants: Vec<Expr>,
    pub volatile: bool,
}

/// Plans a block; `own` are the slots that belong to it.
pub(super) fn plan(binder: &mut Binder<'_>, nest: Nest, own: &SlotSet, straight: bool) -> SqlResult<Planned> {
    let mut constants = Vec::new();
    let mut nest = simplify(nest);
    let volatile = nest.conditions.iter().any(is_volatile);
    let has_tables = !nest.items.is_empty();
    let (checked_first, rest): (Vec<Expr>, Vec<Expr>) = std::mem::take(&mut nest.conditions)
        .into_iter()
        .partition(|c| !has_tables || (!c.slots().meets(own) && !is_volatile(c)));
    constants.extend(checked_first);
    nest.conditions = rest;
    let nodes = Planner { binder, straight }.nest(nest, own.clone())?;
    Ok(Planned { nodes, constants, volatile })
}

/// Outer joins whose NULL rows a condition refuses anyway become inner ones.
fn simplify(mut nest: Nest) -> Nest {
    loop {
        let refuses = |slots: &[u16], conditions: &[Expr]| {
            conditions.iter().any(|c| slots.iter().any(|slot| rejects_nulls(c, *slot)))
        };
        let at = nest.items.iter().position(|item| match item {
            Item::Outer { slots, .. } => refuses(slots, &nest.conditions),
            Item::Table(_) => false,
        });
        let Some(at) = at else { return nest };
        if let Item::Outer { nest: inner, .. } = nest.items.remove(at) {
            let inner = simplify(inner);
            nest.items.splice(at..at, inner.items);
            nest.conditions.extend(inner.conditions);
        }
    }
}

/// Whether a condition cannot be true when the columns of a slot are NULL.
fn rejects_nulls(condition: &Expr, slot: u16) -> bool {
    match &condition.kind {
        Kind::Compare(op, _, pair) if *op != CompareOp::NullSafeEq => pair.iter().any(|e| null_if(e, slot)),
        Kind::Between { args, negated: false, .. } => null_if(&args[0], slot),
        Kind::In { args, negated: false, .. } => null_if(&args[0], slot),
        Kind::Like(like) => null_if(&like.text, slot),
        Kind::Is { expr, what: IsKind::Null, negated: true } => null_if(expr, slot),
        Kind::Or(list) => list.iter().all(|e| rejects_nulls(e, slot)),
        Kind::And(list) => list.iter().any(|e| rejects_nulls(e, slot)),
        Kind::Column { slot: s, .. } => *s == slot,
        _ => false,
    }
}

/// Whether an expression is NULL when the columns of a slot are.
fn null_if(e: &Expr, slot: u16) -> bool {
    match &e.kind {
        Kind::Column { slot: s, .. } => *s == slot,
        Kind::Arith(_, pair) | Kind::Bits(_, pair) => pair.iter().any(|e| null_if(e, slot)),
        Kind::Negate(e) | Kind::Text(e) | Kind::Cast(e) | Kind::Retype(e) | Kind::Transcode(e) => {
            null_if(e, slot)
        }
        _ => false,
    }
}

struct Planner<'b, 'a> {
    binder: &'b mut Binder<'a>,
    straight: bool,
}

impl Planner<'_, '_> {
    /// Orders the members of a nest; `missing` are the block's slots that are not read yet.
    fn nest(&mut self, nest: Nest, mut missing: SlotSet) -> SqlResult<Vec<Node>> {
        let Nest { items, conditions } = nest;
        let mut items: Vec<Option<Item>> = items.into_iter().map(Some).collect();
        let mut conditions: Vec<Expr> = conditions;
        let mut nodes: Vec<Node> = Vec::with_capacity(items.len());
        while let Some(at) = self.pick(&items, &conditions, &missing)? {
            let Some(item) = items[at].take() else { break };
            match item {
                Item::Table(table) => {
                    let last = items.iter().all(Option::is_none);
                    let before = missing.clone();
                    missing.remove(&SlotSet::of(table.slot));
                    let concerning = take_ready(&mut conditions, &missing, last);
                    let node = self.scan(*table, concerning, &before);
                    nodes.push(Node::Scan(Box::new(node)));
                }
                Item::Outer { nest: inner, slots, .. } => {
                    let within: SlotSet = slots.iter().copied().collect();
                    let mut inner = simplify(inner);
                    let (on, inside): (Vec<Expr>, Vec<Expr>) = std::mem::take(&mut inner.conditions)
                        .into_iter()
                        .partition(|c| !c.slots().meets(&within) && !is_volatile(c));
                    inner.conditions = inside;
                    let inner = self.nest(inner, missing.clone())?;
                    missing.remove(&within);
                    let last = items.iter().all(Option::is_none);
                    let filter = take_ready(&mut conditions, &missing, last);
                    nodes.push(Node::Outer(Box::new(OuterNode { nodes: inner, on, slots, filter })));
                }
            }
        }
        Ok(nodes)
    }

    /// The item to read next.
    fn pick(
        &self,
        items: &[Option<Item>],
        conditions: &[Expr],
        missing: &SlotSet,
    ) -> SqlResult<Option<usize>> {
        let eligible = |item: &Item| match item {
            Item::Table(table) => !table.after.meets(missing),
            Item::Outer { required, .. } => !required.meets(missing),
        };
        let present =
            || items.iter().enumerate().filter_map(|(at, item)| item.as_ref().map(|item| (at, item)));
        let mut left = present();
        let Some(first) = left.next() else { return Ok(None) };
        if left.next().is_none() {
            return Ok(Some(first.0));
        }
        if self.straight {
            return Ok(present().find(|(_, item)| eligible(item)).map(|(at, _)| at));
        }
        let mut best: Option<(usize, f64)> = None;
        let mut outer = None;
        for (at, item) in present().filter(|(_, item)| eligible(item)) {
            match item {
                Item::Table(table) => {
                    let rows = self.expected_rows(table, conditions, missing)?;
                    if best.is_none_or(|(_, least)| rows < least) {
                        best = Some((at, rows));
                    }
                }
                Item::Outer { .. } => outer = outer.or(Some(at)),
            }
        }
        Ok(match (best, outer) {
            // A table that would have to be scanned may be looked up by columns of the outer join.
            (Some((_, rows)), Some(outer)) if rows > 500.0 => Some(outer),
            (Some((at, _)), _) => Some(at),
            (None, outer) => outer,
        })
    }

    fn expected_rows(&self, table: &TableItem, conditions: &[Expr], missing: &SlotSet) -> SqlResult<f64> {
        Ok(match &table.source {
            ItemSource::Table(stored) => {
                let mut then = missing.clone();
                then.remove(&SlotSet::of(table.slot));
                let mut concerning = Vec::new();
                for condition in conditions {
                    let mut nodes = 0;
                    condition.walk(&mut |_| nodes += 1);
                    self.binder.session.budget.spend_plan(nodes)?;
                    let slots = condition.slots();
                    if slots.contains(table.slot) && !slots.meets(&then) {
                        concerning.push(condition.clone());
                    }
                }
                let filtered = 0.5f64.powi(concerning.len().min(8) as i32).max(0.1);
                let path = access::choose(stored, table.slot, concerning, missing, &table.hints);
                if matches!(path.access, Access::Full { .. }) { path.rows * filtered } else { path.rows }
            }
            ItemSource::Derived { .. } | ItemSource::Virtual(_) => 400.0,
            ItemSource::Recursion(_) => 1.0,
        })
    }

    fn new_id(&mut self) -> usize {
        self.binder.subqueries += 1;
        self.binder.subqueries - 1
    }

    fn scan(&mut self, table: TableItem, conditions: Vec<Expr>, missing: &SlotSet) -> ScanNode {
        let TableItem { slot, alias, source, hints, lock, wait, .. } = table;
        let (source, keep) = match source {
            ItemSource::Table(stored) => {
                let path = access::choose(&stored, slot, conditions, missing, &hints);
                let mut path = path;
                let keep = self.keep(slot, &mut path);
                (NodeSource::Table { table: stored, path, lock, wait }, keep)
            }
            ItemSource::Derived { plan, outer: outer_slots, store } => {
                let mut path = all_rows(conditions);
                let keep = if outer_slots.is_empty() { self.keep(slot, &mut path) } else { None };
                let id = store.unwrap_or_else(|| self.new_id());
                (NodeSource::Derived { plan, filter: path.filter, id, outer_slots }, keep)
            }
            ItemSource::Virtual(table) => {
                let mut path = all_rows(conditions);
                let keep = self.keep(slot, &mut path);
                (NodeSource::Virtual { table, filter: path.filter, id: self.new_id() }, keep)
            }
            ItemSource::Recursion(id) => (NodeSource::Recursion { id, filter: conditions }, None),
        };
        ScanNode { slot, alias, source, keep }
    }

    /// Keeps an inner table's rows by its join columns, if it would otherwise be read again and
    /// again: no index fits, and all that is known before reading it is its own.
    fn keep(&mut self, slot: u16, path: &mut TableAccess) -> Option<Keep> {
        let own = SlotSet::of(slot);
        let mut reads_others = false;
        match &path.access {
            Access::Full { .. } => {}
            Access::Point { .. } => return None,
            Access::Range { equal, low, high, .. } => {
                let bounds = low.iter().chain(high).map(|b| &b.expr);
                reads_others = equal.iter().map(|e| &e.expr).chain(bounds).any(|e| !e.slots().is_empty());
            }
            Access::Prefix { equal, pattern, .. } => {
                reads_others = equal.iter().map(|e| &e.expr).chain([pattern]).any(|e| !e.slots().is_empty());
            }
            Access::List { equal, list, .. } => {
                reads_others = equal.iter().map(|e| &e.expr).chain(list).any(|e| !e.slots().is_empty());
            }
        }
        if reads_others || path.implied.iter().any(|c| !c.slots().within(&own)) {
            return None;
        }
        let (own_only, with_others): (Vec<Expr>, Vec<Expr>) = std::mem::take(&mut path.filter)
            .into_iter()
            .partition(|c| c.slots().within(&own) && !is_volatile(c));
        if with_others.is_empty() {
            path.filter = own_only;
            return None;
        }
        let mut keep =
            Keep { id: 0, own: Vec::new(), probe: Vec::new(), collations: Vec::new(), filter: Vec::new() };
        for condition in with_others {
            match equality(&condition, &own) {
                Some((own, probe, collation)) => {
                    keep.own.push(own);
                    keep.probe.push(probe);
                    keep.collations.push(collation);
                }
                None => keep.filter.push(condition),
            }
        }
        if keep.own.is_empty() {
            own_only.into_iter().chain(keep.filter).for_each(|c| path.filter.push(c));
            return None;
        }
        path.filter = own_only;
        keep.id = self.new_id();
        Some(keep)
    }
}

/// A condition `own = other` whose sides hash alike when they are equal.
fn equality(condition: &Expr, slot: &SlotSet) -> Option<(Expr, Expr, u16)> {
    let Kind::Compare(CompareOp::Eq, collation, pair) = &condition.kind else { return None };
    let [a, b] = &**pair;
    let is_own = |e: &Expr| e.slots().meets(slot) && e.slots().within(slot);
    let is_other = |e: &Expr| !e.slots().meets(slot);
    let (own, other) = if is_own(a) && is_other(b) {
        (a, b)
    } else if is_own(b) && is_other(a) {
        (b, a)
    } else {
        return None;
    };
    let alike = match (own.ty.family(), other.ty.family()) {
        (Family::Integer | Family::Decimal, Family::Integer | Family::Decimal) => true,
        (Family::Date | Family::DateTime, Family::Date | Family::DateTime) => true,
        (Family::Json, _) | (_, Family::Json) => false,
        (x, y) => x == y,
    };
    let typed = !matches!(other.kind, Kind::Param(_) | Kind::UserVariable(_));
    let settled = |e: &Expr| !is_volatile(e) && !matches!(e.kind, Kind::Subquery(_));
    (alike && typed && settled(own) && settled(other)).then(|| (own.clone(), other.clone(), *collation))
}

fn all_rows(filter: Vec<Expr>) -> TableAccess {
    TableAccess {
        access: Access::Full { index: 0 },
        reverse: false,
        filter,
        implied: Vec::new(),
        rows: 400.0,
        possible: Vec::new(),
    }
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

/// Whether the first table can be read so that the rows come in the wanted order; makes it so.
pub(super) fn rows_in_order(nodes: &mut [Node], order: &[SortKey], outputs: &[Expr], limited: bool) -> bool {
    let Some(Node::Scan(scan)) = nodes.first_mut() else { return false };
    if scan.keep.is_some() {
        return false;
    }
    let slot = scan.slot;
    let NodeSource::Table { table, path, .. } = &mut scan.source else { return false };
    let mut keys = Vec::with_capacity(order.len());
    for key in order {
        let e = match &key.expr {
            SortBy::Output(at) => &outputs[*at],
            SortBy::Expr(e) => e,
        };
        match column_of(e, slot) {
            Some(column) => keys.push((column, key.descending)),
            None => return false,
        }
    }
    if path.delivers(table, &keys) {
        return true;
    }
    // Through another index every row costs a look-up: worth it only if few are wanted.
    limited && path.scan_in_order(table, &keys, &[])
}

/// Whether a lone MIN or MAX can be had by reading an index from its end; makes it so.
pub(super) fn extreme_first(nodes: &mut [Node], grouping: &Grouping) -> bool {
    let ([Node::Scan(scan)], [spec]) = (nodes, &grouping.aggregates[..]) else { return false };
    let descending = match spec.kind {
        AggregateKind::Min => false,
        AggregateKind::Max => true,
        _ => return false,
    };
    let slot = scan.slot;
    let (NodeSource::Table { table, path, .. }, None) = (&mut scan.source, &scan.keep) else { return false };
    let Some(column) = spec.args.first().and_then(|e| column_of(e, slot)) else { return false };
    let keys = [(column, descending)];
    path.delivers(table, &keys) || path.scan_in_order(table, &keys, &[])
}
