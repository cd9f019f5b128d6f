//! From a bound query to a physical plan: which index each table is read through, in which order tables are
//! joined, where each condition is checked.
//!
//! Not binding ([`crate::bind`]) and not execution (`exec::operator`, `exec::reader`). [`physical`] is the way in, in `query`. The way of a FROM: `condition`
//! says what a conjunct asks of a column, `access` makes paths of that, `simplify` what several say together, `equalities` which columns are equal by then; `scan` prices one table of a join, `join_order` puts the tables in order, `late` puts
//! off what a subquery makes dear, `rows` says how many rows a block gives, `order` finds orders that come for nothing; `estimate` and `cost` are what all of them compare by, and `sampled` asks sampled rows a condition. Everything here runs once a plan,
//! on the session's thread, and reads no other rows.

pub mod access;
pub(crate) mod any_values;
pub(crate) mod condition;
pub mod cost;
mod equalities;
pub(crate) mod estimate;
mod join_order;
pub mod key;
mod late;
pub(crate) mod needed;
mod order;
mod query;
mod ranges;
pub(crate) mod rows;
mod sampled;
mod scan;
mod shared;
mod simplify;
pub mod tree;

pub(crate) use query::{Planning, Reader, physical};
pub use tree::QueryPlan;
