//! The log's file system if its files may be encrypted. Whether a file is encrypted is read from the file; a switch
//! decides for new files.
//!
//! After a crash: a new file gets its header, durably, before anything else is written to it, and holds zeros until
//! then. A new master key is in the keyring before any header needs it, and the old one stays until no header does
//! ([`Encryption::forget_old_keys`] is called last). A header is one sector and is overwritten in place while both keys
//! exist.
//!
//! Files that are to become log files, and those of transactions that do not fit into memory, have their password in
//! memory only ([`FileSystem::create_secret`]): their remains after a crash are unreadable.

use crate::file::EncryptedFile;
use crate::header::{HEADER, Header, MAGIC};
use crate::key::{BLOCK, FileKey, Password};
use crate::keyring::{Keyring, KeyringError};
use crate::scratch::Pool;
use omnibus_disk::{Disk, File, FileSystem, Metadata, Open, OpenFile};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The first bytes of a log in clear text.
const PLAIN: [u8; 4] = [0xfe, b'b', b'i', b'n'];

/// See the module.
#[derive(Debug)]
pub struct Encryption {
    files: Disk,
    /// Whether new files are encrypted.
    on: AtomicBool,
    keyring: Mutex<Option<Keyring>>,
    /// Passwords that no header has yet.
    secret: Mutex<HashMap<PathBuf, Password>>,
    pool: Arc<Pool>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it is held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wrong(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

impl Encryption {
    /// Over `files`. Without a keyring encrypted files cannot be opened, and none is made.
    #[must_use]
    pub fn over(files: Disk, keyring: Option<Keyring>) -> Arc<Encryption> {
        Arc::new(Encryption {
            files,
            on: AtomicBool::new(false),
            keyring: Mutex::new(keyring),
            secret: Mutex::default(),
            pool: Arc::default(),
        })
    }

    /// Returns whether new files are encrypted.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Acquire)
    }

    /// From now on new files are encrypted. The first time a master key is made. False: there is no keyring.
    ///
    /// # Errors
    /// The keyring cannot be written.
    pub fn turn_on(&self) -> Result<bool, KeyringError> {
        let mut keyring = locked(&self.keyring);
        let Some(ring) = keyring.as_mut() else { return Ok(false) };
        if ring.master().is_none() {
            ring.add()?;
        }
        self.on.store(true, Ordering::Release);
        Ok(true)
    }

    /// From now on new files are not encrypted.
    pub fn turn_off(&self) {
        self.on.store(false, Ordering::Release);
    }

    /// Makes a new master key, which files that begin from now on get. False: there is no keyring.
    ///
    /// # Errors
    /// The keyring cannot be written.
    pub fn new_master_key(&self) -> Result<bool, KeyringError> {
        locked(&self.keyring).as_mut().map_or(Ok(false), |ring| ring.add().map(|()| true))
    }

    /// Returns whether a master key exists.
    #[must_use]
    pub fn has_master_key(&self) -> bool {
        locked(&self.keyring).as_ref().is_some_and(|ring| ring.master().is_some())
    }

    /// Returns whether there are keys besides the master key, because a key rotation was interrupted.
    #[must_use]
    pub fn has_old_keys(&self) -> bool {
        locked(&self.keyring).as_ref().is_some_and(Keyring::has_old)
    }

    /// Forgets all keys but the master key: no header needs them any more.
    ///
    /// # Errors
    /// The keyring cannot be written.
    pub fn forget_old_keys(&self) -> Result<(), KeyringError> {
        locked(&self.keyring).as_mut().map_or(Ok(()), Keyring::forget_old)
    }

    /// Returns whether a file is encrypted.
    ///
    /// # Errors
    /// The file or its header cannot be read.
    pub fn is_encrypted(&self, path: &Path) -> io::Result<bool> {
        self.header(path).map(|header| header.is_some())
    }

    /// Looks for the key of a file, if that is there and encrypted.
    ///
    /// # Errors
    /// The header cannot be read, or the keyring does not have its key.
    pub fn check_key(&self, path: &Path) -> io::Result<()> {
        let Some(header) = self.header(path)? else { return Ok(()) };
        self.check_beginning(path, &header, &self.password(&header)?)
    }

    /// Returns whether a file is encrypted under another key than the master key.
    ///
    /// # Errors
    /// As [`Encryption::is_encrypted`].
    pub fn is_under_old_key(&self, path: &Path) -> io::Result<bool> {
        let Some(header) = self.header(path)? else { return Ok(false) };
        let keyring = locked(&self.keyring);
        let master = keyring.as_ref().and_then(Keyring::master);
        Ok(master.is_some_and(|(name, _)| name != header.key))
    }

    /// Encrypts a file's password under the master key, durably. The file must not be written meanwhile.
    ///
    /// # Errors
    /// As [`Encryption::is_encrypted`]; the key of now is missing, or the header cannot be written.
    pub fn rewrap(&self, path: &Path) -> io::Result<()> {
        let Some(header) = self.header(path)? else { return Ok(()) };
        let password = self.password(&header)?;
        self.check_beginning(path, &header, &password)?;
        self.write_header(path, &password)
    }

    /// Returns the encryption header of a file; `None` if there is no file.
    fn header(&self, path: &Path) -> io::Result<Option<Header>> {
        match self.files.open(path, Open::Read) {
            Ok(file) => read_header(&file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn password(&self, header: &Header) -> io::Result<Password> {
        let keyring = locked(&self.keyring);
        let Some(ring) = keyring.as_ref() else {
            return Err(wrong(format!(
                "the file is encrypted with the key '{}': say with --keyring-file-data where the keyring is",
                header.key
            )));
        };
        let key = ring.get(&header.key).ok_or_else(|| {
            wrong(format!("the file is encrypted with the key '{}', which is not in the keyring", header.key))
        })?;
        Ok(key.unwrap(&header.password, &header.iv))
    }

    /// A password is the right one if the file begins as logs do, or nothing was written to it yet.
    fn check_beginning(&self, path: &Path, header: &Header, password: &Password) -> io::Result<()> {
        let mut first = [0; BLOCK as usize];
        let file = self.files.open(path, Open::Read)?;
        let read = file.read_at(&mut first, HEADER as u64)?;
        if first[..read].iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        FileKey::of(password).apply(&mut first, 0);
        if first.starts_with(&PLAIN) || first == [0; BLOCK as usize] {
            return Ok(());
        }
        Err(wrong(format!(
            "the encryption header is damaged, or the key '{}' in the keyring is not the one that the file was encrypted with",
            header.key
        )))
    }

    fn write_header(&self, path: &Path, password: &Password) -> io::Result<()> {
        let header = {
            let keyring = locked(&self.keyring);
            let (name, key) =
                keyring.as_ref().and_then(Keyring::master).ok_or_else(|| wrong("there is no master key"))?;
            let (wrapped, iv) = key.wrap(password)?;
            Header { key: name.to_owned(), password: wrapped, iv }
        };
        self.put_front(path, &header.encode())
    }

    fn put_front(&self, path: &Path, bytes: &[u8; HEADER]) -> io::Result<()> {
        let file = self.files.open(path, Open::Write)?;
        file.write_all_at(bytes, 0)?;
        file.sync_data()
    }

    fn encrypted(&self, file: Box<dyn OpenFile>, password: &Password) -> EncryptedFile {
        EncryptedFile {
            file: File::new(file),
            key: FileKey::of(password),
            header: None,
            pool: Arc::clone(&self.pool),
        }
    }
}

fn read_header(file: &File) -> io::Result<Option<Header>> {
    let about = file.metadata()?;
    if !about.is_file || about.len < MAGIC.len() as u64 {
        return Ok(None);
    }
    let mut bytes = vec![0; HEADER.min(usize::try_from(about.len).unwrap_or(HEADER))];
    file.read_exact_at(&mut bytes, 0)?;
    Header::decode(&bytes).map_err(|error| wrong(error.to_string()))
}

impl FileSystem for Encryption {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn OpenFile>> {
        let file = (*self.files).open(path, how)?;
        if matches!(how, Open::CreateNew | Open::Replace) {
            return Ok(file);
        }
        if let Some(password) = locked(&self.secret).get(path) {
            return Ok(Box::new(self.encrypted(file, password)));
        }
        let Some(header) = self.header(path)? else { return Ok(file) };
        let password = self.password(&header)?;
        self.check_beginning(path, &header, &password)?;
        let mut file = self.encrypted(file, &password);
        if how == Open::WriteDirect {
            file.header = Some(header.encode());
        }
        Ok(Box::new(file))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let about = self.files.metadata(path)?;
        let front =
            match locked(&self.secret).contains_key(path) || about.is_file && self.is_encrypted(path)? {
                true => HEADER as u64,
                false => 0,
            };
        Ok(Metadata { len: about.len.saturating_sub(front), ..about })
    }

    fn front(&self) -> u64 {
        if self.is_on() { HEADER as u64 } else { 0 }
    }

    /// A file that was begun before a crash, and has nothing but its header, begins anew.
    fn begin(&self, path: &Path) -> io::Result<()> {
        if self.is_on() {
            return self.write_header(path, &Password::random()?);
        }
        let mut first = [0; MAGIC.len()];
        let read = self.files.open(path, Open::Read)?.read_at(&mut first, 0)?;
        if first[..read] == MAGIC { self.put_front(path, &[0; HEADER]) } else { Ok(()) }
    }

    fn create_secret(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let file = (*self.files).open(path, Open::CreateNew)?;
        if !self.is_on() {
            return Ok(file);
        }
        let password = Password::random()?;
        let file = self.encrypted(file, &password);
        locked(&self.secret).insert(path.to_owned(), password);
        Ok(Box::new(file))
    }

    fn hide(&self, file: Box<dyn OpenFile>) -> io::Result<Box<dyn OpenFile>> {
        Ok(if self.is_on() { Box::new(self.encrypted(file, &Password::random()?)) } else { file })
    }

    fn reveal(&self, path: &Path) -> io::Result<()> {
        let Some(password) = locked(&self.secret).get(path).cloned() else { return Ok(()) };
        self.write_header(path, &password)?;
        locked(&self.secret).remove(path);
        Ok(())
    }

    fn copy_start(&self, from: &Path, to: &Path, keep: u64) -> io::Result<()> {
        let front = if self.is_encrypted(from)? { HEADER as u64 } else { 0 };
        self.files.copy_start(from, to, keep + front)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.rename(from, to)?;
        let mut secret = locked(&self.secret);
        if let Some(password) = secret.remove(from) {
            secret.insert(to.to_owned(), password);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.remove(path)?;
        locked(&self.secret).remove(path);
        Ok(())
    }

    omnibus_disk::handed_on_to_files!();
}

#[cfg(test)]
mod tests;
