//! `search_behind` finds all whole events behind a torn place, and nothing else.

use super::*;

/// Writes a file with a spare tail. Returns the beginnings and ends of its transactions.
fn five(path: &Path) -> Vec<u64> {
    let mut writer = start(path, config(FlushMethod::ODirectDsync));
    let mut ends = vec![writer.position().offset.0];
    // The last one is longer than what is looked at in one go.
    ends.extend([300, 5000, 1, 300, 1_200_000].map(|n| commit(&mut writer, n, n as usize).unwrap().offset.0));
    ends
}

fn search(path: &Path, from: u64) -> (Vec<u64>, Seen) {
    let mut file = LogDir::open(path, LogConfig::default()).unwrap().read(FileSeq(1)).unwrap();
    file.next().unwrap();
    let mut seen = Vec::new();
    let behind = file
        .search_behind(LogOffset(from), &mut |event| {
            seen.push(event.offset);
            true
        })
        .unwrap();
    (seen, behind)
}

#[test]
fn every_whole_event_behind_is_found_and_damaged_ones_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let ends = five(dir.path());
    let (all, _) = search(dir.path(), ends[0]);
    assert_eq!((all.len(), all[0]), (25, ends[0]));
    let file = open(&dir.path().join("binlog.000001"));
    for at in [ends[1] + 3, ends[1] + 21, ends[2] - 30] {
        let (before, _) = search(dir.path(), ends[0]);
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 0x40], at).unwrap();
        let (found, behind) = search(dir.path(), ends[0]);
        let victim = *all.iter().rfind(|event| **event <= at).unwrap();
        let expected: Vec<u64> = before.iter().copied().filter(|event| *event != victim).collect();
        assert_eq!(found, expected, "byte {at}");
        assert_eq!((behind.events, behind.data_end), (found.len() as u64, ends[5]));
    }
    // LOG-2: a search that starts in the middle of an event finds the next one.
    assert_eq!(search(dir.path(), ends[3] + 1).0, all[16..]);
}

#[test]
fn a_spare_tail_holds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let end = *five(dir.path()).last().unwrap();
    assert_eq!(search(dir.path(), end), (vec![], Seen { events: 0, data_end: end }));
}

#[test]
fn a_hole_of_zeros_of_any_length_hides_nothing_behind_it() {
    for hole in (1..200).chain([4096, 1 << 20, (1 << 20) + 5]) {
        let mut bytes = head();
        bytes.splice(0..0, omnibus_format::header::MAGIC);
        let at = bytes.len() as u64;
        bytes.resize(bytes.len() + hole, 0);
        let behind = transaction(bytes.len() as u64, 9, 20);
        let found_at = bytes.len() as u64;
        bytes.extend(behind);
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("binlog.000001"), &bytes).unwrap();
        let mut file =
            ReadFile::open(&Disk::default(), FileSeq(1), &dir.path().join("binlog.000001")).unwrap();
        file.next().unwrap();
        let mut first = None;
        file.search_behind(LogOffset(at), &mut |event| {
            first = Some(event.offset);
            false
        })
        .unwrap();
        assert_eq!(first, Some(found_at), "hole of {hole}");
    }
}
