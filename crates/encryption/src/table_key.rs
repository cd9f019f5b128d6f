//! The data directory's table key: what the keys of its table files are made of. The file `encryption.key` in the data directory
//! has it, encrypted under the keyring's master key; so another master key needs that small file anew, and no other.
//!
//! Lines of text: `omnibus-table-key 1`; `master` and the master key's name; `iv` and `key`, the table key in AES-256-CBC;
//! `check`, a digest of the key, which tells a wrong master key; `crc32` of the lines before. Written under another name, synced
//! and renamed: a crash leaves the old file or the new one, and the keyring has the master keys of both.

use crate::key::{MasterKey, Password, from_hex, to_hex};
use omnibus_disk::{Disk, Open};
use sha2::{Digest, Sha512};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// The file's name in a data directory.
pub const TABLE_KEY_FILE: &str = "encryption.key";
const FIRST: &str = "omnibus-table-key 1\n";
const CHECKSUM: &str = "crc32 ";

/// Bytes of a key's digest.
pub(crate) const CHECK: usize = 16;

/// The digest by which a key is known again.
pub(crate) fn check(key: &Password) -> [u8; CHECK] {
    let digest = Sha512::new().chain_update(b"omnibus table key").chain_update(key.0).finalize();
    let mut check = [0; CHECK];
    check.copy_from_slice(&digest[..CHECK]);
    check
}

/// A table file's password.
pub(crate) fn password(key: &Password, salt: &[u8; 32]) -> Password {
    let digest =
        Sha512::new().chain_update(b"omnibus table file").chain_update(key.0).chain_update(salt).finalize();
    let mut password = [0; 32];
    password.copy_from_slice(&digest[..32]);
    Password(password)
}

/// The key as the file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrappedKey {
    /// The master key's name.
    pub(crate) master: String,
    wrapped: [u8; 32],
    iv: [u8; 16],
    check: [u8; CHECK],
}

impl WrappedKey {
    pub(crate) fn new(name: &str, master: &MasterKey, key: &Password) -> io::Result<WrappedKey> {
        let (wrapped, iv) = master.wrap(key)?;
        Ok(WrappedKey { master: name.to_owned(), wrapped, iv, check: check(key) })
    }

    /// The key, if this is the master key that it is under.
    pub(crate) fn unwrap(&self, master: &MasterKey) -> Option<Password> {
        let key = master.unwrap(&self.wrapped, &self.iv);
        (check(&key) == self.check).then_some(key)
    }

    /// Reads the file; `None` if there is none, and `Some(None)` if it is damaged.
    pub(crate) fn read(disk: &Disk, datadir: &Path) -> io::Result<Option<Option<WrappedKey>>> {
        match disk.read(&place(datadir)) {
            Ok(bytes) => Ok(Some(std::str::from_utf8(&bytes).ok().and_then(WrappedKey::parse))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Durable on return; after an error the file is this one, or the one before.
    pub(crate) fn write(&self, disk: &Disk, datadir: &Path) -> io::Result<()> {
        let path = place(datadir);
        let temporary = path.with_extension("key.new");
        let file = disk.open(&temporary, Open::Replace)?;
        file.write_all_at(self.render().as_bytes(), 0)?;
        file.sync_all()?;
        disk.rename(&temporary, &path)?;
        disk.sync_dir(datadir)
    }

    fn render(&self) -> String {
        let (iv, key, check) = (to_hex(&self.iv), to_hex(&self.wrapped), to_hex(&self.check));
        let mut text = format!("{FIRST}master {}\niv {iv}\nkey {key}\ncheck {check}\n", self.master);
        let _ = writeln!(text, "{CHECKSUM}{:08x}", crc32fast::hash(text.as_bytes()));
        text
    }

    fn parse(text: &str) -> Option<WrappedKey> {
        let (body, sum) = text.rsplit_once(CHECKSUM)?;
        if sum != format!("{:08x}\n", crc32fast::hash(body.as_bytes())) {
            return None;
        }
        let mut lines = body.strip_prefix(FIRST)?.lines();
        let mut next = |word: &str| lines.next()?.strip_prefix(word)?.strip_prefix(' ');
        let master = next("master")?.to_owned();
        let (iv, wrapped) = (from_hex(next("iv")?)?, from_hex(next("key")?)?);
        Some(WrappedKey { master, wrapped, iv, check: from_hex(next("check")?)? })
    }
}

/// Where the file is.
pub(crate) fn place(datadir: &Path) -> PathBuf {
    datadir.join(TABLE_KEY_FILE)
}

/// Returns what is wrong with a data directory's file, if it is damaged.
///
/// # Errors
/// It can not be read.
pub fn damaged_table_key(disk: &Disk, datadir: &Path) -> io::Result<Option<String>> {
    let read = WrappedKey::read(disk, datadir)?;
    Ok(read.filter(Option::is_none).map(|_| format!("{}: it is damaged", place(datadir).display())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_key_comes_back_under_its_master_key_only() {
        let (master, other) = (MasterKey::random().unwrap(), MasterKey::random().unwrap());
        let key = Password::random().unwrap();
        let wrapped = WrappedKey::new("INNODBKey-a-1", &master, &key).unwrap();
        assert_eq!(wrapped.unwrap(&master).unwrap().0, key.0);
        assert!(wrapped.unwrap(&other).is_none());
        assert_ne!(wrapped.wrapped, key.0);
    }

    #[test]
    fn the_file_is_read_as_written_and_every_flipped_bit_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::default();
        assert!(WrappedKey::read(&disk, dir.path()).unwrap().is_none());
        let wrapped = WrappedKey::new("INNODBKey-a-1", &MasterKey([3; 32]), &Password([4; 32])).unwrap();
        wrapped.write(&disk, dir.path()).unwrap();
        assert_eq!(WrappedKey::read(&disk, dir.path()).unwrap().unwrap().unwrap(), wrapped);
        assert!(damaged_table_key(&disk, dir.path()).unwrap().is_none());
        let whole = std::fs::read(place(dir.path())).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(place(dir.path()), &bytes).unwrap();
            assert!(WrappedKey::read(&disk, dir.path()).unwrap().unwrap().is_none(), "bit {bit}");
        }
        assert!(damaged_table_key(&disk, dir.path()).unwrap().unwrap().contains("encryption.key"));
        for len in 0..whole.len() {
            std::fs::write(place(dir.path()), &whole[..len]).unwrap();
            assert!(WrappedKey::read(&disk, dir.path()).unwrap().unwrap().is_none(), "{len}");
        }
    }

    #[test]
    fn each_salt_makes_another_password() {
        let key = Password([5; 32]);
        assert_ne!(password(&key, &[0; 32]).0, password(&key, &[1; 32]).0);
        assert_ne!(password(&key, &[0; 32]).0, password(&Password([6; 32]), &[0; 32]).0);
    }
}
