//! Access paths: through which index, and along which ranges of it, a table is read. `ranges` makes candidates of conditions, `choose` takes
//! the cheapest.

mod choose;
mod ranges;

pub(crate) use choose::{Wanted, choose};
pub(super) use choose::{best, usable_indexes};
