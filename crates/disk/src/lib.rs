//! The file-system interface of everything that must survive a crash: files, their names, and the requests that make
//! both durable.
//!
//! The log, large transactions, the engines' redo and their state files use a [`Disk`]; [`FileSystem`] and [`OpenFile`]
//! are its implementation. [`Disk::default`] is the operating system's (`real.rs`), at the price of one virtual call
//! per request; `crates/sim` has one that knows what is durable and which states a crash may leave.
//!
//! This crate makes no decisions, and repeats only calls that were interrupted before they did anything: an unsupported
//! form is an `Unsupported` error, and the caller falls back. Any thread.
//!
//! Everything real goes through the standard library and `libc`, whose calls end in `open64`, `pwrite64`, `fdatasync`, `fsync`,
//! `ftruncate64`, `rename` and `unlink` of the C library, so that a preloaded library can slow or fail each of them.

mod counted;
mod file;
mod full;
mod overlay;
mod platform;
mod real;

pub use counted::{Figures, FileUse, FileUses, Request};
pub use file::File;
pub use full::{FullDisk, MakingRoom, is_full};
pub use overlay::Overlay;

use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Bytes of a file that are copied at once.
const COPY_PIECE: u64 = 4 << 20;

/// The mode in which a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// Reading a file that exists.
    Read,
    /// Reading and writing a file that exists.
    Write,
    /// As `Write`; a write returns when its bytes are durable.
    WriteThrough,
    /// As `WriteThrough`, past the page cache: whole blocks only.
    WriteDirect,
    /// Reading and writing a file that must not exist yet.
    CreateNew,
    /// Reading and writing a file with what it holds, or a new one.
    Create,
    /// Reading and writing an empty file, whatever was there.
    Replace,
}

/// The attributes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Its length.
    pub len: u64,
    /// The number of its names (hard links).
    pub links: u64,
    /// Whether it is a regular file.
    pub is_file: bool,
    /// The time of its last change.
    pub modified: SystemTime,
}

/// Names of files, and opening them. Nothing of it is durable before [`FileSystem::sync_dir`] of the directories in question.
pub trait FileSystem: Debug + Send + Sync {
    /// Opens a file.
    ///
    /// # Errors
    /// As the operating system's; `Unsupported` if there is no such way to open a file here.
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn OpenFile>>;

    /// Looks at what a name stands for.
    ///
    /// # Errors
    /// As the operating system's.
    fn metadata(&self, path: &Path) -> io::Result<Metadata>;

    /// The names in a directory, in no order.
    ///
    /// # Errors
    /// As the operating system's.
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>>;

    /// Creates a directory and those above it, unless they exist.
    ///
    /// # Errors
    /// As the operating system's.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// Atomically gives a file a new name, replacing what had it.
    ///
    /// # Errors
    /// As the operating system's.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file one more name, which must be free.
    ///
    /// # Errors
    /// As the operating system's.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Takes a name away; the file goes with the last one and with who has it open.
    ///
    /// # Errors
    /// As the operating system's.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes creations, renames and removals in a directory durable.
    ///
    /// # Errors
    /// As the operating system's.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// The number of bytes that an encrypting file system would now put in front of a file for which
    /// [`FileSystem::begin`] is called.
    fn front(&self) -> u64 {
        0
    }

    /// A log file begins: there is nothing in it, or zeros. Where files are encrypted it gets its key, durably.
    ///
    /// # Errors
    /// As the operating system's; or no key is available.
    fn begin(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Ok(())
    }

    /// Creates a file as [`Open::CreateNew`] does. Where files are encrypted only this handle can read it until
    /// [`FileSystem::reveal`].
    ///
    /// # Errors
    /// As the operating system's.
    fn create_secret(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.open(path, Open::CreateNew)
    }

    /// Creates a file as [`Open::CreateNew`] does, of which each byte is written once, from the beginning to the end: what
    /// files that are written in place need to be encrypted it need not have.
    ///
    /// # Errors
    /// As the operating system's; or no key is available.
    fn create_in_order(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.open(path, Open::CreateNew)
    }

    /// Returns whether a file that exists has another form than a new one would get: it is encrypted and new ones are not, or
    /// the other way round. A copy of it made here has the form of new ones.
    ///
    /// # Errors
    /// As [`FileSystem::open`].
    fn has_other_form(&self, path: &Path) -> io::Result<bool> {
        let _ = path;
        Ok(false)
    }

    /// Turns a file of [`FileSystem::create_secret`] into a log file that is readable with the server's keys. Durable
    /// on return.
    ///
    /// # Errors
    /// As [`FileSystem::begin`].
    fn reveal(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Ok(())
    }

    /// Where files are encrypted, makes the contents of this empty, unnamed file readable only through this handle.
    ///
    /// # Errors
    /// No key is available.
    fn hide(&self, file: Box<dyn OpenFile>) -> io::Result<Box<dyn OpenFile>> {
        Ok(file)
    }

    /// Copies the first `keep` bytes of a file to another name, whatever was there, in the form that the file has. Not synced.
    ///
    /// # Errors
    /// As the operating system's.
    fn copy_start(&self, from: &Path, to: &Path, keep: u64) -> io::Result<()> {
        let (from, to) = (File::new(self.open(from, Open::Read)?), File::new(self.open(to, Open::Replace)?));
        let mut piece = vec![0; usize::try_from(COPY_PIECE.min(keep)).unwrap_or_default()];
        let mut at = 0;
        while at < keep {
            let wanted = usize::try_from(keep - at).unwrap_or(usize::MAX).min(piece.len());
            let read = from.read_at(&mut piece[..wanted], at)?;
            if read == 0 {
                break;
            }
            to.write_all_at(&piece[..read], at)?;
            at += read as u64;
        }
        Ok(())
    }

    /// Leaves the device to others for so long.
    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }

    /// Announces that a thread is about to be started that will make requests here in the background. The returned
    /// function is called first on that thread: the operating system gives it a low priority, and a simulation decides
    /// which thread continues.
    fn announce(&self) -> Box<dyn FnOnce() + Send> {
        Box::new(|| {})
    }
}

/// The requests that a file system over another one, its `files`, hands on as they are: those about directories and about time.
#[macro_export]
macro_rules! handed_on_to_files {
    () => {
        fn list(&self, dir: &::std::path::Path) -> ::std::io::Result<::std::vec::Vec<::std::ffi::OsString>> {
            self.files.list(dir)
        }

        fn create_dir_all(&self, dir: &::std::path::Path) -> ::std::io::Result<()> {
            self.files.create_dir_all(dir)
        }

        fn hard_link(&self, from: &::std::path::Path, to: &::std::path::Path) -> ::std::io::Result<()> {
            self.files.hard_link(from, to)
        }

        fn sync_dir(&self, dir: &::std::path::Path) -> ::std::io::Result<()> {
            self.files.sync_dir(dir)
        }

        fn pause(&self, time: ::std::time::Duration) {
            self.files.pause(time);
        }

        fn announce(&self) -> ::std::boxed::Box<dyn FnOnce() + Send> {
            self.files.announce()
        }
    };
}

/// An open file. Positions are the caller's: there is none in here.
pub trait OpenFile: Debug + Send + Sync {
    /// Reads at a position; may read less than there is room for, and nothing only at the end.
    ///
    /// # Errors
    /// As the operating system's.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes at a position; may write less than it was given.
    ///
    /// # Errors
    /// As the operating system's.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// As `write_at`, where only the first `content` bytes are content; the others are zeros that reserve room. May
    /// write less than it was given.
    ///
    /// # Errors
    /// As the operating system's.
    fn write_with_room(&self, bytes: &[u8], content: usize, offset: u64) -> io::Result<usize> {
        let _ = content;
        self.write_at(bytes, offset)
    }

    /// The number of bytes in front of the contents, by which offset 0 is away from a block boundary.
    fn front(&self) -> u64 {
        0
    }

    /// The granularity of unwritten space, in bytes: space behind the last written byte reads as zeros only from a
    /// multiple of this on.
    fn unit(&self) -> u64 {
        1
    }

    /// Looks at the file.
    ///
    /// # Errors
    /// As the operating system's.
    fn metadata(&self) -> io::Result<Metadata>;

    /// Makes the file this long; what is added reads as zeros.
    ///
    /// # Errors
    /// As the operating system's.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Reserves the space and makes the file that long; false where the file system can not.
    ///
    /// # Errors
    /// As the operating system's, above all a full disk.
    fn reserve(&self, len: u64) -> io::Result<bool>;

    /// Makes durable what was written, and the length that reading it needs.
    ///
    /// # Errors
    /// As the operating system's. Nothing is known then of what was written since the last sync that succeeded.
    fn sync_data(&self) -> io::Result<()>;

    /// As `sync_data`, with all other attributes of the file.
    ///
    /// # Errors
    /// As `sync_data`.
    fn sync_all(&self) -> io::Result<()>;

    /// Has later reads of what is durable come from the device, as far as the operating system does that: after a sync that
    /// failed, what is cached may be what the device never got.
    ///
    /// # Errors
    /// As the operating system's.
    fn forget_cached(&self) -> io::Result<()> {
        Ok(())
    }

    /// Locks the file for this descriptor; returns false if another one holds the lock.
    ///
    /// # Errors
    /// As the operating system's.
    fn try_lock(&self) -> io::Result<bool>;
}

/// A file system to work on. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Disk(Arc<dyn FileSystem>);

impl Disk {
    /// Another one than the operating system's.
    #[must_use]
    pub fn new(files: Arc<dyn FileSystem>) -> Disk {
        Disk(files)
    }

    /// The same, and what is asked of each file.
    #[must_use]
    pub fn counted(self) -> (Disk, Arc<FileUses>) {
        let (counted, uses) = counted::Counted::over(self);
        (Disk::new(Arc::new(counted)), uses)
    }

    /// Opens a file.
    ///
    /// # Errors
    /// See [`FileSystem::open`].
    pub fn open(&self, path: &Path, how: Open) -> io::Result<File> {
        self.0.open(path, how).map(File::new)
    }

    /// Creates a file that only who has it open can read, where files are encrypted.
    ///
    /// # Errors
    /// See [`FileSystem::create_secret`].
    pub fn create_hidden(&self, path: &Path) -> io::Result<File> {
        self.0.create_secret(path).map(File::new)
    }

    /// All bytes of a file.
    ///
    /// # Errors
    /// It can not be opened or read.
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.open(path, Open::Read)?.read_all()
    }

    /// Returns whether a file or directory has this name.
    ///
    /// # Errors
    /// The operating system cannot tell.
    pub fn exists(&self, path: &Path) -> io::Result<bool> {
        match self.0.metadata(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Takes a name away, if it is there.
    ///
    /// # Errors
    /// See [`FileSystem::remove`].
    pub fn remove_if_there(&self, path: &Path) -> io::Result<()> {
        match self.0.remove(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

impl Default for Disk {
    fn default() -> Disk {
        Disk(Arc::new(real::Real))
    }
}

impl Deref for Disk {
    type Target = dyn FileSystem;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}
