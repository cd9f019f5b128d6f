//! The Unix forms; where Linux has more than the others, both are here. Safe calls of the standard library and `libc`'s
//! constants, except in `calls`, which is all the `unsafe` of this crate.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

#[cfg(target_os = "linux")]
pub use calls::lower_this_thread;

/// Opens an existing file for writing so that a write returns when it is durable.
pub(crate) fn open_write_through(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_DSYNC).open(path)
}

/// As `open_write_through`, past the page cache.
#[cfg(target_os = "linux")]
pub(crate) fn open_direct(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_DSYNC | libc::O_DIRECT).open(path)
}

/// Other systems have no flag for it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn open_direct(_path: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// `pread`; may read less than there is room for.
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(bytes, offset)
}

/// `pwrite`; may write less than it was given.
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    file.write_at(bytes, offset)
}

/// The number of names of a file.
pub(crate) fn links(_file: &File, about: &Metadata) -> io::Result<u64> {
    Ok(about.nlink())
}

/// As `links`.
pub(crate) fn links_by_name(_path: &Path, about: &Metadata) -> io::Result<u64> {
    Ok(about.nlink())
}

/// Takes a name away; who has the file open keeps it.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)
}

/// Makes creations, renames and removals in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Reserves the space and makes the file that long; false where the file system can not.
#[cfg(target_os = "linux")]
pub(crate) fn reserve(file: &File, size: u64) -> io::Result<bool> {
    match calls::fallocate(file, size) {
        Ok(()) => Ok(true),
        Err(error)
            if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL)) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Reserves nothing. `posix_fallocate` is not used, because it writes zeros itself, unreported, where the file system
/// cannot reserve.
#[cfg(not(target_os = "linux"))]
pub(crate) fn reserve(_file: &File, _size: u64) -> io::Result<bool> {
    Ok(false)
}

/// Drops what is cached of a file and is not waiting to be written.
#[cfg(target_os = "linux")]
pub(crate) fn forget_cached(file: &File) -> io::Result<()> {
    calls::forget_cached(file)
}

/// Elsewhere there is no call for it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn forget_cached(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Elsewhere nothing is known to do this for one thread.
#[cfg(not(target_os = "linux"))]
pub fn lower_this_thread() {}

/// The calls that the standard library has no safe name for.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
mod calls {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;

    /// Puts the calling thread behind everyone else, for the processor and for the disk. Best effort: a refusal only
    /// means that background work competes.
    pub fn lower_this_thread() {
        const WHO_PROCESS: libc::c_long = 1;
        const CLASS_IDLE: libc::c_long = 3 << 13;
        // SAFETY: plain system calls with integer arguments; on Linux both act on the calling thread when given 0.
        unsafe {
            libc::setpriority(libc::PRIO_PROCESS, 0, 10);
            libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0 as libc::c_long, CLASS_IDLE);
        }
    }

    /// Drops what is cached of `file`.
    pub(super) fn forget_cached(file: &File) -> io::Result<()> {
        // SAFETY: the descriptor is open for the length of the call, and the call touches no memory of ours.
        let error = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
    }

    /// Reserves `size` bytes for `file` and makes it that long.
    pub(super) fn fallocate(file: &File, size: u64) -> io::Result<()> {
        let size = libc::off_t::try_from(size).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
        // SAFETY: the descriptor is open for the length of the call, and the call touches no memory of ours.
        let result = unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, size) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}
