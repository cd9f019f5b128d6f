//! Encrypted files against plain ones that the same was done to, and the ways in which keys are missing.
#![allow(clippy::unwrap_used)]
use super::*;
use crate::table_key::TABLE_KEY_FILE;

struct Fixture {
    dir: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Fixture {
        Fixture { dir: tempfile::tempdir().unwrap() }
    }

    fn datadir(&self) -> PathBuf {
        let datadir = self.dir.path().join("d");
        std::fs::create_dir_all(datadir.join("btree")).unwrap();
        datadir
    }

    fn keyring(&self) -> PathBuf {
        self.dir.path().join("keyring")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.datadir().join("btree").join(name)
    }

    fn open(&self, on: bool) -> Result<Arc<TableEncryption>, TableKeyError> {
        let keyring = Keyring::open_for_tables(&self.keyring(), "u").unwrap();
        TableEncryption::open(Disk::default(), &self.datadir(), Some(keyring), on)
    }

    fn disk(&self, on: bool) -> Disk {
        Disk::new(self.open(on).unwrap())
    }

    fn shows(&self, name: &str, text: &[u8]) -> bool {
        let raw = std::fs::read(self.path(name)).unwrap();
        raw.windows(text.len()).any(|part| part == text)
    }
}

const SECRET: &[u8] = b"SECRET-SECRET-SECRET-SECRET!";

#[test]
fn a_file_in_place_is_what_a_plain_one_would_be() {
    let place = Fixture::new();
    let disk = place.disk(true);
    let file = disk.open(&place.path("f"), Open::CreateNew).unwrap();
    let plain = Disk::default().open(&place.path("plain"), Open::CreateNew).unwrap();
    let text: Vec<u8> = SECRET.repeat(9000);
    let mut seed = 7_u64;
    let mut draw = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    for step in 0..400 {
        let (at, len) = (draw(300_000), draw(if step % 10 == 0 { 100_000 } else { 50 }) as usize);
        match draw(12) {
            0 => {
                let len = draw(400_000);
                for file in [&file, &plain] {
                    file.set_len(len).unwrap();
                }
                plain.set_len(len.next_multiple_of(16)).unwrap();
            }
            _ => {
                let from = draw(1000) as usize;
                for file in [&file, &plain] {
                    file.write_all_at(&text[from..from + len], at).unwrap();
                }
                plain.set_len(plain.len().unwrap().next_multiple_of(16)).unwrap();
            }
        }
        assert_eq!(file.len().unwrap(), plain.len().unwrap(), "step {step}");
        let (at, len) = (draw(300_000), draw(9000) as usize);
        let (mut here, mut there) = (vec![1; len], vec![1; len]);
        let read = (read_full(&*file, &mut here, at).unwrap(), read_full(&*plain, &mut there, at).unwrap());
        assert_eq!(read.0, read.1, "step {step}: {len} at {at}");
        assert_eq!(here[..read.0], there[..read.1], "step {step}: {len} at {at}");
    }
    let again = disk.open(&place.path("f"), Open::Read).unwrap();
    assert_eq!(again.read_all().unwrap(), std::fs::read(place.path("plain")).unwrap());
    assert!(place.shows("plain", &SECRET[..16]) && !place.shows("f", &SECRET[..16]));
    assert_eq!((again.front(), disk.metadata(&place.path("f")).unwrap().len), (4096, again.len().unwrap()));
}

#[test]
fn a_file_in_order_is_read_at_any_place() {
    let place = Fixture::new();
    let disk = place.disk(true);
    let file = File::new(disk.create_in_order(&place.path("f")).unwrap());
    let text: Vec<u8> = SECRET.repeat(100_000);
    let mut at = 0;
    for len in [1, 15, 16, 4096, 70_001, 1 << 20, 1_600_000] {
        file.write_all_at(&text[at..at + len], at as u64).unwrap();
        at += len;
    }
    file.sync_all().unwrap();
    let again = disk.open(&place.path("f"), Open::Read).unwrap();
    assert_eq!(again.read_all().unwrap(), text[..at]);
    for (from, len) in [(0, 1), (17, 40), (65_535, 9000), (at - 5, 5)] {
        let mut bytes = vec![0; len];
        again.read_exact_at(&mut bytes, from as u64).unwrap();
        assert_eq!(bytes, text[from..from + len]);
    }
    assert!(!place.shows("f", &SECRET[..16]));
    assert!(disk.create_in_order(&place.path("f")).is_err(), "it must not exist yet");
    let two = File::new(disk.create_in_order(&place.path("g")).unwrap());
    two.write_all_at(&text[..64], 0).unwrap();
    let raw = |name| std::fs::read(place.path(name)).unwrap();
    assert_ne!(raw("f")[4096..4160], raw("g")[4096..4160], "each file has a key of its own");
}

/// Old files stay readable beside new ones, whichever way the switch goes, and are counted.
#[test]
fn files_of_both_kinds_are_read_whatever_the_switch_says() {
    let place = Fixture::new();
    let write = |disk: &Disk, name: &str| {
        disk.open(&place.path(name), Open::Replace).unwrap().write_all_at(SECRET, 0).unwrap();
    };
    let off = place.disk(false);
    assert!(!place.datadir().join(TABLE_KEY_FILE).exists() && !place.keyring().exists());
    write(&off, "plain");
    let on = place.disk(true);
    write(&on, "encrypted");
    let off = place.disk(false);
    write(&off, "plain too");
    for disk in [&on, &off] {
        for name in ["plain", "encrypted", "plain too"] {
            let bytes = disk.read(&place.path(name)).unwrap();
            assert_eq!(&bytes[..SECRET.len()], SECRET, "{name}");
        }
    }
    assert!(on.has_other_form(&place.path("plain")).unwrap());
    assert!(!on.has_other_form(&place.path("encrypted")).unwrap());
    assert!(off.has_other_form(&place.path("encrypted")).unwrap());
    assert!(
        place.shows("plain", SECRET) && place.shows("plain too", SECRET) && !place.shows("encrypted", SECRET)
    );
    let survey = place.open(true).unwrap().survey().unwrap();
    assert_eq!(survey, Survey { encrypted: 1, plain: 2, plain_bytes: 2 * SECRET.len() as u64 });
    write(&on, "plain");
    assert!(!place.shows("plain", SECRET), "a file that is replaced is encrypted");
}

#[test]
fn another_master_key_changes_one_small_file_and_old_copies_of_it_stay_good() {
    let place = Fixture::new();
    let tables = place.open(true).unwrap();
    let disk = Disk::new(tables.clone());
    disk.open(&place.path("f"), Open::Replace).unwrap().write_all_at(SECRET, 0).unwrap();
    let raw = std::fs::read(place.path("f")).unwrap();
    let key_file = place.datadir().join(TABLE_KEY_FILE);
    let before = std::fs::read(&key_file).unwrap();
    assert!(tables.rotate().unwrap());
    let after = std::fs::read(&key_file).unwrap();
    assert_ne!(before, after);
    assert!(String::from_utf8(after.clone()).unwrap().contains("master INNODBKey-u-2\n"));
    assert_eq!(std::fs::read(place.path("f")).unwrap(), raw, "no other file changes");
    for file in [&after, &before] {
        std::fs::write(&key_file, file).unwrap();
        assert_eq!(&place.disk(true).read(&place.path("f")).unwrap()[..SECRET.len()], SECRET);
    }
    let off = TableEncryption::open(Disk::default(), place.dir.path(), None, false).unwrap();
    assert!(!off.rotate().unwrap(), "without a keyring there is nothing to rotate");
}

#[test]
fn a_missing_a_wrong_and_a_lost_key_are_told_apart_and_change_nothing() {
    let place = Fixture::new();
    let (datadir, key_file) = (place.datadir(), place.datadir().join(TABLE_KEY_FILE));
    let without = |on| TableEncryption::open(Disk::default(), &datadir, None, on);
    assert!(matches!(without(true), Err(TableKeyError::NoKeyring)));
    assert!(!key_file.exists());
    let disk = place.disk(true);
    disk.open(&place.path("f"), Open::Replace).unwrap().write_all_at(SECRET, 0).unwrap();
    let whole = std::fs::read(&key_file).unwrap();
    for on in [false, true] {
        let error = without(on).unwrap_err();
        assert!(
            matches!(&error, TableKeyError::Locked { path, key } if *path == key_file && key == "INNODBKey-u-1")
        );
    }
    let ring = std::fs::read(place.keyring()).unwrap();
    std::fs::remove_file(place.keyring()).unwrap();
    assert!(matches!(place.open(true), Err(TableKeyError::Missing { .. })));
    assert!(!place.keyring().exists(), "no other key is made");
    Keyring::open_for_tables(&place.keyring(), "u").unwrap().add().unwrap();
    assert!(matches!(place.open(true), Err(TableKeyError::Wrong { .. })));
    std::fs::write(place.keyring(), &ring).unwrap();
    std::fs::write(&key_file, &whole[..100]).unwrap();
    assert!(matches!(place.open(true), Err(TableKeyError::Damaged(_))));
    std::fs::remove_file(&key_file).unwrap();
    assert!(matches!(place.open(true), Err(TableKeyError::Lost(_, file)) if file == place.path("f")));
    assert!(!key_file.exists(), "a new table key would open none of the files");
    let error = place.disk(false).open(&place.path("f"), Open::Read).unwrap_err();
    assert!(error.to_string().contains("there is no encryption.key"), "{error}");
    std::fs::write(&key_file, &whole).unwrap();
    std::fs::rename(place.path("f"), place.dir.path().join("f")).unwrap();
    assert!(without(false).is_ok(), "without encrypted tables no key is needed");
    std::fs::rename(place.dir.path().join("f"), place.path("f")).unwrap();
    assert_eq!(&place.disk(true).read(&place.path("f")).unwrap()[..SECRET.len()], SECRET);
}

#[test]
fn a_damaged_or_short_header_is_an_error_that_names_the_file() {
    let place = Fixture::new();
    let disk = place.disk(true);
    disk.open(&place.path("f"), Open::Replace).unwrap().write_all_at(SECRET, 0).unwrap();
    let whole = std::fs::read(place.path("f")).unwrap();
    let mut flipped = whole.clone();
    flipped[20] ^= 1;
    for (bytes, what) in
        [(&flipped[..], "damaged"), (&whole[..4095], "cut short"), (&whole[..8], "cut short")]
    {
        std::fs::write(place.path("f"), bytes).unwrap();
        let error = disk.open(&place.path("f"), Open::Write).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(error.to_string().contains(what) && error.to_string().contains("btree/f"), "{error}");
    }
}
