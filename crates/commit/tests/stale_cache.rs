//! After a sync that failed, the page cache holds what the device never got, and says that it is clean.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use omnibus_commit::recover;
use omnibus_engine::CommitNo;
use omnibus_log::{Disk, File, FileSystem, LogConfig, LogDir, Metadata, Open, OpenFile};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::{MapEngine, Texts, crash, open, request};

/// One file of it has other bytes in the cache than on the device.
#[derive(Debug)]
struct Stale {
    real: Disk,
    path: PathBuf,
    cached: Arc<Vec<u8>>,
    /// The cache was dropped.
    forgotten: Arc<AtomicBool>,
}

#[derive(Debug)]
struct StaleFile {
    file: File,
    cached: Arc<Vec<u8>>,
    forgotten: Arc<AtomicBool>,
}

impl FileSystem for Stale {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn OpenFile>> {
        let file = self.real.open(path, how)?;
        let fresh = path != self.path;
        let forgotten = if fresh { Arc::new(AtomicBool::new(true)) } else { Arc::clone(&self.forgotten) };
        Ok(Box::new(StaleFile { file, cached: Arc::clone(&self.cached), forgotten }))
    }
    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.real.metadata(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.real.list(dir)
    }
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.real.create_dir_all(dir)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.real.rename(from, to)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.real.hard_link(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.real.remove(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.real.sync_dir(dir)
    }
}

impl OpenFile for StaleFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.forgotten.load(Ordering::SeqCst) {
            return self.file.read_at(bytes, offset);
        }
        let there = self.cached.get(offset as usize..).unwrap_or_default();
        let len = there.len().min(bytes.len());
        bytes[..len].copy_from_slice(&there[..len]);
        Ok(len)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }
    fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
    fn reserve(&self, len: u64) -> io::Result<bool> {
        self.file.reserve(len)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }
    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }
    fn forget_cached(&self) -> io::Result<()> {
        self.forgotten.store(true, Ordering::SeqCst);
        Ok(())
    }
    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }
}

/// COMMIT-3: nobody may be told of what the next power cut takes.
#[test]
fn recovery_believes_the_device_and_not_the_cache() {
    let dir = tempfile::tempdir().unwrap();
    let server = open(dir.path(), 1 << 20);
    for n in 0..2 {
        server.coordinator.commit(request(&server.coordinator, &n.to_string(), "v")).wait().unwrap();
    }
    let end = server.coordinator.log().files().durable_end().get().offset.0 as usize;
    server.coordinator.commit(request(&server.coordinator, "2", "v")).wait().unwrap();
    crash(server.coordinator);
    let path = dir.path().join("binlog.000001");
    let cached = fs::read(&path).unwrap();
    let mut device = cached.clone();
    device[end..].fill(0);
    fs::write(&path, device).unwrap();
    let disk = Disk::new(Arc::new(Stale {
        real: Disk::default(),
        path,
        cached: Arc::new(cached),
        forgotten: Arc::default(),
    }));
    let opened = LogDir::open(dir.path(), LogConfig { disk, ..LogConfig::default() }).unwrap();
    let engine = MapEngine::default();
    assert_eq!(recover(&opened, &engine, &mut Texts::default()).unwrap().last, CommitNo(2));
    assert_eq!(engine.rows.lock().unwrap().len(), 2);
}
