//! Makes one empty log file: reserved, zero-filled, synced, and renamed to its name only when all of that is done.
//!
//! The work happens under a temporary name, which is locked while its process lives. A crash leaves a file that the
//! next process recognises by the free lock and removes. An existing file is never replaced. Used by the background
//! thread and by `omnibus alloc`.

use crate::buffer::{AlignedBuf, BLOCK};
use crate::error::{IoFailure, PrepareError, failed};
use crate::file::zeros;
use crate::io::rename_new;
use omnibus_disk::{Disk, File, Open};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const TEMPORARY: &str = ".tmp";
/// Bytes per write. A write occupies the device for about 0.2 ms, which a group's write may have to wait; with 1 MiB
/// the slowest hundredth of commits took 0.7 ms while a file was prepared.
const PIECE: usize = 256 << 10;

/// How the space of a file is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preparation {
    /// Zeros are written. Overwriting them later changes no metadata, which is what makes the sync short.
    ZeroFill,
    /// The space is reserved and reads as zeros, but each first write to a part of it changes metadata. Quick to make.
    Reserve,
}

/// The progress of a preparation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes done.
    pub done: u64,
    /// Bytes in total.
    pub total: u64,
}

/// The result of a preparation.
#[derive(Clone, Debug)]
pub struct PreparedReport {
    /// The file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// Whether the file system reserved the space in one step beforehand.
    pub reserved: bool,
    /// The number of zero bytes written.
    pub zero_filled: u64,
    /// The elapsed time.
    pub elapsed: Duration,
}

/// Creates `path` on `disk` with `size` zero bytes. `progress` is called a few times per MiB and can stop the work.
///
/// # Errors
/// The name is taken, the disk is full, or the operating system fails otherwise; no file is left behind.
pub fn prepare_file(
    disk: &Disk,
    path: &Path,
    size: u64,
    how: Preparation,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<PreparedReport, PrepareError> {
    let started = Instant::now();
    let taken = || PrepareError::Exists(path.to_owned());
    if disk.metadata(path).is_ok() {
        return Err(taken());
    }
    let temporary = temporary_name(path);
    let file = create_temporary(disk, &temporary)?;
    let made = fill(disk, &file, &temporary, size, how, progress).and_then(|(reserved, zero_filled)| {
        rename_new(disk, &temporary, path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => taken(),
            _ => failed("rename", &temporary)(error).into(),
        })?;
        Ok((reserved, zero_filled))
    });
    let (reserved, zero_filled) = match made {
        Ok(made) => made,
        Err(error) => {
            let _ = disk.remove_if_there(&temporary);
            return Err(error);
        }
    };
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    disk.sync_dir(dir).map_err(failed("sync", dir))?;
    Ok(PreparedReport { path: path.to_owned(), size, reserved, zero_filled, elapsed: started.elapsed() })
}

fn temporary_name(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!("-{}{TEMPORARY}", std::process::id()));
    path.with_file_name(name)
}

fn create_temporary(disk: &Disk, path: &Path) -> Result<File, PrepareError> {
    let file = disk.open(path, Open::Create).map_err(failed("create", path))?;
    if !file.try_lock().map_err(failed("lock", path))? {
        return Err(PrepareError::Exists(path.to_owned()));
    }
    file.set_len(0).map_err(failed("truncate", path))?;
    Ok(file)
}

fn fill(
    disk: &Disk,
    file: &File,
    path: &Path,
    size: u64,
    how: Preparation,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<(bool, u64), PrepareError> {
    // Reserving first finds a full disk at once and keeps the file in one piece.
    let reserved = file.reserve(size).map_err(failed("reserve space for", path))?;
    let zero = how == Preparation::ZeroFill || !reserved;
    let zero_filled = if zero { zero_fill(disk, file, path, size, progress)? } else { 0 };
    file.sync_all().map_err(failed("sync", path))?;
    Ok((reserved, zero_filled))
}

/// Writes zeros, directly to the device where that works: a gigabyte of zeros should not fill the page cache.
fn zero_fill(
    disk: &Disk,
    file: &File,
    path: &Path,
    size: u64,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<u64, PrepareError> {
    let direct = open_direct(disk, path);
    let mut done = 0;
    while done < size {
        let piece = (size - done).min(PIECE as u64);
        let bytes = &zeros()[..usize::try_from(piece).unwrap_or(PIECE)];
        let through = direct.as_ref().filter(|_| bytes.len().is_multiple_of(BLOCK));
        through.unwrap_or(file).write_all_at(bytes, done).map_err(failed("write", path))?;
        if through.is_none() {
            // A little at a time, so that the sync at the end does not flood the device.
            file.sync_data().map_err(failed("sync", path))?;
        }
        done += piece;
        if progress(Progress { done, total: size }).is_break() {
            return Err(PrepareError::Stopped(path.to_owned()));
        }
    }
    Ok(size)
}

fn open_direct(disk: &Disk, path: &Path) -> Option<File> {
    let direct = disk.open(path, Open::WriteDirect).ok()?;
    let mut block = AlignedBuf::with_capacity(BLOCK);
    block.extend_from_slice(&zeros()[..BLOCK]);
    // Some file systems take the flag and refuse the write.
    let len = direct.len().ok()?;
    if len >= BLOCK as u64 {
        direct.write_all_at(&block, 0).ok()?;
    }
    Some(direct)
}

/// Removes temporary files in `dir` whose process is gone.
pub fn remove_stale_temporaries(disk: &Disk, dir: &Path) {
    for name in disk.list(dir).unwrap_or_default() {
        if is_temporary(name.to_str().unwrap_or_default()) {
            let path = dir.join(name);
            let file = disk.open(&path, Open::Read);
            if file.is_ok_and(|file| file.try_lock().unwrap_or(false)) {
                let _ = disk.remove_if_there(&path);
            }
        }
    }
}

/// Returns whether `name` has the form that [`prepare_file`] gives its temporary files, such as
/// `.empty.000001-4711.tmp`; other files are never touched.
fn is_temporary(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let inner = name.strip_prefix('.').and_then(|name| name.strip_suffix(TEMPORARY));
    let Some((file, process)) = inner.and_then(|inner| inner.rsplit_once('-')) else { return false };
    digits(process) && file.rsplit_once('.').is_some_and(|(_, number)| digits(number))
}

impl From<IoFailure> for io::Error {
    fn from(failure: IoFailure) -> io::Error {
        io::Error::new(failure.kind, failure)
    }
}
