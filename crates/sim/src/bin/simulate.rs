//! `make simulate`: runs seeds one after the other until told to stop, or the one in `SEED`. Findings go to standard
//! output and the run continues, unless `STOP` is set; the exit status says whether there was one.

use clap::Parser;
use omnibus_sim::{Mutant, run};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The interval of progress messages.
const SAY: Duration = Duration::from_secs(10);

/// Simulated crashes of the log, the commit pipeline and recovery, a history for each seed, until told to stop.
#[derive(Debug, Parser)]
struct Options {
    /// Runs this one only, again and again.
    #[arg(long, env = "SEED")]
    seed: Option<u64>,
    /// The number of runs of a single seed.
    #[arg(long, env = "TIMES", default_value_t = 20)]
    times: u64,
    /// Begins with this seed [default: another one each time].
    #[arg(long, env = "FIRST")]
    first: Option<u64>,
    /// The number of runs after which it ends.
    #[arg(long, env = "SEEDS")]
    seeds: Option<u64>,
    /// Breaks the code under test on purpose; needs the feature `mutants`.
    #[arg(long, env = "MUTANT", value_parser = mutant)]
    mutant: Option<Mutant>,
    /// Ends at the first finding, and names each seed before it runs, since a breakage may end the process. As a variable, with
    /// any value.
    #[arg(long)]
    stop: bool,
}

fn mutant(name: &str) -> Result<Mutant, String> {
    Mutant::named(name).ok_or_else(|| format!("there is none; one is {:?}", Mutant::all()[0]))
}

fn main() -> ExitCode {
    let options = Options::parse();
    let mutant = options.mutant;
    if let Some(seed) = options.seed {
        return replay(seed, options.times, mutant);
    }
    let first = options.first.unwrap_or_else(seed_of_today);
    let last = options.seeds.map_or(u64::MAX, |count| first.saturating_add(count));
    let (started, mut said) = (Instant::now(), Instant::now());
    let (mut crashes, mut found) = (0, 0);
    let stops = options.stop || std::env::var_os("STOP").is_some();
    for seed in first..last {
        if stops {
            // A breakage may end the process.
            println!("trying {seed}");
        }
        match run(seed, mutant) {
            Ok(report) => crashes += report.crashes,
            Err(finding) => {
                found += 1;
                println!("{finding}\n  again: make simulate SEED={seed}");
                if stops {
                    break;
                }
            }
        }
        if said.elapsed() >= SAY || seed + 1 == last {
            said = Instant::now();
            let (done, took) = (seed + 1 - first, started.elapsed().as_secs_f64());
            let rate = done as f64 / took;
            println!(
                "{done} seeds from {first}, {crashes} crashes, {found} findings, {rate:.1} seeds per second"
            );
        }
    }
    if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The same seed a few times: what is asked of whom in which life is the same each time, and so is the order of requests but where
/// threads wait for one lock.
fn replay(seed: u64, times: u64, mutant: Option<Mutant>) -> ExitCode {
    let mut status = ExitCode::SUCCESS;
    for _ in 0..times {
        match run(seed, mutant) {
            Ok(report) => {
                println!(
                    "seed {seed}: nothing found in {} crashes, {} requests",
                    report.crashes, report.steps
                );
            }
            Err(finding) => {
                println!("{finding}");
                status = ExitCode::FAILURE;
            }
        }
    }
    status
}

/// Another start each time, so that runs do not repeat each other.
fn seed_of_today() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(1, |since| since.as_secs() * 1000)
}
