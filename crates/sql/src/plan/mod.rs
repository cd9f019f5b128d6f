//! From a bound query to a physical plan: which index each table is read through, in which order tables are
//! joined, where each condition is checked.
//!
//! Not binding ([`crate::bind`]) and not execution (`exec::operator`, `exec::reader`). `physical_plan` is the way in, in `query`. Each
//! folder uses those before it alone: `physical` is the plan, as data; `rules` say what follows from conditions; `cost` says how many rows come and
//! what they cost; `access` chooses the path of a table; `join` puts the tables in order; `order` finds orders that come for nothing;
//! `operators` makes the operators of all that; `set_instead` says when EXISTS becomes a set.
//! Everything here runs once a plan, on the session's thread, and reads no rows but samples.

pub mod access;
pub mod cost;
mod join;
mod operators;
pub(crate) mod order;
pub mod physical;
mod query;
pub(crate) mod rules;
mod set_instead;

pub use physical::QueryPlan;
pub(crate) use query::{Planning, Reader, physical_plan};
pub(crate) use set_instead::{SetInstead, set_instead};
