//! An encrypted file: the contract, and a file that gets the form of new ones at a start.

use super::*;
use omnibus_disk::{Disk, Overlay};
use omnibus_encryption::{Keyring, TABLE_MAGIC, TableEncryption};

/// A disk of the data directory above an engine's.
fn disk(over: Disk, directory: &Path, on: bool) -> Disk {
    let above = directory.parent().unwrap();
    std::fs::create_dir_all(above).unwrap();
    Disk::new(TableEncryption::open(over, above, Some(Keyring::fixed([7; 32])), on).unwrap())
}

fn encrypted(directory: &Path, on: bool) -> BtreeConfig {
    BtreeConfig { disk: disk(Disk::default(), directory, on), ..config(directory) }
}

fn raw(directory: &Path, name: &str) -> Vec<u8> {
    std::fs::read(directory.join(name)).unwrap()
}

fn shows(bytes: &[u8]) -> bool {
    bytes.windows(6).any(|part| part == b"SECRET")
}

#[test]
fn an_encrypted_file_conforms() {
    // Of one data directory: a backup's key is copied by who makes it.
    let place = tempfile::tempdir().unwrap();
    let disk = disk(Disk::default(), &place.path().join("btree"), true);
    conformance::run_all(|directory| {
        let config = BtreeConfig { disk: disk.clone(), ..config(directory) };
        Arc::new(BtreeEngine::open(config).unwrap())
    });
}

#[test]
fn a_start_gives_the_file_the_form_of_new_ones() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("btree");
    let (mut no, mut was) = (0, false);
    for on in [false, true, true, false] {
        let engine = BtreeEngine::open(encrypted(&directory, on)).unwrap();
        // Until the log has been replayed a start may be refused, and then nothing has changed.
        if no > 0 {
            assert_eq!(raw(&directory, "data.redb").starts_with(&TABLE_MAGIC), was);
        }
        assert_eq!(all(&engine, no).len() as u64, no * 100);
        engine.recovered().unwrap();
        assert_eq!(all(&engine, no).len() as u64, no * 100);
        was = on;
        no += 1;
        let keys: Vec<Bytes> = (0..100).map(|at| key(7, no * 1000 + at)).collect();
        put(&engine, no, &keys, "SECRET-SECRET-SECRET");
        engine.commit_ordered(CommitNo(no));
        engine.checkpoint().unwrap();
        drop(engine);
        for name in ["data.redb", "data.sums"] {
            assert_eq!(raw(&directory, name).starts_with(&TABLE_MAGIC), on, "{name}");
        }
        assert_eq!(shows(&raw(&directory, "data.redb")), !on);
        let found = crate::check(&directory, &disk(Overlay::disk(), &directory, false));
        assert!(found.is_empty(), "{found:?}");
        let blind = crate::check(&directory, &Overlay::disk());
        assert_eq!(blind.is_empty(), !on, "{blind:?}");
    }
}

/// A start that was killed while it wrote the file anew left a part of it under another name.
#[test]
fn what_an_interrupted_start_left_goes() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("btree");
    drop(BtreeEngine::open(encrypted(&directory, false)).unwrap());
    let left = ["data.redb.new", "data.sums.new"];
    left.iter().for_each(|name| std::fs::write(directory.join(name), "SECRET").unwrap());
    BtreeEngine::open(encrypted(&directory, true)).unwrap().recovered().unwrap();
    assert!(left.iter().all(|name| !directory.join(name).exists()));
}

/// A flipped bit of an encrypted block is found as one of a plain block is: its checksum is that of the contents.
#[test]
fn damage_of_an_encrypted_block_is_found() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("btree");
    let engine = BtreeEngine::open(encrypted(&directory, true)).unwrap();
    let keys: Vec<Bytes> = (0..500).map(|at| key(7, at)).collect();
    put(&engine, 1, &keys, &"SECRET".repeat(20));
    engine.commit_ordered(CommitNo(1));
    engine.checkpoint().unwrap();
    let plain = disk(Overlay::disk(), &directory, false).read(&directory.join("data.redb")).unwrap();
    drop(engine);
    let row = plain.windows(6).position(|part| part == b"SECRET").unwrap();
    let mut bytes = raw(&directory, "data.redb");
    bytes[4096 + row] ^= 1;
    std::fs::write(directory.join("data.redb"), bytes).unwrap();
    let found = crate::check(&directory, &disk(Overlay::disk(), &directory, false));
    assert!(found.iter().any(|line| line.contains("data.redb") && line.contains("checksum")), "{found:?}");
}
