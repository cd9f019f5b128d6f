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
        let about = fs::metadata(path)?;
        Ok(describe(&about, platform::links_by_name(path, &about)?))
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
        platform::remove(path)
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
        let about = File::metadata(self)?;
        Ok(describe(&about, platform::links(self, &about)?))
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

fn describe(about: &fs::Metadata, links: u64) -> Metadata {
    Metadata {
        len: about.len(),
        links,
        is_file: about.is_file(),
        modified: about.modified().unwrap_or_else(|_| SystemTime::now()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::{Disk, Open};

    #[test]
    fn a_name_is_free_at_once_though_the_file_is_open() {
        let dir = tempfile::tempdir().unwrap();
        let (disk, path) = (Disk::default(), dir.path().join("file"));
        let old = disk.open(&path, Open::CreateNew).unwrap();
        old.write_all_at(b"old", 0).unwrap();
        disk.remove(&path).unwrap();
        assert!(!disk.exists(&path).unwrap());
        disk.open(&path, Open::CreateNew).unwrap().write_all_at(b"new", 0).unwrap();
        assert_eq!(old.read_all().unwrap(), b"old");
        assert_eq!(disk.read(&path).unwrap(), b"new");
    }

    /// Renames a file that is open over another one, and has somebody look at that one meanwhile, if `keep` opens it.
    fn replaced(keep: impl Fn(&Disk, &std::path::Path) -> Option<crate::File>) {
        let dir = tempfile::tempdir().unwrap();
        let (disk, from, to) = (Disk::default(), dir.path().join("from"), dir.path().join("to"));
        disk.open(&to, Open::CreateNew).unwrap().write_all_at(b"old", 0).unwrap();
        let old = keep(&disk, &to);
        let new = disk.open(&from, Open::CreateNew).unwrap();
        new.write_all_at(b"new", 0).unwrap();
        disk.rename(&from, &to).unwrap();
        new.write_all_at(b"er", 3).unwrap();
        assert!(!disk.exists(&from).unwrap());
        assert_eq!(disk.read(&to).unwrap(), b"newer");
        assert!(old.is_none_or(|old| old.read_all().unwrap() == b"old"));
    }

    #[test]
    fn an_open_file_is_renamed_over_another_one() {
        replaced(|_, _| None);
    }

    #[test]
    #[cfg_attr(windows, ignore = "Windows does it, and Wine replaces no file that is open")]
    fn an_open_file_is_replaced() {
        replaced(|disk, path| Some(disk.open(path, Open::Read).unwrap()));
    }

    #[test]
    fn names_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let (disk, one, other) = (Disk::default(), dir.path().join("one"), dir.path().join("other"));
        let file = disk.open(&one, Open::CreateNew).unwrap();
        let links = || [file.metadata().unwrap().links, disk.metadata(&one).unwrap().links];
        assert_eq!(links(), [1, 1]);
        disk.hard_link(&one, &other).unwrap();
        assert_eq!(links(), [2, 2]);
        disk.remove(&other).unwrap();
        assert_eq!(links(), [1, 1]);
        assert!(!disk.metadata(dir.path()).unwrap().is_file);
    }

    #[test]
    fn a_lock_ends_with_its_handle() {
        let dir = tempfile::tempdir().unwrap();
        let (disk, path) = (Disk::default(), dir.path().join("file"));
        let first = disk.open(&path, Open::Create).unwrap();
        let second = disk.open(&path, Open::Create).unwrap();
        assert!(first.try_lock().unwrap());
        assert!(!second.try_lock().unwrap());
        drop(first);
        assert!(second.try_lock().unwrap());
    }

    #[test]
    fn reserved_and_added_bytes_are_zeros_and_every_way_of_writing_writes() {
        let dir = tempfile::tempdir().unwrap();
        let (disk, path) = (Disk::default(), dir.path().join("file"));
        let file = disk.open(&path, Open::CreateNew).unwrap();
        if !file.reserve(8192).unwrap() {
            file.set_len(8192).unwrap();
        }
        file.set_len(16384).unwrap();
        assert_eq!(disk.read(&path).unwrap(), [0; 16384]);
        file.sync_data().unwrap();
        for (how, at) in [(Open::Write, 0), (Open::WriteThrough, 1000)] {
            let file = disk.open(&path, how).unwrap();
            file.write_all_at(b"here", at).unwrap();
            file.sync_all().unwrap();
        }
        file.set_len(1002).unwrap();
        let read = disk.read(&path).unwrap();
        assert_eq!((&read[..4], &read[4..1000], &read[1000..]), (&b"here"[..], &[0; 996][..], &b"he"[..]));
    }
}
