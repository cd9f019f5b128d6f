//! One table of a join: which path, or a hash table of its rows; what either costs for so many rows of the tables before it.
//!
//! A hash table is made of the rows that meet the table's own conditions, once a statement, in memory (`exec::operator::hash_join`).

use crate::catalog::Table;
use crate::expr::is_volatile;
use crate::expr::node::CompareOp;
use crate::expr::types::Family;
use crate::expr::{Expr, Kind, SlotSet};
use crate::logical::nest::TableItem;
use crate::plan::access::{self, Wanted};
use crate::plan::cost::{self, Known};
use crate::plan::physical::Keep;
use crate::plan::physical::{Access, TableAccess};
use crate::storage::LockMode;
use omnibus_parser::ast::IndexHintKind;
use std::sync::Arc;

/// The cost of reading a table for the rows that were read before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Once.
    pub once: f64,
    /// For each row of the tables before.
    pub each: f64,
    /// Rows for each row of the tables before.
    pub rows: f64,
    /// Through a hash table.
    pub hashed: bool,
}

impl Step {
    /// For so many rows of the tables before.
    pub(super) fn cost(self, before: f64) -> f64 {
        self.once + before * self.each
    }
}

/// A stored table and when it is read.
pub(super) struct Stored<'a> {
    pub item: &'a TableItem,
    pub table: &'a Arc<Table>,
    /// Slots that are not read by then, its own among them.
    pub missing: &'a SlotSet,
    pub known: Known<'a>,
    /// The columns that the block reads of it, if it is known which.
    pub needed: Option<&'a [u16]>,
}

impl Stored<'_> {
    fn wanted(&self) -> Wanted<'_> {
        Wanted {
            table: self.table,
            slot: self.item.slot,
            missing: self.missing,
            hints: &self.item.hints,
            locks: self.item.lock != LockMode::None,
            needed: self.needed,
            known: self.known,
        }
    }

    /// The cheaper of the best path and a hash table, for `before` rows of the tables before. `conditions` are those that can be
    /// checked then.
    pub(super) fn step(&self, conditions: &[&Expr], before: f64) -> Step {
        let (path, _) = access::best(&self.wanted(), conditions);
        let selectivity = |e: &Expr| self.known.selectivity(self.table, self.item.slot, e);
        let left = conditions.iter().enumerate().filter(|(at, _)| !path.absorbed.contains(at));
        let (mut rows, mut checks) = (path.rows, 0.0);
        for (_, condition) in left {
            rows *= selectivity(condition);
            checks += cost::CONDITION;
        }
        let nested = Step { once: 0.0, each: path.cost + path.rows * checks, rows, hashed: false };
        let own = SlotSet::of(self.item.slot);
        // `column = 7` is checked as the rows are read: it joins nothing.
        let joins = |c: &&Expr| !c.slots().within(&own) && equality(c, &own).is_some();
        if !conditions.iter().any(joins) || matches!(path.access, Access::Point { .. }) && before < cost::FEW
        {
            return nested;
        }
        let forced = self.item.hints.iter().any(|hint| hint.kind == IndexHintKind::Force);
        if (forced || self.item.lock != LockMode::None) && !matches!(path.access, Access::Full { .. }) {
            return nested;
        }
        let hashed = self.hashed(conditions, &own, rows);
        if matches!(path.access, Access::Full { .. }) || hashed.cost(before) < nested.cost(before) {
            hashed
        } else {
            nested
        }
    }

    fn hashed(&self, conditions: &[&Expr], own: &SlotSet, rows: f64) -> Step {
        let alone: Vec<&Expr> =
            conditions.iter().copied().filter(|c| c.slots().within(own) && !is_volatile(c)).collect();
        let (path, _) = access::best(&self.wanted(), &alone);
        let mut kept = path.rows;
        for (at, condition) in alone.iter().enumerate() {
            if !path.absorbed.contains(&at) {
                kept *= self.known.selectivity(self.table, self.item.slot, condition);
            }
        }
        let once = path.cost + path.rows * cost::CONDITION * alone.len() as f64 + kept * cost::HASH_BUILD;
        Step { once, each: cost::HASH_PROBE + rows * cost::HASH_ROW, rows, hashed: true }
    }

    /// The path, and the hash table if that is cheaper for `before` rows of the tables before.
    pub(super) fn path(&self, conditions: Vec<Expr>, before: Option<f64>) -> (TableAccess, Option<Keep>) {
        let wanted = self.wanted();
        let hashed = before.is_some_and(|before| {
            let list: Vec<&Expr> = conditions.iter().collect();
            self.step(&list, before).hashed
        });
        let own = SlotSet::of(self.item.slot);
        if hashed {
            let (alone, with_others): (Vec<Expr>, Vec<Expr>) =
                conditions.into_iter().partition(|c| c.slots().within(&own) && !is_volatile(c));
            let mut path = access::choose(&wanted, alone);
            let keep = keep_or_filter(with_others, &own, &mut path.filter);
            return (path, keep);
        }
        let mut path = access::choose(&wanted, conditions);
        let keep = keep_if_whole(&mut path, &own);
        (path, keep)
    }
}

/// A hash table for a table that would otherwise be read again and again: no index fits, and all that is known before reading it
/// is its own.
fn keep_if_whole(path: &mut TableAccess, own: &SlotSet) -> Option<Keep> {
    let mut reads_others = path.is_point();
    path.access.values(&mut |e| reads_others |= !e.slots().is_empty());
    if reads_others || path.implied.iter().any(|c| !c.slots().within(own)) {
        return None;
    }
    keep_joined(&mut path.filter, own)
}

/// The same for a table that has no path: of its conditions, those that are asked as it is read are left.
pub(super) fn keep_joined(filter: &mut Vec<Expr>, own: &SlotSet) -> Option<Keep> {
    let (alone, with_others): (Vec<Expr>, Vec<Expr>) =
        std::mem::take(filter).into_iter().partition(|c| c.slots().within(own) && !is_volatile(c));
    *filter = alone;
    keep_or_filter(with_others, own, filter)
}

/// The hash table by which conditions are looked up; each row is asked them if none of them is a join.
fn keep_or_filter(conditions: Vec<Expr>, own: &SlotSet, filter: &mut Vec<Expr>) -> Option<Keep> {
    match keep(conditions, own) {
        Ok(keep) => Some(keep),
        Err(conditions) => {
            filter.extend(conditions);
            None
        }
    }
}

/// The hash table by which conditions on other tables too are looked up; its number is not given yet. The conditions come back
/// if none of them is an equality.
fn keep(conditions: Vec<Expr>, own: &SlotSet) -> Result<Keep, Vec<Expr>> {
    if !conditions.iter().any(|c| equality(c, own).is_some()) {
        return Err(conditions);
    }
    let mut keep =
        Keep { id: 0, own: Vec::new(), probe: Vec::new(), collations: Vec::new(), filter: Vec::new() };
    for condition in conditions {
        match equality(&condition, own) {
            Some((own, probe, collation)) => {
                keep.own.push(own.clone());
                keep.probe.push(probe.clone());
                keep.collations.push(collation);
            }
            None => keep.filter.push(condition),
        }
    }
    Ok(keep)
}

/// A condition `own = other` whose sides hash alike when they are equal.
fn equality<'e>(condition: &'e Expr, slot: &SlotSet) -> Option<(&'e Expr, &'e Expr, u16)> {
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
    (alike && typed && settled(own) && settled(other)).then_some((own, other, *collation))
}
