//! Encrypted tables: the contract, old tables beside new ones, and a quiet tree that is written anew.

use super::{eventually, key, noise, open, put, tiny};
use crate::{LsmConfig, LsmEngine};
use omnibus_disk::{Disk, Overlay};
use omnibus_encryption::{Keyring, TABLE_MAGIC, TableEncryption};
use omnibus_engine::{CommitNo, Engine, ReadAt, conformance};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A disk of the data directory above an engine's.
fn disk(over: Disk, directory: &Path, on: bool) -> Disk {
    let above = directory.parent().unwrap();
    std::fs::create_dir_all(above).unwrap();
    Disk::new(TableEncryption::open(over, above, Some(Keyring::fixed([7; 32])), on).unwrap())
}

fn forms(directory: &Path) -> Vec<bool> {
    let tables = std::fs::read_dir(directory.join("tree/tables")).unwrap();
    let bytes = tables.filter_map(|entry| std::fs::read(entry.unwrap().path()).ok());
    bytes.map(|bytes| bytes.starts_with(&TABLE_MAGIC)).collect()
}

fn rows(engine: &LsmEngine, to: u64) {
    for number in 1..=to {
        let found = engine.get_at(CommitNo(to), &key(7, number)).unwrap().unwrap();
        assert_eq!(found, noise(number, 300), "row {number}");
    }
}

#[test]
fn encrypted_tables_conform() {
    // Of one data directory: a backup's key is copied by who makes it.
    let place = tempfile::tempdir().unwrap();
    let rows = disk(Disk::default(), &place.path().join("lsm"), true);
    conformance::run_all(|directory| {
        let config = LsmConfig { block_cache_size: 1 << 20, ..LsmConfig::new(directory) };
        Arc::new(open(LsmConfig { rows: rows.clone(), ..config }))
    });
}

#[test]
fn tables_get_the_form_of_new_ones_and_are_read_in_either() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("lsm");
    let (never, soon) = (Duration::from_secs(3600), Duration::from_millis(50));
    let mut last = 0;
    for (on, sweep_after) in [(false, never), (true, never), (true, soon), (false, soon)] {
        let rows_on = disk(Disk::default(), &directory, on);
        let engine = open(LsmConfig { rows: rows_on, sweep_after, ..tiny(&directory) });
        rows(&engine, last);
        for number in last + 1..=last + 100 {
            put(&engine, number, key(7, number), 300);
        }
        last += 100;
        engine.gc_watermark(CommitNo(last));
        engine.checkpoint().unwrap();
        rows(&engine, last);
        if sweep_after == never {
            assert!(forms(&directory).contains(&on), "new tables have the new form");
        } else {
            eventually("a sweep", || forms(&directory).iter().all(|form| *form == on));
        }
        rows(&engine, last);
        drop(engine);
        let found = crate::check(&directory, &disk(Overlay::disk(), &directory, !on)).unwrap();
        assert!(found.is_empty(), "{found:?}");
        let blind = crate::check(&directory, &Overlay::disk()).unwrap();
        assert_eq!(blind.is_empty(), !forms(&directory).contains(&true), "{blind:?}");
    }
}

/// A flipped bit of an encrypted table is found as one of a plain table is.
#[test]
fn damage_of_an_encrypted_table_is_found() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("lsm");
    let rows = disk(Disk::default(), &directory, true);
    let engine = open(LsmConfig { rows: rows.clone(), ..tiny(&directory) });
    for number in 1..=50 {
        put(&engine, number, key(7, number), 300);
    }
    engine.checkpoint().unwrap();
    drop(engine);
    let table = std::fs::read_dir(directory.join("tree/tables")).unwrap().next().unwrap().unwrap().path();
    let whole = std::fs::read(&table).unwrap();
    for at in [9, 30, 4096, 5000, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&table, &bytes).unwrap();
        let found = crate::check(&directory, &rows).unwrap();
        // What a start reads of a table is refused by the start, which tells no file.
        let by_start = found.iter().any(|line| line.contains("ChecksumMismatch"));
        let named = found.first().is_some_and(|line| line.contains(&*table.to_string_lossy()));
        assert!(named || at > 4096 && by_start, "byte {at}: {found:?}");
    }
}
