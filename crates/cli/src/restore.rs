//! `omnibus restore`: makes a new data directory of a backup, or of an archive as of any transaction.
//!
//! Backup and archive stay as they are, and share no file with the new directory. A server that is started on that rolls
//! forward to the position printed here.

use clap::Args;
use omnibus_encryption::{Encryption, TableEncryption};
use omnibus_log::Disk;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const NEWEST: &str = "newest";

/// Make a new data directory of a backup (BACKUP TO 'DIR'), or of an archive (`omnibus archive`) as of any transaction.
#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// The backup's folder, or the archive: file:///folder, s3://bucket/prefix.
    #[arg(long, value_name = "DIR|URL")]
    from: String,
    /// The data directory to make; it must not exist, or be empty.
    #[arg(long, value_name = "DIR")]
    datadir: PathBuf,
    /// Of an archive: up to this time ('2026-01-31 12:00:00.5' in UTC, or with an offset), up to and including the
    /// transaction of this GTID, or up to this position of the log (binlog.000007:4711). Without it: everything that is
    /// archived.
    #[arg(long, value_name = "TIME|GTID|POSITION", default_value = NEWEST)]
    until: String,
    /// Say what happens as JSON, one object a line.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
#[must_use]
pub fn run(args: RestoreArgs) -> ExitCode {
    let result = if args.from.contains("://") {
        of_archive(&args)
    } else if args.until == NEWEST {
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
    let encrypted = is_encrypted(&args.datadir, &info.file).map_err(|error| error.to_string())?;
    if args.json {
        let line = json!({"type": "done", "files": files, "bytes": bytes, "file": info.file, "position": info.position,
                          "gtid_executed": info.gtid_executed, "encrypted": encrypted});
        println!("{line}");
        return Ok(());
    }
    println!("restored {files} files, {bytes} bytes, to {}", args.datadir.display());
    println!("position {}:{}", info.file, info.position);
    println!("gtid_executed {}", info.gtid_executed);
    if encrypted {
        println!(
            "encrypted: a start needs --keyring-file-data with the keyring of when the backup was taken"
        );
    }
    Ok(())
}

/// Returns whether a data directory's tables are encrypted, or the log file `log` is.
fn is_encrypted(datadir: &Path, log: &str) -> std::io::Result<bool> {
    let disk = Disk::default();
    Ok(TableEncryption::is_used(&disk, datadir)?
        || Encryption::over(disk, None).is_encrypted(&datadir.join(log))?)
}

#[cfg(feature = "archive")]
fn of_archive(args: &RestoreArgs) -> Result<(), String> {
    crate::archive::restore(&args.from, &args.datadir, &args.until, args.json)
}

#[cfg(not(feature = "archive"))]
fn of_archive(_: &RestoreArgs) -> Result<(), String> {
    Err(crate::not_built::reason("archive"))
}
