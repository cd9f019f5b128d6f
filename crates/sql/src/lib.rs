//! From a statement's syntax tree to engine reads, writes and binlog events.
//!
//! Not the parser, not the wire protocol, not the commit pipeline. Execution is synchronous and is
//! called inside an async task; it never blocks in [`Mode::Inline`] but returns an [`Interrupt`]
//! that says what to wait for. See ARCHITECTURE.md, "The way of a commit".

pub mod api;
pub mod apply;
pub mod bind;
pub mod catalog;

mod ddl;
mod dml;
pub mod error;
pub mod exec;
pub mod expr;
mod information_schema;
pub mod load;
pub mod logical;
pub mod memory;
pub mod plan;
pub mod recover;
mod row_events;
pub mod rows;
pub mod session;
mod sort;
pub mod state;
pub mod storage;
pub mod store;
mod text_file;
pub mod xa;

pub use api::{
    AccessCheck, AllowAll, ColumnGrants, Columns, EndedTrx, Info, Isolation, KillFlag, Mode, NoHost, Outcome,
    Priv, Progress, Progressed, ResultColumn, Routine, RowImage, RowSink, SessionHost, SessionSettings,
    TrxSeen, VariableScope, is_keyword,
};
pub use catalog::{Definer, EventTimes, ProgramDef, quote_ident, quote_string, show_create_table, type_text};
pub use ddl::load_catalog;
pub use error::{
    Diagnostics, ExecResult, Interrupt, KeptConditions, Level, ServerStatement, SqlError, SqlResult, is_full,
};
pub use information_schema::{InformationSchema, computed_columns};
pub use session::{Database, GivenGtid, Prepared, ReadText, SqlSession, SystemTables, check_flush};
pub use state::{NewInsertId, SessionState};
pub use store::{Floor, Patience, SessionWatch, locked_table};
