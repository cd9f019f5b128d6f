//! Expressions whose value may be another one each time they are evaluated. None of them is moved to where it would be asked more or
//! less often.

use super::functions::VOLATILE;
use super::node::{Expr, Kind};

/// Whether evaluating an expression twice may give two values.
pub(crate) fn is_volatile(e: &Expr) -> bool {
    let mut volatile = false;
    e.walk(&mut |e| {
        volatile |= match &e.kind {
            Kind::Call(def, _) => def.traits & VOLATILE != 0,
            Kind::Assign(_)
            | Kind::UserVariable(_)
            | Kind::ServerCall(..)
            | Kind::Sequence(_)
            | Kind::Stored(_) => true,
            Kind::Subquery(subquery) => subquery.plan.is_volatile(),
            _ => false,
        };
    });
    volatile
}
