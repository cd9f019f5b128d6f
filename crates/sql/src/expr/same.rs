//! Whether two expressions are the same tree: same operations, constants, columns, types.
//!
//! Not whether they have the same value (`1 + 1` and `2`), and not whether evaluating twice gives it twice (RAND()).

use super::node::{Expr, Kind};
use omnibus_value::Value;

impl Expr {
    /// Whether the two are the same, node by node. A column is the same column whatever its type says of NULL.
    #[must_use]
    pub fn same(&self, other: &Expr) -> bool {
        if let (Kind::Column { slot: a, column: b, .. }, Kind::Column { slot: c, column: d, .. }) =
            (&self.kind, &other.kind)
        {
            return (a, b) == (c, d);
        }
        if self.ty != other.ty || !same_node(&self.kind, &other.kind) {
            return false;
        }
        let (mine, theirs) = (operands(self), operands(other));
        mine.len() == theirs.len() && mine.iter().zip(&theirs).all(|(a, b)| a.same(b))
    }
}

fn operands(e: &Expr) -> Vec<&Expr> {
    let mut list = Vec::new();
    e.children(&mut |child| list.push(child));
    list
}

/// Whether two nodes are the same but for their operands.
fn same_node(a: &Kind, b: &Kind) -> bool {
    match (a, b) {
        (Kind::Const(a), Kind::Const(b)) => same_constant(a, b),
        (Kind::Param(a), Kind::Param(b)) => a == b,
        (Kind::Present(a), Kind::Present(b)) => a == b,
        (Kind::Local(a), Kind::Local(b)) => a == b,
        (Kind::Stored(a), Kind::Stored(b)) => std::sync::Arc::ptr_eq(&a.def, &b.def),
        (Kind::UserVariable(a), Kind::UserVariable(b)) => a == b,
        (Kind::Assign(a), Kind::Assign(b)) => a.0 == b.0,
        (Kind::SystemVariable(a), Kind::SystemVariable(b)) => a == b,
        (Kind::Arith(a, _), Kind::Arith(b, _)) => a == b,
        (Kind::Bits(a, _), Kind::Bits(b, _)) => a == b,
        (Kind::Compare(a, x, _), Kind::Compare(b, y, _)) => (a, x) == (b, y),
        (Kind::Is { what: a, negated: x, .. }, Kind::Is { what: b, negated: y, .. }) => (a, x) == (b, y),
        (Kind::In { collation: a, negated: x, .. }, Kind::In { collation: b, negated: y, .. })
        | (Kind::Between { collation: a, negated: x, .. }, Kind::Between { collation: b, negated: y, .. }) => {
            (a, x) == (b, y)
        }
        (Kind::Like(a), Kind::Like(b)) => {
            (a.escape, a.collation, a.negated) == (b.escape, b.collation, b.negated)
        }
        (Kind::Regexp(a), Kind::Regexp(b)) => (a.collation, a.negated) == (b.collation, b.negated),
        (Kind::Case { whens: a, .. }, Kind::Case { whens: b, .. }) => a.len() == b.len(),
        (Kind::Comparable(a, _), Kind::Comparable(b, _)) => a == b,
        (Kind::DateArith { unit: a, subtract: x, .. }, Kind::DateArith { unit: b, subtract: y, .. }) => {
            (a, x) == (b, y)
        }
        (Kind::JsonValue(a), Kind::JsonValue(b)) => a.is_like(b),
        (Kind::Extract(a, _), Kind::Extract(b, _)) | (Kind::Unit(a), Kind::Unit(b)) => a == b,
        (Kind::Call(a, _), Kind::Call(b, _)) => std::ptr::eq(*a, *b),
        (Kind::ServerCall(a, _), Kind::ServerCall(b, _)) => a == b,
        // No two calls are the same.
        (Kind::Sequence(_), Kind::Sequence(_)) => false,
        (Kind::Subquery(a), Kind::Subquery(b)) => a.id == b.id,
        (Kind::Column { .. }, _) | (_, Kind::Column { .. }) => false,
        // The rest is told apart by its operands and its type.
        (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}

/// As `==`, and minus zero is not zero.
fn same_constant(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits(),
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use crate::expr::node::{ArithOp, Expr, Kind};
    use crate::expr::types::ExprType;
    use omnibus_value::Value;

    fn sum(a: Expr, b: Expr) -> Expr {
        Expr { kind: Kind::Arith(ArithOp::Add, Box::new([a, b])), ty: ExprType::bigint() }
    }

    #[test]
    fn trees_are_compared_and_not_values() {
        let column =
            |column| Expr { kind: Kind::Column { slot: 1, column, utc: false }, ty: ExprType::bigint() };
        assert!(sum(column(0), Expr::integer(2)).same(&sum(column(0), Expr::integer(2))));
        assert!(!sum(column(0), Expr::integer(2)).same(&sum(column(1), Expr::integer(2))));
        assert!(!sum(column(0), Expr::integer(2)).same(&sum(Expr::integer(2), column(0))));
        let nullable = Expr { ty: ExprType::bigint().nullable(true), ..column(0) };
        assert!(nullable.same(&column(0)), "a column is the same one on either side of an outer join");
        let real = |n: f64| Expr::constant(Value::Double(n), ExprType::bigint());
        assert!(real(0.0).same(&real(0.0)) && !real(0.0).same(&real(-0.0)));
        let negated = |e| Expr { kind: Kind::Negate(Box::new(e)), ty: ExprType::bigint() };
        assert!(
            !negated(column(0))
                .same(&Expr { kind: Kind::BitNot(Box::new(column(0))), ty: ExprType::bigint() })
        );
    }
}
