//! `omnibus bench sync`: how long one durable write takes here, for each way of preparing space and of syncing.
//!
//! Prints a table of medians and slowest hundredths, one row per combination and one column per size, then which
//! settings follow from it and whether the device's word can be believed. Rounds alternate between the combinations, so
//! that a busy minute of the machine spoils all of them alike. One thread, no server; what it measures is the log's own
//! write path.

use crate::device::Device;
use clap::Args;
use omnibus_log::{Allocation, FlushMethod, SyncCall, measure_sync};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
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
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
}

const SPACES: [(Allocation, &str); 3] = [
    (Allocation::Append, "append"),
    (Allocation::Reserved, "fallocated"),
    (Allocation::ZeroFilled, "zero-filled"),
];
const CALLS: [(SyncCall, &str); 4] = [
    (SyncCall::Fsync, "fsync"),
    (SyncCall::Method(FlushMethod::Fdatasync), "fdatasync"),
    (SyncCall::Method(FlushMethod::ODsync), "O_DSYNC"),
    (SyncCall::Method(FlushMethod::ODirectDsync), "O_DIRECT+O_DSYNC"),
];
/// No single write of the log is larger than this by much.
const SIZE_MAX: usize = 64 << 20;

/// One row: times per size, or the reason why there are none.
struct Row {
    space: (Allocation, &'static str),
    call: (SyncCall, &'static str),
    times: Vec<Vec<Duration>>,
    refused: Option<String>,
}

impl Row {
    /// The `part`th hundredth of the times of a size; they are sorted.
    fn at(&self, size: usize, part: usize) -> Duration {
        let times = &self.times[size];
        times.get(times.len() * part / 100).copied().unwrap_or_default()
    }

    /// The quickest tenths of all sizes together: what a mixture of groups costs. Other work on the machine only ever
    /// adds time, so the quickest tell the device and the file system apart from it.
    fn cost(&self) -> Duration {
        (0..self.times.len()).map(|size| self.at(size, 10)).sum()
    }

    /// Half of the writes took more than three times as long as the quickest tenth.
    fn disturbed(&self) -> bool {
        (0..self.times.len()).any(|size| self.at(size, 50) > self.at(size, 10) * 3)
    }
}

/// The conclusion from the measurement.
struct Advice {
    method: FlushMethod,
    /// The duration of a write that makes the file longer, as a multiple of one that does not.
    append_factor: f64,
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
    let rounds = args.rounds.max(1);
    for round in 0..rounds {
        for row in &mut rows {
            progress(&format!("round {} of {rounds}: {}, {}", round + 1, row.space.1, row.call.1));
            measure(row, &args);
        }
    }
    progress("");
    rows.iter_mut().flat_map(|row| &mut row.times).for_each(|times| times.sort_unstable());
    let Some(advice) = advise(&rows) else {
        let why = rows.iter().find_map(|row| row.refused.clone()).unwrap_or_default();
        eprintln!("omnibus bench sync: nothing could be measured in {}: {why}", args.dir.display());
        return ExitCode::FAILURE;
    };
    let device = Device::of(&args.dir);
    let mut out = std::io::stdout().lock();
    let text = if args.json {
        format!("{:#}\n", as_json(&args.sizes, &rows, &advice, &device))
    } else {
        table(&args.sizes, &rows) + &conclusion(&rows, &advice, &device)
    };
    // A closed pipe on the other side is no failure of the measurement.
    let _ = out.write_all(text.as_bytes());
    ExitCode::SUCCESS
}

/// Prints one line on a terminal, replaced by the next.
pub(crate) fn progress(text: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{text}");
        let _ = std::io::stderr().flush();
    }
}

fn rows(sizes: usize) -> Vec<Row> {
    let pairs = SPACES.into_iter().flat_map(|space| CALLS.into_iter().map(move |call| (space, call)));
    pairs.map(|(space, call)| Row { space, call, times: vec![Vec::new(); sizes], refused: None }).collect()
}

fn measure(row: &mut Row, args: &SyncBenchArgs) {
    if row.refused.is_some() {
        return;
    }
    for (&size, times) in args.sizes.iter().zip(&mut row.times) {
        match measure_sync(&args.dir, row.space.0, row.call.0, size, args.count) {
            Ok(measured) => times.extend(measured),
            Err(error) => {
                row.refused = Some(error.to_string());
                return;
            }
        }
    }
}

fn advise(rows: &[Row]) -> Option<Advice> {
    let cheapest = |space: Allocation| {
        let usable = rows.iter().filter(|row| row.refused.is_none() && row.space.0 == space);
        let methods = usable.filter_map(|row| match row.call.0 {
            SyncCall::Method(method) => Some((row.cost(), method)),
            SyncCall::Fsync => None,
        });
        methods.min_by_key(|(cost, _)| *cost)
    };
    let (filled, method) = cheapest(Allocation::ZeroFilled)?;
    let append = cheapest(Allocation::Append).map_or(filled, |(cost, _)| cost);
    Some(Advice { method, append_factor: append.as_secs_f64() / filled.as_secs_f64().max(1e-9) })
}

fn table(sizes: &[usize], rows: &[Row]) -> String {
    let mut out =
        String::from("Microseconds per durable write, median / slowest hundredth:\n\n| space | method |");
    for size in sizes {
        let _ = write!(out, " {size} B |");
    }
    let _ = writeln!(out, "\n| --- | --- |{}", " ---: |".repeat(sizes.len()));
    for row in rows {
        let _ = write!(out, "| {} | {} |", row.space.1, row.call.1);
        for size in 0..sizes.len() {
            let _ = match &row.refused {
                Some(reason) if size == 0 => write!(out, " not here: {reason} |"),
                Some(_) => write!(out, " |"),
                None => {
                    write!(out, " {} / {} |", row.at(size, 50).as_micros(), row.at(size, 99).as_micros())
                }
            };
        }
        out.push('\n');
    }
    out
}

fn conclusion(rows: &[Row], advice: &Advice, device: &Device) -> String {
    let mut out = format!("\n{}.\n", device.describe());
    let _ = writeln!(out, "Use binlog_flush_method={}.", advice.method);
    let factor = advice.append_factor;
    let _ = if factor >= 1.1 {
        writeln!(
            out,
            "Use binlog_preallocate=1: a write that makes the file longer takes {factor:.1} times as long."
        )
    } else {
        writeln!(
            out,
            "Preallocation gains little here: a write that makes the file longer takes {factor:.2} times as long."
        )
    };
    if rows.iter().any(Row::disturbed) {
        out += "The machine was busy with something else: measure again when it is not.\n";
    }
    let trust = device.trust(fastest_block(rows));
    let word = if trust.doubtful { "Warning" } else { "Durability" };
    let _ = writeln!(out, "{word} ({}): {}.", trust.sure, trust.text);
    out
}

/// The quickest tenth of the quickest way: what the device itself takes at least.
fn fastest_block(rows: &[Row]) -> Duration {
    let quickest = rows.iter().filter(|row| row.refused.is_none()).map(|row| row.at(0, 10));
    quickest.min().unwrap_or_default()
}

fn as_json(sizes: &[usize], rows: &[Row], advice: &Advice, device: &Device) -> Value {
    let cells = |row: &Row| -> Vec<Value> {
        let cell = |(n, size): (usize, &usize)| {
            let us = |part| row.at(n, part).as_secs_f64() * 1e6;
            json!({ "bytes": size, "p50_us": us(50), "p99_us": us(99), "writes": row.times[n].len() })
        };
        if row.refused.is_some() { Vec::new() } else { sizes.iter().enumerate().map(cell).collect() }
    };
    let rows_json: Vec<Value> = rows
        .iter()
        .map(|row| json!({ "space": row.space.1, "method": row.call.1, "refused": row.refused, "sizes": cells(row) }))
        .collect();
    let trust = device.trust(fastest_block(rows));
    json!({
        "device": device.json(),
        "rows": rows_json,
        "recommended": { "binlog_flush_method": advice.method.name(), "append_factor": advice.append_factor,
            "binlog_preallocate": u8::from(advice.append_factor >= 1.1) },
        "durability": { "doubtful": trust.doubtful, "sure": trust.sure, "text": trust.text },
        "disturbed": rows.iter().any(Row::disturbed),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn with(median: impl Fn(Allocation, SyncCall) -> Option<u64>) -> Vec<Row> {
        let mut rows = rows(1);
        for row in &mut rows {
            match median(row.space.0, row.call.0) {
                Some(us) => row.times[0] = vec![Duration::from_micros(us); 10],
                None => row.refused = Some("Invalid argument".into()),
            }
        }
        rows
    }

    #[test]
    fn the_cheapest_method_on_prepared_space_is_recommended() {
        let direct = SyncCall::Method(FlushMethod::ODirectDsync);
        let rows = with(|space, call| {
            Some(if space == Allocation::Append {
                80
            } else if call == direct {
                40
            } else {
                50
            })
        });
        let advice = advise(&rows).unwrap();
        assert_eq!((advice.method, advice.append_factor), (FlushMethod::ODirectDsync, 2.0));
        let text = conclusion(&rows, &advice, &Device::default());
        assert!(
            text.contains("binlog_flush_method=O_DIRECT_DSYNC") && text.contains("binlog_preallocate=1"),
            "{text}"
        );
    }

    #[test]
    fn what_the_file_system_refuses_is_not_recommended() {
        let direct = SyncCall::Method(FlushMethod::ODirectDsync);
        let rows = with(|_, call| (call != direct).then_some(if call == SyncCall::Fsync { 1 } else { 50 }));
        assert_eq!(advise(&rows).unwrap().method, FlushMethod::Fdatasync, "fsync is no setting");
        assert!(table(&[512], &rows).contains("| append | O_DIRECT+O_DSYNC | not here: Invalid argument |"));
        assert!(advise(&with(|_, _| None)).is_none());
    }
}
