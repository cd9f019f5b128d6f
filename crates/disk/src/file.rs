//! An open file with what callers want of one: whole reads and writes, and calls that were interrupted made again.

use crate::{Metadata, OpenFile};
use std::io;
use std::ops::Deref;

/// An open file; see [`OpenFile`], whose methods it has.
#[derive(Debug)]
pub struct File(Box<dyn OpenFile>);

impl File {
    /// Wraps an open file of any file system.
    #[must_use]
    pub fn new(file: Box<dyn OpenFile>) -> File {
        File(file)
    }

    /// Its length.
    ///
    /// # Errors
    /// As [`OpenFile::metadata`].
    // Asking is a system call that can fail: no `is_empty`.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> io::Result<u64> {
        self.0.metadata().map(|about: Metadata| about.len)
    }

    /// Reads until `bytes` is full.
    ///
    /// # Errors
    /// As [`OpenFile::read_at`]; the file's end comes before.
    pub fn read_exact_at(&self, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.0.read_at(bytes, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    bytes = &mut bytes[read..];
                    offset += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// As [`OpenFile::write_at`]; some of the bytes may be written then.
    pub fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_with_room(bytes, bytes.len(), offset)
    }

    /// Writes all of `bytes`, of which those behind `content` are room; see [`OpenFile::write_with_room`].
    ///
    /// # Errors
    /// As [`File::write_all_at`].
    pub fn write_all_with_room(
        &self,
        mut bytes: &[u8],
        mut content: usize,
        mut offset: u64,
    ) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.0.write_with_room(bytes, content, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    bytes = &bytes[written..];
                    content = content.saturating_sub(written);
                    offset += written as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// All bytes from the start on.
    ///
    /// # Errors
    /// As [`OpenFile::read_at`].
    pub fn read_all(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(self.len()?).map_err(|_| io::ErrorKind::FileTooLarge)?];
        self.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }
}

impl Deref for File {
    type Target = dyn OpenFile;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}
