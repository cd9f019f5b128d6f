//! Equalities between columns: those that follow from others, and those that need not be asked because others were.
//!
//! `a = b AND b = c` says `a = c` as well, so that `c` may be searched by `a` before `b` is read. Once two of the three were asked
//! the third says nothing new: asking it costs time, and counting it makes the rows that are left too few.

use crate::expr::node::CompareOp;
use crate::expr::{Expr, Kind};

/// Columns that are equal to each other, up to which every pair of them is made a condition.
const WIDEST: usize = 12;

/// A column as one collation compares it.
type Member = (u16, u16, u16);

/// The sides of an equality of two columns of the same type, and its collation.
pub(in crate::plan) fn equal_columns(condition: &Expr) -> Option<(u16, &[Expr; 2])> {
    let Kind::Compare(CompareOp::Eq, collation, pair) = &condition.kind else { return None };
    let columns = pair.iter().all(|e| matches!(e.kind, Kind::Column { .. }));
    (columns && pair[0].ty.column == pair[1].ty.column).then_some((*collation, pair))
}

fn member(e: &Expr, collation: u16) -> Option<Member> {
    match e.kind {
        Kind::Column { slot, column, .. } => Some((slot, column, collation)),
        _ => None,
    }
}

/// Classes of columns that are known to be equal.
#[derive(Clone, Debug, Default)]
pub(in crate::plan) struct Equated {
    classes: Vec<Vec<Member>>,
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
        let class_of = |classes: &[Vec<Member>], of| classes.iter().position(|class| class.contains(&of));
        match (class_of(&self.classes, left), class_of(&self.classes, right)) {
            (Some(a), Some(b)) if a == b => return false,
            (Some(a), Some(b)) => {
                let other = self.classes.swap_remove(a.max(b));
                self.classes[a.min(b)].extend(other);
            }
            (Some(class), None) => self.classes[class].push(right),
            (None, Some(class)) => self.classes[class].push(left),
            (None, None) => self.classes.push(vec![left, right]),
        }
        true
    }
}

/// The equalities that follow from others and are not among them.
pub(in crate::plan) fn implied(conditions: &[Expr]) -> Vec<Expr> {
    let mut equated = Equated::default();
    let mut columns: Vec<(Member, &Expr)> = Vec::new();
    for condition in conditions {
        let Some((collation, pair)) = equal_columns(condition) else { continue };
        equated.add(condition);
        for e in pair {
            columns.extend(member(e, collation).map(|member| (member, e)));
        }
    }
    let mut found = Vec::new();
    for class in equated.classes.iter().filter(|class| (3..=WIDEST).contains(&class.len())) {
        let column = |of: &Member| columns.iter().find(|(member, _)| member == of).map(|(_, e)| (*e).clone());
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
