//! Logs encrypted at rest: a file's header, and the keyring.

use super::state::Folder;
use omnibus_encryption::{Header, Keyring, MAGIC};
use std::path::Path;

/// A header behind its magic; it comes back as it was, and the password under a master key is another one.
pub(super) fn header(input: &[u8]) {
    let bytes = [&MAGIC[..], input].concat();
    if let Ok(Some(header)) = Header::decode(&bytes) {
        assert_eq!(Header::decode(&header.encode()), Ok(Some(header)), "a header comes back");
    }
}

/// A keyring in the form of MySQL's component, or lines whose checksum is made here. A new master key is beside the old ones, and stays.
pub(super) fn keyring(input: &[u8]) {
    const SERVER: &str = "0b5c8f8e-0000-11ef-9000-000000000001";
    let folder = Folder::new();
    let sum = match input.first() {
        Some(b'{') => String::new(),
        _ => format!("# crc32={:08x}\n", crc32fast::hash(input)),
    };
    folder.write("keyring", &[input, sum.as_bytes()].concat());
    let path = folder.path().join("keyring");
    only_for_its_owner(&path);
    let open = || Keyring::open(&path, SERVER);
    let Ok(mut keyring) = open() else { return };
    let before = keyring.master().map(|(name, _)| name.to_owned());
    keyring.add().expect("a new key in a folder that can be written");
    let master = keyring.master().map(|(name, _)| name.to_owned());
    assert_ne!(master, before, "a new master key has a new name");
    if let Some(before) = &before {
        assert!(keyring.get(before).is_some(), "files under the key of before can be read");
    }
    let again = open().expect("what was written reads");
    assert_eq!(again.master().map(|(name, _)| name.to_owned()), master, "it stays");
}

/// Another keyring is not read.
#[cfg(unix)]
fn only_for_its_owner(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
        .expect("a file that was just written");
}

#[cfg(not(unix))]
fn only_for_its_owner(_: &Path) {}
