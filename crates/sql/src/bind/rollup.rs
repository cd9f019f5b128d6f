//! WITH ROLLUP: what is grouped by is NULL in the rows that sum up, so expressions behind the grouping read it from a slot of its
//! own, and GROUPING() says which of it is.

use crate::error::{SqlError, SqlResult};
use crate::expr::node::ArithOp;
use crate::expr::{Expr, ExprType, Kind, SlotSet};

/// What is grouped by may be NULL.
pub(super) fn make_nullable(group: &[Expr], outputs: &mut [Expr]) {
    for output in outputs {
        if group.iter().any(|key| key.same(output)) {
            output.ty.nullable = true;
        }
    }
}

/// Has an expression read what is grouped by from `slot`; `own` are the slots of the block's tables.
///
/// # Errors
/// 3621: an argument of GROUPING() that is not grouped by; 1235: a subquery that reads what is summed up.
pub(super) fn replace(e: &mut Expr, group: &[Expr], slot: u16, own: &SlotSet) -> SqlResult<()> {
    let column =
        |at: usize, ty: ExprType| Expr { kind: Kind::Column { slot, column: at as u16, utc: false }, ty };
    if let Some(at) = group.iter().position(|key| key.same(e)) {
        *e = column(at, e.ty.clone().nullable(true));
        return Ok(());
    }
    match &e.kind {
        Kind::Call(def, args) if def.name == "GROUPING" => {
            let mut bits: Option<Expr> = None;
            for (number, arg) in args.iter().enumerate() {
                let Some(at) = group.iter().position(|key| key.same(arg)) else {
                    let message = format!("Argument #{} of GROUPING function is not in GROUP BY", number + 1);
                    return Err(SqlError::new(3621, b"HY000", message));
                };
                let bit = column(group.len() + at, ExprType::bigint());
                let both = |op, a: Expr, b: Expr| Expr {
                    kind: Kind::Arith(op, Box::new([a, b])),
                    ty: ExprType::bigint(),
                };
                bits = Some(match bits {
                    None => bit,
                    Some(before) => both(ArithOp::Add, both(ArithOp::Mul, before, Expr::integer(2)), bit),
                });
            }
            if let Some(bits) = bits {
                *e = bits;
            }
            return Ok(());
        }
        Kind::Subquery(subquery) if subquery.outer_slots.meets(own) => {
            return Err(SqlError::not_supported_yet(
                "WITH ROLLUP and a subquery that reads a column of its query",
            ));
        }
        _ => {}
    }
    let mut done = Ok(());
    e.children_mut(&mut |child| {
        if done.is_ok() {
            done = replace(child, group, slot, own);
        }
    });
    done
}
