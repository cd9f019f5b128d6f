//! Sessions: transaction state and statement dispatch.

mod attempt;
mod binlog;
mod bootstrap;
mod context;
mod create_select;
mod database;
mod dispatch;
mod evaluate;
mod explain;
mod handler;
mod hints;
mod histograms;
mod load;
mod maintenance;
mod name_quotes;
mod next_gtid;
mod preparable;
mod prepared;
pub(crate) mod programs;
mod query;
mod row_sum;
mod run;
#[allow(clippy::module_inception, reason = "the session itself")]
mod session;
mod show;
mod show_query;
mod statement_log;
mod statements;
mod system;
mod table_locks;
mod temporary;
mod xa;

pub(crate) use bootstrap::Nowhere;
pub(crate) use context::StatementContext;
pub use database::Database;
pub use next_gtid::GivenGtid;
pub use prepared::Prepared;
pub(crate) use run::Call;
pub use session::SqlSession;
pub(crate) use show::answer_column;
pub use statement_log::with_params;
pub use statements::ReadText;
pub use system::SystemTables;
pub use table_locks::check_flush;
