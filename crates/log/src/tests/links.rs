//! Log files that have another name, as closed ones have in a backup: nothing that happens under one name shows under the other.

use super::*;
use std::path::PathBuf;

/// Gives every file of the log a second name in a directory of its own, and that an index.
fn link_all(from: &Path, to: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut there = Vec::new();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() == "binlog.index" {
            fs::copy(entry.path(), to.join("binlog.index")).unwrap();
        } else if entry.metadata().unwrap().is_file() {
            let name = to.join(entry.file_name());
            fs::hard_link(entry.path(), &name).unwrap();
            there.push((name, fs::read(entry.path()).unwrap()));
        }
    }
    there
}

fn unchanged(files: &[(PathBuf, Vec<u8>)], what: &str) {
    for (path, before) in files {
        assert!(fs::read(path).unwrap() == *before, "{what}: {}", path.display());
    }
}

#[test]
fn a_purge_takes_a_name_and_nothing_of_what_a_backup_has() {
    let (dir, backup) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut writer = start(dir.path(), config(FlushMethod::ODirectDsync));
    commit(&mut writer, 1, 9 << 20).unwrap();
    rotate(&mut writer).unwrap();
    writer.handle().wait_for_background();
    let links = link_all(dir.path(), backup.path());
    writer.handle().purge_to(FileSeq(2), || Ok(FileSeq(2))).unwrap();
    writer.handle().wait_for_background();
    assert!(!dir.path().join("binlog.000001").exists());
    unchanged(&links[..], "purge");
}

#[test]
fn a_start_on_a_backup_cuts_nothing_of_what_the_original_has() {
    let (dir, backup) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let faults = Faults::default();
    // A crash before the spare tail of the first file is cut, and with a torn tail of the second.
    let settings = LogConfig { faults: faults.clone(), cut_later: 1, ..config(FlushMethod::ODirectDsync) };
    let mut writer = start(dir.path(), settings);
    commit(&mut writer, 1, 5000).unwrap();
    faults.plant(Point::FinishTruncate, Action::CrashBefore);
    rotate(&mut writer).unwrap();
    writer.handle().wait_for_background();
    faults.clear();
    commit(&mut writer, 2, 5000).unwrap();
    drop(writer);
    link_all(dir.path(), backup.path());
    let originals = ["binlog.000001", "binlog.000002"].map(|name| {
        let path = dir.path().join(name);
        (path.clone(), fs::read(path).unwrap())
    });
    let steps = {
        let copy = tempfile::tempdir().unwrap();
        link_all(dir.path(), copy.path());
        let faults = Faults::default();
        recover_with(copy.path(), &faults);
        faults.passed().len()
    };
    assert!(steps > 8, "files were copied");
    // Killed at any step, and then for good.
    for step in 0..steps {
        let copy = tempfile::tempdir().unwrap();
        link_all(dir.path(), copy.path());
        let faults = Faults::default();
        faults.crash_at_step(step);
        recover_with(copy.path(), &faults);
        unchanged(&originals, "killed start");
        assert_eq!(recover(copy.path()).0, [1, 2], "step {step}");
        unchanged(&originals, "start");
        let mut left = fs::read_dir(copy.path()).unwrap();
        assert!(!left.any(|entry| entry.unwrap().path().extension().is_some_and(|end| end == "tmp")));
    }
}

/// As [`recover`], as far as it gets.
fn recover_with(path: &Path, faults: &Faults) {
    let settings = LogConfig { faults: faults.clone(), ..LogConfig::default() };
    let Ok(dir) = LogDir::open(path, settings) else { return };
    let (_, tail) = numbers(&dir, FileSeq(1));
    let _ = dir.truncate_tail(tail.end.file, tail.end.offset);
}
