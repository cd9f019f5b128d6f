// Copyright (c) 2026-present, the authors of Omnibus
// This source code is licensed under both the Apache 2.0 and MIT License
// (found in the LICENSE-* files in the repository)

//! Where table files are: the operating system's files, or what an implementation of [`TableFiles`] makes of them (encrypted ones).
//!
//! [`File`] takes the place of `std::fs::File` for files that the tree keeps open. Names are removed from the operating system's
//! folders in either case.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

/// An open file. Positions are the caller's.
pub trait TableFile: Send + Sync {
    /// Reads at a position until `buf` is full or the file ends.
    ///
    /// # Errors
    ///
    /// Will return `Err` if an IO error occurs.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `buf` at a position. A table file is written once, from its beginning to its end.
    ///
    /// # Errors
    ///
    /// Will return `Err` if an IO error occurs.
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;

    /// Makes durable what was written.
    ///
    /// # Errors
    ///
    /// Will return `Err` if an IO error occurs.
    fn sync_all(&self) -> io::Result<()>;

    /// The length of the contents.
    ///
    /// # Errors
    ///
    /// Will return `Err` if an IO error occurs.
    fn size(&self) -> io::Result<u64>;
}

/// Makes and opens table files.
pub trait TableFiles: Send + Sync {
    /// Creates a file that must not exist yet, for writing.
    ///
    /// # Errors
    ///
    /// Will return `Err` if an IO error occurs.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn TableFile>>;

    /// Opens a file for reading.
    ///
    /// # Errors
    ///
    /// Will return `Err` if an IO error occurs.
    fn open(&self, path: &Path) -> io::Result<Box<dyn TableFile>>;
}

/// The operating system's files.
pub struct OsFiles;

impl TableFiles for OsFiles {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn TableFile>> {
        Ok(Box::new(std::fs::File::create_new(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn TableFile>> {
        Ok(Box::new(std::fs::File::open(path)?))
    }
}

/// The operating system's files, shared.
#[must_use]
pub fn os_files() -> Arc<dyn TableFiles> {
    Arc::new(OsFiles)
}

impl TableFile for std::fs::File {
    #[cfg(unix)]
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buf, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(self, buf, offset)
    }

    #[cfg(unix)]
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self, buf, offset)
    }

    #[cfg(windows)]
    fn write_all_at(&self, mut buf: &[u8], mut offset: u64) -> io::Result<()> {
        while !buf.is_empty() {
            match std::os::windows::fs::FileExt::seek_write(self, buf, offset)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                n => {
                    buf = buf.get(n..).unwrap_or_default();
                    offset += n as u64;
                }
            }
        }
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        std::fs::File::sync_all(self)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

/// An open file, read and written from its beginning where it is used as a stream.
pub struct File {
    inner: Box<dyn TableFile>,
    position: u64,
}

impl File {
    /// Wraps an open file, to be used from its beginning.
    #[must_use]
    pub fn new(inner: Box<dyn TableFile>) -> Self {
        Self { inner, position: 0 }
    }

    /// Opens one of the operating system's files.
    ///
    /// # Errors
    ///
    /// Will return `Err` if an IO error occurs.
    pub fn open<P: AsRef<Path>>(path: P) -> io::Result<Self> {
        Ok(Self::new(Box::new(std::fs::File::open(path)?)))
    }

    /// Creates or empties one of the operating system's files.
    ///
    /// # Errors
    ///
    /// Will return `Err` if an IO error occurs.
    pub fn create<P: AsRef<Path>>(path: P) -> io::Result<Self> {
        Ok(Self::new(Box::new(std::fs::File::create(path)?)))
    }

    /// Reads at a position until `buf` is full or the file ends.
    ///
    /// # Errors
    ///
    /// Will return `Err` if an IO error occurs.
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buf, offset)
    }

    /// Makes durable what was written.
    ///
    /// # Errors
    ///
    /// Will return `Err` if an IO error occurs.
    pub fn sync_all(&self) -> io::Result<()> {
        self.inner.sync_all()
    }

    /// The length of the contents.
    ///
    /// # Errors
    ///
    /// Will return `Err` if an IO error occurs.
    pub fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }
}

impl Read for File {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read_at(buf, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Write for File {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.inner.write_all_at(buf, self.position)?;
        self.position += buf.len() as u64;
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (base, by) = match to {
            SeekFrom::Start(at) => (at, 0),
            SeekFrom::Current(by) => (self.position, by),
            SeekFrom::End(by) => (self.inner.size()?, by),
        };
        self.position = base
            .checked_add_signed(by)
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.position)
    }
}
