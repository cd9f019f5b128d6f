//! The model of a change, independent of its form: traits that answer questions, without materialising anything.
//!
//! Both halves of replication use these traits. *Generation* passes them to consumers (the binary log, JSON lines, a
//! program's own); *application* receives them from providers (binlog events, JSON lines) and executes them. A provider
//! implements them over its own form; parts that are not requested are not copied.
//!
//! A transaction is a [`TrxHeader`], then statements and row changes in order, then its end.

mod header;
mod rows;
mod statement;

pub use header::TrxHeader;
pub use rows::{RowsView, TableView};
pub use statement::{LoadedFile, StatementView};
