//! Files through the seam against a plain file that the same was done to.
#![allow(clippy::unwrap_used)]
use super::*;

struct Fixture {
    dir: tempfile::TempDir,
    disk: Disk,
    encryption: Arc<Encryption>,
}

impl Fixture {
    fn new() -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let keyring = Keyring::open(&dir.path().join("keyring"), "u").unwrap();
        let encryption = Encryption::over(Disk::default(), Some(keyring));
        assert!(encryption.turn_on().unwrap());
        Fixture { disk: Disk::new(encryption.clone()), dir, encryption }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A file of zeros that has begun.
    fn begin(&self, name: &str, len: usize) -> File {
        std::fs::write(self.path(name), vec![0; len]).unwrap();
        self.disk.begin(&self.path(name)).unwrap();
        self.disk.open(&self.path(name), Open::Write).unwrap()
    }
}

#[test]
fn what_is_written_is_read_wherever_it_begins_and_is_not_in_the_file() {
    let place = Fixture::new();
    let file = place.begin("f", 1 << 20);
    assert_eq!((file.len().unwrap(), file.front(), file.unit()), ((1 << 20) - 512, 512, 16));
    let mut model = vec![0; (1 << 20) - 512];
    let text: Vec<u8> = b"\xfebinSECRET-SECRET".repeat(4000);
    for (at, len) in [(0, 20), (20, 1), (21, 500), (521, 60_000), (60_521, 7), (23, 3), (200_000, 16)] {
        // Room up to the unit's end, as the log writes.
        let mut bytes = text[..len].to_vec();
        let end = (at + len).next_multiple_of(16);
        if end > 60_000 || len == 20 {
            bytes.resize(end - at, 0);
        }
        file.write_all_with_room(&bytes, len, at as u64).unwrap();
        model[at..at + bytes.len()].copy_from_slice(&bytes);
    }
    for (at, len) in [(0, 1 << 20), (0, 4), (3, 100), (16, 32), (521, 17), (60_000, 100_000), (199_990, 64)] {
        let mut bytes = vec![1; len];
        let read = file.read_at(&mut bytes, at as u64).unwrap();
        assert_eq!(bytes[..read], model[at..model.len().min(at + len)], "at {at}");
    }
    let raw = std::fs::read(place.path("f")).unwrap();
    assert!(!raw.windows(6).any(|part| part == b"SECRET"));
    assert!(raw[512 + 200_016..].iter().all(|byte| *byte == 0), "spare space stays as it is");
    assert!(raw[512 + 61_000..512 + 200_000].iter().all(|byte| *byte == 0));
}

/// Lengths are those behind the header, and what is added is zeros.
#[test]
fn a_file_that_gets_longer_and_shorter_ends_in_zeros() {
    let place = Fixture::new();
    let file = place.begin("f", 0);
    file.write_all_at(b"\xfebin0123456789abcdefghi", 0).unwrap();
    assert_eq!(file.read_all().unwrap(), b"\xfebin0123456789abcdefghi");
    file.set_len(10).unwrap();
    file.set_len(40).unwrap();
    let mut expected = b"\xfebin012345".to_vec();
    expected.resize(40, 0);
    assert_eq!(file.read_all().unwrap(), expected);
    assert_eq!(place.disk.metadata(&place.path("f")).unwrap().len, 40);
    // The last bytes of a file are what was written, whatever they look like.
    for len in 17..33 {
        file.set_len(16).unwrap();
        file.write_all_at(&vec![b'x'; len - 16], 16).unwrap();
        assert_eq!(file.read_all().unwrap()[16..], vec![b'x'; len - 16]);
    }
}

/// Whole blocks of the file, of which the first has the header.
#[test]
fn direct_writes_are_aligned_and_keep_the_header() {
    let place = Fixture::new();
    let plain = place.begin("f", 64 << 10);
    let Ok(direct) = place.disk.open(&place.path("f"), Open::WriteDirect) else { return };
    let bytes = vec![b'd'; 8192 - 512];
    let mut first = bytes.clone();
    first[..4].copy_from_slice(&PLAIN);
    if direct.write_all_with_room(&first, 100, 0).is_err() {
        return; // No direct writes here.
    }
    direct.write_all_with_room(&vec![b'e'; 2 << 20], 2 << 20, 8192 - 512).unwrap();
    let mut seen = vec![0; 8192 - 512 + 10];
    plain.read_exact_at(&mut seen, 0).unwrap();
    assert_eq!((&seen[..4], &seen[8192 - 512..]), (&PLAIN[..], &[b'e'; 10][..]));
    assert_eq!(plain.len().unwrap(), (2 << 20) + 8192 - 512);
    drop(place.disk.open(&place.path("f"), Open::Read).unwrap());
}

#[test]
fn a_new_master_key_changes_headers_only() {
    let place = Fixture::new();
    let path = place.path("f");
    let file = place.begin("f", 1000);
    file.write_all_at(b"\xfebin and more of it", 0).unwrap();
    let before = std::fs::read(&path).unwrap();
    assert!(place.encryption.new_master_key().unwrap());
    assert!(place.encryption.is_under_old_key(&path).unwrap() && place.encryption.has_old_keys());
    let read = || place.disk.open(&path, Open::Read).and_then(|file| file.read_all());
    assert!(read().unwrap().starts_with(b"\xfebin and"));
    place.encryption.rewrap(&path).unwrap();
    assert!(!place.encryption.is_under_old_key(&path).unwrap());
    place.encryption.forget_old_keys().unwrap();
    assert!(!place.encryption.has_old_keys());
    assert!(read().unwrap().starts_with(b"\xfebin and"));
    let after = std::fs::read(&path).unwrap();
    assert_eq!(before[512..], after[512..]);
    assert_ne!(before[..512], after[..512]);
}

#[test]
fn the_wrong_keyring_and_each_flipped_bit_are_said_and_change_nothing() {
    let place = Fixture::new();
    let path = place.path("f");
    place.begin("f", 0).write_all_at(b"\xfebin and more of it", 0).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let open = |keyring| {
        let disk = Disk::new(Encryption::over(Disk::default(), keyring));
        disk.open(&path, Open::Write).map(drop).unwrap_err().to_string()
    };
    assert!(open(None).contains("--keyring-file-data"));
    let other = |name: &str| Keyring::open(&place.path(name), "u").unwrap();
    assert!(open(Some(other("none"))).contains("is not in the keyring"));
    other("other").add().unwrap();
    assert!(open(Some(other("other"))).contains("is not the one"));
    for bit in 0..512 * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, &bytes).unwrap();
        let opened = place.disk.open(&path, Open::Read);
        // Without its magic number it is no encrypted file, and no log either.
        assert!(opened.is_err() || bit < 32, "bit {bit}");
    }
    std::fs::write(&path, &whole).unwrap();
    place.disk.open(&path, Open::Read).unwrap();
}

#[test]
fn a_secret_file_is_readable_once_it_is_revealed() {
    let place = Fixture::new();
    let (path, to) = (place.path("s"), place.path("binlog.1"));
    let file = place.disk.create_hidden(&path).unwrap();
    file.write_all_at(b"rows rows rows", 16_384 - 512).unwrap();
    file.write_all_at(b"\xfebin", 0).unwrap();
    let raw = std::fs::read(&path).unwrap();
    assert!(raw[..512].iter().all(|byte| *byte == 0) && !raw.windows(4).any(|part| part == b"rows"));
    place.encryption.new_master_key().unwrap();
    place.disk.reveal(&path).unwrap();
    place.disk.rename(&path, &to).unwrap();
    let mut back = [0; 4];
    place.disk.open(&to, Open::Read).unwrap().read_exact_at(&mut back, 16_384 - 512).unwrap();
    assert_eq!(&back, b"rows");
    assert!(!place.encryption.is_under_old_key(&to).unwrap());
    let copy = place.path("copy");
    place.disk.copy_start(&to, &copy, 16_384 - 512 + 4).unwrap();
    assert_eq!(std::fs::metadata(&copy).unwrap().len(), 16_384 + 4);
    place.disk.open(&copy, Open::Read).unwrap().read_exact_at(&mut back, 16_384 - 512).unwrap();
    assert_eq!(&back, b"rows");
}

/// A file that was taken and not begun by the time of a crash, and one whose server encrypts no more.
#[test]
fn a_file_may_begin_again_and_off_is_off() {
    let place = Fixture::new();
    place.begin("f", 5000);
    place.disk.begin(&place.path("f")).unwrap();
    assert!(place.encryption.is_encrypted(&place.path("f")).unwrap());
    place.encryption.turn_off();
    place.disk.begin(&place.path("f")).unwrap();
    assert_eq!(std::fs::read(place.path("f")).unwrap(), vec![0; 5000]);
    drop(place.disk.create_hidden(&place.path("s")).unwrap());
    assert_eq!((place.disk.front(), std::fs::read(place.path("s")).unwrap().len()), (0, 0));
}
