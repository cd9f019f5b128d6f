//! `omnibus bench preallocation`: what preparing log files ahead of time is worth here, beside the figures with which
//! preallocation of the binary log was once proposed (ext3, a disk behind a controller with a cache).
//!
//! Two tables: bare syncs per second of a growing and of prepared files, and commits per second of a whole server with
//! real connections on either. What each row does is in `syncs` and `commits`; this file asks and prints. Main thread.

mod client;
mod commits;
mod syncs;

use crate::device::Device;
use crate::sync::progress;
use clap::Args;
use omnibus_log::parse_size;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Measure what preallocated binary log files are worth on a directory's device.
#[derive(Args, Debug)]
pub struct PreallocationArgs {
    /// Directory on the device to measure; needs about twice --size of free space.
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Size of the files; K, M and G are understood.
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_size)]
    size: u64,
    /// Syncs per row of the first table; the published figures had 131072.
    #[arg(long, value_name = "N", default_value_t = 16384)]
    count: u64,
    /// Seconds of rest after zero-filling, in the row that rests.
    #[arg(long, value_name = "N", default_value_t = 20)]
    wait: u64,
    /// Seconds per cell of the second table; 0 leaves it out.
    #[arg(long, value_name = "N", default_value_t = 5)]
    seconds: u64,
    /// Connections of the second table, separated by commas.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,20,50")]
    connections: Vec<usize>,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
}

/// A line of a table: what it is, the published figures if there were any, and what was measured here.
struct Line {
    what: String,
    published: Vec<Option<f64>>,
    here: Vec<f64>,
}

/// Runs the command.
#[must_use]
pub fn run(args: PreallocationArgs) -> ExitCode {
    if args.count == 0 || args.connections.iter().any(|&n| n == 0 || n > 1000) {
        eprintln!("omnibus bench preallocation: counts go from 1, connections from 1 to 1000");
        return ExitCode::FAILURE;
    }
    match measure(&args) {
        Ok((low, commits)) => {
            let text = if args.json { as_json(&args, &low, &commits) } else { tables(&args, &low, &commits) };
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(message) => {
            progress("");
            eprintln!("omnibus bench preallocation: {message}");
            ExitCode::FAILURE
        }
    }
}

fn measure(args: &PreallocationArgs) -> Result<(Vec<Line>, Vec<Line>), String> {
    commits::remove_stale(&args.dir);
    let mut low = Vec::new();
    for at in syncs::ORDER {
        let (variant, published) = syncs::VARIANTS[at];
        let what = variant.describe(args.wait);
        progress(&format!("syncs: {what}"));
        let rate = syncs::rate(variant, &args.dir, args.size, args.count, args.wait)
            .map_err(|error| format!("{what}: {error}"))?;
        low.push((at, Line { what, published: vec![published], here: vec![rate] }));
    }
    low.sort_by_key(|(at, _)| *at);
    let low = low.into_iter().map(|(_, line)| line).collect();
    let mut lines = Vec::new();
    if args.seconds > 0 && !args.connections.is_empty() {
        for (log, what, published) in commits::LOGS {
            let bench = commits::Bench { dir: &args.dir, size: args.size, seconds: args.seconds };
            let here = bench
                .rates(log, &args.connections, &mut |n| {
                    progress(&format!("commits: {what}, {n} connections"))
                })
                .map_err(|error| format!("{what}: {error}"))?;
            let figure = |n: &usize| published.iter().find(|(count, _)| count == n).map(|(_, rate)| *rate);
            let published = args.connections.iter().map(figure).collect();
            lines.push(Line { what: what.to_owned(), published, here });
        }
    }
    progress("");
    Ok((low, lines))
}

fn tables(args: &PreallocationArgs, low: &[Line], commits: &[Line]) -> String {
    let mut out = format!(
        "Syncs per second, {} writes of {} bytes each ({}):\n\n| file | published | here |\n| --- | ---: | ---: |\n",
        args.count,
        syncs::WRITE,
        Device::of(&args.dir).describe()
    );
    for line in low {
        let _ =
            writeln!(out, "| {} | {} | {} |", line.what, published(line.published[0]), count(line.here[0]));
    }
    if !commits.is_empty() {
        out += "\nCommits per second, one row inserted each, published / here:\n\n| log |";
        let heads = args.connections.iter().map(|n| format!(" {n} connections |")).collect::<String>();
        let _ = writeln!(out, "{heads}\n| --- |{}", " ---: |".repeat(args.connections.len()));
        for line in commits {
            let cells = line.published.iter().zip(&line.here);
            let cells: String =
                cells.map(|(then, here)| format!(" {} / {} |", published(*then), count(*here))).collect();
            let _ = writeln!(out, "| {} |{cells}", line.what);
        }
    }
    let _ = writeln!(out, "\n{}", meaning(low, commits, &args.connections));
    out
}

fn published(figure: Option<f64>) -> String {
    figure.map_or_else(|| "-".to_owned(), count)
}

/// `12,345`
fn count(figure: f64) -> String {
    let digits = format!("{figure:.0}");
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Summarises the result in a sentence or two.
fn meaning(low: &[Line], commits: &[Line], connections: &[usize]) -> String {
    let rate = |n: usize| low.get(n).map_or(0.0, |line| line.here[0]);
    let factor = rate(1) / rate(0).max(1e-9);
    let mut text = format!(
        "On this device prepared space allows {factor:.1} times the syncs of a file that grows with each (4.0 times as \
         published)"
    );
    if let (Some(prepared), Some(growing)) = (commits.first(), commits.last()) {
        let ratio = |n: usize| prepared.here[n] / growing.here[n].max(1e-9);
        let ratios: Vec<String> =
            connections.iter().enumerate().map(|(at, n)| format!("{:.1} with {n}", ratio(at))).collect();
        let _ = write!(
            text,
            ", and so many times the commits, by connections: {} (10.3, 9.6 and 10.7 with 1, 20 and 50 as published)",
            ratios.join(", ")
        );
    }
    text += if factor >= 1.1 {
        ": prepare log files (binlog_preallocate=1)."
    } else {
        ": preparing log files gains little."
    };
    text
}

fn as_json(args: &PreallocationArgs, low: &[Line], commits: &[Line]) -> String {
    let low: Vec<Value> = low
        .iter()
        .map(|line| json!({ "file": line.what, "published": line.published[0], "syncs_per_second": line.here[0] }))
        .collect();
    let commits: Vec<Value> = commits
        .iter()
        .map(|line| json!({ "log": line.what, "published": line.published, "commits_per_second": line.here }))
        .collect();
    let object = json!({ "device": Device::of(&args.dir).json(), "size": args.size, "syncs": low,
        "connections": args.connections, "commits": commits });
    format!("{object:#}\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_quick_run_measures_every_row_and_leaves_nothing_behind() {
        let dir = std::env::temp_dir().join(format!("omnibus-prealloc-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let args = PreallocationArgs {
            dir: dir.clone(),
            size: 1 << 20,
            count: 20,
            wait: 0,
            seconds: 0,
            connections: vec![1],
            json: false,
        };
        let (low, commits) = measure(&args).unwrap();
        assert!(low.iter().all(|line| line.here[0] > 0.0));
        assert!(tables(&args, &low, &commits).contains("| 12,330 |"));
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn thousands_are_told_apart() {
        assert_eq!([7.0, 999.6, 12330.0, 1e6].map(count), ["7", "1,000", "12,330", "1,000,000"]);
    }
}
