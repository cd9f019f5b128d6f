//! Measures how long a durable write takes on a directory's device, with the code that the log uses.
//!
//! Used by `omnibus bench sync` and for choosing `binlog_flush_method`. Writes one file next to the log, whose name is
//! removed as soon as it is open, so that it vanishes with the process.

use crate::buffer::AlignedBuf;
use crate::config::{FlushMethod, LogConfig};
use crate::file::{self, LogFile};
use crate::position::FileSeq;
use crate::prepare::{Preparation, prepare_file};
use omnibus_disk::{Disk, Open};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The state of the space before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// There is none; each write makes the file longer.
    Append,
    /// Reserved by the file system, never written.
    Reserved,
    /// Filled with zeros and synced.
    ZeroFilled,
}

/// How bytes are made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncCall {
    /// Through the page cache, then `fsync`: also waits for what a sync of data alone leaves out, such as times.
    Fsync,
    /// As the log does with this flush method.
    Method(FlushMethod),
}

/// Removes the file however the measurement ends.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = Disk::default().remove(&self.0);
    }
}

/// Makes `count` sequential durable writes of `size` bytes in `dir` and returns the duration of each, in order.
///
/// # Errors
/// The method does not work in this directory, or the operating system refuses.
pub fn measure_sync(
    dir: &Path,
    space: Allocation,
    call: SyncCall,
    size: usize,
    count: usize,
) -> io::Result<Vec<Duration>> {
    let scratch = Scratch(dir.join(format!(".omnibus-bench-{}", std::process::id())));
    let path = &scratch.0;
    let config = LogConfig { extend_chunk: 0, ..LogConfig::default() };
    let disk = &config.disk;
    let total = (size * (count + 1)) as u64;
    let go_on = &mut |_| ControlFlow::Continue(());
    let prepared = match space {
        Allocation::Append => disk.open(path, Open::CreateNew).map(|_| ()),
        Allocation::Reserved => {
            prepare_file(disk, path, total, Preparation::Reserve, go_on).map(|_| ()).map_err(io::Error::other)
        }
        Allocation::ZeroFilled => prepare_file(disk, path, total, Preparation::ZeroFill, go_on)
            .map(|_| ())
            .map_err(io::Error::other),
    };
    prepared?;
    let method = match call {
        SyncCall::Fsync => FlushMethod::Fdatasync,
        SyncCall::Method(method) => method,
    };
    file::try_method(disk, &dir.join(format!(".omnibus-probe-{}", std::process::id())), method)?;
    let log = LogFile::open(FileSeq::FIRST, path.clone(), method, &config)?;
    drop(scratch);
    let mut times = Vec::with_capacity(count);
    let mut at = 0;
    for _ in 0..count {
        // As the writer does it: the last partial block is written again with what follows.
        let base = log.blocks.floor(at);
        at += size as u64;
        let len = usize::try_from(at - base).unwrap_or(size);
        let mut buffer = AlignedBuf::with_capacity(len);
        buffer.extend_from_slice(&vec![0x5a; len]);
        buffer.pad(log.blocks.ceil(at) - at);
        let started = Instant::now();
        if call == SyncCall::Fsync {
            log.plain().write_all_at(&buffer[..len], base)?;
            log.plain().sync_all()?;
        } else {
            log.write_through(&buffer, len, base)?;
            log.sync()?;
        }
        times.push(started.elapsed());
    }
    Ok(times)
}
