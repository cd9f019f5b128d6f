//! Consequences of a nest's conditions: outer joins that are inner ones, constants that equal columns share, what an
//! OR over several tables says of each.

use super::equalities::{self, Member, equal_columns};
use crate::expr::is_volatile;
use crate::expr::node::{CompareOp, IsKind};
use crate::expr::{Expr, Kind, SlotSet};
use crate::logical::conjuncts::share_of_slot;
use crate::logical::nest::{Item, Nest};
use std::collections::HashMap;

/// Outer joins whose NULL rows a condition refuses anyway become inner ones.
pub(in crate::plan) fn simplify(mut nest: Nest) -> Nest {
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

/// Adds conditions that follow from the others, so that a table is bounded before the tables it is joined with are read.
/// `own` are the slots of the block.
pub(in crate::plan) fn add_implied(nest: &mut Nest, own: &SlotSet) {
    if nest.items.len() < 2 {
        return;
    }
    let transitive = equalities::implied(&nest.conditions);
    add_new(nest, transitive);
    let mut implied: Vec<Expr> = Vec::new();
    let constants = constants(&nest.conditions);
    let mut settled = vec![false; nest.conditions.len()];
    for (condition, settled) in nest.conditions.iter().zip(&mut settled) {
        let Some((collation, pair)) = equal_columns(condition) else { continue };
        for (from, to) in [(&pair[0], &pair[1]), (&pair[1], &pair[0])] {
            let values = equalities::member(from, collation).and_then(|from| constants.get(&from));
            for value in values.into_iter().flatten() {
                implied.push(Expr::compare(CompareOp::Eq, collation, to.clone(), (*value).clone()));
                *settled = true;
            }
        }
    }
    // Two columns that equal the same constant need not be compared with each other.
    let mut settled = settled.into_iter();
    nest.conditions.retain(|_| !settled.next().unwrap_or(false));
    for item in &nest.items {
        let Item::Table(table) = item else { continue };
        let spread = |c: &&Expr| matches!(c.kind, Kind::Or(_)) && c.slots().contains(table.slot);
        let shares = nest.conditions.iter().filter(spread).filter(|c| c.slots().meets(own));
        implied.extend(shares.filter_map(|c| share_of_slot(c, table.slot)));
    }
    add_new(nest, implied);
}

/// Adds the conditions that a nest does not have.
fn add_new(nest: &mut Nest, conditions: Vec<Expr>) {
    if conditions.is_empty() {
        return;
    }
    let mut known: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, condition) in nest.conditions.iter().enumerate() {
        known.entry(kind_of(condition)).or_default().push(at);
    }
    for condition in conditions {
        let alike = known.entry(kind_of(&condition)).or_default();
        if !alike.iter().any(|at| same_condition(&nest.conditions[*at], &condition)) {
            alike.push(nest.conditions.len());
            nest.conditions.push(condition);
        }
    }
}

/// A number that conditions have in common that are the same: of equalities that of their columns. There may be tens of thousands.
fn kind_of(condition: &Expr) -> u64 {
    let Kind::Compare(CompareOp::Eq, _, pair) = &condition.kind else { return 0 };
    let column = |e: &Expr| match e.kind {
        Kind::Column { slot, column, .. } => (u64::from(slot) << 16) + u64::from(column) + 1,
        _ => 0,
    };
    // In any order.
    pair.iter().map(|e| column(e).wrapping_mul(0x9e37_79b9_7f4a_7c15)).fold(1, u64::wrapping_add)
}

/// The values that conditions give columns, if they are the same throughout the statement.
fn constants(conditions: &[Expr]) -> HashMap<Member, Vec<&Expr>> {
    let mut found: HashMap<Member, Vec<&Expr>> = HashMap::new();
    for condition in conditions {
        let Kind::Compare(CompareOp::Eq, collation, pair) = &condition.kind else { continue };
        for (column, value) in [(&pair[0], &pair[1]), (&pair[1], &pair[0])] {
            // Text beside a number is compared as numbers, by which unlike texts are equal.
            let alike = value.ty.family() == column.ty.family();
            if let Some(member) = equalities::member(column, *collation)
                && alike
                && value.is_fixed()
                && !is_volatile(value)
            {
                found.entry(member).or_default().push(value);
            }
        }
    }
    found
}

/// Whether two conditions are the same, the sides of an equality in any order.
fn same_condition(a: &Expr, b: &Expr) -> bool {
    match (&a.kind, &b.kind) {
        (Kind::Compare(CompareOp::Eq, x, one), Kind::Compare(CompareOp::Eq, y, other)) => {
            let straight = one[0].same(&other[0]) && one[1].same(&other[1]);
            x == y && (straight || one[0].same(&other[1]) && one[1].same(&other[0]))
        }
        _ => a.same(b),
    }
}
