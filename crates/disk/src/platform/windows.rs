//! The Windows forms. Compiled by `make static` where the toolchain has the target; never run by our tests.
//!
//! A write through `FILE_FLAG_WRITE_THROUGH` returns when the device has it, which saves the `FlushFileBuffers` behind
//! every write. `FILE_FLAG_NO_BUFFERING` besides keeps the bytes out of the cache and wants whole blocks, as `O_DIRECT`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

const FILE_FLAG_WRITE_THROUGH: u32 = 0x8000_0000;
const FILE_FLAG_NO_BUFFERING: u32 = 0x2000_0000;

/// Opens an existing file for writing so that a write returns when it is durable.
pub(crate) fn open_write_through(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(FILE_FLAG_WRITE_THROUGH).open(path)
}

/// As `open_write_through`, past the cache.
pub(crate) fn open_direct(path: &Path) -> io::Result<File> {
    let flags = FILE_FLAG_WRITE_THROUGH | FILE_FLAG_NO_BUFFERING;
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)
}

/// Reads at a position; may read less than there is room for. Moves the handle's own position, which is not used.
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(bytes, offset)
}

/// Writes at a position; may write less than it was given.
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    file.seek_write(bytes, offset)
}

/// The standard library does not say here how many names a file has.
pub(crate) fn links(_about: &std::fs::Metadata) -> u64 {
    1
}

/// Names are in the file system's journal, in order; there is no call that waits for one.
pub(crate) fn sync_dir(_dir: &Path) -> io::Result<()> {
    Ok(())
}

/// `SetEndOfFile`: the space is allocated and reads as zeros.
pub(crate) fn reserve(file: &File, size: u64) -> io::Result<bool> {
    file.set_len(size).map(|()| true)
}

/// Background work competes here: there is no safe call that makes one thread step back.
pub fn lower_this_thread() {}

/// There is no call for it; write-through files are not cached.
pub(crate) fn forget_cached(_file: &File) -> io::Result<()> {
    Ok(())
}
