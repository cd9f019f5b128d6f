//! The Windows forms. Compiled by `make static` where the toolchain has the target; never run by our tests.
//!
//! A write through `FILE_FLAG_WRITE_THROUGH` returns when the device has it, which saves the `FlushFileBuffers` behind
//! every write. `FILE_FLAG_NO_BUFFERING` besides keeps the bytes out of the cache and wants whole blocks, as `O_DIRECT`.

use crate::config::FlushMethod;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

const FILE_FLAG_WRITE_THROUGH: u32 = 0x8000_0000;
const FILE_FLAG_NO_BUFFERING: u32 = 0x2000_0000;

/// Opens an existing file for writing in the way `method` wants. `None` for a method that needs no second handle.
pub(crate) fn open_write_through(path: &Path, method: FlushMethod) -> io::Result<Option<File>> {
    let flags = match method {
        FlushMethod::Fdatasync => return Ok(None),
        FlushMethod::ODsync => FILE_FLAG_WRITE_THROUGH,
        FlushMethod::ODirectDsync => FILE_FLAG_WRITE_THROUGH | FILE_FLAG_NO_BUFFERING,
    };
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).map(Some)
}

/// Reads at a position; may read less than there is room for. Moves the handle's own position, which nobody uses.
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(bytes, offset)
}

/// Reads until all is read.
pub(crate) fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_read(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                bytes = &mut bytes[read..];
                offset += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes until all is written.
pub(crate) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_write(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = &bytes[written..];
                offset += written as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
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
pub(crate) fn lower_this_thread() {}
