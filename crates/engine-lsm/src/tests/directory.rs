//! The contents of the directory at start-up.

use super::*;
use omnibus_engine::EngineError;

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(tiny(directory.path())));
    let marker = directory.path().join("format");
    std::fs::write(&marker, "omnibus-engine-lsm 4\n").unwrap();
    let Err(EngineError::Format { found, supported, .. }) = LsmEngine::open(tiny(directory.path())) else {
        panic!("opened");
    };
    assert_eq!((&found[..], &supported[..]), ("omnibus-engine-lsm 4", "omnibus-engine-lsm 3"));
    assert_eq!(std::fs::read_to_string(marker).unwrap(), "omnibus-engine-lsm 4\n");
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

/// A directory at 7, and the names of its small files.
fn with_state() -> (tempfile::TempDir, Vec<std::path::PathBuf>) {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(tiny(directory.path()));
    for no in 1..=7 {
        put(&engine, no, key(1, no), 100);
    }
    engine.checkpoint().unwrap();
    drop(engine);
    // An open removes manifests that are not the current one.
    drop(open(tiny(directory.path())));
    let tree = directory.path().join("tree");
    let version = std::fs::read_dir(&tree).unwrap().map(|entry| entry.unwrap().path());
    let version = version.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with('v'));
    let own = ["format", "applied", "tree/current"].map(|name| directory.path().join(name));
    let files = own.into_iter().chain(version).collect();
    (directory, files)
}

/// Replay begins at `applied`: a number that is too high drops acknowledged commits (COMMIT-3), a lost manifest all of them.
#[test]
fn no_flipped_bit_or_lost_file_changes_what_is_replayed() {
    let (directory, files) = with_state();
    assert_eq!(files.len(), 4);
    let mut random = rand::rngs::StdRng::seed_from_u64(18);
    for path in files {
        let whole = std::fs::read(&path).unwrap();
        let bits = (0..60).map(|_| random.next_u32() as usize % (whole.len().min(4200) * 8));
        let mut damages: Vec<_> = bits.map(Some).collect();
        damages.push(None);
        for damage in damages {
            match damage {
                Some(bit) => {
                    let mut bytes = whole.clone();
                    bytes[bit / 8] ^= 1 << (bit % 8);
                    std::fs::write(&path, bytes).unwrap();
                }
                None => std::fs::remove_file(&path).unwrap(),
            }
            match LsmEngine::open(tiny(directory.path())) {
                Ok(engine) => assert_eq!(engine.applied(), CommitNo(7), "{} {damage:?}", path.display()),
                Err(error) => {
                    let text = error.to_string();
                    let name = directory.path().display().to_string();
                    assert!(text.contains(&name) && text.contains("backup"), "{damage:?}: {text}");
                }
            }
            std::fs::write(&path, &whole).unwrap();
        }
    }
    assert_eq!(open(tiny(directory.path())).applied(), CommitNo(7));
}

#[test]
fn one_damaged_copy_is_mended_from_the_other() {
    let (directory, files) = with_state();
    let whole = std::fs::read(&files[1]).unwrap();
    for block in [0, 4096] {
        let mut bytes = whole.clone();
        let end = whole.len().min(block + 4096);
        bytes[block..end].fill(0);
        std::fs::write(&files[1], bytes).unwrap();
        assert_eq!(open(tiny(directory.path())).applied(), CommitNo(7));
        assert_eq!(std::fs::read(&files[1]).unwrap(), whole);
    }
}

#[test]
fn a_directory_of_format_1_is_opened_and_brought_up() {
    let (directory, files) = with_state();
    std::fs::write(&files[0], "omnibus-engine-lsm 1\n").unwrap();
    std::fs::write(&files[1], "7\n").unwrap();
    assert_eq!(open(tiny(directory.path())).applied(), CommitNo(7));
    assert!(std::fs::read_to_string(&files[0]).unwrap().starts_with("omnibus-engine-lsm 3 "));
    // With checksums, a bare number is damage.
    std::fs::write(&files[1], "9\n").unwrap();
    assert!(matches!(LsmEngine::open(tiny(directory.path())), Err(EngineError::Corrupt { .. })));
}

/// A version that knows no packed rows must not open what has some.
#[test]
fn a_directory_of_format_2_is_opened_and_brought_up() {
    let (directory, files) = with_state();
    let format_2 = format!("omnibus-engine-lsm 2 {:08x}\n", crc32fast::hash(b"omnibus-engine-lsm 2"));
    std::fs::write(&files[0], &format_2).unwrap();
    assert_eq!(open(tiny(directory.path())).applied(), CommitNo(7));
    assert!(std::fs::read_to_string(&files[0]).unwrap().starts_with("omnibus-engine-lsm 3 "));
    // Format 2 has checksums in `applied`.
    std::fs::write(&files[0], &format_2).unwrap();
    std::fs::write(&files[1], "9\n").unwrap();
    assert!(matches!(LsmEngine::open(tiny(directory.path())), Err(EngineError::Corrupt { .. })));
}

/// Bits flipped in table files: right rows or an error, and `verify` names each file.
#[test]
fn damaged_table_files_never_give_wrong_rows_and_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(tiny(directory.path()));
    for no in 1..=300 {
        put(&engine, no, key(1, no), 100);
    }
    engine.checkpoint().unwrap();
    assert_eq!(engine.verify().unwrap(), [""; 0]);
    drop(engine);
    let mut random = rand::rngs::StdRng::seed_from_u64(6);
    for turn in 0..40 {
        let tables = std::fs::read_dir(directory.path().join("tree/tables")).unwrap();
        let mut tables: Vec<_> = tables.map(|entry| entry.unwrap().path()).collect();
        tables.sort();
        let path = &tables[random.next_u32() as usize % tables.len()];
        let whole = std::fs::read(path).unwrap();
        let mut bytes = whole.clone();
        let at = random.next_u32() as usize % bytes.len();
        if turn % 4 == 0 {
            let end = bytes.len().min(at + 512);
            bytes[at..end].fill(0);
        } else {
            bytes[at] ^= 1 << (turn % 8);
        }
        if bytes == whole {
            continue;
        }
        std::fs::write(path, &bytes).unwrap();
        // What an open can not make sense of is refused.
        if let Ok(engine) = LsmEngine::open(LsmConfig { memtable_size: 64 << 20, ..tiny(directory.path()) }) {
            let name = path.display().to_string();
            let found = engine.verify().unwrap();
            assert!(!path.exists() || found.iter().any(|line| line.starts_with(&name)), "{name}: {found:?}");
            for no in 1..=300 {
                if let Ok(value) = engine.snapshot(CommitNo(300)).get(&key(1, no)) {
                    assert_eq!(value, Some(noise(no, 100)), "turn {turn}, byte {at} of {name}");
                }
            }
        }
        if path.exists() {
            std::fs::write(path, &whole).unwrap();
        }
    }
}

/// However a row is read, the error says in which file of tables the damage is.
#[test]
fn damage_in_a_table_is_told_with_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(tiny(directory.path()));
    for no in 1..=200 {
        put(&engine, no, key(1, no), 100);
    }
    engine.checkpoint().unwrap();
    drop(engine);
    for file in std::fs::read_dir(directory.path().join("tree/tables")).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[100] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    let engine = open(tiny(directory.path()));
    let snapshot = engine.snapshot(CommitNo(200));
    let (from, to) = (key(1, 0), key(1, 300));
    let bounds = || (std::ops::Bound::Included(&from[..]), std::ops::Bound::Excluded(&to[..]));
    let errors = [
        (1..=200).find_map(|no| snapshot.get(&key(1, no)).err()),
        snapshot.scan(bounds().0, bounds().1, false).find_map(Result::err),
        snapshot.scan(bounds().0, bounds().1, true).find_map(Result::err),
        snapshot.visit(bounds().0, bounds().1, &mut |_, _| true).err(),
    ];
    for error in errors {
        let text = error.unwrap().to_string();
        assert!(text.contains("tree/tables/") && text.contains("backup"), "{text}");
    }
}
