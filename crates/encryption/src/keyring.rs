//! The file that master keys are in: text, for its owner's eyes only, replaced as a whole.
//!
//! A key has a name, as MySQL names it, and 32 bytes; [`crate::keyring_file`] has the file's form. Of a server's keys the one with the highest
//! number is its master key; others are there until no file needs them. A file may hold keys of several
//! servers, each of which keeps the others'; they must not change it at the same time.

use crate::key::MasterKey;
use crate::keyring_file::Contents;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

const PREFIX: &str = "MySQLReplicationKey_";

/// The error of a keyring.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    /// It cannot be read or written.
    #[error("the keyring {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// Its content is not what it was written with.
    #[error("the keyring {0} is damaged, or no keyring: restore it from a copy. Nothing was changed")]
    Damaged(PathBuf),
    /// Others may read it.
    #[error("the keyring {0} can be read or written by others than its owner: chmod 600 it")]
    Rights(PathBuf),
}

/// See the module.
#[derive(Debug)]
pub struct Keyring {
    path: PathBuf,
    /// The prefix of the names of this server's keys.
    own: String,
    contents: Contents,
}

impl Keyring {
    /// Reads the keyring at `path`, with `server_uuid`'s keys as its own. One that does not exist is empty.
    ///
    /// # Errors
    /// See [`KeyringError`].
    pub fn open(path: &Path, server_uuid: &str) -> Result<Keyring, KeyringError> {
        // Asserts RECOVER-3: a kill may have come before the file's name was durable. Who may not open the folder has not written there.
        if let Ok(folder) = File::open(folder_of(path)) {
            folder.sync_all().map_err(|source| KeyringError::Io { path: path.to_owned(), source })?;
        }
        Ok(Keyring { path: path.to_owned(), own: format!("{PREFIX}{server_uuid}_"), contents: read(path)? })
    }

    /// Creates a keyring with this master key and no file. No key can be added.
    #[must_use]
    pub fn fixed(key: [u8; 32]) -> Keyring {
        let own = format!("{PREFIX}fixed_");
        let mut contents = Contents::default();
        contents.keys.insert(format!("{own}1"), MasterKey(key));
        Keyring { path: PathBuf::new(), own, contents }
    }

    /// The key of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&MasterKey> {
        self.contents.keys.get(name)
    }

    /// The master key, if there is one yet.
    #[must_use]
    pub fn master(&self) -> Option<(&str, &MasterKey)> {
        let newest = self.own_keys().max_by_key(|(number, _)| *number)?;
        self.contents.keys.get_key_value(newest.1).map(|(name, key)| (name.as_str(), key))
    }

    /// Returns whether this server has keys besides the master key.
    #[must_use]
    pub fn has_old(&self) -> bool {
        self.own_keys().count() > 1
    }

    /// Makes a new master key. It is in the file on return, beside the others.
    ///
    /// # Errors
    /// See [`KeyringError`]; all is as before then.
    pub fn add(&mut self) -> Result<(), KeyringError> {
        let number = self.own_keys().map(|(number, _)| number).max().unwrap_or(0) + 1;
        let name = format!("{}{number}", self.own);
        let key = MasterKey::random().map_err(|source| self.failed(source))?;
        self.change(|keys| {
            keys.insert(name, key);
        })
    }

    /// Removes this server's keys but the master key: no file is under them any more.
    ///
    /// # Errors
    /// See [`KeyringError`]; all is as before then.
    pub fn forget_old(&mut self) -> Result<(), KeyringError> {
        let Some(master) = self.master().map(|(name, _)| name.to_owned()) else { return Ok(()) };
        let old: Vec<String> =
            self.own_keys().map(|(_, name)| name.clone()).filter(|name| *name != master).collect();
        if old.is_empty() {
            return Ok(());
        }
        self.change(|keys| keys.retain(|name, _| !old.contains(name)))
    }

    /// This server's, with their numbers.
    fn own_keys(&self) -> impl Iterator<Item = (u64, &String)> {
        self.contents.keys.keys().filter_map(|name| {
            // Of 32 bits, so that there is always a next one.
            let number: u32 = name.strip_prefix(&self.own)?.parse().ok()?;
            Some((u64::from(number), name))
        })
    }

    /// Another server may have changed its own.
    fn change(&mut self, change: impl FnOnce(&mut BTreeMap<String, MasterKey>)) -> Result<(), KeyringError> {
        let mut contents = read(&self.path)?;
        let own = self.contents.keys.iter().filter(|(name, _)| name.starts_with(&self.own));
        contents.keys.extend(own.map(|(name, key)| (name.clone(), key.clone())));
        change(&mut contents.keys);
        write(&self.path, &contents).map_err(|source| self.failed(source))?;
        self.contents = contents;
        Ok(())
    }

    fn failed(&self, source: io::Error) -> KeyringError {
        KeyringError::Io { path: self.path.clone(), source }
    }
}

fn read(path: &Path) -> Result<Contents, KeyringError> {
    let failed = |source| KeyringError::Io { path: path.to_owned(), source };
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Contents::default()),
        other => other.map_err(failed)?,
    };
    check_rights(path)?;
    Contents::parse(&bytes).ok_or_else(|| KeyringError::Damaged(path.to_owned()))
}

#[cfg(unix)]
fn check_rights(path: &Path) -> Result<(), KeyringError> {
    use std::os::unix::fs::PermissionsExt;
    let about = fs::metadata(path).map_err(|source| KeyringError::Io { path: path.to_owned(), source })?;
    if about.permissions().mode() & 0o077 != 0 { Err(KeyringError::Rights(path.to_owned())) } else { Ok(()) }
}

#[cfg(not(unix))]
fn check_rights(_: &Path) -> Result<(), KeyringError> {
    Ok(())
}

/// Under another name first; a file of before stays whole until the new one is durable.
fn write(path: &Path, contents: &Contents) -> io::Result<()> {
    let temporary = path.with_added_extension("tmp");
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&temporary)?;
    file.write_all(contents.render().as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    File::open(folder_of(path))?.sync_all()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn master(ring: &Keyring) -> (String, MasterKey) {
        let (name, key) = ring.master().unwrap();
        (name.to_owned(), key.clone())
    }

    #[test]
    fn keys_are_there_again_and_old_ones_stay_until_they_are_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keyring");
        let mut ring = Keyring::open(&path, "a").unwrap();
        assert!(ring.master().is_none());
        ring.add().unwrap();
        let first = master(&ring);
        assert_eq!(first.0, "MySQLReplicationKey_a_1");
        let mut other = Keyring::open(&path, "b").unwrap();
        other.add().unwrap();
        for _ in 0..10 {
            ring.add().unwrap();
        }
        let mut ring = Keyring::open(&path, "a").unwrap();
        assert_eq!(ring.master().unwrap().0, "MySQLReplicationKey_a_11", "by number, not by text");
        assert_eq!(ring.get(&first.0), Some(&first.1));
        assert!(ring.has_old());
        ring.forget_old().unwrap();
        assert!(!ring.has_old() && ring.get(&first.0).is_none());
        assert_eq!(master(&Keyring::open(&path, "b").unwrap()), master(&other));
        assert_eq!(master(&Keyring::open(&path, "a").unwrap()), master(&ring));
    }

    #[test]
    fn a_flipped_bit_and_a_cut_are_damage() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keyring");
        Keyring::open(&path, "a").unwrap().add().unwrap();
        let whole = fs::read(&path).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bytes).unwrap();
            assert!(matches!(Keyring::open(&path, "a"), Err(KeyringError::Damaged(_))), "bit {bit}");
        }
        for len in 0..whole.len() {
            fs::write(&path, &whole[..len]).unwrap();
            assert!(matches!(Keyring::open(&path, "a"), Err(KeyringError::Damaged(_))), "{len}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn it_is_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keyring");
        Keyring::open(&path, "a").unwrap().add().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(Keyring::open(&path, "a"), Err(KeyringError::Rights(_))));
    }
}
