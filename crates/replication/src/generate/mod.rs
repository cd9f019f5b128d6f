//! Generates binary log events from row changes.
//!
//! One `RowsBuilder` belongs to a session; per statement the SQL layer calls `begin_statement`,
//! then `write`/`update`/`delete` per row with full row images, then `end_statement` (or
//! `discard` when the statement is rolled back). The events of one statement reach the sink as
//! `[ROWS_QUERY] TABLE_MAP rows… TABLE_MAP rows…`, the last rows event of each group with the
//! STMT_END flag. Buffers are reused: a one-row change allocates nothing.

mod query;
mod rows;
mod sink;
mod statement;
mod table;

#[cfg(test)]
mod tests;

pub use query::{QueryContext, begin, commit, ddl, xa, xa_prepare, xid};
pub use rows::{GenerateError, RowImageMode, RowsBuilder, RowsOptions};
pub use sink::{EventSink, VecSink};
pub use statement::statement;
pub use table::{TableDef, TableDefBuilder};
