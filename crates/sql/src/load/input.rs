//! The bytes that LOAD DATA reads: in memory, or in a file; and the spool that collects a client's.
//!
//! A file is read by position, so reading it again starts at its beginning whatever was read before.

use bytes::Bytes;
use omnibus_temporary::{Stream, TempFile, TempFolder};
use std::io::{self, Read, Write};
use std::sync::Arc;

/// Bytes that a spool keeps in memory; the rest goes to a file.
const IN_MEMORY: usize = 1 << 20;

/// A whole file, to be read as often as needed.
#[derive(Clone, Debug)]
pub enum LoadInput {
    /// In memory.
    Memory(Bytes),
    /// In a file: a spool's, or one of the server's.
    File(Arc<TempFile>),
}

impl LoadInput {
    /// Reads from the beginning.
    pub(crate) fn reader(&self) -> Box<dyn Read> {
        match self {
            LoadInput::Memory(bytes) => Box::new(io::Cursor::new(bytes.clone())),
            LoadInput::File(file) => Box::new(Stream::new(file.clone())),
        }
    }

    /// How many bytes there are.
    ///
    /// # Errors
    /// The file cannot be asked.
    pub fn len(&self) -> io::Result<u64> {
        match self {
            LoadInput::Memory(bytes) => Ok(bytes.len() as u64),
            LoadInput::File(file) => file.len(),
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

/// Collects a file that comes in pieces: a small one in memory, a large one in a temporary file that
/// goes with its last user. Writing may block.
#[derive(Debug, Default)]
pub struct Spool {
    folder: TempFolder,
    memory: Vec<u8>,
    file: Option<Stream<TempFile>>,
}

impl Spool {
    /// With its temporary file, if there is one, in `folder`.
    #[must_use]
    pub fn in_folder(folder: &TempFolder) -> Spool {
        Spool { folder: folder.clone(), ..Spool::default() }
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
            let mut file = Stream::new(self.folder.file()?);
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
            Some(file) => LoadInput::File(Arc::new(file.into_inner())),
            None => LoadInput::Memory(self.memory.into()),
        }
    }
}
