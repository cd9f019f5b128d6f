//! The bytes that LOAD DATA reads: in memory, or in a file; and the spool that collects a client's.
//!
//! A file is read by position, so reading it again starts at its beginning whatever was read before.

use bytes::Bytes;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that a spool keeps in memory; the rest goes to a file.
const IN_MEMORY: usize = 1 << 20;

/// A whole file, to be read as often as needed.
#[derive(Clone, Debug)]
pub enum LoadInput {
    /// In memory.
    Memory(Bytes),
    /// In a file.
    File(Arc<File>),
}

impl LoadInput {
    /// Reads from the beginning.
    pub(crate) fn reader(&self) -> Box<dyn Read> {
        match self {
            LoadInput::Memory(bytes) => Box::new(io::Cursor::new(bytes.clone())),
            LoadInput::File(file) => Box::new(AtPosition { file: file.clone(), at: 0 }),
        }
    }

    /// How many bytes there are.
    ///
    /// # Errors
    /// The file cannot be asked.
    pub fn len(&self) -> io::Result<u64> {
        match self {
            LoadInput::Memory(bytes) => Ok(bytes.len() as u64),
            LoadInput::File(file) => Ok(file.metadata()?.len()),
        }
    }

    /// Whether there are none.
    ///
    /// # Errors
    /// The file cannot be asked.
    pub fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Gives the bytes in order, at most `size` at a time.
    ///
    /// # Errors
    /// Reading fails, or the first error of `each`.
    pub fn blocks(&self, size: usize, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut reader = self.reader();
        let mut block = vec![0; size.max(1)];
        loop {
            let mut filled = 0;
            while filled < block.len() {
                match reader.read(&mut block[filled..])? {
                    0 => break,
                    n => filled += n,
                }
            }
            if filled == 0 {
                return Ok(());
            }
            each(&block[..filled])?;
        }
    }
}

/// Reads a file by position.
struct AtPosition {
    file: Arc<File>,
    at: u64,
}

impl Read for AtPosition {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(buf, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

/// Collects a file that comes in pieces: a small one in memory, a large one in a temporary file that
/// goes with its last user. Writing may block.
#[derive(Debug, Default)]
pub struct Spool {
    /// Where the temporary file is made; the system's place for such files if nothing is said.
    dir: Option<PathBuf>,
    memory: Vec<u8>,
    file: Option<File>,
}

impl Spool {
    /// With its temporary file, if there is one, in `dir`.
    #[must_use]
    pub fn in_dir(dir: &Path) -> Spool {
        let dir = Some(dir.to_owned()).filter(|dir| !dir.as_os_str().is_empty());
        Spool { dir, ..Spool::default() }
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// The temporary file cannot be made or written.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            return file.write_all(bytes);
        }
        self.memory.extend_from_slice(bytes);
        if self.memory.len() > IN_MEMORY {
            let mut file = match &self.dir {
                Some(dir) => tempfile::tempfile_in(dir)?,
                None => tempfile::tempfile()?,
            };
            file.write_all(&self.memory)?;
            self.memory = Vec::new();
            self.file = Some(file);
        }
        Ok(())
    }

    /// Whether the next bytes go to memory, so that writing them does not block.
    #[must_use]
    pub fn in_memory(&self, more: usize) -> bool {
        self.file.is_none() && self.memory.len() + more <= IN_MEMORY
    }

    /// All of it.
    #[must_use]
    pub fn finish(self) -> LoadInput {
        match self.file {
            Some(file) => LoadInput::File(Arc::new(file)),
            None => LoadInput::Memory(self.memory.into()),
        }
    }
}
