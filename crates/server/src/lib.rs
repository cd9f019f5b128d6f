//! The server: connections, authentication, sessions, administration, system variables, metrics.
//!
//! Not statements on data, which are `omnibus_sql`'s, nor the log, nor the engines. Start at `server` (what all share), then
//! `connection` (what one connection is made of), `session` (what it does), and `admin` (statements about the server). What stands
//! above `server` knows it: `session` above `admin` above `connection`, and `arrival`, `scheduler`, `monitoring`, `http`, `serve`. What it
//! is made of does not: `sysvars`, `account`, `process`, `dump`, `replica`, `gtid`, `status`, `query_log` and those beside them get what
//! they need handed to them. No module uses another in a circle (`scripts/tidy`).
//!
//! Async on a multi-thread runtime; a statement runs synchronously inside its session's task, and the
//! only await points are the socket, a row lock, and a commit (`session::drive`).

mod account;
mod admin;
mod arrival;
mod assemble;
mod auth;
pub mod backup;
mod by_account;
mod charset;
mod clock;
mod connection;
mod consumers;
pub mod coordination;
mod datadir;
mod deadlocks;
mod digests;
mod dump;
mod embed;
mod engines;
mod error_log;
mod errors;
mod files;
pub mod gtid;
mod held_locks;
mod http;
mod log_admin;
mod machine_memory;
mod monitoring;
mod net;
mod old_versions;
pub mod options;
mod parsed;
mod pid_file;
mod prepared_place;
pub mod process;
mod pulse;
mod query_log;
mod random;
mod refusals;
mod replica;
mod result_set;
mod scheduler;
mod sealed;
mod serve;
mod server;
mod session;
mod small_files;
pub mod starting;
mod status;
mod supervisor;
mod sysvars;

pub use account::{AccessTable, Account, AccountStore, Accounts, MemoryStore, Record};
pub use assemble::StartError;
pub use auth::RsaKey;
pub use datadir::FORMAT as DATADIR_FORMAT;
pub use embed::Embedded;
pub use error_log::ErrorLog;
pub use files::keep_files_private;
pub use log_admin::{LogAdmin, LogEvent, LogFile, LogStatus};
pub use net::{Listeners, Places, Reserved, TlsFiles, acceptor};
pub use omnibus_sql::memory::set_collector;
pub use options::{OptionError, ServerOptions};
pub use serve::serve;
pub use server::Server;
pub use small_files::damaged_small_files;
pub use sysvars::{GlobalVars, VarValue};

/// The server's version as clients see it.
pub const VERSION: &str = "8.4.0-omnibus";

/// The version of a server whose data directory is of MariaDB's dialect.
pub const MARIADB_VERSION: &str = "11.4.5-MariaDB-omnibus";
