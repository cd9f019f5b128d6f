//! Bytes that a device gives back otherwise than they were written: right rows or a clear error, never wrong rows.

use super::*;
use omnibus_engine::EngineError;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::os::unix::fs::FileExt;

const ROWS: u64 = 1000;

/// A directory with rows in two spaces, at commit 4, and what is in it.
fn filled() -> (tempfile::TempDir, Vec<(Bytes, Bytes)>) {
    filled_by(1..=4)
}

fn filled_by(numbers: std::ops::RangeInclusive<u64>) -> (tempfile::TempDir, Vec<(Bytes, Bytes)>) {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    for no in numbers {
        let keys: Vec<_> =
            (0..ROWS).filter(|n| no == 4 || n % no == 0).map(|n| key(5 + (n % 2) as u32, n)).collect();
        put(&engine, no, &keys, &format!("{no}{}", "v".repeat(60)));
        engine.commit_ordered(CommitNo(no));
        engine.checkpoint().unwrap();
    }
    let rows = all(&engine, 4);
    assert_eq!(rows.len(), ROWS as usize);
    (directory, rows)
}

fn is_clear(error: &EngineError) {
    let text = error.to_string();
    assert!(text.contains("data.redb") && text.contains("backup"), "{text}");
}

/// Reads everything, each way. Returns the number of reads that met damage.
fn read_all(engine: &BtreeEngine, rows: &[(Bytes, Bytes)]) -> usize {
    let snapshot = engine.snapshot(CommitNo(4));
    let mut damaged = 0;
    for (key, value) in rows.iter().step_by(37) {
        match snapshot.get(key) {
            Ok(found) => assert_eq!(found.as_ref(), Some(value)),
            Err(error) => {
                is_clear(&error);
                damaged += 1;
            }
        }
    }
    for reverse in [false, true] {
        let mut expected: Vec<_> = rows.to_vec();
        if reverse {
            expected.reverse();
        }
        let mut expected = expected.into_iter();
        let mut whole = true;
        for pair in snapshot.scan(Bound::Unbounded, Bound::Unbounded, reverse) {
            match pair {
                Ok(pair) => assert_eq!(Some(pair), expected.next()),
                Err(error) => {
                    is_clear(&error);
                    whole = false;
                }
            }
        }
        assert!(!whole || expected.next().is_none(), "a scan ended early without an error");
        damaged += usize::from(!whole);
    }
    damaged
}

#[test]
fn flipped_bits_and_zeroed_blocks_never_give_wrong_rows() {
    let (directory, rows) = filled();
    let names = ["data.redb", "data.sums"].map(|name| directory.path().join(name));
    let whole = names.each_ref().map(|path| std::fs::read(path).unwrap());
    let mut random = StdRng::seed_from_u64(19);
    let (mut refused, mut met) = (0, 0);
    for turn in 0..36 {
        let which = usize::from(turn % 6 == 5);
        let bytes = &whole[which];
        // The header is a part in hundreds, and where most can go wrong.
        let end = if turn % 6 == 4 { 320 } else { bytes.len() };
        let at = random.random_range(0..end);
        let damage = match turn % 3 {
            0 => (at / 4096 * 4096, vec![0; 4096]),
            1 => (at / 512 * 512, vec![0; 512]),
            _ => (at, vec![bytes[at] ^ 1 << random.random_range(0..8)]),
        };
        for (path, bytes) in names.iter().zip(&whole) {
            std::fs::write(path, bytes).unwrap();
        }
        let mut damaged = bytes.clone();
        damaged[damage.0..damage.0 + damage.1.len()].copy_from_slice(&damage.1);
        // Under an open engine, whose every read goes to the file.
        let engine = BtreeEngine::open(BtreeConfig { cache_size: 0, ..config(directory.path()) }).unwrap();
        write_over(&names[which], &damaged);
        met += usize::from(read_all(&engine, &rows) > 0);
        drop(engine);
        // And before a start.
        for (path, bytes) in names.iter().zip(&whole) {
            std::fs::write(path, bytes).unwrap();
        }
        std::fs::write(&names[which], &damaged).unwrap();
        match BtreeEngine::open(config(directory.path())) {
            Err(error) => {
                is_clear(&error);
                refused += 1;
            }
            Ok(engine) => {
                assert_eq!(engine.applied(), CommitNo(4), "turn {turn}");
                read_all(&engine, &rows);
            }
        }
    }
    assert!(refused > 5 && met > 5, "{refused} refused, {met} met damage: is anything checked?");
}

/// Flips a bit of the row's newest version wherever the file has it.
fn flip_versions_of(path: &Path, row: &(Bytes, Bytes)) {
    let place = crate::key::join(&row.0, u64::from(row.1[0] - b'0'));
    let mut bytes = std::fs::read(path).unwrap();
    let found: Vec<_> =
        (0..bytes.len() - place.len()).filter(|at| bytes[*at..].starts_with(&place)).collect();
    assert!(!found.is_empty());
    found.iter().for_each(|at| bytes[*at] ^= 1);
    write_over(path, &bytes);
}

/// As a device would: the engine may be reading.
fn write_over(path: &Path, bytes: &[u8]) {
    std::fs::File::options().write(true).open(path).unwrap().write_all_at(bytes, 0).unwrap();
}

#[test]
fn reads_of_other_pages_and_writes_go_on_beside_a_damaged_page() {
    // Nothing to prune: a transaction that writes and needs the damaged page is the end of the engine.
    let (directory, rows) = filled_by(4..=4);
    let wanted = &rows[500].0[..];
    // redb's debug builds read every page of a file that they open.
    let engine = BtreeEngine::open(BtreeConfig { cache_size: 0, ..config(directory.path()) }).unwrap();
    flip_versions_of(&directory.path().join("data.redb"), &rows[500]);
    assert!(engine.snapshot(CommitNo(4)).get(wanted).is_err());
    assert!(read_all(&engine, &rows) > 0);
    assert_eq!(engine.snapshot(CommitNo(4)).get(&rows[0].0).unwrap().as_ref(), Some(&rows[0].1));
    put(&engine, 5, &[key(9, 1)], "new");
    engine.commit_ordered(CommitNo(5));
    engine.checkpoint().unwrap();
    assert!(engine.failure().is_none());
    assert_eq!(engine.snapshot(CommitNo(5)).get(&key(9, 1)).unwrap().unwrap(), "new");
}

/// Commits before damage is met stay readable; later ones are refused; the process continues.
#[test]
fn a_write_that_needs_a_damaged_page_is_the_last_one_and_not_the_end() {
    let (directory, rows) = filled();
    let config = BtreeConfig { cache_size: 0, ..config(directory.path()) };
    let engine = BtreeEngine::open(config.clone()).unwrap();
    flip_versions_of(&directory.path().join("data.redb"), &rows[500]);
    // Without a look at it before.
    put(&engine, 5, std::slice::from_ref(&rows[500].0), "new");
    engine.commit_ordered(CommitNo(5));
    is_clear(&engine.checkpoint().unwrap_err());
    assert!(engine.failure().is_none(), "{:?}", engine.failure());
    is_clear(&engine.refuses(&WriteSet::default()).unwrap());
    assert_eq!(engine.persisted(), CommitNo(4));
    assert_eq!(engine.write_stall(), std::time::Duration::ZERO);
    assert_eq!(engine.snapshot(CommitNo(5)).get(&rows[500].0).unwrap().unwrap(), "new");
    assert_eq!(engine.snapshot(CommitNo(5)).get(&rows[0].0).unwrap().as_ref(), Some(&rows[0].1));
    let pair = (key(9, 1), Bytes::from_static(b"v"));
    is_clear(&engine.load(CommitNo(5), &mut std::iter::once(pair)).unwrap_err());
    put(&engine, 6, &[key(9, 2)], "later");
    engine.commit_ordered(CommitNo(6));
    assert_eq!(engine.snapshot(CommitNo(6)).get(&key(9, 2)).unwrap().unwrap(), "later");
    drop(engine);
    // The next start either says so or comes to the same.
    match BtreeEngine::open(config) {
        Err(error) => is_clear(&error),
        Ok(engine) => assert_eq!(engine.applied(), CommitNo(4)),
    }
}

#[test]
fn a_file_without_checksums_is_verified_and_gets_them() {
    let (directory, rows) = filled();
    let sums = directory.path().join("data.sums");
    std::fs::remove_file(&sums).unwrap();
    let engine = open(directory.path());
    assert_eq!(read_all(&engine, &rows), 0);
    drop(engine);
    assert!(sums.exists());
    // Without ours, redb's own find it at the start.
    std::fs::remove_file(&sums).unwrap();
    let path = directory.path().join("data.redb");
    flip_versions_of(&path, &rows[500]);
    is_clear(&BtreeEngine::open(config(directory.path())).unwrap_err());
}

/// A first start that was interrupted is begun again.
#[test]
fn a_half_made_file_is_made_anew() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("data.redb.new"), [0; 5000]).unwrap();
    std::fs::write(directory.path().join("data.sums.new"), [0; 5]).unwrap();
    let engine = open(directory.path());
    put(&engine, 1, &[key(1, 1)], "v");
    engine.commit_ordered(CommitNo(1));
    engine.checkpoint().unwrap();
}
