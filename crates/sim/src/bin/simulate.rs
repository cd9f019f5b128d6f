//! `make simulate`: seeds one after the other until told to stop, or the one that `SEED` names. Findings go to standard output and
//! the run goes on, unless `STOP` is set; the exit status says whether there was one.

use omnibus_sim::{Mutant, run};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How often it says how far it is.
const SAY: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let mutant = std::env::var("MUTANT").ok().and_then(|name| Mutant::named(&name));
    if let Some(seed) = number("SEED") {
        return replay(seed, number("TIMES").unwrap_or(20), mutant);
    }
    let first = number("FIRST").unwrap_or_else(seed_of_today);
    let last = number("SEEDS").map_or(u64::MAX, |count| first + count);
    let (started, mut said) = (Instant::now(), Instant::now());
    let (mut crashes, mut found) = (0, 0);
    let stops = std::env::var_os("STOP").is_some();
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
