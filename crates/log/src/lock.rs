//! One process per data directory.
//!
//! The lock is the operating system's, on a file that also holds the owner's process number for the error message; it
//! goes when the process does, however it ends, so a lock file that is still there after a crash locks nothing.

use crate::error::{LockError, failed};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

const NAME: &str = "omnibus.lock";

/// Held for as long as the process uses the directory.
#[derive(Debug)]
pub struct DirLock {
    _file: Option<File>,
}

impl DirLock {
    /// Takes the directory, creating it if there is none.
    ///
    /// # Errors
    /// Another process has it, or the operating system refuses.
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

    /// Takes the directory without a change to it, for looking at it. Where no server ever was there is nothing to take.
    ///
    /// # Errors
    /// As `acquire`'s.
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
