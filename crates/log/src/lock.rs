//! The lock that gives a data directory to one process.
//!
//! It is the operating system's lock on a file that also holds the owner's process number, for the error message. It
//! ends with the process, however that ends, so a lock file that is left after a crash locks nothing.

use crate::error::{LockError, failed};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

const NAME: &str = "omnibus.lock";

/// Ownership of a data directory, until it is dropped.
#[derive(Debug)]
pub struct DirLock {
    _file: Option<File>,
}

impl DirLock {
    /// Takes ownership of the directory, creating it if it does not exist.
    ///
    /// # Errors
    /// Another process owns it, or the operating system refuses.
    pub fn acquire(dir: &Path) -> Result<DirLock, LockError> {
        std::fs::create_dir_all(dir).map_err(failed("create", dir))?;
        let path = dir.join(NAME);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = take(dir, file.map_err(failed("open", &path))?)?;
        file.set_len(0).map_err(failed("write", &path))?;
        writeln!(file, "{}", std::process::id()).map_err(failed("write", &path))?;
        Ok(DirLock { _file: Some(file) })
    }

    /// Takes ownership of the directory for inspection, without changing it. Succeeds without a lock where no server
    /// ever ran.
    ///
    /// # Errors
    /// As [`DirLock::acquire`].
    pub fn look(dir: &Path) -> Result<DirLock, LockError> {
        let path = dir.join(NAME);
        match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(DirLock { _file: None }),
            file => Ok(DirLock { _file: Some(take(dir, file.map_err(failed("open", &path))?)?) }),
        }
    }
}

fn take(dir: &Path, mut file: File) -> Result<File, LockError> {
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let _ = file.read_to_string(&mut text);
            Err(LockError::InUse { path: dir.to_owned(), pid: text.trim().parse().ok() })
        }
        Err(TryLockError::Error(error)) => Err(failed("lock", &dir.join(NAME))(error).into()),
    }
}
