//! `omnibus archive`: ships a running server's log and base backups to a folder or an object store, or says what is there.

use crate::server_args::ServerArgs;
use clap::Args;
use omnibus_archive::{ArchiveError, Inventory, Note, ShipOptions, Shipper, Store, Until};
use omnibus_replication::client::{LogSource, Reader, without_secrets};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Under which server id a log is followed; of those that no server is given.
const SERVER_ID: u32 = 0xFFFF_0000;

/// Ship a running server's log, as it grows, and base backups, for `omnibus restore`.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub struct ArchiveArgs {
    /// Archive: file:///folder, or s3://bucket/prefix with the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
    /// AWS_REGION and AWS_ENDPOINT_URL.
    #[arg(long, value_name = "URL")]
    to: String,
    #[command(flatten)]
    server: ServerArgs,
    /// Maximum age, in seconds, of the oldest byte that is not in the archive.
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    piece_seconds: Duration,
    /// Take base backups, in this folder of the server's machine, which must be this one: the first at once.
    #[arg(long, value_name = "DIR")]
    backup_in: Option<PathBuf>,
    /// Maximum age of the newest base backup, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "86400", value_parser = seconds, requires = "backup_in")]
    backup_every: Duration,
    /// Remove what no restore to the last DAYS needs; without, everything is kept.
    #[arg(long, value_name = "DAYS", value_parser = days)]
    keep_days: Option<Duration>,
    /// Ship what there is and stop.
    #[arg(long)]
    once: bool,
    /// Say what is in the archive instead.
    #[arg(long, conflicts_with_all = ["once", "backup_in", "keep_days"])]
    list: bool,
    /// Say what happens as JSON, one object a line.
    #[arg(long)]
    json: bool,
    /// The server id to appear under; no replica may have it, and no second archive of the server.
    #[arg(long, value_name = "N", default_value_t = SERVER_ID, value_parser = clap::value_parser!(u32).range(1..))]
    connection_server_id: u32,
    /// Print this help.
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| format!("'{text}' is no number of seconds"))?;
    let time = Duration::try_from_secs_f64(number).map_err(|error| error.to_string())?;
    if time < Duration::from_millis(10) { Err("at least 0.01".into()) } else { Ok(time) }
}

fn days(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| format!("'{text}' is no number of days"))?;
    Duration::try_from_secs_f64(number * 86_400.0).map_err(|error| error.to_string())
}

/// Runs the command.
#[must_use]
pub fn run(args: &ArchiveArgs) -> ExitCode {
    let result = if args.list { list(args) } else { ship(args) };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("omnibus archive: {}", whole(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error with what is behind it.
fn whole(error: &ArchiveError) -> String {
    let mut text = error.to_string();
    let mut behind = std::error::Error::source(error);
    while let Some(cause) = behind {
        let more = cause.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        behind = cause.source();
    }
    // The store's own words have the address that it was given.
    without_secrets(&text)
}

fn ship(args: &ArchiveArgs) -> Result<(), ArchiveError> {
    let store = Store::create(&args.to)?;
    let (endpoint, may_be_plain) =
        args.server.endpoint().map_err(|source| ArchiveError::Io { path: "password".into(), source })?;
    // Twice in the time of a piece, so that one that is due does not wait for an event.
    let heartbeat = (args.piece_seconds / 2).max(Duration::from_millis(5));
    let source = LogSource {
        endpoint,
        may_be_plain,
        program: "omnibus archive",
        reader: Reader { heartbeat: Some(heartbeat), whole_files: true },
        server_id: if args.once { 0 } else { args.connection_server_id },
    };
    let options = ShipOptions {
        source,
        piece: args.piece_seconds,
        backup_in: args.backup_in.clone(),
        backup_every: args.backup_every,
        keep: args.keep_days,
    };
    let notes = |note| tell(&note, args.json);
    Shipper::new(&store, options, &notes).run()
}

/// Prints a note: on standard output, problems on standard error.
fn tell(note: &Note, as_json: bool) {
    let (text, line) = match note {
        Note::Shipped { file, position, bytes } => (
            format!("{file} up to {position} ({bytes} bytes)"),
            json!({"type": "shipped", "file": file, "position": position, "bytes": bytes}),
        ),
        Note::Checked { file, position } => (
            format!("{file} is as archived up to {position}"),
            json!({"type": "checked", "file": file, "position": position}),
        ),
        Note::Ended { file, bytes } => (
            format!("{file} is whole ({bytes} bytes)"),
            json!({"type": "ended", "file": file, "bytes": bytes}),
        ),
        Note::Backup { id, file, position, bytes } => (
            format!("base backup {id} of {file}:{position} ({bytes} bytes)"),
            json!({"type": "backup", "id": id, "file": file, "position": position, "bytes": bytes}),
        ),
        Note::Removed { what } => (format!("removed {what}"), json!({"type": "removed", "what": what})),
        Note::Restored { file, bytes } => {
            (format!("{file} ({bytes} bytes)"), json!({"type": "restored", "file": file, "bytes": bytes}))
        }
        Note::Trouble { what, pause } => {
            let what = without_secrets(what);
            let (attempt, seconds) = (pause.map(|p| p.attempt), pause.map(|p| p.time.as_secs()));
            let text = pause.map_or_else(|| what.clone(), |pause| format!("{what}; {pause}"));
            (text, json!({"type": "trouble", "what": what, "attempt": attempt, "again_s": seconds}))
        }
        _ => return,
    };
    match (as_json, note) {
        (true, _) => println!("{line}"),
        (false, Note::Trouble { .. }) => eprintln!("omnibus archive: {text}"),
        (false, _) => println!("{text}"),
    }
}

fn list(args: &ArchiveArgs) -> Result<(), ArchiveError> {
    let store = Store::open(&args.to)?;
    let there = Inventory::of(&store)?;
    let mut log = Vec::new();
    for range in &there.log {
        log.push((range.file.clone(), Inventory::end_of(&store, &range.file)?));
    }
    if args.json {
        let backups: Vec<_> = (there.backups.iter())
            .map(|backup| {
                let info = &backup.info;
                json!({"id": backup.id, "taken_us": backup.taken_us, "file": info.file, "position": info.position,
                       "gtid_executed": info.gtid_executed, "bytes": info.bytes()})
            })
            .collect();
        let files: Vec<_> = log.iter().map(|(file, end)| json!({"file": file, "bytes": end})).collect();
        println!("{}", json!({"server_uuid": there.server, "backups": backups, "log": files}));
        return Ok(());
    }
    println!("server {}", there.server.as_deref().unwrap_or("not known: nothing was shipped"));
    for backup in &there.backups {
        let info = &backup.info;
        println!("backup {} of {}:{} ({} bytes)", backup.id, info.file, info.position, info.bytes());
    }
    for (file, end) in log {
        println!("log {file} up to {end}");
    }
    Ok(())
}

/// Makes a data directory of an archive, for `omnibus restore`; `until` as [`Until`] reads it.
pub(crate) fn restore(from: &str, datadir: &Path, until: &str, as_json: bool) -> Result<(), String> {
    let until: Until = until.parse().map_err(|error| format!("--until {until}: {error}"))?;
    let text = |error| whole(&error);
    let store = Store::open(from).map_err(text)?;
    let notes = |note| tell(&note, as_json);
    let done = omnibus_archive::restore::restore(&store, datadir, &until, &notes).map_err(text)?;
    if as_json {
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
        datadir.display()
    );
    println!("position {}:{}", done.file, done.position);
    println!("gtid_executed {}", done.gtid_executed);
    if !done.last_commit.is_empty() {
        println!("last commit {}", done.last_commit);
    }
    Ok(())
}
