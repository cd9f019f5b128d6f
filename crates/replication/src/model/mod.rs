//! What a change is, whatever form it has: questions with answers, nothing materialised unless asked.
//!
//! Both halves of replication speak these traits. *Generation* offers them to consumers (the binary log, JSON lines,
//! yours); *application* takes them from providers (binlog events, JSON lines) and executes what they say. Whoever has a
//! change implements them over the form it has it in; nobody copies what is not asked for.
//!
//! A transaction is a [`TrxHeader`], then statements and row changes in order, then its end.

mod header;
mod rows;
mod statement;

pub use header::TrxHeader;
pub use rows::{RowsView, TableView};
pub use statement::{LoadedFile, StatementView};
