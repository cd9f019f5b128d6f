//! COMMIT-3: recovery must not cut acknowledged transactions behind a torn place, or files that lost their end.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use omnibus_commit::{CommitSettings, RecoverError, Recovered, recover};
use omnibus_engine::CommitNo;
use omnibus_format::group::opens_group;
use omnibus_format::header::{FLAG_IGNORABLE, HEADER_LEN, MAGIC};
use omnibus_format::writer::{restamp, write_final};
use omnibus_format::{Checksum, EventContext, EventType, LogPrivate};
use omnibus_log::{Disk, FileSeq, LogConfig, LogDir, Next, ReadFile};
use std::fs;
use std::path::{Path, PathBuf};
use support::{MapEngine, Texts, crash, open, open_with, request};

fn log_file(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("binlog.{number:06}"))
}

/// The flag bits by which an earlier version's GTID event says that all transactions before it are durable.
const CLAIMS_ALL_BEFORE: u8 = 1 << 1;

/// Makes of a file what an earlier version would have written: no groups, and claims in GTID events.
fn without_groups(path: &Path) {
    let mut file = ReadFile::open(&Disk::default(), FileSeq(1), path).unwrap();
    let (mut out, checksum) = (MAGIC.to_vec(), Checksum::Crc32);
    while let Next::Event(event) = file.next().unwrap() {
        let at = out.len() as u64;
        let context = EventContext { timestamp: event.header.timestamp, server_id: event.header.server_id };
        match LogPrivate::of_event(&event) {
            Some(LogPrivate::Group { .. }) => continue,
            Some(LogPrivate::FileStart { first, elsewhere, .. }) => {
                let start = LogPrivate::FileStart { first, elsewhere, chain: None };
                let kind = EventType::IGNORABLE;
                write_final(&mut out, context, kind, FLAG_IGNORABLE, at, checksum, |out| start.encode(out));
            }
            _ if at == 4 => out.extend_from_slice(event.bytes),
            _ => {
                let mut event = (event.bytes.to_vec(), event.header.flags);
                if event.0[4] == EventType::GTID.0 {
                    event.0[HEADER_LEN] |= CLAIMS_ALL_BEFORE;
                }
                let end = at as u32 + event.0.len() as u32;
                restamp(&mut event.0, end, event.1, checksum);
                out.extend(event.0);
            }
        }
    }
    out.resize(out.len() + 10_000, 0);
    fs::write(path, out).unwrap();
}

/// Where each transaction of a file begins, in a file with groups its group, and where the last event ends.
fn transactions(path: &Path) -> (Vec<u64>, u64) {
    let mut file = ReadFile::open(&Disk::default(), FileSeq(1), path).unwrap();
    let mut starts = Vec::new();
    let mut group = None;
    loop {
        match file.next().unwrap() {
            Next::Event(event) if opens_group(&event) => group = Some(event.offset),
            Next::Event(event) if event.header.event_type == EventType::GTID => {
                starts.push(group.take().unwrap_or(event.offset));
            }
            Next::Event(_) => {}
            Next::End(end) => return (starts, end.position().offset.0),
        }
    }
}

/// A crashed log of `count` transactions, each acknowledged before the next began.
fn crashed(dir: &Path, count: usize) {
    let server = open(dir, 1 << 20);
    for n in 0..count {
        server.coordinator.commit(request(&server.coordinator, &n.to_string(), "v")).wait().unwrap();
    }
    crash(server.coordinator);
}

fn flip(path: &Path, at: u64) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at as usize] ^= 1;
    fs::write(path, bytes).unwrap();
}

fn recovery(dir: &Path, truncate_damaged: bool) -> Result<Recovered, RecoverError> {
    let config = LogConfig { truncate_damaged, ..LogConfig::default() };
    let opened = LogDir::open(dir, config).unwrap();
    recover(&opened, &MapEngine::default(), &mut Texts::default())
}

#[test]
fn a_flipped_bit_before_acknowledged_transactions_stops_the_start_and_cuts_nothing() {
    for old in [false, true] {
        a_flipped_bit_stops_the_start(old);
    }
}

fn a_flipped_bit_stops_the_start(old: bool) {
    let dir = tempfile::tempdir().unwrap();
    crashed(dir.path(), 10);
    let path = log_file(dir.path(), 1);
    if old {
        without_groups(&path);
    }
    let (starts, end) = transactions(&path);
    for victim in [0, 4, 8] {
        flip(&path, starts[victim] + 25);
        let before = fs::read(&path).unwrap();
        let error = recovery(dir.path(), false).unwrap_err();
        let RecoverError::Damaged { file, offset, .. } = &error else { panic!("{error}") };
        assert_eq!((file.as_str(), offset.0), ("binlog.000001", starts[victim]), "{error}");
        assert_eq!(fs::read(&path).unwrap(), before, "a start that is refused changes nothing");
        flip(&path, starts[victim] + 25);
    }
    // Of the very last one nothing behind it tells: it goes as a torn tail.
    flip(&path, starts[9] + 25);
    let recovered = recovery(dir.path(), false).unwrap();
    assert_eq!((recovered.last, recovered.truncated >= end - starts[9]), (CommitNo(9), true));
}

#[test]
fn a_gtid_event_of_a_file_with_groups_has_no_flag_that_mysql_does_not_write() {
    let dir = tempfile::tempdir().unwrap();
    crashed(dir.path(), 3);
    let mut file = ReadFile::open(&Disk::default(), FileSeq(1), &log_file(dir.path(), 1)).unwrap();
    let mut flags = Vec::new();
    while let Next::Event(event) = file.next().unwrap() {
        flags.extend((event.header.event_type == EventType::GTID).then(|| event.body[0]));
    }
    assert!(flags.len() == 3 && flags.iter().all(|flags| *flags <= 1), "{flags:?}");
}

#[test]
fn the_damaged_tail_goes_when_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    crashed(dir.path(), 10);
    let path = log_file(dir.path(), 1);
    let (starts, _) = transactions(&path);
    flip(&path, starts[4] + 25);
    assert_eq!(recovery(dir.path(), true).unwrap().last, CommitNo(4));
    assert_eq!(fs::metadata(&path).unwrap().len(), starts[4]);
}

#[test]
fn a_hole_left_by_one_of_several_groups_in_flight_is_a_torn_tail() {
    // Nothing is durable here as far as the log knows: all of it is in flight, in any order.
    let dir = loop {
        let dir = tempfile::tempdir().unwrap();
        let settings = CommitSettings::default();
        settings.sync_binlog.store(0, std::sync::atomic::Ordering::Relaxed);
        let server = open_with(dir.path(), 1 << 20, settings);
        for n in 0..10 {
            server.coordinator.commit(request(&server.coordinator, &n.to_string(), "v")).wait().unwrap();
        }
        // Once a second the log syncs all the same, which may have been between two of these.
        let unsynced = server.coordinator.durable() == CommitNo::ZERO;
        crash(server.coordinator);
        if unsynced {
            break dir;
        }
    };
    let path = log_file(dir.path(), 1);
    let (starts, _) = transactions(&path);
    let mut bytes = fs::read(&path).unwrap();
    bytes[starts[3] as usize..starts[5] as usize].fill(0);
    fs::write(&path, bytes).unwrap();
    assert_eq!(recovery(dir.path(), false).unwrap().last, CommitNo(3));
}

#[test]
fn a_closed_file_that_lost_its_end_stops_the_start() {
    for (cut, truncate, last) in [(5, false, None), (5, true, Some(2)), (0, false, Some(3))] {
        let dir = tempfile::tempdir().unwrap();
        let server = open(dir.path(), 1 << 20);
        for n in 0..3 {
            server.coordinator.commit(request(&server.coordinator, &n.to_string(), "v")).wait().unwrap();
        }
        server.coordinator.close().unwrap();
        let path = log_file(dir.path(), 1);
        let (starts, end) = transactions(&path);
        let stays = if cut == 0 { end } else { starts[2] + cut };
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(stays).unwrap();
        match (recovery(dir.path(), truncate), last) {
            (Ok(recovered), Some(last)) => assert_eq!(recovered.last, CommitNo(last)),
            (Err(RecoverError::Damaged { offset, .. }), None) => assert_eq!(offset.0, starts[2]),
            (other, _) => panic!("cut {cut}, {truncate}: {other:?}"),
        }
    }
}

#[test]
fn an_earlier_file_that_lost_whole_transactions_stops_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let server = open(dir.path(), 1 << 20);
    for n in 0..3 {
        server.coordinator.commit(request(&server.coordinator, &n.to_string(), "v")).wait().unwrap();
    }
    server.coordinator.rotate().unwrap();
    server.coordinator.commit(request(&server.coordinator, "3", "v")).wait().unwrap();
    crash(server.coordinator);
    let path = log_file(dir.path(), 1);
    let (starts, _) = transactions(&path);
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(starts[2]).unwrap();
    let error = recovery(dir.path(), true).unwrap_err();
    let RecoverError::Damaged { file, offset, .. } = &error else { panic!("{error}") };
    assert_eq!((file.as_str(), offset.0), ("binlog.000001", starts[2]), "{error}");
    // What an earlier version wrote says only how many transactions it had.
    without_groups(&path);
    let (_, end) = transactions(&path);
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(end).unwrap();
    let error = recovery(dir.path(), true).unwrap_err();
    assert!(error.to_string().contains("binlog.000001 ends with 2"), "{error}");
}
