//! Sessions: transaction state and statement dispatch.

mod binlog;
mod bootstrap;
mod client_text;
mod create_select;
mod database;
mod dispatch;
mod given;
mod load;
mod maintenance;
mod named_locks;
mod prepared;
mod query;
mod row_sum;
mod run;
#[allow(clippy::module_inception, reason = "the session itself")]
mod session;
mod show;
mod state;
mod statement_log;
mod statements;
mod system;
mod table_locks;
mod temporary;
mod xa;

pub(crate) use bootstrap::Nowhere;
pub use client_text::to_parser;
pub(crate) use client_text::{literal as client_literal, of_client};
pub use database::Database;
pub use given::GivenGtid;
pub use named_locks::NamedLocks;
pub use prepared::Prepared;
pub(crate) use run::Call;
pub use session::SqlSession;
pub use state::{NewInsertId, SessionState};
pub use system::SystemTables;
