//! `omnibus bench protocols`: the five commit protocols, on the same engine, table and clients.
//!
//! They are the history of group commit; the measurement says what each step of it is worth on your disk, beside what
//! was published of it. In one process: an engine, a log, a coordinator, threads for clients (`load`); no SQL and no
//! network, so figures are higher than a server's. `--slow-us` lets every sync take longer: the program starts itself
//! again under a library (`tests/tools/slow_sync.c`) that delays `fsync`, `fdatasync` and synchronous writes, so nothing
//! in the measured code knows of it. `report` prints. Main thread and the clients' threads.

pub(crate) mod load;
pub(crate) mod report;
mod world;

use crate::sync::progress;
use clap::Args;
use load::Sample;
use omnibus_commit::CommitProtocol;
use report::Row;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use world::{EngineKind, World};

/// Compare the commit protocols: commits per second, syncs, latency and bytes, beside the published figures.
#[derive(Args, Clone, Debug)]
pub struct ProtocolArgs {
    /// Directory on the device to measure.
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Storage engine.
    #[arg(long, value_enum, default_value = "lsm")]
    engine: EngineKind,
    /// Clients, several numbers separated by commas.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,8,32,128,512")]
    connections: Vec<usize>,
    /// Protocols; all if none is given.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    protocols: Vec<String>,
    /// Microseconds added to each sync; one table each. More than 0 takes --preload.
    #[arg(long, value_name = "US", value_delimiter = ',', default_value = "0")]
    slow_us: Vec<u64>,
    /// The library that delays syncs: cc -O2 -shared -fPIC -o slow_sync.so tests/tools/slow_sync.c -ldl
    #[arg(long, value_name = "LIBRARY")]
    preload: Option<PathBuf>,
    /// Seconds per measurement.
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    seconds: f64,
    /// Measurements per figure, in alternation; the median counts.
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Print one JSON object per delay instead of tables.
    #[arg(long)]
    json: bool,
}

/// Tells the process started under the library that it is.
const SLOWED: &str = "OMNIBUS_BENCH_SLOWED";

/// Runs the command.
#[must_use]
pub fn run(args: ProtocolArgs) -> ExitCode {
    match check(&args).and_then(|protocols| all(&args, &protocols)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("omnibus bench protocols: {error}");
            ExitCode::FAILURE
        }
    }
}

fn check(args: &ProtocolArgs) -> Result<Vec<CommitProtocol>, String> {
    if args.connections.iter().any(|n| !(1..=10_000).contains(n)) || args.connections.is_empty() {
        return Err("connections go from 1 to 10000".into());
    }
    if !(0.01..=3600.0).contains(&args.seconds) || args.rounds == 0 {
        return Err("seconds go from 0.01 to 3600, rounds from 1".into());
    }
    if args.slow_us.iter().any(|us| *us > 10_000_000) {
        return Err("a sync can be made up to 10000000 us slower".into());
    }
    if args.slow_us.iter().any(|us| *us > 0) && args.preload.is_none() {
        return Err("slower syncs take --preload; build its library with\n  \
                    cc -O2 -shared -fPIC -o slow_sync.so tests/tools/slow_sync.c -ldl"
            .into());
    }
    if args.protocols.is_empty() {
        return Ok(CommitProtocol::ALL.to_vec());
    }
    let find = |name: &String| {
        CommitProtocol::from_name(name).ok_or_else(|| {
            let names = CommitProtocol::ALL.map(CommitProtocol::name).join(", ");
            format!("{name:?} is none of {names}")
        })
    };
    args.protocols.iter().map(find).collect()
}

fn all(args: &ProtocolArgs, protocols: &[CommitProtocol]) -> Result<(), String> {
    if let Ok(us) = std::env::var(SLOWED) {
        let us = us.parse().map_err(|_| format!("{SLOWED} is set by this program alone"))?;
        check_slow(&args.dir, us)?;
        return part(args, protocols, us);
    }
    for &us in &args.slow_us {
        match (us, &args.preload) {
            (0, _) | (_, None) => part(args, protocols, 0)?,
            (us, Some(library)) => slowed(library, us)?,
        }
    }
    Ok(())
}

/// The same command again, with slower syncs.
fn slowed(library: &Path, us: u64) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", library.display());
    let library = library.canonicalize().map_err(failed)?;
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1));
    command.env("LD_PRELOAD", &library).env("SLOW_SYNC_US", us.to_string()).env(SLOWED, us.to_string());
    match command.status().map_err(failed)?.success() {
        true => Ok(()),
        false => Err(format!("the measurement with syncs {us} us slower failed")),
    }
}

/// A library that could not be loaded is ignored by the loader, which would make the figures a lie.
fn check_slow(dir: &Path, us: u64) -> Result<(), String> {
    let started = Instant::now();
    let file = tempfile::tempfile_in(dir).map_err(|error| error.to_string())?;
    file.sync_all().map_err(|error| error.to_string())?;
    if started.elapsed() < Duration::from_micros(us) {
        return Err("the library does not make syncs slower".into());
    }
    Ok(())
}

/// Prints one table, with syncs that are `slow_us` slower.
fn part(args: &ProtocolArgs, protocols: &[CommitProtocol], slow_us: u64) -> Result<(), String> {
    let mut rows = Vec::new();
    for &connections in &args.connections {
        rows.extend(measure(args, protocols, connections)?);
    }
    progress("");
    let (engine, device) = (args.engine.name(), crate::device::Device::of(&args.dir));
    let text = if args.json {
        format!("{}\n", report::json(&rows, engine, slow_us, &device))
    } else {
        report::text(&rows, engine, slow_us, &device)
    };
    // A closed pipe on the other side is no failure of the measurement.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
    Ok(())
}

/// The protocols take turns, so that a busy minute of the machine spoils all of them alike.
fn measure(
    args: &ProtocolArgs,
    protocols: &[CommitProtocol],
    connections: usize,
) -> Result<Vec<Row>, String> {
    let open = |protocol: &CommitProtocol| {
        World::open(&args.dir, args.engine, *protocol)
            .map_err(|error| format!("{}: {error}", args.dir.display()))
    };
    let worlds = protocols.iter().map(open).collect::<Result<Vec<World>, String>>()?;
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); worlds.len()];
    for round in 0..args.rounds {
        for (world, samples) in worlds.iter().zip(&mut samples) {
            let name = world.protocol.name();
            progress(&format!("{connections} connections, round {}: {name}", round + 1));
            samples.push(load::run(world, connections, Duration::from_secs_f64(args.seconds))?);
        }
    }
    let row = |(world, samples): (&World, Vec<Sample>)| Row::new(world.protocol, connections, samples);
    Ok(worlds.iter().zip(samples).map(row).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ProtocolArgs,
    }

    fn checked(line: &str) -> Result<Vec<CommitProtocol>, String> {
        let words = std::iter::once("bench").chain(line.split_whitespace());
        check(&Line::try_parse_from(words).map_err(|error| error.to_string())?.args)
    }

    #[test]
    fn options_are_refused_before_anything_is_measured() {
        assert_eq!(checked("").unwrap().len(), 5);
        assert_eq!(checked("--protocols ONE-SYNC").unwrap(), [CommitProtocol::OneSync]);
        for wrong in [
            "--protocols two-sync",
            "--connections 0",
            "--connections 8,,",
            "--rounds 0",
            "--seconds nan",
            "--seconds 1e300",
            "--slow-us 1000",
            "--slow-us 1000 --preload x --slow-us 99999999999",
        ] {
            assert!(checked(wrong).is_err(), "{wrong}");
        }
        assert!(checked("--slow-us 0,1000 --preload x.so").is_ok());
    }

    #[test]
    fn a_library_that_delays_nothing_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        assert!(check_slow(dir.path(), 60_000_000).is_err());
        assert!(check_slow(dir.path(), 0).is_ok());
    }
}
