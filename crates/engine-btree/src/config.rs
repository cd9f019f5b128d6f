//! The engine's settings. The server maps its variables onto them.

use omnibus_disk::{Disk, FullDisk};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The settings of a `BtreeEngine`.
#[derive(Clone, Debug)]
pub struct BtreeConfig {
    /// The file system of its files: the operating system's, one that encrypts, or a model in simulations.
    pub disk: Disk,
    /// The engine's own directory; created if missing.
    pub directory: PathBuf,
    /// Memory for pages of the file, in bytes.
    pub cache_size: usize,
    /// Versions in memory beyond which writers are slowed, in bytes.
    pub memory_soft_limit: u64,
    /// Bytes written to the file between two durable transactions of it, at most about.
    pub durable_every: u64,
    /// Seconds after which a file that nothing was written to is brought to the present commit number, so that
    /// recovery need not read the log for it.
    pub idle_s: u64,
    /// Whether a write for which the disk is too full waits, and who else does.
    pub full_disk: Arc<FullDisk>,
}

impl BtreeConfig {
    /// Defaults, in `directory`.
    #[must_use]
    pub fn new(directory: &Path) -> BtreeConfig {
        BtreeConfig {
            disk: Disk::default(),
            directory: directory.to_path_buf(),
            cache_size: 64 << 20,
            memory_soft_limit: 64 << 20,
            durable_every: 64 << 20,
            idle_s: 30,
            full_disk: Arc::default(),
        }
    }
}
