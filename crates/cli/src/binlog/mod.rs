//! `omnibus binlog`: prints the events of binary log files, verified: one line each, as JSON lines, or as SQL.
//!
//! A reader only: it changes nothing, needs no server, and works on the active file of a running
//! one. `--read-from-remote-server` asks a server for its log instead (`remote`). Every whole, valid event is printed before damage is reported; the exit code is 1 after
//! damage or an I/O error. Preallocated space behind the last event is a clean end.

mod by_database;
mod dump;
mod filter;
mod flashback;
mod literal;
mod output;
mod pseudo_sql;
mod remarks;
mod remote;
mod remote_args;
pub mod replay;
mod sql;
mod sql_args;
mod sql_context;
mod sql_load;
mod sql_rows;
mod sql_text;
mod summary;
mod tables;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::keyring_args::KeyringArgs;
use crate::server_args::ServerArgs;
use clap::Args;

use filter::Wanted;
use remote_args::RemoteArgs;
use sql_args::SqlArgs;

/// Print the events of binary log files, of a server's too, and verify their checksums.
#[derive(Args, Clone, Debug, Default)]
#[command(disable_help_flag = true)]
pub struct BinlogArgs {
    /// Files to print, in order; with --read-from-remote-server their names there.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print this help.
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// Show the rows of row events as pseudo-SQL, with column names and labels where the log has them
    /// (binlog_row_metadata=FULL); TIMESTAMP values are in UTC.
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Print changes as one JSON object a line: beginnings, statements, rows and ends of transactions.
    #[arg(long, conflicts_with = "sql")]
    json: bool,
    /// Print SQL that does the changes again: `omnibus binlog --sql FILE... | mariadb`, or `| mysql`.
    #[arg(long)]
    sql: bool,
    #[command(flatten)]
    keys: KeyringArgs,
    #[command(flatten)]
    how: SqlArgs,
    /// With SQL and --json: only changes of this database. A statement belongs to its default database.
    #[arg(short, long, value_name = "NAME")]
    database: Option<String>,
    #[command(flatten)]
    wanted: Wanted,
    /// Start at this offset of the first file; it must be the start of an event.
    #[arg(short = 'j', long, value_name = "N")]
    start_position: Option<u64>,
    /// Stop at the first event of the last file that starts at or behind this offset.
    #[arg(long, value_name = "N")]
    stop_position: Option<u64>,
    /// Leave the first N events out.
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    offset: u64,
    /// Show the bytes of every event, too.
    #[arg(short = 'H', long, conflicts_with = "json")]
    hexdump: bool,
    /// Show the columns of row events' tables, too.
    #[arg(long, conflicts_with = "json")]
    print_table_metadata: bool,
    /// Write into this file; with --raw the beginning of the files' names, such as a folder and `/`.
    #[arg(short, long, value_name = "FILE")]
    result_file: Option<PathBuf>,
    /// Checksums are always verified.
    #[arg(short = 'c', long)]
    verify_binlog_checksum: bool,
    /// A file that a server is writing, or was killed while writing, is always read.
    #[arg(short = 'F', long)]
    force_if_open: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl BinlogArgs {
    fn prints_sql(&self) -> bool {
        self.sql || !self.json && self.how.asks_for_sql()
    }
}

/// Runs the command.
#[must_use]
pub fn run(args: &BinlogArgs) -> ExitCode {
    if args.remote.is_idle() {
        eprintln!("omnibus binlog: a server is named, but not asked: --read-from-remote-server is missing");
        return ExitCode::from(2);
    }
    let into: Box<dyn Write> = match args.result_file.as_ref().filter(|_| !args.remote.raw) {
        None => Box::new(io::stdout().lock()),
        Some(path) => match File::create(path) {
            Ok(file) => Box::new(file),
            Err(error) => {
                eprintln!("omnibus binlog: {}: {error}", path.display());
                return ExitCode::FAILURE;
            }
        },
    };
    let mut out = BufWriter::with_capacity(64 << 10, into);
    let result = if args.remote.on { remote::files(args, &mut out) } else { dump::files(args, &mut out) };
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
