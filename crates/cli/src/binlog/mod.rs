//! `omnibus binlog`: prints the events of binary log files, verified: one line each, as JSON lines, or as SQL.
//!
//! A reader only: it changes nothing, needs no server, and works on the active file of a running
//! one. Every whole, valid event is printed before damage is reported; the exit code is 1 after
//! damage or an I/O error. Preallocated space behind the last event is a clean end.

mod by_database;
mod dump;
mod filter;
mod literal;
mod output;
mod pseudo_sql;
pub mod replay;
mod sql;
mod sql_context;
mod sql_load;
mod summary;
mod tables;

#[cfg(test)]
mod tests;

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use filter::Wanted;

/// Print the events of binary log files, and verify their checksums.
#[derive(Args, Clone, Debug, Default)]
pub struct BinlogArgs {
    /// Files to print, in order.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Show the rows of row events as pseudo-SQL, with column names and labels where the log has them
    /// (binlog_row_metadata=FULL); TIMESTAMP values are in UTC.
    #[arg(short, long)]
    verbose: bool,
    /// Print changes as one JSON object a line: beginnings, statements, rows and ends of transactions.
    #[arg(long, conflicts_with = "sql")]
    json: bool,
    /// Print SQL that does the changes again: `omnibus binlog --sql FILE... | mariadb`, or `| mysql`.
    #[arg(long)]
    sql: bool,
    /// With --sql: let the server that takes the output give its own GTIDs.
    #[arg(long, requires = "sql")]
    skip_gtids: bool,
    /// With --sql: the folder for the files that LOAD DATA reads; they stay there.
    #[arg(long, value_name = "FOLDER", requires = "sql")]
    local_load: Option<PathBuf>,
    /// With --sql and --json: only changes of this database. A statement counts by its default database.
    #[arg(short, long, value_name = "NAME")]
    database: Option<String>,
    #[command(flatten)]
    wanted: Wanted,
    /// Start at this offset of the first file; it must be the start of an event.
    #[arg(long, value_name = "N")]
    start_position: Option<u64>,
    /// Stop at the first event of the last file that starts at or behind this offset.
    #[arg(long, value_name = "N")]
    stop_position: Option<u64>,
}

/// Runs the command.
#[must_use]
pub fn run(args: BinlogArgs) -> ExitCode {
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    let result = dump::files(&args, &mut out);
    let flushed = out.flush();
    match result.and_then(|()| flushed.map_err(dump::Failure::Output)) {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that has seen enough (`| head`) is no failure.
        Err(dump::Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("omnibus binlog: {failure}");
            ExitCode::FAILURE
        }
    }
}
