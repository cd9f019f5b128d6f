//! Each deliberate breakage is found within so many seeds. `cargo test -p omnibus-sim --features mutants --test mutants`; prints the
//! table of docs/simulation.md.

use omnibus_sim::{Mutant, run};

/// Seeds that each has at most.
const SEEDS: u64 = 200;

#[test]
fn every_breakage_is_found() {
    let mut survivors = Vec::new();
    for mutant in Mutant::all() {
        match (1..=SEEDS).find_map(|seed| run(seed, Some(mutant)).err()) {
            Some(finding) => println!("| `{mutant:?}` | {} | {} |", finding.seed, finding.what),
            None => survivors.push(mutant),
        }
    }
    assert!(survivors.is_empty(), "not found within {SEEDS} seeds: {survivors:?}");
}
