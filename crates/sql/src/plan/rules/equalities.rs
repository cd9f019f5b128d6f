//! Equalities between columns: those that follow from others, and those that need not be asked because others were.
//!
//! `a = b AND b = c` says `a = c` as well, so that `c` may be searched by `a` before `b` is read. Once two of the three were asked
//! the third says nothing new: asking it costs time, and counting it makes the rows that are left too few.

use crate::expr::node::CompareOp;
use crate::expr::{Expr, Kind};
use std::collections::HashMap;

/// Columns that are equal to each other, up to which every pair of them is made a condition.
const WIDEST: usize = 12;

/// A column as one collation compares it.
pub(super) type Member = (u16, u16, u16);

/// The sides of an equality of two columns of the same type, and its collation.
pub(in crate::plan) fn equal_columns(condition: &Expr) -> Option<(u16, &[Expr; 2])> {
    let Kind::Compare(CompareOp::Eq, collation, pair) = &condition.kind else { return None };
    let columns = pair.iter().all(|e| matches!(e.kind, Kind::Column { .. }));
    (columns && pair[0].ty.column == pair[1].ty.column).then_some((*collation, pair))
}

pub(super) fn member(e: &Expr, collation: u16) -> Option<Member> {
    match e.kind {
        Kind::Column { slot, column, .. } => Some((slot, column, collation)),
        _ => None,
    }
}

/// Classes of columns that are known to be equal.
#[derive(Clone, Debug, Default)]
pub(in crate::plan) struct Equated {
    /// Those that became parts of others are empty.
    classes: Vec<Vec<Member>>,
    /// The class of each: a NATURAL JOIN of wide tables has tens of thousands.
    class_of: HashMap<Member, usize>,
}

impl Equated {
    /// Takes a condition for true. Whether it says something that those before it do not.
    pub(in crate::plan) fn add(&mut self, condition: &Expr) -> bool {
        let Some((collation, [left, right])) = equal_columns(condition) else { return true };
        let (Some(left), Some(right)) = (member(left, collation), member(right, collation)) else {
            return true;
        };
        // `a = a` says that it is not NULL.
        left == right || self.unite(left, right)
    }

    fn unite(&mut self, left: Member, right: Member) -> bool {
        match (self.class_of.get(&left).copied(), self.class_of.get(&right).copied()) {
            (Some(a), Some(b)) if a == b => return false,
            (Some(a), Some(b)) => {
                let (into, from) =
                    if self.classes[a].len() < self.classes[b].len() { (b, a) } else { (a, b) };
                std::mem::take(&mut self.classes[from]).into_iter().for_each(|member| self.put(member, into));
            }
            (Some(class), None) => self.put(right, class),
            (None, Some(class)) => self.put(left, class),
            (None, None) => {
                self.classes.push(Vec::new());
                self.put(left, self.classes.len() - 1);
                self.put(right, self.classes.len() - 1);
            }
        }
        true
    }

    fn put(&mut self, member: Member, class: usize) {
        self.classes[class].push(member);
        self.class_of.insert(member, class);
    }
}

/// The equalities that follow from others and are not among them.
pub(in crate::plan) fn implied(conditions: &[Expr]) -> Vec<Expr> {
    let mut equated = Equated::default();
    let mut columns: HashMap<Member, &Expr> = HashMap::new();
    for condition in conditions {
        let Some((collation, pair)) = equal_columns(condition) else { continue };
        equated.add(condition);
        for e in pair {
            if let Some(member) = member(e, collation) {
                columns.entry(member).or_insert(e);
            }
        }
    }
    let mut found = Vec::new();
    for class in equated.classes.iter().filter(|class| (3..=WIDEST).contains(&class.len())) {
        let column = |of: &Member| columns.get(of).map(|e| (*e).clone());
        for (at, left) in class.iter().enumerate() {
            for right in &class[at + 1..] {
                if let (Some(a), Some(b)) = (column(left), column(right)) {
                    found.push(Expr::compare(CompareOp::Eq, left.2, a, b));
                }
            }
        }
    }
    found
}
