//! The settings of a log directory. Values only; the probe of flush methods is in `file.rs`.

use crate::fault::Faults;
use omnibus_disk::{Disk, FullDisk, Open};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// How bytes are made durable. One value per server variable `binlog_flush_method`.
///
/// Median microseconds per write here (ext4, two cores), sequential and unloaded:
///
/// | size | append, fdatasync | zero-filled, fdatasync | zero-filled, `O_DSYNC` | zero-filled, `O_DIRECT` and `O_DSYNC` |
/// |---|---|---|---|---|
/// | 512 B | 70 | 50 | 51 | 46 |
/// | 4 KiB | 83 | 58 | 59 | 38 |
/// | 16 KiB | 107 | 77 | 73 | 55 |
/// | 64 KiB | 147 | 78 | 87 | 63 |
///
/// Space that is reserved but unwritten (fallocate alone) costs about as much as appending: turning an extent into a
/// written one is a change of metadata, and the sync has to wait for the journal. Hence zero-filling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum FlushMethod {
    /// Write through the page cache, then `fdatasync`.
    Fdatasync,
    /// The write returns when it is durable; still through the page cache.
    ODsync,
    /// Whole blocks straight to the device; the last partial block is rewritten by the next write.
    #[default]
    ODirectDsync,
}

impl FlushMethod {
    /// The value as `binlog_flush_method` shows it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FlushMethod::Fdatasync => "fdatasync",
            FlushMethod::ODsync => "O_DSYNC",
            FlushMethod::ODirectDsync => "O_DIRECT_DSYNC",
        }
    }

    /// How the write-through descriptor of a file is opened; `None` for a method that needs no second descriptor.
    pub(crate) fn open(self) -> Option<Open> {
        match self {
            FlushMethod::Fdatasync => None,
            FlushMethod::ODsync => Some(Open::WriteThrough),
            FlushMethod::ODirectDsync => Some(Open::WriteDirect),
        }
    }

    /// The next method to try if this one does not work on a file system.
    pub(crate) fn fallback(self) -> Option<FlushMethod> {
        match self {
            FlushMethod::ODirectDsync => Some(FlushMethod::ODsync),
            FlushMethod::ODsync => Some(FlushMethod::Fdatasync),
            FlushMethod::Fdatasync => None,
        }
    }
}

impl fmt::Display for FlushMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FlushMethod {
    type Err = String;

    fn from_str(text: &str) -> Result<FlushMethod, String> {
        [FlushMethod::Fdatasync, FlushMethod::ODsync, FlushMethod::ODirectDsync]
            .into_iter()
            .find(|method| method.name().eq_ignore_ascii_case(text))
            .ok_or_else(|| format!("{text:?} is none of fdatasync, O_DSYNC, O_DIRECT_DSYNC"))
    }
}

/// The behaviour of the log on a full disk.
#[derive(Clone, Debug, Default)]
pub struct Room {
    /// Whether a write that finds the disk full waits for space instead of failing, and who else does. See
    /// [`crate::LogHandle::stop_waiting_for_space`].
    pub full_disk: Arc<FullDisk>,
    /// Bytes that are kept for a checkpoint on a full disk, which lets log files go; 0: none.
    pub reserve: u64,
}

/// The settings of one log directory.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// The prefix of file names (`log_bin`).
    pub basename: String,
    /// The size in bytes after which a file is followed by a new one (`max_binlog_size`).
    pub max_size: u64,
    /// The method to try first; see [`FlushMethod`].
    pub flush_method: FlushMethod,
    /// Prepare the next files in the background (`binlog_preallocate`). Files found in `pre-allocated-binlog/` are
    /// used either way.
    pub preallocate: bool,
    /// The number of prepared files that the background thread keeps ready.
    pub preallocate_files: usize,
    /// The number of bytes by which a file that was not prepared grows at a time. The new part is zero-filled, so that
    /// the following writes change no metadata: one write of 1 MiB costs about as much as ten appends and saves half of
    /// the next 256. With 0 the file grows with every write.
    pub extend_chunk: u64,
    /// The number of bytes ahead of the last write that the background thread keeps zero-filled in such a file.
    pub extend_ahead: u64,
    /// A spare tail longer than this is cut by a background thread after a rotation, which would otherwise wait for it.
    pub cut_later: u64,
    /// The number of bytes that one step in the background cuts off. Writes of groups wait for a step that is under
    /// way: 16 MiB made the slowest of them take 5 ms, 64 MiB 18 ms, all at once 90 ms.
    pub cut_step: u64,
    /// Permits recovery to cut the last file even where that loses transactions that were durable
    /// (`binlog_truncate_damaged_tail`).
    pub truncate_damaged: bool,
    /// The behaviour on a full disk.
    pub room: Room,
    /// Where the files are: the operating system's, but in simulations.
    pub disk: Disk,
    /// Fault points; empty outside of tests.
    pub faults: Faults,
}

impl Default for LogConfig {
    fn default() -> LogConfig {
        LogConfig {
            basename: "binlog".to_owned(),
            max_size: 1 << 30,
            flush_method: FlushMethod::default(),
            preallocate: false,
            preallocate_files: 1,
            extend_chunk: 1 << 20,
            extend_ahead: 16 << 20,
            cut_later: 4 << 20,
            cut_step: 4 << 20,
            truncate_damaged: false,
            room: Room::default(),
            disk: Disk::default(),
            faults: Faults::default(),
        }
    }
}
