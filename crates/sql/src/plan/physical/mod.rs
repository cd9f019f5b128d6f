//! Physical plans, as data: what the planner has decided, and what operators run.
//!
//! `query` is the tree of a query, `path` how one table of it is read, `key` what bytes of an index a path's values are, once they are
//! known. `any_values` says whether a plan is right for whatever values its parameters have. Nothing here chooses.

pub(crate) mod any_values;
pub mod key;
pub mod path;
pub mod query;

pub use path::{Access, TableAccess};
pub use query::{
    Block, Body, Compound, Grouping, Keep, Node, NodeSource, OuterNode, QueryPlan, Recursive, ScanNode,
    read_whole_rows,
};
