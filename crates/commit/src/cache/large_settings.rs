//! The size from which a transaction is large, and the directory of such transactions' files.

use super::LargeFile;
use omnibus_format::Checksum;
use omnibus_log::{Disk, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The directory's name. It is below the log directory, because a file can be renamed only within its file system.
const DIRECTORY: &str = "#binlog_cache_files";

/// Shared by all caches of a server.
#[derive(Debug)]
pub struct LargeSettings {
    /// `binlog_large_commit_threshold`: bytes of events past which a transaction gets a file that becomes a log
    /// file. 0 is never.
    pub threshold: AtomicU64,
    /// `Binlog_large_commits`: transactions whose file became a log file.
    pub promoted: AtomicU64,
    home: OnceLock<Home>,
}

#[derive(Debug)]
struct Home {
    disk: Disk,
    directory: PathBuf,
    checksums: Arc<AtomicBool>,
    next: AtomicU64,
}

impl Default for LargeSettings {
    fn default() -> LargeSettings {
        LargeSettings {
            threshold: AtomicU64::new(16 << 20),
            promoted: AtomicU64::new(0),
            home: OnceLock::new(),
        }
    }
}

impl LargeSettings {
    /// Enables large transactions. Removes the files that a crash left.
    pub(crate) fn open(&self, disk: &Disk, logs: &Path, checksums: Arc<AtomicBool>) {
        let directory = logs.join(DIRECTORY);
        for name in disk.list(&directory).unwrap_or_default() {
            let path = directory.join(name);
            if let Err(error) = disk.remove(&path) {
                tracing::warn!(file = %path.display(), %error, "can not remove what a large transaction left");
            }
        }
        let _ = self.home.set(Home { disk: disk.clone(), directory, checksums, next: AtomicU64::new(1) });
    }

    /// Returns whether a transaction with so many bytes of events is large.
    pub(crate) fn is_large(&self, bytes: u64) -> bool {
        let threshold = self.threshold.load(Ordering::Relaxed);
        threshold > 0 && bytes >= threshold && self.home.get().is_some()
    }

    /// Creates an unnamed file in `dir`, for a transaction that is not large yet.
    pub(crate) fn unnamed(&self, dir: &Path) -> std::io::Result<File> {
        let file = Box::new(tempfile::tempfile_in(dir)?);
        Ok(File::new(match self.home.get() {
            Some(home) => home.disk.hide(file)?,
            None => file,
        }))
    }

    /// The directory of large transactions' files.
    pub(crate) fn directory(&self) -> std::path::PathBuf {
        self.home.get().map(|home| home.directory.clone()).unwrap_or_default()
    }

    /// A new file for a transaction's events, with the checksum algorithm of the log now.
    pub(crate) fn create(&self) -> std::io::Result<LargeFile> {
        let home = self.home.get().ok_or(std::io::ErrorKind::NotFound)?;
        home.disk.create_dir_all(&home.directory)?;
        let number = home.next.fetch_add(1, Ordering::Relaxed);
        let checksum = if home.checksums.load(Ordering::Relaxed) { Checksum::Crc32 } else { Checksum::None };
        LargeFile::create(home.disk.clone(), home.directory.join(format!("large.{number:06}")), checksum)
    }
}
