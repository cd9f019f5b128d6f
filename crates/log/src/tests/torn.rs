//! Torn tails, holes, stale bytes (LOG-2), damage in the middle.

use super::*;

/// Three transactions in a file whose tail was never written. Gives the ends of the transactions.
fn three(path: &Path) -> Vec<u64> {
    let mut writer = start(path, config(FlushMethod::ODirectDsync));
    (1..=3).map(|gno| commit(&mut writer, gno, 300).unwrap().offset.0).collect()
}

fn log_file(path: &Path) -> std::path::PathBuf {
    path.join("binlog.000001")
}

fn scan_tail(path: &Path) -> LogTail {
    let dir = LogDir::open(path, LogConfig::default()).unwrap();
    RecoveryScan::new(&dir, FileSeq(1)).unwrap().unwrap().finish().unwrap()
}

#[test]
fn a_file_cut_at_any_byte_of_the_last_transaction_ends_behind_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let ends = three(dir.path());
    let whole = fs::read(log_file(dir.path())).unwrap();
    for cut in ends[1]..ends[2] {
        fs::write(log_file(dir.path()), &whole[..cut as usize]).unwrap();
        let tail = scan_tail(dir.path());
        assert_eq!(tail.end.offset.0, ends[1], "cut at {cut}");
        assert!(tail.torn.is_some() || tail.incomplete_transaction || cut == ends[1]);
    }
}

#[test]
fn zeros_from_any_byte_of_the_last_transaction_on_are_no_part_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let ends = three(dir.path());
    let whole = fs::read(log_file(dir.path())).unwrap();
    for cut in ends[1]..ends[2] {
        let mut torn = whole.clone();
        torn[cut as usize..].fill(0);
        // The last bytes of a checksum may be zero by chance; then nothing was torn.
        if torn == whole {
            continue;
        }
        fs::write(log_file(dir.path()), torn).unwrap();
        let tail = scan_tail(dir.path());
        assert_eq!(tail.end.offset.0, ends[1], "zeros from {cut}");
    }
}

#[test]
fn every_flipped_bit_of_the_last_transaction_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let ends = three(dir.path());
    let whole = fs::read(log_file(dir.path())).unwrap();
    for at in ends[1]..ends[2] {
        let mut damaged = whole.clone();
        damaged[at as usize] ^= 1 << (at % 8);
        fs::write(log_file(dir.path()), damaged).unwrap();
        assert_eq!(scan_tail(dir.path()).end.offset.0, ends[1], "bit of byte {at}");
    }
}

#[test]
fn a_hole_left_by_the_first_of_two_writes_ends_the_log_before_the_second() {
    let dir = tempfile::tempdir().unwrap();
    let ends = three(dir.path());
    let file = open(&log_file(dir.path()));
    file.write_all_at(&vec![0; (ends[1] - ends[0]) as usize], ends[0]).unwrap();
    assert_eq!(recover(dir.path()).0, [1]);
    assert_eq!(fs::metadata(log_file(dir.path())).unwrap().len(), ends[0], "cut where the hole starts");
}

#[test]
fn stale_events_behind_the_end_never_parse() {
    let dir = tempfile::tempdir().unwrap();
    let ends = three(dir.path());
    let whole = fs::read(log_file(dir.path())).unwrap();
    let stale = &whole[ends[0] as usize..ends[1] as usize];
    for shift in [1, 19, 512, 4096] {
        let mut recycled = whole.clone();
        let at = ends[2] as usize + shift - 1;
        recycled[at..at + stale.len()].copy_from_slice(stale);
        fs::write(log_file(dir.path()), recycled).unwrap();
        let tail = scan_tail(dir.path());
        assert_eq!(tail.end.offset.0, ends[2], "stale bytes {shift} behind the end");
    }
}

#[test]
fn damage_in_a_file_that_is_not_the_last_is_an_error_and_cuts_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = start(dir.path(), config(FlushMethod::ODirectDsync));
    let first = commit(&mut writer, 1, 50).unwrap();
    commit(&mut writer, 2, 50).unwrap();
    rotate(&mut writer).unwrap();
    commit(&mut writer, 3, 50).unwrap();
    drop(writer);
    let file = open(&log_file(dir.path()));
    let len = file.len().unwrap();
    file.write_all_at(b"?", first.offset.0 + 30).unwrap();
    let opened = LogDir::open(dir.path(), LogConfig::default()).unwrap();
    let error = RecoveryScan::new(&opened, FileSeq(1)).unwrap().unwrap().finish().unwrap_err();
    assert!(matches!(error, ReadError::Damaged { position, .. } if position == first), "{error}");
    assert!(opened.truncate_tail(FileSeq(1), first.offset).is_err(), "only the last file may be cut");
    assert_eq!(file.len().unwrap(), len);
}

#[test]
fn a_length_that_promises_a_gigabyte_allocates_none() {
    let dir = tempfile::tempdir().unwrap();
    let ends = three(dir.path());
    let file = open(&log_file(dir.path()));
    let size = 1_000_000_000_u32;
    let end = (ends[2] as u32).wrapping_add(size);
    let mut header = [1; 19];
    header[9..13].copy_from_slice(&size.to_le_bytes());
    header[13..17].copy_from_slice(&end.to_le_bytes());
    file.write_all_at(&header, ends[2]).unwrap();
    let tail = scan_tail(dir.path());
    assert!(matches!(tail.torn, Some(TornReason::Torn { needed: 1_000_000_000, .. })), "{:?}", tail.torn);
}

#[test]
fn a_recovery_cut_closes_the_file_properly() {
    let dir = tempfile::tempdir().unwrap();
    let ends = three(dir.path());
    let in_use = || fs::read(log_file(dir.path())).unwrap()[4 + 17] & 1;
    assert_eq!(in_use(), 1);
    recover(dir.path());
    assert_eq!(in_use(), 0);
    let tail = scan_tail(dir.path());
    assert_eq!((tail.end.offset.0, tail.torn), (ends[2], None), "the checksum does not cover the flag");
}

/// A second power cut may leave any of what was not synced: a closed file with a torn tail would count as damaged.
#[test]
fn a_torn_tail_is_gone_for_good_before_the_file_counts_as_closed() {
    let dir = tempfile::tempdir().unwrap();
    three(dir.path());
    let faults = Faults::default();
    let opened =
        LogDir::open(dir.path(), LogConfig { faults: faults.clone(), ..LogConfig::default() }).unwrap();
    let (_, tail) = numbers(&opened, FileSeq(1));
    opened.truncate_tail(tail.end.file, tail.end.offset).unwrap();
    let steps = [Point::FinishTruncate, Point::FinishSync, Point::FinishClearFlag, Point::FinishSync];
    assert_eq!(faults.passed(), steps);
    // Again, as after a crash between any two of them: nothing changes.
    opened.truncate_tail(tail.end.file, tail.end.offset).unwrap();
    assert_eq!(scan_tail(dir.path()).end, tail.end);
}

#[test]
fn a_private_group_whose_end_the_caller_knows_is_whole_or_gone() {
    let dir = tempfile::tempdir().unwrap();
    let before = three(dir.path())[2];
    let mut group = Vec::new();
    let mut at = before;
    for body in [&b"mark"[..], b"first change", b"second change"] {
        at = event(&mut group, EventType::IGNORABLE, at, |out| out.extend(body));
    }
    let whole = fs::read(log_file(dir.path())).unwrap();
    for cut in 0..=group.len() {
        let mut bytes = whole.clone();
        bytes[before as usize..][..cut].copy_from_slice(&group[..cut]);
        fs::write(log_file(dir.path()), &bytes).unwrap();
        let opened = LogDir::open(dir.path(), LogConfig::default()).unwrap();
        let mut scan = RecoveryScan::new(&opened, FileSeq(1)).unwrap().unwrap();
        let tail = loop {
            match scan.next().unwrap() {
                RecoveryItem::Event { event, .. } if event.body == b"mark" => scan.hold(LogOffset(at)),
                RecoveryItem::Tail(tail) => break tail,
                _ => {}
            }
        };
        let there = bytes[before as usize..].starts_with(&group);
        assert_eq!(tail.end.offset.0, if there { at } else { before }, "cut at {cut}");
        assert!(!there || !tail.incomplete_transaction);
    }
}
