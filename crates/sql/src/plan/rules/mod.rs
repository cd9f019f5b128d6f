//! Rules that hold whatever the tables contain: no statistics, no costs.
//!
//! `condition` says what a conjunct says of a column, `simplify` what several say together, `equalities` which columns are equal by then; `needed` says
//! which columns a block reads, `shared` what its aggregates compute of the same row.

pub(super) mod condition;
pub(super) mod equalities;
pub(crate) mod needed;
pub(super) mod shared;
pub(super) mod simplify;
