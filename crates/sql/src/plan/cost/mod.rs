//! Rows and costs, by which plans are compared: how many rows come (`estimate` of a path, by samples of indexes, else of rows in `sampled`,
//! else by rules; `rows` of a query), and what they cost (`price`).

mod estimate;
mod price;
mod rows;
mod sampled;

pub(super) use estimate::ANYTHING;
pub(crate) use estimate::{Known, filtered};
pub use price::{
    CONDITION, FEW, GROWTH, HASH_BUILD, HASH_PROBE, HASH_ROW, LOCK, LOOKUP, POINT, RANGE, ROW, of_plan,
    point, ranges, scan,
};
pub(crate) use rows::is_unique;
pub(super) use rows::{OF_RECURSION, of_block, of_compound};
pub(super) use sampled::Sampled;
