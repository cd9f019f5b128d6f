//! The file system of engines' files if these may be encrypted. Whether a file is encrypted is read from the file; a switch
//! decides for new files.
//!
//! A file's key is made of a number in its header and of the data directory's table key, which the file `encryption.key` there
//! has, encrypted under the keyring's master key ([`crate::table_key`]). So another master key changes that file only, and files
//! that are written once stay as they are, also where a backup has links to them.
//!
//! After a crash: a new file begins with its header, and has a name that counts only after a sync of all of it, as each engine
//! orders that. The keyring has a master key, durably, before `encryption.key` is under it, and `encryption.key` is durable before
//! any file needs it.
//!
//! Encryption does not authenticate, as in MySQL: checksums find accidents and not forgery.

use crate::file::read_full;
use crate::key::{FileKey, Password};
use crate::keyring::{Keyring, KeyringError};
use crate::scratch::Pool;
use crate::table_file::{InOrder, InPlace};
use crate::table_header::{TABLE_HEADER, TABLE_MAGIC, TableHeader, Way};
use crate::table_key::{WrappedKey, password, place};
use crate::xts::UnitKey;
use omnibus_disk::{Disk, File, FileSystem, Metadata, Open, OpenFile};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The file with what a replica logs in with at its sources, in a data directory: it is encrypted as the engines' files are.
pub const REPLICA_PASSWORDS: &str = "replica_passwords";

/// Why a data directory's table key is not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableKeyError {
    /// Tables are to be encrypted, and there is no keyring.
    #[error("default_table_encryption=ON needs keyring_file_data, the file that the keys are kept in")]
    NoKeyring,
    /// The table key is there, and no keyring.
    #[error(
        "{path}: the tables are encrypted with the key '{key}': say with --keyring-file-data where the keyring is. Nothing was changed"
    )]
    Locked {
        /// The table key's file.
        path: PathBuf,
        /// The master key's name.
        key: String,
    },
    /// The keyring does not have the master key.
    #[error(
        "{path}: the tables are encrypted with the key '{key}', which is not in the keyring. Nothing was changed"
    )]
    Missing {
        /// The table key's file.
        path: PathBuf,
        /// The master key's name.
        key: String,
    },
    /// The keyring has another key of that name.
    #[error(
        "{path}: the key '{key}' in the keyring is not the one that the tables were encrypted with. Nothing was changed"
    )]
    Wrong {
        /// The table key's file.
        path: PathBuf,
        /// The master key's name.
        key: String,
    },
    /// The table key's file is not as it was written.
    #[error("{0}: it is damaged: restore it from a backup. Nothing was changed")]
    Damaged(PathBuf),
    /// There are encrypted tables, and the file is gone.
    #[error("{0}: it is missing, and {1} is encrypted: restore it from a backup. Nothing was changed")]
    Lost(PathBuf, PathBuf),
    /// The keyring cannot be written.
    #[error(transparent)]
    Keyring(#[from] KeyringError),
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
}

/// Files in both forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// How many are encrypted.
    pub encrypted: u64,
    /// How many are in clear text.
    pub plain: u64,
    /// Bytes of these.
    pub plain_bytes: u64,
}

/// See the module.
#[derive(Debug)]
pub struct TableEncryption {
    files: Disk,
    keys: Arc<Keys>,
}

#[derive(Debug)]
struct Keys {
    datadir: PathBuf,
    /// Whether new files are encrypted.
    on: bool,
    /// The table key, which is there if `on`.
    table: Option<Password>,
    keyring: Mutex<Option<Keyring>>,
    pool: Arc<Pool>,
}

impl TableEncryption {
    /// Over `files`, for a data directory; `keyring` is one of [`Keyring::open_for_tables`]. If new files are to be encrypted and
    /// there is no table key yet, one is made.
    ///
    /// # Errors
    /// See [`TableKeyError`].
    pub fn open(
        files: Disk,
        datadir: &Path,
        mut keyring: Option<Keyring>,
        on: bool,
    ) -> Result<Arc<TableEncryption>, TableKeyError> {
        let path = place(datadir);
        let failed = |source| TableKeyError::Io { path: path.clone(), source };
        let table = match WrappedKey::read(&files, datadir).map_err(failed)? {
            Some(None) => return Err(TableKeyError::Damaged(path)),
            // Nothing is under it: it waits for the day when tables are encrypted again.
            Some(Some(_)) if !on && nothing_encrypted(&files, datadir).map_err(failed)? => None,
            Some(Some(wrapped)) => {
                // Asserts RECOVER-3: a kill may have come before the file's name was durable.
                files.sync_dir(datadir).map_err(failed)?;
                Some(unwrapped(&wrapped, keyring.as_ref(), path)?)
            }
            None if on => {
                let ring = keyring.as_mut().ok_or(TableKeyError::NoKeyring)?;
                Some(first_key(&files, datadir, ring)?)
            }
            None => None,
        };
        let keys = Keys {
            datadir: datadir.to_owned(),
            on,
            table,
            keyring: Mutex::new(keyring),
            pool: Arc::default(),
        };
        Ok(Arc::new(TableEncryption { files, keys: Arc::new(keys) }))
    }

    /// Returns whether a data directory has a table key, and files that are encrypted.
    ///
    /// # Errors
    /// A folder or file can not be read.
    pub fn is_used(files: &Disk, datadir: &Path) -> io::Result<bool> {
        Ok(files.exists(&place(datadir))? && !nothing_encrypted(files, datadir)?)
    }

    /// The same over another file system.
    #[must_use]
    pub fn over(&self, files: Disk) -> Disk {
        Disk::new(Arc::new(TableEncryption { files, keys: Arc::clone(&self.keys) }))
    }

    /// Returns whether new files are encrypted.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.keys.on
    }

    /// Returns whether a file may be encrypted.
    #[must_use]
    pub fn has_key(&self) -> bool {
        self.keys.table.is_some()
    }

    /// Puts the table key under a new master key, durably. The old one stays in the keyring, for backups. False: there is no
    /// keyring, or nothing was ever encrypted.
    ///
    /// # Errors
    /// The keyring or the table key's file cannot be written; everything can be read then as before.
    pub fn rotate(&self) -> Result<bool, TableKeyError> {
        let mut keyring = self.keys.keyring.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(ring), Some(key)) = (keyring.as_mut(), &self.keys.table) else { return Ok(false) };
        ring.add()?;
        wrap(&self.files, &self.keys.datadir, ring, key).map(|()| true)
    }

    /// Counts the engines' files of the data directory, and [`REPLICA_PASSWORDS`], by their form.
    ///
    /// # Errors
    /// A folder or file can not be read.
    pub fn survey(&self) -> io::Result<Survey> {
        survey(&self.files, &self.keys.datadir, &mut |_| ())
    }

    fn begin(&self, path: &Path, file: Box<dyn OpenFile>, way: Way) -> io::Result<Box<dyn OpenFile>> {
        let Some(key) = self.keys.table.as_ref().filter(|_| self.keys.on) else { return Ok(file) };
        let header = TableHeader::new(way, key)?;
        let file = File::new(file);
        if let Err(error) = file.write_all_at(&header.encode(), 0) {
            // Without a whole header it is no file of ours; who made it will not know of it.
            let _ = self.files.remove(path);
            return Err(error);
        }
        Ok(self.opened(file, &header, key))
    }

    fn opened(&self, file: File, header: &TableHeader, key: &Password) -> Box<dyn OpenFile> {
        let (password, pool) = (password(key, &header.salt), Arc::clone(&self.keys.pool));
        match header.way {
            Way::InOrder => Box::new(InOrder { file, key: FileKey::of(&password), pool }),
            Way::InPlace => {
                Box::new(InPlace { file, key: UnitKey::of(&password), pool, parts: Mutex::default() })
            }
        }
    }

    fn existing(&self, path: &Path, file: Box<dyn OpenFile>) -> io::Result<Box<dyn OpenFile>> {
        let wrong =
            |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {what}", path.display()));
        let found = header_of(&*file).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => wrong(&error.to_string()),
            _ => error,
        })?;
        let Some(header) = found else { return Ok(file) };
        match &self.keys.table {
            Some(key) if header.is_under(key) => Ok(self.opened(File::new(file), &header, key)),
            Some(_) => Err(wrong("it is encrypted with another table key than the one in encryption.key")),
            None => Err(wrong("it is encrypted, and there is no encryption.key")),
        }
    }
}

fn unwrapped(
    wrapped: &WrappedKey,
    keyring: Option<&Keyring>,
    path: PathBuf,
) -> Result<Password, TableKeyError> {
    let key = wrapped.master.clone();
    let Some(ring) = keyring else { return Err(TableKeyError::Locked { path, key }) };
    let Some(master) = ring.get(&key) else { return Err(TableKeyError::Missing { path, key }) };
    wrapped.unwrap(master).ok_or(TableKeyError::Wrong { path, key })
}

fn nothing_encrypted(files: &Disk, datadir: &Path) -> io::Result<bool> {
    Ok(survey(files, datadir, &mut |_| ())?.encrypted == 0)
}

fn first_key(files: &Disk, datadir: &Path, ring: &mut Keyring) -> Result<Password, TableKeyError> {
    let path = place(datadir);
    let failed = |source| TableKeyError::Io { path: path.clone(), source };
    let mut found = None;
    survey(files, datadir, &mut |path| found = Some(path.to_owned())).map_err(failed)?;
    if let Some(found) = found {
        return Err(TableKeyError::Lost(path, found));
    }
    if ring.master().is_none() {
        ring.add()?;
    }
    let key = Password::random().map_err(failed)?;
    wrap(files, datadir, ring, &key)?;
    Ok(key)
}

/// Writes the table key under the keyring's master key.
fn wrap(files: &Disk, datadir: &Path, ring: &Keyring, key: &Password) -> Result<(), TableKeyError> {
    let Some((name, master)) = ring.master() else { return Err(TableKeyError::NoKeyring) };
    let wrapped = WrappedKey::new(name, master, key).and_then(|wrapped| wrapped.write(files, datadir));
    wrapped.map_err(|source| TableKeyError::Io { path: place(datadir), source })
}

/// Looks at all files that are encrypted as tables are, and names the encrypted ones.
fn survey(files: &Disk, datadir: &Path, encrypted: &mut dyn FnMut(&Path)) -> io::Result<Survey> {
    let mut paths = vec![datadir.join(REPLICA_PASSWORDS)];
    for folder in ["lsm/tree/tables", "lsm/redo", "btree", "btree/redo"] {
        let folder = datadir.join(folder);
        let names = match files.list(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            names => names?,
        };
        paths.extend(names.into_iter().map(|name| folder.join(name)));
    }
    let mut found = Survey::default();
    for path in paths {
        let mut first = [0; TABLE_MAGIC.len()];
        // A table that a compaction replaced goes at any time.
        let Ok(about) = files.metadata(&path) else { continue };
        let Some(file) = files.open(&path, Open::Read).ok().filter(|_| about.is_file) else { continue };
        if file.read_at(&mut first, 0)? == first.len() && first == TABLE_MAGIC {
            found.encrypted += 1;
            encrypted(&path);
        } else {
            found.plain += 1;
            found.plain_bytes += about.len;
        }
    }
    Ok(found)
}

fn header_of(file: &dyn OpenFile) -> io::Result<Option<TableHeader>> {
    let mut bytes = vec![0; TABLE_MAGIC.len()];
    if read_full(file, &mut bytes, 0)? < bytes.len() || bytes != TABLE_MAGIC {
        return Ok(None);
    }
    bytes.resize(TABLE_HEADER, 0);
    let read = read_full(file, &mut bytes, 0)?;
    TableHeader::decode(&bytes[..read]).map_err(|what| io::Error::new(io::ErrorKind::InvalidData, what))
}

impl FileSystem for TableEncryption {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn OpenFile>> {
        let file = (*self.files).open(path, how)?;
        let is_new = match how {
            Open::CreateNew | Open::Replace => true,
            Open::Create => file.metadata()?.len == 0,
            _ => false,
        };
        if is_new { self.begin(path, file, Way::InPlace) } else { self.existing(path, file) }
    }

    fn create_in_order(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let file = (*self.files).open(path, Open::CreateNew)?;
        self.begin(path, file, Way::InOrder)
    }

    fn has_other_form(&self, path: &Path) -> io::Result<bool> {
        Ok(header_of(&*self.files.open(path, Open::Read)?)?.is_some() != self.keys.on)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let about = self.files.metadata(path)?;
        let is_encrypted = about.is_file && header_of(&*self.files.open(path, Open::Read)?)?.is_some();
        let front = if is_encrypted { TABLE_HEADER as u64 } else { 0 };
        Ok(Metadata { len: about.len.saturating_sub(front), ..about })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.remove(path)
    }

    omnibus_disk::handed_on_to_files!();
}

#[cfg(test)]
mod tests;
