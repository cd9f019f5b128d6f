//! EXISTS or a set: when rows are put into a set that EXISTS asks, instead of being looked up for each row around it.

use super::cost;
use super::physical::QueryPlan;
use crate::expr::subquery::{Subplan, Visited};

/// Bytes that a member of a set takes, roughly.
const MEMBER_BYTES: f64 = 128.0;
/// How often EXISTS may cost what the set costs before the set is made: guesses of either may be wrong.
const PATIENCE: f64 = 2.0;

/// When a set is made.
pub(crate) struct SetInstead {
    /// How often EXISTS runs by itself before: until both have cost about the same.
    pub after: u64,
    /// The cost of making it.
    pub cost: f64,
}

/// When the rows of `set` become one, which takes no more than `room` bytes; `None` if they never do.
pub(crate) fn set_instead(exists: &dyn Subplan, set: &QueryPlan, room: u64) -> Option<SetInstead> {
    if set.volatile || set.rows * MEMBER_BYTES > room as f64 {
        return None;
    }
    let cost = set.cost(&mut Visited::default()) + set.rows * cost::HASH_BUILD;
    let each = exists.cost(&mut Visited::default());
    Some(SetInstead { after: (PATIENCE * cost / each.max(cost::POINT)).ceil() as u64, cost })
}
