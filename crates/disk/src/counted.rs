//! The same files, and what was read from and written to each: how often, how many bytes, how long it took. The price is two
//! looks at the clock a request.
//!
//! A file is known by its name for as long as it has it; what was counted goes with a rename, and is forgotten when the name is taken away.

use crate::{Disk, FileSystem, Metadata, Open, OpenFile};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Bytes were read.
    Read,
    /// Bytes were written.
    Write,
    /// Anything else: syncs, opening, lengths.
    Other,
}

/// Requests of a kind.
#[derive(Debug)]
struct Kind {
    count: AtomicU64,
    bytes: AtomicU64,
    ns: AtomicU64,
    ns_min: AtomicU64,
    ns_max: AtomicU64,
}

impl Default for Kind {
    fn default() -> Kind {
        let zero = || AtomicU64::new(0);
        Kind { count: zero(), bytes: zero(), ns: zero(), ns_min: AtomicU64::new(u64::MAX), ns_max: zero() }
    }
}

/// The same, as it was a moment ago.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The number of requests.
    pub count: u64,
    /// Bytes in all.
    pub bytes: u64,
    /// Nanoseconds in all.
    pub ns: u64,
    /// The shortest.
    pub ns_min: u64,
    /// The longest.
    pub ns_max: u64,
}

impl Figures {
    /// Both together.
    #[must_use]
    pub fn with(self, other: Figures) -> Figures {
        let min = match (self.count, other.count) {
            (0, _) => other.ns_min,
            (_, 0) => self.ns_min,
            _ => self.ns_min.min(other.ns_min),
        };
        Figures {
            count: self.count + other.count,
            bytes: self.bytes + other.bytes,
            ns: self.ns + other.ns,
            ns_min: min,
            ns_max: self.ns_max.max(other.ns_max),
        }
    }
}

impl Kind {
    fn add(&self, bytes: usize, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.ns.fetch_add(ns, Ordering::Relaxed);
        self.ns_min.fetch_min(ns, Ordering::Relaxed);
        self.ns_max.fetch_max(ns, Ordering::Relaxed);
    }

    fn read(&self) -> Figures {
        let get = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        let count = get(&self.count);
        let ns_min = if count == 0 { 0 } else { get(&self.ns_min) };
        Figures { count, bytes: get(&self.bytes), ns: get(&self.ns), ns_min, ns_max: get(&self.ns_max) }
    }
}

/// The requests made of one file.
#[derive(Debug, Default)]
pub struct FileUse([Kind; 3]);

impl FileUse {
    /// Requests of a kind.
    #[must_use]
    pub fn of(&self, request: Request) -> Figures {
        self.0[request as usize].read()
    }

    fn counted<T>(
        &self,
        request: Request,
        run: impl FnOnce() -> io::Result<T>,
        bytes: impl FnOnce(&T) -> usize,
    ) -> io::Result<T> {
        let begun = Instant::now();
        let done = run();
        self.0[request as usize].add(done.as_ref().map_or(0, bytes), begun.elapsed());
        done
    }

    fn other<T>(&self, run: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.counted(Request::Other, run, |_| 0)
    }
}

/// The requests made of all files, by name.
#[derive(Debug, Default)]
pub struct FileUses(Mutex<HashMap<PathBuf, Arc<FileUse>>>);

impl FileUses {
    /// All of them, by name.
    #[must_use]
    pub fn all(&self) -> Vec<(PathBuf, Arc<FileUse>)> {
        let mut all: Vec<_> = self.map().iter().map(|(path, file)| (path.clone(), file.clone())).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    fn map(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Arc<FileUse>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, path: &Path) -> Arc<FileUse> {
        self.map().entry(path.to_owned()).or_default().clone()
    }
}

/// A file system that counts.
#[derive(Debug)]
pub(crate) struct Counted {
    files: Disk,
    uses: Arc<FileUses>,
}

impl Counted {
    /// Over another one.
    pub(crate) fn over(files: Disk) -> (Counted, Arc<FileUses>) {
        let uses = Arc::<FileUses>::default();
        (Counted { files, uses: uses.clone() }, uses)
    }
}

#[derive(Debug)]
struct CountedFile {
    file: Box<dyn OpenFile>,
    uses: Arc<FileUse>,
}

impl FileSystem for Counted {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn OpenFile>> {
        let begun = Instant::now();
        let file = (*self.files).open(path, how)?;
        let uses = self.uses.of(path);
        uses.0[Request::Other as usize].add(0, begun.elapsed());
        Ok(Box::new(CountedFile { file, uses }))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.files.metadata(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.rename(from, to)?;
        let mut map = self.uses.map();
        if let Some(uses) = map.remove(from) {
            map.insert(to.to_owned(), uses);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.remove(path)?;
        self.uses.map().remove(path);
        Ok(())
    }

    crate::handed_on_to_files!();
}

impl OpenFile for CountedFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.uses.counted(Request::Read, || self.file.read_at(bytes, offset), |read| *read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.uses.counted(Request::Write, || self.file.write_at(bytes, offset), |written| *written)
    }

    fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.uses.other(|| self.file.set_len(len))
    }

    fn reserve(&self, len: u64) -> io::Result<bool> {
        self.uses.other(|| self.file.reserve(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.uses.other(|| self.file.sync_data())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.uses.other(|| self.file.sync_all())
    }

    fn forget_cached(&self) -> io::Result<()> {
        self.file.forget_cached()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_counted_under_its_name_until_that_goes() {
        let dir = tempfile::tempdir().unwrap();
        let (disk, uses) = Disk::default().counted();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        let file = disk.open(&a, Open::CreateNew).unwrap();
        file.write_all_at(b"12345", 0).unwrap();
        file.sync_data().unwrap();
        file.read_exact_at(&mut [0; 3], 1).unwrap();
        let all = uses.all();
        assert_eq!(all[0].0, a);
        let figures = |request| all[0].1.of(request);
        assert_eq!((figures(Request::Write).count, figures(Request::Write).bytes), (1, 5));
        assert_eq!((figures(Request::Read).count, figures(Request::Read).bytes), (1, 3));
        // Opened and synced.
        assert_eq!(figures(Request::Other).count, 2);
        assert!(figures(Request::Other).ns >= figures(Request::Other).ns_max);
        disk.rename(&a, &b).unwrap();
        file.write_all_at(b"1", 0).unwrap();
        assert_eq!(uses.all()[0].0, b);
        assert_eq!(uses.all()[0].1.of(Request::Write).count, 2, "who has it open counts on");
        disk.remove(&b).unwrap();
        assert!(uses.all().is_empty());
    }
}
