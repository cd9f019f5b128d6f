//! `omnibus restore`: makes a new data directory of a backup, or of an archive as of any transaction.
//!
//! Backup and archive stay as they are, and share no file with the new directory. A server that is started on that rolls
//! forward to the position printed here.

use crate::archive::{tell, whole};
use clap::Args;
use omnibus_archive::{Store, Until};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Make a new data directory of a backup (BACKUP TO 'DIR'), or of an archive (`omnibus archive`) as of any transaction.
#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// The backup's folder, or the archive: file:///folder, s3://bucket/prefix.
    #[arg(long, value_name = "DIR|URL")]
    from: String,
    /// The data directory to make; it must not exist, or be empty.
    #[arg(long, value_name = "DIR")]
    datadir: PathBuf,
    /// Of an archive: up to this time ('2026-01-31 12:00:00.5' in UTC, or with an offset), up to and with the transaction of this
    /// GTID, or up to this position of the log (binlog.000007:4711). Without: all that is archived.
    #[arg(long, value_name = "TIME|GTID|POSITION", default_value = "newest")]
    until: Until,
    /// Say what happens as JSON, one object a line.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
#[must_use]
pub fn run(args: RestoreArgs) -> ExitCode {
    let result = if args.from.contains("://") {
        of_archive(&args)
    } else if args.until == Until::Newest {
        of_backup(&args)
    } else {
        Err("a backup is of one position: --until needs an archive".to_owned())
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("omnibus restore: {error}");
            ExitCode::FAILURE
        }
    }
}

fn of_backup(args: &RestoreArgs) -> Result<(), String> {
    let info = omnibus_server::backup::restore(Path::new(&args.from), &args.datadir)
        .map_err(|error| error.to_string())?;
    let (files, bytes) = (info.files.len(), info.bytes());
    if args.json {
        let line = json!({"type": "done", "files": files, "bytes": bytes, "file": info.file, "position": info.position,
                          "gtid_executed": info.gtid_executed});
        println!("{line}");
        return Ok(());
    }
    println!("restored {files} files, {bytes} bytes, to {}", args.datadir.display());
    println!("position {}:{}", info.file, info.position);
    println!("gtid_executed {}", info.gtid_executed);
    Ok(())
}

fn of_archive(args: &RestoreArgs) -> Result<(), String> {
    let text = |error| whole(&error);
    let store = Store::open(&args.from).map_err(text)?;
    let notes = |note| tell(&note, args.json);
    let done = omnibus_archive::restore::restore(&store, &args.datadir, &args.until, &notes).map_err(text)?;
    if args.json {
        let line = json!({"type": "done", "backup": done.backup, "file": done.file, "position": done.position,
                          "gtid_executed": done.gtid_executed, "transactions": done.transactions,
                          "last_commit": done.last_commit});
        println!("{line}");
        return Ok(());
    }
    println!(
        "restored backup {} and {} transactions to {}",
        done.backup,
        done.transactions,
        args.datadir.display()
    );
    println!("position {}:{}", done.file, done.position);
    println!("gtid_executed {}", done.gtid_executed);
    if !done.last_commit.is_empty() {
        println!("last commit {}", done.last_commit);
    }
    Ok(())
}
