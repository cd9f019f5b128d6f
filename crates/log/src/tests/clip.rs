//! Ending a file between two transactions, wherever that is in its groups.

use super::*;
use omnibus_format::LogPrivate;
use omnibus_format::group::{Chain, ChainStart};
use omnibus_format::header::MAGIC;

/// A file's head with the beginning of a chain.
fn chained_head() -> (Vec<u8>, Chain) {
    let mut out = MAGIC.to_vec();
    let format = FormatDescription::new("8.4.0-omnibus", 0, Checksum::Crc32);
    let at = event(&mut out, EventType::FORMAT_DESCRIPTION, 4, |out| format.encode(out));
    let list_at = out.len();
    let previous = PreviousGtids { set: GtidSet::new() };
    let at = event(&mut out, EventType::PREVIOUS_GTIDS, at, |out| previous.encode(out));
    let start_at = out.len();
    let mut chain = ChainStart { salt: 99, ..ChainStart::default() };
    for _ in 0..2 {
        out.truncate(start_at);
        let start = LogPrivate::FileStart { first: 1, elsewhere: GtidSet::new(), chain: Some(chain) };
        event(&mut out, EventType::IGNORABLE, at, |out| start.encode(out));
        chain.crc = chain.head_crc(&out[list_at..start_at], &out[start_at..out.len() - 4]);
    }
    (out, chain.chain())
}

/// A group of these transactions; gives where each ends.
fn group(out: &mut Vec<u8>, chain: &mut Chain, gnos: std::ops::Range<u64>, spare: usize) -> Vec<u64> {
    let offset = out.len() as u64;
    let head_of = |out: &mut Vec<u8>, head| {
        event(out, EventType::IGNORABLE, offset, |out| LogPrivate::Group { head, spare }.encode(out))
    };
    let mut at = head_of(&mut Vec::new(), Default::default());
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    for gno in gnos.clone() {
        bytes.extend(transaction(at, gno, 50 * gno as usize));
        at += transaction(at, gno, 50 * gno as usize).len() as u64;
        ends.push(at);
    }
    let mut hash = chain.hash();
    hash.update(&bytes);
    let head = chain.add(hash, offset, bytes.len() as u64, gnos.start - 1);
    head_of(out, head);
    out.extend(bytes);
    ends
}

#[test]
fn a_clipped_file_has_what_is_in_front_and_no_torn_tail() {
    let (mut bytes, mut chain) = chained_head();
    let head = bytes.len() as u64;
    let mut ends = vec![head];
    for (gnos, spare) in [(1..4, 0), (4..5, 700), (5..9, 3)] {
        ends.extend(group(&mut bytes, &mut chain, gnos, spare));
    }
    let rotate = rotate_event(bytes.len() as u64, "binlog.000002");
    bytes.extend(rotate);
    bytes[4 + 17] &= !(FLAG_IN_USE as u8);
    for (count, end) in ends.iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("binlog.000001");
        fs::write(&path, &bytes).unwrap();
        fs::write(dir.path().join("binlog.index"), "./binlog.000001\n").unwrap();
        let clipped = clip_file(&Disk::default(), &path, LogOffset(*end)).unwrap();
        assert_eq!(clipped.0, *end, "{count} transactions");
        let (found, tail) = recover(dir.path());
        assert_eq!(found, (1..=count as u64).collect::<Vec<_>>());
        let tail = tail.unwrap();
        assert_eq!((tail.end.offset, tail.torn, tail.needs_truncation()), (clipped, None, false));
        let flags = fs::read(&path).unwrap()[4 + 17];
        assert_eq!(flags & FLAG_IN_USE as u8, 1, "as a crash leaves it");
    }
}

#[test]
fn a_group_of_which_nothing_is_left_goes_with_its_head() {
    let (mut bytes, mut chain) = chained_head();
    let first = *group(&mut bytes, &mut chain, 1..2, 0).last().unwrap();
    let head_end = {
        let mut more = bytes.clone();
        let end = group(&mut more, &mut chain, 2..3, 40)[0];
        bytes = more;
        end - transaction(first, 2, 100).len() as u64
    };
    assert!(head_end > first);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("binlog.000001");
    fs::write(&path, &bytes).unwrap();
    assert_eq!(clip_file(&Disk::default(), &path, LogOffset(head_end)).unwrap().0, first);
    assert_eq!(fs::metadata(&path).unwrap().len(), first);
    let in_use = fs::read(&path).unwrap()[4 + 17];
    assert_eq!(in_use & FLAG_IN_USE as u8, 1, "as a crash leaves it");
    // A file of an earlier version has no groups.
    let mut old = MAGIC.to_vec();
    old.extend(head());
    let end = old.len() as u64;
    old.extend(transaction(end, 1, 10));
    fs::write(&path, &old).unwrap();
    assert_eq!(clip_file(&Disk::default(), &path, LogOffset(end)).unwrap().0, end);
    assert_eq!(fs::metadata(&path).unwrap().len(), end);
}
