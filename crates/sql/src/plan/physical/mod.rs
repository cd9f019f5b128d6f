//! Physical plans, as data: what the planner has decided, and what runs.
//!
//! A plan is a tree of operators. `query` has its root and what the whole statement needs; `results` the operators that give results, `frame` those
//! that give rows in the frame, `scan` the leaf that reads a table, `path` how one is read, `key` what bytes of an index a path's values are, once they
//! are known. What depends on the plan alone is decided in it, once: which operators there are, and each one's kind. `exec::operator` runs each
//! and has their contract, and EXPLAIN prints them. Others ask by a few visitors: `expressions` by the clauses that they are of, `scans`, `steps` of
//! joins. `any_values` says whether a plan is right for whatever values its parameters have. Nothing here chooses.

pub(crate) mod any_values;
pub mod expressions;
pub mod frame;
pub mod key;
pub mod path;
pub mod query;
pub mod results;
pub mod scan;

pub use expressions::Clause;
pub use frame::{
    Filter, FrameOperator, FrameSort, GroupBy, GroupMethod, GroupPlan, HashJoin, If, Keep, NestedLoop,
    OuterJoin, Step, WindowRows,
};
pub use path::{Access, TableAccess};
pub use query::{OfStatement, QueryPlan};
pub use results::{Compound, Distinct, Limited, Project, Recursive, ResultOperator, Sort};
pub use scan::{Scan, Source};
