//! Conditions rewritten before a path is chosen: into conjuncts, with what all branches of an OR have in common in front of it.
//!
//! Every rule holds in the three values of SQL, because a condition is also asked whether it is NULL (`IS NULL`, NOT) only as
//! part of a larger one, which is left alone. A condition whose value changes each time it is asked is never moved.

use crate::expr::is_volatile;
use crate::expr::node::{CompareOp, Expr, Kind};
use crate::expr::types::ExprType;

/// Splits a condition into its conjuncts. `(a AND b) OR (a AND c)` becomes `a` and `b OR c`; `x = 1 OR x = 2` becomes
/// `x IN (1, 2)`.
pub(crate) fn conjuncts(condition: Expr, out: &mut Vec<Expr>) {
    match condition.kind {
        Kind::And(list) => list.into_vec().into_iter().for_each(|e| conjuncts(e, out)),
        Kind::Or(list) => disjunction(list.into_vec(), condition.ty, out),
        _ => out.push(condition),
    }
}

fn disjunction(list: Vec<Expr>, ty: ExprType, out: &mut Vec<Expr>) {
    let mut branches: Vec<Vec<Expr>> = Vec::with_capacity(list.len());
    for option in list {
        let mut branch = Vec::new();
        conjuncts(option, &mut branch);
        match &mut branch[..] {
            // OR within OR.
            [Expr { kind: Kind::Or(inner), .. }] => {
                for option in std::mem::take(inner).into_vec() {
                    let mut branch = Vec::new();
                    conjuncts(option, &mut branch);
                    branches.push(branch);
                }
            }
            _ => branches.push(branch),
        }
    }
    lift_common(&mut branches, out);
    if branches.iter().any(Vec::is_empty) {
        // `a OR (a AND b)` is `a`, which has been lifted.
        return;
    }
    let list: Box<[Expr]> = branches.into_iter().map(all_of).collect();
    out.push(match alternatives(&list) {
        Some((args, collation)) => Expr { kind: Kind::In { args, collation, negated: false }, ty },
        None => Expr { kind: Kind::Or(list), ty },
    });
}

/// Moves the conjuncts that every branch has out of the branches.
fn lift_common(branches: &mut [Vec<Expr>], out: &mut Vec<Expr>) {
    let Some((first, others)) = branches.split_first_mut() else { return };
    let mut at = 0;
    while at < first.len() {
        let candidate = &first[at];
        let everywhere =
            !is_volatile(candidate) && others.iter().all(|branch| branch.iter().any(|e| e.same(candidate)));
        if !everywhere {
            at += 1;
            continue;
        }
        let lifted = first.remove(at);
        first.retain(|e| !e.same(&lifted));
        at = at.min(first.len());
        others.iter_mut().for_each(|branch| branch.retain(|e| !e.same(&lifted)));
        out.push(lifted);
    }
}

/// One condition of several.
pub(crate) fn all_of(mut conjuncts: Vec<Expr>) -> Expr {
    if conjuncts.len() == 1
        && let Some(only) = conjuncts.pop()
    {
        return only;
    }
    let nullable = conjuncts.iter().any(|e| e.ty.nullable);
    Expr::boolean(Kind::And(conjuncts.into()), nullable)
}

/// The branches of an OR, each as its conjuncts; `None` for other conditions.
pub(crate) fn branches(condition: &Expr) -> Option<Vec<&[Expr]>> {
    let Kind::Or(list) = &condition.kind else { return None };
    Some(list.iter().map(conjuncts_of).collect())
}

fn conjuncts_of(condition: &Expr) -> &[Expr] {
    match &condition.kind {
        Kind::And(list) => list,
        _ => std::slice::from_ref(condition),
    }
}

/// The part of an OR that is about the rows of one slot alone, where its branches read others as well: the OR of what each branch says
/// about that slot. It may be asked before the others are read.
pub(crate) fn share_of_slot(condition: &Expr, slot: u16) -> Option<Expr> {
    let branches = branches(condition)?;
    let only = crate::expr::SlotSet::of(slot);
    if condition.slots().within(&only) {
        return None;
    }
    let mut list = Vec::with_capacity(branches.len());
    for branch in branches {
        let own: Vec<Expr> = branch
            .iter()
            .filter(|e| !is_volatile(e) && e.slots().contains(slot) && e.slots().within(&only))
            .cloned()
            .collect();
        if own.is_empty() {
            return None;
        }
        list.push(all_of(own));
    }
    let mut out = Vec::new();
    disjunction(list, ExprType::boolean().nullable(true), &mut out);
    Some(all_of(out)).filter(|e| !matches!(&e.kind, Kind::And(list) if list.is_empty()))
}

/// The arguments of IN that an OR of equalities of one column, or of INs of it, amounts to.
fn alternatives(list: &[Expr]) -> Option<(Box<[Expr]>, u16)> {
    let mut args: Vec<Expr> = Vec::with_capacity(list.len() + 1);
    let mut common = None;
    for option in list {
        let (column, values, collation) = equalities(option)?;
        match args.first() {
            None => args.push(column.clone()),
            Some(first) if first.same(column) => {}
            Some(_) => return None,
        }
        if *common.get_or_insert(collation) != collation {
            return None;
        }
        args.extend(values.iter().cloned());
    }
    Some((args.into(), common?))
}

/// A column, the values that a condition wants it to be equal to one of, and the collation.
fn equalities(option: &Expr) -> Option<(&Expr, &[Expr], u16)> {
    let is_column = |e: &Expr| matches!(e.kind, Kind::Column { .. });
    match &option.kind {
        Kind::Compare(CompareOp::Eq, collation, pair) => {
            let [left, right] = &**pair;
            let (column, value) = match () {
                () if is_column(left) && right.is_fixed() => (left, right),
                () if is_column(right) && left.is_fixed() => (right, left),
                () => return None,
            };
            Some((column, std::slice::from_ref(value), *collation))
        }
        Kind::In { args, collation, negated: false } => {
            let (column, values) = args.split_first()?;
            let fixed = is_column(column) && values.iter().all(Expr::is_fixed);
            fixed.then_some((column, values, *collation))
        }
        _ => None,
    }
}
