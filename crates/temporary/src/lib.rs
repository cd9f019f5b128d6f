//! Temporary files without a name: what statements, transactions and recovery keep beyond their memory.
//!
//! A [`TempFolder`] says where they are and whether they are encrypted: AES-256 in counter mode with a key of each file's own, which is
//! in memory only. So a file is unreadable once its process is gone, and needs no keyring.
//!
//! Each byte of a file is written once. Where that is not so (after a write that failed) a key stream is used twice, in a file
//! that nobody reads any more.
//!
//! Not here: files that must survive a crash (`disk`, `encryption`), and spilled caches of the log, which are on its own disk.

use aes::Aes256;
use ctr::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that are encrypted at once.
const PIECE: usize = 64 << 10;

/// Where temporary files are made, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TempFolder {
    path: Arc<Path>,
    encrypted: bool,
}

impl TempFolder {
    /// Files in `path`; encrypted, if so said.
    #[must_use]
    pub fn new(path: &Path, encrypted: bool) -> TempFolder {
        TempFolder { path: path.into(), encrypted }
    }

    /// Makes a file.
    ///
    /// # Errors
    /// The operating system refuses, or has no random numbers for a key.
    pub fn file(&self) -> io::Result<TempFile> {
        let file = tempfile::tempfile_in(&self.path)?;
        let key = if self.encrypted { Some(Box::new(Key::random()?)) } else { None };
        Ok(TempFile { file, key })
    }
}

impl Default for TempFolder {
    /// The system's folder for such files, in clear text.
    fn default() -> TempFolder {
        TempFolder::from(std::env::temp_dir())
    }
}

impl From<PathBuf> for TempFolder {
    /// Files in clear text.
    fn from(path: PathBuf) -> TempFolder {
        TempFolder::new(&path, false)
    }
}

/// A key with the beginning of its counter.
struct Key([u8; 32], [u8; 16]);

impl Key {
    fn random() -> io::Result<Key> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        // A key that is used for one file can count from zero.
        Ok(Key(bytes, [0; 16]))
    }

    /// Turns what stands at `at` of the clear text into what stands there encrypted, or back.
    fn apply(&self, bytes: &mut [u8], at: u64) {
        let mut stream = ctr::Ctr128BE::<Aes256>::new(&self.0.into(), &self.1.into());
        stream.seek(at);
        stream.apply_keystream(bytes);
    }
}

/// A temporary file. Positions are the caller's. Any thread.
pub struct TempFile {
    file: File,
    /// None: in clear text.
    key: Option<Box<Key>>,
}

impl std::fmt::Debug for TempFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TempFile").field("encrypted", &self.key.is_some()).finish_non_exhaustive()
    }
}

impl From<File> for TempFile {
    /// An open file, in clear text.
    fn from(file: File) -> TempFile {
        TempFile { file, key: None }
    }
}

impl TempFile {
    /// Writes all of `bytes` at a position that nothing was written to before.
    ///
    /// # Errors
    /// As the operating system's.
    pub fn write_all_at(&self, bytes: &[u8], mut at: u64) -> io::Result<()> {
        let Some(key) = &self.key else { return platform::write_all_at(&self.file, bytes, at) };
        let mut piece = Vec::with_capacity(bytes.len().min(PIECE));
        for part in bytes.chunks(PIECE) {
            piece.clear();
            piece.extend_from_slice(part);
            key.apply(&mut piece, at);
            platform::write_all_at(&self.file, &piece, at)?;
            at += part.len() as u64;
        }
        Ok(())
    }

    /// Reads at a position; nothing only at the end.
    ///
    /// # Errors
    /// As the operating system's.
    pub fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<usize> {
        let read = platform::read_at(&self.file, bytes, at)?;
        if let Some(key) = &self.key {
            key.apply(&mut bytes[..read], at);
        }
        Ok(read)
    }

    /// Reads until `bytes` is full.
    ///
    /// # Errors
    /// As the operating system's; the file's end comes before.
    pub fn read_exact_at(&self, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.read_at(bytes, at) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    bytes = &mut bytes[read..];
                    at += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Its length.
    ///
    /// # Errors
    /// As the operating system's.
    // Asking is a system call that can fail: no `is_empty`.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
}

/// A file that is written from its beginning to its end, or read so.
#[derive(Debug)]
pub struct Stream<F> {
    file: F,
    at: u64,
}

impl<F> Stream<F> {
    /// From the beginning.
    pub fn new(file: F) -> Stream<F> {
        Stream { file, at: 0 }
    }

    /// The file.
    pub fn into_inner(self) -> F {
        self.file
    }
}

impl<F: std::borrow::Borrow<TempFile>> Write for Stream<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.borrow().write_all_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<F: std::borrow::Borrow<TempFile>> Read for Stream<F> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.borrow().read_at(bytes, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(unix)]
mod platform {
    use std::os::unix::fs::FileExt;
    use std::{fs::File, io::Result};

    pub(super) fn read_at(file: &File, bytes: &mut [u8], at: u64) -> Result<usize> {
        file.read_at(bytes, at)
    }

    pub(super) fn write_all_at(file: &File, bytes: &[u8], at: u64) -> Result<()> {
        file.write_all_at(bytes, at)
    }
}

/// Each call names its place, so that threads do not disturb each other.
#[cfg(windows)]
mod platform {
    use std::os::windows::fs::FileExt;
    use std::{fs::File, io::Result};

    pub(super) fn read_at(file: &File, bytes: &mut [u8], at: u64) -> Result<usize> {
        file.seek_read(bytes, at)
    }

    pub(super) fn write_all_at(file: &File, mut bytes: &[u8], mut at: u64) -> Result<()> {
        while !bytes.is_empty() {
            match file.seek_write(bytes, at)? {
                0 => return Err(std::io::ErrorKind::WriteZero.into()),
                n => (bytes, at) = (&bytes[n..], at + n as u64),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SECRET: &[u8] = b"SECRET-SECRET-SECRET-SECRET!";

    fn folder(encrypted: bool) -> TempFolder {
        TempFolder::new(&std::env::temp_dir(), encrypted)
    }

    fn raw(file: &TempFile) -> Vec<u8> {
        let mut bytes = vec![0; file.len().unwrap() as usize];
        assert_eq!(platform::read_at(&file.file, &mut bytes, 0).unwrap(), bytes.len());
        bytes
    }

    #[test]
    fn what_is_written_is_read_at_any_place_and_is_not_in_an_encrypted_file() {
        let text = SECRET.repeat(9000);
        for encrypted in [false, true] {
            let file = folder(encrypted).file().unwrap();
            let mut at = 0;
            for len in [1, 15, 17, 65_536, 70_001, 100_000] {
                file.write_all_at(&text[at..at + len], at as u64).unwrap();
                at += len;
            }
            for (from, len) in [(0, at), (5, 3), (65_530, 20), (at - 1, 1)] {
                let mut bytes = vec![0; len];
                file.read_exact_at(&mut bytes, from as u64).unwrap();
                assert_eq!(bytes, text[from..from + len], "{len} at {from}");
            }
            assert!(file.read_exact_at(&mut [0; 2], at as u64 - 1).is_err());
            assert_eq!(raw(&file).windows(16).any(|part| part == &SECRET[..16]), !encrypted);
        }
    }

    #[test]
    fn streams_write_and_read_from_the_beginning() {
        let mut out = Stream::new(folder(true).file().unwrap());
        (0..100).for_each(|_| out.write_all(SECRET).unwrap());
        let file = Arc::new(out.into_inner());
        let mut found = Vec::new();
        for _ in 0..2 {
            found.clear();
            Stream::new(Arc::clone(&file)).read_to_end(&mut found).unwrap();
            assert_eq!(found, SECRET.repeat(100));
        }
    }

    #[test]
    fn each_file_has_a_key_of_its_own() {
        let files = [0, 1].map(|_| folder(true).file().unwrap());
        files.iter().for_each(|file| file.write_all_at(SECRET, 0).unwrap());
        assert_ne!(raw(&files[0]), raw(&files[1]));
    }
}
