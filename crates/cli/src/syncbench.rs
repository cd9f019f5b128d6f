//! `omnibus bench sync`: how long one durable write takes here, for each way of preparing space and of syncing.
//!
//! Prints a table of medians and slowest hundredths, one row per combination and one column per size. Rounds alternate
//! between the combinations, so that a busy minute of the machine spoils all of them alike. Runs on its own thread of
//! control with no server; what it measures is the log's own write path.

use clap::Args;
use omnibus_log::{FlushMethod, Space, measure_sync};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Measure how long a durable write of the binary log takes on a directory's device.
#[derive(Args, Debug)]
pub struct SyncBenchArgs {
    /// Directory on the device to measure.
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Bytes per write, several separated by commas.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "512,4096,16384,65536")]
    sizes: Vec<usize>,
    /// Writes per combination and round.
    #[arg(long, value_name = "N", default_value_t = 300)]
    count: usize,
    /// Rounds.
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
}

const SPACES: [(Space, &str); 3] =
    [(Space::Append, "append"), (Space::Reserved, "reserved"), (Space::ZeroFilled, "zero-filled")];
const METHODS: [FlushMethod; 3] = [FlushMethod::Fdatasync, FlushMethod::ODsync, FlushMethod::ODirectDsync];
/// No single write of the log is larger than this by much.
const SIZE_MAX: usize = 64 << 20;

/// One row: times per size, or why there are none.
struct Row {
    space: Space,
    method: FlushMethod,
    label: String,
    times: Vec<Vec<Duration>>,
    refused: Option<String>,
}

/// Runs the command.
#[must_use]
pub fn run(args: SyncBenchArgs) -> ExitCode {
    if args.sizes.is_empty() || args.sizes.iter().any(|&size| size == 0 || size > SIZE_MAX) || args.count == 0
    {
        eprintln!("omnibus bench sync: sizes go from 1 to {SIZE_MAX} bytes, counts from 1");
        return ExitCode::FAILURE;
    }
    let mut rows = rows(args.sizes.len());
    for _ in 0..args.rounds.max(1) {
        for row in &mut rows {
            measure(row, &args);
        }
    }
    let failed = rows.iter().all(|row| row.refused.is_some());
    print!("{}", table(&args.sizes, rows));
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn rows(sizes: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for (space, name) in SPACES {
        for method in METHODS {
            let label = format!("{name}, {method}");
            rows.push(Row { space, method, label, times: vec![Vec::new(); sizes], refused: None });
        }
    }
    rows
}

fn measure(row: &mut Row, args: &SyncBenchArgs) {
    if row.refused.is_some() {
        return;
    }
    for (&size, times) in args.sizes.iter().zip(&mut row.times) {
        match measure_sync(&args.dir, row.space, row.method, size, args.count) {
            Ok(measured) => times.extend(measured),
            Err(error) => {
                row.refused = Some(error.to_string());
                return;
            }
        }
    }
}

fn table(sizes: &[usize], rows: Vec<Row>) -> String {
    let mut out = String::from("microseconds per durable write: median / slowest hundredth\n");
    let _ = write!(out, "{:30}", "");
    for size in sizes {
        let _ = write!(out, "{:>18}", format!("{size} B"));
    }
    out.push('\n');
    for row in rows {
        let _ = write!(out, "{:30}", row.label);
        if let Some(reason) = row.refused {
            let _ = writeln!(out, "  not here: {reason}");
            continue;
        }
        for mut times in row.times {
            times.sort_unstable();
            let at = |part: usize| times.get(times.len() * part / 100).map_or(0, Duration::as_micros);
            let _ = write!(out, "{:>18}", format!("{} / {}", at(50), at(99)));
        }
        out.push('\n');
    }
    out
}
