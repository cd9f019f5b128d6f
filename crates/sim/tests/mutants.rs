//! Each deliberate breakage is found within so many seeds. `cargo test -p omnibus-sim --features mutants --test mutants`; prints the
//! table of docs/internals/simulation.md. Each has a process of its own, because some of them end it.

use omnibus_sim::Mutant;
use std::process::Command;
use std::sync::Mutex;

/// Seeds that each has at most.
const SEEDS: u64 = 300;

/// The seed that found it, and what was seen.
fn hunt(mutant: Mutant) -> Option<(String, String)> {
    let mut simulate = Command::new(std::env::var_os("CARGO_BIN_EXE_simulate").unwrap());
    simulate
        .env("MUTANT", format!("{mutant:?}"))
        .env("FIRST", "1")
        .env("SEEDS", SEEDS.to_string())
        .env("STOP", "1");
    let output = simulate.output().expect("the simulation can be started");
    if output.status.success() {
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let seed = text.lines().rev().find_map(|line| line.strip_prefix("trying "))?;
    let found = text.lines().find(|line| line.starts_with("seed "));
    let what =
        found.and_then(|line| line.split_once("): ")).map_or("the process ended itself", |(_, what)| what);
    Some((seed.to_owned(), what.to_owned()))
}

#[test]
fn every_breakage_is_found() {
    let all = Mutex::new(Mutant::all().into_iter());
    let survivors = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(mutant) = all.lock().expect("nobody panics").next() else { break };
                    match hunt(mutant) {
                        Some((seed, what)) => println!("| `{mutant:?}` | {seed} | {what} |"),
                        None => {
                            println!("| `{mutant:?}` | survives | |");
                            survivors.lock().expect("nobody panics").push(mutant);
                        }
                    }
                }
            });
        }
    });
    let survivors = survivors.into_inner().expect("nobody panics");
    assert!(survivors.is_empty(), "not found within {SEEDS} seeds: {survivors:?}");
}
