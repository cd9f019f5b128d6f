//! `omnibus restore`: makes a new data directory of a backup, after a look at whether it is whole.
//!
//! The backup stays as it is, and shares no file with the new directory. A server that is started on that rolls
//! forward to the position printed here.

use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// Make a new data directory of a backup (BACKUP TO 'DIR').
#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// The backup.
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// The data directory to make; it must not exist, or be empty.
    #[arg(long, value_name = "DIR")]
    datadir: PathBuf,
}

/// Runs the command.
#[must_use]
pub fn run(args: RestoreArgs) -> ExitCode {
    match omnibus_server::backup::restore(&args.from, &args.datadir) {
        Ok(info) => {
            println!(
                "restored {} files, {} bytes, to {}",
                info.files.len(),
                info.bytes(),
                args.datadir.display()
            );
            println!("position {}:{}", info.file, info.position);
            println!("gtid_executed {}", info.gtid_executed);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("omnibus restore: {error}");
            ExitCode::FAILURE
        }
    }
}
