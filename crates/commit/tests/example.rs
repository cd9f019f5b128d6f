//! The example that programs copy keeps what it has committed.
#![allow(clippy::unwrap_used, missing_docs)]

use std::process::Command;

#[test]
fn a_store_of_a_map_finds_its_rows_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let own = std::env::current_exe().unwrap();
    let example = own.parent().unwrap().parent().unwrap().join("examples/store");
    let run = |args: &[&str]| {
        let out = Command::new(&example).arg(folder.path().join("log")).args(args).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    assert_eq!(run(&[]), "");
    assert_eq!(run(&["tea", "2.50"]), "tea=2.50\n");
    assert_eq!(run(&["coffee", "3.20"]), "coffee=3.20\ntea=2.50\n");
    assert_eq!(run(&["tea", "2.60"]), "coffee=3.20\ntea=2.60\n");
    assert_eq!(run(&[]), "coffee=3.20\ntea=2.60\n");
}
