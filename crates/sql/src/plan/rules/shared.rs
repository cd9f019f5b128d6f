//! Expressions that several aggregates of a block compute of the same row: computed once.
//!
//! Only numbers, by operations that warn of nothing: how often one of them is computed must not show.

use crate::expr::functions::aggregate::AggregateSpec;
use crate::expr::node::ArithOp;
use crate::expr::types::Family;
use crate::expr::{Expr, Kind};

/// Expressions that are compared with each other at most.
const MOST: usize = 64;

/// An expression that was met, and how often.
struct Met {
    e: Expr,
    times: usize,
    number: usize,
}

/// Has arguments that share a part keep its value; `numbers` gives it a place.
pub(crate) fn compute_once(aggregates: &mut [AggregateSpec], numbers: &mut usize) {
    let mut met = Vec::new();
    aggregates.iter().flat_map(|aggregate| &aggregate.args).for_each(|e| meet(e, &mut met));
    met.retain(|part| part.times > 1);
    for part in &mut met {
        part.number = *numbers;
        *numbers += 1;
    }
    if !met.is_empty() {
        aggregates.iter_mut().flat_map(|aggregate| &mut aggregate.args).for_each(|e| keep(e, &met));
    }
}

fn meet(e: &Expr, met: &mut Vec<Met>) {
    if costs(e) && is_shareable(e) {
        if let Some(known) = met.iter_mut().find(|known| known.e.same(e)) {
            known.times += 1;
            return;
        }
        if met.len() < MOST {
            met.push(Met { e: e.clone(), times: 1, number: 0 });
        }
    }
    e.children(&mut |child| meet(child, met));
}

fn keep(e: &mut Expr, met: &[Met]) {
    let known = if costs(e) { met.iter().find(|known| known.e.same(e)) } else { None };
    e.children_mut(&mut |child| keep(child, met));
    if let Some(known) = known {
        let ty = e.ty.clone();
        let whole = std::mem::replace(e, Expr::integer(0));
        *e = Expr { kind: Kind::Once(known.number, Box::new(whole)), ty };
    }
}

/// Whether computing it takes longer than looking a value up.
fn costs(e: &Expr) -> bool {
    match e.kind {
        Kind::Column { .. } => e.ty.family() == Family::Decimal,
        Kind::Arith(..) => true,
        _ => false,
    }
}

/// Numbers in stored columns and constants, added and multiplied.
fn is_shareable(e: &Expr) -> bool {
    let number = matches!(e.ty.family(), Family::Integer | Family::Decimal | Family::Real);
    number
        && match &e.kind {
            Kind::Const(_) | Kind::Column { .. } => true,
            Kind::Arith(ArithOp::Add | ArithOp::Sub | ArithOp::Mul, pair) => pair.iter().all(is_shareable),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::ExprType;
    use omnibus_parser::ast::AggregateKind;

    fn column(column: u16) -> Expr {
        Expr { kind: Kind::Column { slot: 0, column, utc: false }, ty: ExprType::decimal(15, 2) }
    }

    fn arith(op: ArithOp, a: Expr, b: Expr) -> Expr {
        Expr { kind: Kind::Arith(op, Box::new([a, b])), ty: ExprType::decimal(30, 4) }
    }

    /// Counts what is left to compute for a row: columns and operations that are met for the first time.
    fn computed(e: &Expr, known: &mut Vec<usize>) -> usize {
        if let Kind::Once(number, _) = e.kind {
            if known.contains(&number) {
                return 0;
            }
            known.push(number);
        }
        let mut sum = usize::from(matches!(e.kind, Kind::Column { .. } | Kind::Arith(..)));
        e.children(&mut |child| sum += computed(child, known));
        sum
    }

    #[test]
    fn what_two_aggregates_read_is_computed_once() {
        let (price, discount, tax) = (column(0), column(1), column(2));
        let net = arith(ArithOp::Mul, price.clone(), arith(ArithOp::Sub, Expr::integer(1), discount.clone()));
        let gross = arith(ArithOp::Mul, net.clone(), arith(ArithOp::Add, Expr::integer(1), tax));
        let quotient = || arith(ArithOp::Div, price.clone(), discount.clone());
        let spec = |arg: Expr| AggregateSpec {
            kind: AggregateKind::Sum,
            distinct: false,
            ty: arg.ty.clone(),
            args: vec![arg],
            order: Vec::new(),
            separator: bytes::Bytes::new(),
            limit: None,
        };
        let args = [price.clone(), net, gross, discount.clone(), quotient(), quotient()];
        let mut specs: Vec<AggregateSpec> = args.into_iter().map(spec).collect();
        let mut numbers = 7;
        compute_once(&mut specs, &mut numbers);
        let mut known = Vec::new();
        let left: usize = specs.iter().flat_map(|spec| &spec.args).map(|e| computed(e, &mut known)).sum();
        // Three columns, two operations of the net price, two more of the gross one; both divisions, which may warn.
        assert_eq!(left, 3 + 2 + 2 + 2, "{specs:?}");
        assert_eq!(numbers, 7 + 3, "the price, the discount, the net price");
    }
}
