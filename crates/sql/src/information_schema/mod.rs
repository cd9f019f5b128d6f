//! information_schema, the parts of performance_schema that clients read, and the SHOW statements
//! over them.
//!
//! A table here is a list of columns and a function that computes its rows from the catalog and the
//! session's host; it is read through [`crate::logical::VirtualTables`] like any table. SHOW is a
//! SELECT from such a table (`session::show_query`), so LIKE, WHERE, metadata and conversion are the query's.
//! Rows come in catalog order (schema, table, position), which SHOW relies on instead of sorting.
//! Runs on the session's thread; takes no lock but the catalog's `Arc`.

mod charsets;
mod columns;
mod computed;
mod constraints;
mod dialects;
mod empty;
mod grammar;
mod hosted;
mod names;
mod privileges;
mod programs;
mod replication;
mod schemata;
mod server;
mod sizes;
mod statistics;
mod sys;
mod tables;
mod usage;
mod views;
mod zones;

pub(crate) use computed::SCHEMAS;
pub use computed::{InformationSchema, computed_columns};
