//! WIRE-1: every input that fuzzing kept, run again: what once broke a decoder, and what reached code that nothing else did.

use omnibus_fuzz::TARGETS;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// No input that is kept is near it, on a busy machine and without optimisation.
const LONGEST: Duration = Duration::from_secs(10);

fn inputs(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    entries.map(|entry| entry.expect("an entry of a folder that was opened").path()).collect()
}

#[test]
fn what_fuzzing_kept_runs() {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"))
        .join("../../testdata/fuzz");
    std::thread::scope(|scope| {
        for target in TARGETS {
            let folder = root.join(target.name);
            scope.spawn(move || {
                target.run(b"");
                let inputs = inputs(&folder);
                assert!(!inputs.is_empty(), "{} has no corpus", target.name);
                for path in inputs {
                    let input = std::fs::read(&path).expect("a file that was listed");
                    println!("{}", path.display());
                    let started = Instant::now();
                    target.run(&input);
                    let took = started.elapsed();
                    assert!(took < LONGEST, "{} took {took:?}", path.display());
                }
            });
        }
    });
    let known: Vec<_> = TARGETS.iter().map(|target| root.join(target.name)).collect();
    let strangers: Vec<_> = inputs(&root).into_iter().filter(|path| !known.contains(path)).collect();
    assert!(strangers.is_empty(), "a corpus without a target: {strangers:?}");
}
