//! Queries as they are written, with names and types resolved: which tables, which conditions, what is grouped, ordered and given.
//!
//! Nothing here says how a row is found: no index is chosen, no table stands before another but where the text says so, nothing has a
//! cost. [`crate::bind`] makes a [`Query`] of a syntax tree, `crate::plan::physical_plan` makes a plan of it, which `exec` runs.
//!
//! A query expression (a SELECT, or set operations of them) is planned as a whole when its last clause is bound. Queries inside of it
//! (derived tables, common table expressions, subqueries in expressions) were planned before, each when it ended, because binding
//! what stands around them asks how many rows they give and whether these may be others each time. All that is known of such a plan
//! here is the trait [`crate::expr::subquery::Subplan`].
//!
//! `query` is the tree; `nest` is FROM and WHERE of a block, whose conditions `conjuncts` takes apart; `window` has its window
//! functions; `virtual_table` is the contract of tables that are computed, with `numbers` and `json_table`; `hints` has what optimizer
//! hints name.

pub(crate) mod conjuncts;
pub(crate) mod hints;
pub(crate) mod json_table;
pub mod nest;
pub mod numbers;
pub mod query;
pub mod virtual_table;
pub mod window;

pub use numbers::Numbers;
pub use query::{Block, Body, Compound, Grouping, Limit, Query, Recursive, SetOperation, SortBy, SortKey};
pub use virtual_table::{Asked, NoVirtualTables, VirtualTable, VirtualTables};
pub use window::Windows;
