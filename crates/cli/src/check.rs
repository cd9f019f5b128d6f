//! `omnibus check`: reads every binary log file of a stopped server's data directory, and the engines' files, and says whether
//! each is whole.
//!
//! The small files that have a checksum are looked at as well. Changes no byte of the directory: the torn tail that a crash left is named here and cut by the next start, and what opening
//! the log or an engine would write stays in memory. Takes the directory's lock, so that it never reads beside a server. Of a
//! backup it also compares all files with the checksums that the backup was made with.

use crate::keyring_args::KeyringArgs;
use clap::Args;
use omnibus_log::{
    DirLock, Disk, EventPlace, FileSeq, GroupedFile, LogConfig, LogDir, Next, Overlay, ScanEnd,
    TransactionTracker,
};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Check the binary log and the engines' files of a stopped server: every event, every checksum.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// A backup, or a data directory.
    #[arg(value_name = "BACKUP")]
    folder: Option<PathBuf>,
    /// The server's data directory.
    #[arg(long, value_name = "DIR", required_unless_present = "folder", conflicts_with = "folder")]
    datadir: Option<PathBuf>,
    /// Name of log files without their number.
    #[arg(long, value_name = "NAME", default_value = "binlog")]
    log_bin: String,
    #[command(flatten)]
    keys: KeyringArgs,
}

/// The findings in one file.
struct Report {
    events: u64,
    transactions: u64,
    end: ScanEnd,
    inside: bool,
}

/// Runs the command: 0 if all is whole, 1 if the last file has a torn tail or another one is damaged.
#[must_use]
pub fn run(args: CheckArgs) -> ExitCode {
    match check(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("omnibus check: {message}");
            ExitCode::FAILURE
        }
    }
}

fn check(args: &CheckArgs) -> Result<bool, String> {
    let Some(datadir) = args.folder.as_ref().or(args.datadir.as_ref()) else { return Ok(false) };
    if !datadir.is_dir() {
        return Err(format!("{} is not a directory", datadir.display()));
    }
    let _lock = DirLock::look(datadir).map_err(|error| error.to_string())?;
    let mut whole = !omnibus_server::backup::is_one(datadir) || backup(datadir);
    let rows = args.keys.tables(datadir, Overlay::disk());
    let damaged = omnibus_server::damaged_small_files(datadir, rows.as_ref().ok());
    whole &= damaged.is_empty();
    damaged.iter().for_each(|line| println!("{:<20} DAMAGED\n  {line}", "small files"));
    let disk = args.keys.over(Overlay::disk())?;
    let config = LogConfig { basename: args.log_bin.clone(), disk, ..LogConfig::default() };
    let dir = LogDir::open(datadir, config).map_err(|error| error.to_string())?;
    let Some(&last) = dir.files().last() else {
        return Err(format!("no binary log '{}.*' in {}", args.log_bin, datadir.display()));
    };
    println!("{:<20} {:>12} {:>12} {:>14}  state", "file", "events", "transactions", "end");
    for &file in dir.files() {
        let report = scan(&dir, file)?;
        let state = state(&report, file == last);
        whole &= state == "whole";
        let end = report.end.position().offset.0;
        let name = dir.names().log(file);
        println!("{name:<20} {:>12} {:>12} {end:>14}  {state}", report.events, report.transactions);
    }
    let rows = rows?;
    for (engine, damage) in engines(datadir, &rows)? {
        whole &= damage.is_empty();
        println!("{engine:<20} {}", if damage.is_empty() { "whole" } else { "DAMAGED" });
        damage.iter().for_each(|line| println!("  {line}"));
    }
    Ok(whole)
}

/// Returns the damage in the files of each engine that exists.
fn engines(datadir: &Path, rows: &Disk) -> Result<Vec<(&'static str, Vec<String>)>, String> {
    let mut found = Vec::new();
    let lsm = datadir.join("lsm");
    if lsm.is_dir() {
        found.push(("lsm", omnibus_engine_lsm::check(&lsm, rows).map_err(|error| error.to_string())?));
    }
    let btree = datadir.join("btree");
    if btree.is_dir() {
        found.push(("btree", omnibus_engine_btree::check(&btree, rows)));
    }
    Ok(found)
}

/// Checks that a backup has the files that it was made with, and prints the result.
fn backup(folder: &Path) -> bool {
    let verified = omnibus_server::backup::verify(folder);
    match &verified {
        Ok(info) => println!("{:<20} {} files, {} bytes  whole", "backup", info.files.len(), info.bytes()),
        Err(error) => println!("{:<20} DAMAGED\n  {error}", "backup"),
    }
    verified.is_ok()
}

fn scan(dir: &LogDir, file: FileSeq) -> Result<Report, String> {
    let reader = dir.read(file).map_err(|error| error.to_string())?;
    let mut reader = GroupedFile::new(reader).map_err(|error| error.to_string())?;
    let mut tracker = TransactionTracker::new();
    let (mut events, mut transactions) = (0, 0);
    loop {
        match reader.next().map_err(|error| error.to_string())? {
            Next::Event(event) => {
                events += 1;
                transactions += u64::from(tracker.step(&event) == EventPlace::Last);
            }
            Next::End(end) => return Ok(Report { events, transactions, end, inside: tracker.is_inside() }),
        }
    }
}

fn state(report: &Report, last: bool) -> String {
    match &report.end {
        ScanEnd::Clean(_) if !report.inside => "whole".to_owned(),
        ScanEnd::Clean(_) => "ends inside of a transaction".to_owned(),
        ScanEnd::Torn(torn) if last => format!("torn tail ({}); the next start cuts it", torn.reason),
        ScanEnd::Torn(torn) => format!("DAMAGED: {}; restore this file from a backup", torn.reason),
    }
}
