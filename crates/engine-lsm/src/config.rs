//! The engine's settings. The server maps its variables onto them.

use omnibus_disk::{Disk, FullDisk};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The settings of an `LsmEngine`.
#[derive(Clone, Debug)]
pub struct LsmConfig {
    /// The file system of its files, except those that a library writes: the operating system's, or a model in
    /// simulations.
    pub disk: Disk,
    /// The file system of what rows are in: table files and the redo log. One that encrypts, or the operating system's.
    pub rows: Disk,
    /// The engine's own directory; created if missing.
    pub directory: PathBuf,
    /// The number of bytes at which a memtable is sealed, approximately.
    pub memtable_size: u64,
    /// Memory for table blocks, in bytes.
    pub block_cache_size: u64,
    /// Table files kept open.
    pub open_tables: usize,
    /// Table files are about this big.
    pub table_target_size: u64,
    /// Sealed memtables beyond which writers are slowed.
    pub sealed_soft_limit: usize,
    /// Runs in level 0 beyond which writers are slowed.
    pub l0_soft_limit: usize,
    /// A tree that nothing was written to for so long is looked at for what deletions left in it.
    pub sweep_after: Duration,
    /// Opens for reading only, without flushes and compactions.
    pub read_only: bool,
    /// Whether a flush or compaction for which the disk is too full waits, and who else does.
    pub full_disk: Arc<FullDisk>,
}

impl LsmConfig {
    /// Defaults, in `directory`.
    #[must_use]
    pub fn new(directory: &Path) -> LsmConfig {
        LsmConfig {
            disk: Disk::default(),
            rows: Disk::default(),
            directory: directory.to_path_buf(),
            memtable_size: 64 << 20,
            block_cache_size: 256 << 20,
            open_tables: 512,
            table_target_size: 64 << 20,
            sealed_soft_limit: 3,
            l0_soft_limit: 12,
            sweep_after: Duration::from_secs(5),
            read_only: false,
            full_disk: Arc::default(),
        }
    }
}
