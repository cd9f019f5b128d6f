//! The operating system's file systems: the calls of today, one for one.

use crate::platform;
use crate::{FileSystem, Metadata, Open, OpenFile};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::time::SystemTime;

/// See the module.
#[derive(Debug)]
pub(crate) struct Real;

impl FileSystem for Real {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn OpenFile>> {
        let writing = || {
            let mut options = OpenOptions::new();
            options.read(true).write(true);
            options
        };
        let file = match how {
            Open::Read => File::open(path),
            Open::Write => writing().open(path),
            Open::WriteThrough => platform::open_write_through(path),
            Open::WriteDirect => platform::open_direct(path),
            Open::CreateNew => writing().create_new(true).open(path),
            Open::Create => writing().create(true).truncate(false).open(path),
            Open::Replace => writing().create(true).truncate(true).open(path),
        };
        Ok(Box::new(file?))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        fs::metadata(path).map(|about| describe(&about))
    }

    fn announce(&self) -> Box<dyn FnOnce() + Send> {
        Box::new(platform::lower_this_thread)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        platform::sync_dir(dir)
    }
}

impl OpenFile for File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        platform::read_at(self, bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        platform::write_at(self, bytes, offset)
    }

    fn metadata(&self) -> io::Result<Metadata> {
        File::metadata(self).map(|about| describe(&about))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }

    fn reserve(&self, len: u64) -> io::Result<bool> {
        platform::reserve(self, len)
    }

    fn forget_cached(&self) -> io::Result<()> {
        platform::forget_cached(self)
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }

    fn sync_all(&self) -> io::Result<()> {
        File::sync_all(self)
    }

    fn try_lock(&self) -> io::Result<bool> {
        match File::try_lock(self) {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

fn describe(about: &fs::Metadata) -> Metadata {
    Metadata {
        len: about.len(),
        links: platform::links(about),
        is_file: about.is_file(),
        modified: about.modified().unwrap_or_else(|_| SystemTime::now()),
    }
}
