//! What is found in the directory at start-up.

use super::*;
use omnibus_engine::EngineError;

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(tiny(directory.path())));
    let marker = directory.path().join("format");
    std::fs::write(&marker, "omnibus-engine-lsm 2\n").unwrap();
    let Err(EngineError::Format { found, supported, .. }) = LsmEngine::open(tiny(directory.path())) else {
        panic!("opened");
    };
    assert_eq!((&found[..], &supported[..]), ("omnibus-engine-lsm 2", "omnibus-engine-lsm 1"));
    assert_eq!(std::fs::read_to_string(marker).unwrap(), "omnibus-engine-lsm 2\n");
}

#[test]
fn tables_without_a_marker_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(tiny(directory.path())));
    std::fs::remove_file(directory.path().join("format")).unwrap();
    assert!(matches!(LsmEngine::open(tiny(directory.path())), Err(EngineError::Corrupt { .. })));
}

#[test]
fn a_damaged_applied_file_is_an_error_and_not_a_guess() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(tiny(directory.path())));
    std::fs::write(directory.path().join("applied"), "twelve").unwrap();
    assert!(matches!(LsmEngine::open(tiny(directory.path())), Err(EngineError::Corrupt { .. })));
}

#[test]
fn a_crash_between_tables_and_applied_file_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(tiny(directory.path()));
    put(&engine, 1, key(1, 1), 10);
    engine.checkpoint().unwrap();
    let older = std::fs::read(directory.path().join("applied")).unwrap();
    put(&engine, 2, key(1, 2), 10);
    engine.checkpoint().unwrap();
    drop(engine);
    std::fs::write(directory.path().join("applied"), older).unwrap();
    assert_eq!(open(tiny(directory.path())).applied(), CommitNo(2));
}

#[test]
fn a_clean_stop_is_quick_and_leaves_nothing_to_replay() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(tiny(directory.path()));
    for no in 1..=500 {
        put(&engine, no, key(1, no), 100);
    }
    engine.checkpoint().unwrap();
    let start = Instant::now();
    drop(engine);
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    assert_eq!(open(tiny(directory.path())).applied(), CommitNo(500));
}
