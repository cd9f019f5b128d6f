//! Every byte of the log is in a group: lost sectors are never replayed, and never cut if what was in them was acknowledged
//! (COMMIT-3), with and without checksums of events.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use omnibus_commit::{RecoverError, Recovered, recover};
use omnibus_engine::CommitNo;
use omnibus_format::group::opens_group;
use omnibus_format::{Checksum, EventType};
use omnibus_log::{Disk, FileSeq, LogConfig, LogDir, Next, ReadFile};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use support::{MapEngine, Server, Texts, crash, open, request, request_rows};

const SECTOR: usize = 512;

fn log_file(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("binlog.{number:06}"))
}

fn value(n: usize, len: usize) -> String {
    (0..len).map(|at| char::from(b'a' + ((n * 7 + at) % 26) as u8)).collect()
}

fn commit(server: &Server, n: usize, len: usize) {
    let request = request(&server.coordinator, &n.to_string(), &value(n, len));
    server.coordinator.commit(request).wait().unwrap();
}

/// Together several mebibytes.
fn rows(count: usize) -> Vec<(String, String)> {
    (0..count).map(|n| (format!("k{n}"), value(n, 100_000))).collect()
}

/// Offset and end of each group of a file.
fn groups(path: &Path) -> Vec<(usize, usize)> {
    let mut file = ReadFile::open(&Disk::default(), FileSeq(1), path).unwrap();
    let mut found: Vec<(usize, usize)> = Vec::new();
    loop {
        match file.next().unwrap() {
            Next::Event(event) if opens_group(&event) => found.push((event.offset as usize, 0)),
            Next::Event(event) if event.header.event_type == EventType::ROTATE => {}
            Next::Event(event) => {
                if let Some(last) = found.last_mut() {
                    last.1 = event.end() as usize;
                }
            }
            Next::End(_) => return found,
        }
    }
}

fn recovery(dir: &Path, engine: &MapEngine) -> Result<Recovered, RecoverError> {
    let opened = LogDir::open(dir, LogConfig::default()).unwrap();
    recover(&opened, engine, &mut Texts::default())
}

/// A copy of a log with the bytes of one file changed.
fn copy_with(from: &Path, number: u32, bytes: &[u8]) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.metadata().unwrap().is_file() {
            fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
    }
    fs::write(log_file(copy.path(), number), bytes).unwrap();
    copy
}

#[test]
fn no_lost_sector_is_replayed_or_takes_what_was_acknowledged() {
    const COUNT: usize = 6;
    for checksum in [Checksum::Crc32, Checksum::None] {
        let dir = tempfile::tempdir().unwrap();
        let server = open(dir.path(), 1 << 20);
        server.coordinator.log().set_checksum(checksum);
        server.coordinator.rotate().unwrap();
        (0..COUNT).for_each(|n| commit(&server, n, 1500));
        crash(server.coordinator);
        let path = log_file(dir.path(), 2);
        let (bytes, groups) = (fs::read(&path).unwrap(), groups(&path));
        let (last, end) = *groups.last().unwrap();
        assert_eq!(groups.len(), COUNT);
        for at in (0..end).step_by(SECTOR) {
            let mut lost = bytes.clone();
            lost[at..at + SECTOR].fill(0);
            if lost == bytes {
                continue;
            }
            let copy = copy_with(dir.path(), 2, &lost);
            let engine = MapEngine::default();
            let what = format!("{checksum:?}, sector at {at}");
            match recovery(copy.path(), &engine) {
                // Only what the last group's head told of is unknown without it, and that group itself.
                Ok(recovered) => {
                    let whole = groups.iter().filter(|(_, end)| *end <= at).count();
                    assert!(recovered.last == CommitNo(whole as u64) && at + SECTOR > last, "{what}");
                }
                Err(RecoverError::Damaged { file, .. }) => {
                    assert!(file == "binlog.000002" && at < last, "{what}");
                    assert!(fs::read(log_file(copy.path(), 2)).unwrap() == lost, "{what}: nothing is cut");
                }
                Err(other) => panic!("{what}: {other}"),
            }
            for (key, row) in engine.rows.lock().unwrap().iter() {
                let n: usize = std::str::from_utf8(key).unwrap().parse().unwrap();
                assert!(row == value(n, 1500).as_bytes(), "{what}: row {n}");
            }
        }
    }
}

/// The search of earlier versions ended 16 MiB behind the beginning of the transaction.
#[test]
fn a_sector_lost_inside_of_a_large_transaction_stops_the_start() {
    for promoted in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let server = open(dir.path(), 64 << 20);
        let threshold = if promoted { 1 << 20 } else { 0 };
        server.coordinator.cache_settings().large.threshold.store(threshold, Ordering::Relaxed);
        commit(&server, 0, 10);
        commit(&server, 1, 18 << 20);
        (2..5).for_each(|n| commit(&server, n, 10));
        crash(server.coordinator);
        let number = if promoted { 2 } else { 1 };
        let path = log_file(dir.path(), number);
        let bytes = fs::read(&path).unwrap();
        let mut lost = bytes.clone();
        lost[1 << 20..][..SECTOR].fill(0);
        let copy = copy_with(dir.path(), number, &lost);
        let error = recovery(copy.path(), &MapEngine::default()).unwrap_err();
        let RecoverError::Damaged { file, offset, .. } = &error else { panic!("{error}") };
        assert!(path.ends_with(file) && offset.0 < 1 << 20, "{error}");
        assert_eq!(recovery(dir.path(), &MapEngine::default()).unwrap().last, CommitNo(5));
    }
}

#[test]
fn what_of_a_transaction_in_several_groups_is_there_goes_as_a_whole() {
    let dir = tempfile::tempdir().unwrap();
    let server = open(dir.path(), 64 << 20);
    server.coordinator.cache_settings().large.threshold.store(0, Ordering::Relaxed);
    commit(&server, 0, 10);
    server.coordinator.commit(request_rows(&server.coordinator, &rows(40), true)).wait().unwrap();
    commit(&server, 2, 10);
    crash(server.coordinator);
    let path = log_file(dir.path(), 1);
    let (bytes, groups) = (fs::read(&path).unwrap(), groups(&path));
    assert!(groups.len() >= 5, "the large one has several: {groups:?}");
    for &(_, end) in &groups[1..groups.len() - 2] {
        let mut lost = bytes.clone();
        lost[end..].fill(0);
        let copy = copy_with(dir.path(), 1, &lost);
        assert_eq!(recovery(copy.path(), &MapEngine::default()).unwrap().last, CommitNo(1));
        assert_eq!(fs::metadata(log_file(copy.path(), 1)).unwrap().len(), groups[1].0 as u64);
        // It goes on behind that, and the next file knows how this one ends.
        let server = open(copy.path(), 1 << 20);
        commit(&server, 1, 10);
        crash(server.coordinator);
        assert_eq!(recovery(copy.path(), &MapEngine::default()).unwrap().last, CommitNo(2));
    }
}

#[test]
fn a_group_of_a_transaction_that_nobody_else_sees_is_whole_or_gone() {
    let dir = tempfile::tempdir().unwrap();
    let server = open(dir.path(), 64 << 20);
    server.coordinator.commit(request_rows(&server.coordinator, &rows(40), false)).wait().unwrap();
    commit(&server, 2, 10);
    crash(server.coordinator);
    let engine = MapEngine::default();
    assert_eq!(recovery(dir.path(), &engine).unwrap().last, CommitNo(2));
    assert_eq!(engine.rows.lock().unwrap().len(), 41);
}
