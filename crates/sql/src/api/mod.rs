//! The interface between the server and the SQL layer: settings, rights, budgets of a statement, result sinks and outcomes. The server implements
//! `SessionHost` and `AccessCheck`; statements run in `session`.

mod access;
mod budget;
pub mod client_text;
mod host;
mod keywords;
mod kill;
mod mode;
mod progress;
mod result;
mod settings;
mod tally;
mod trx_seen;
mod turns;

pub use crate::catalog::{DEFAULT_ENGINE, is_default_engine, is_foreign_engine, is_own_engine};
pub use access::{AccessCheck, AllowAll, ColumnGrants, Columns, Priv, Rights, Routine};
pub use budget::Budget;
pub use host::{Assignment, NoHost, PreparedPlace, SessionHost, VariableScope, tables_are_encrypted};
pub use keywords::is_keyword;
pub(crate) use keywords::keywords;
pub use kill::{KillFlag, TimeLimit};
pub use mode::Mode;
pub use progress::{Progress, Progressed, Work};
pub use result::{Info, Outcome, ResultColumn, RowSink, flag};
pub use settings::{
    BinlogFormat, CompletionType, DefinitionSettings, Isolation, MemoryLimits, RowImage, SessionSettings,
    TimeLimits, TransactionSettings, sql_mode,
};
pub use tally::{RowWork, Tallied, Tally};
pub use trx_seen::{EndedTrx, TrxKind, TrxSeen};
pub use turns::Turns;
