//! The Windows forms. Compiled by `make static` where the toolchain has the target; `make windows` runs them under Wine. Safe calls of the
//! standard library, except in `calls`.
//!
//! A write through `FILE_FLAG_WRITE_THROUGH` returns when the device has it, which saves the `FlushFileBuffers` behind
//! every write. `FILE_FLAG_NO_BUFFERING` besides keeps the bytes out of the cache and wants whole blocks, as `O_DIRECT`.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

const FILE_FLAG_WRITE_THROUGH: u32 = 0x8000_0000;
const FILE_FLAG_NO_BUFFERING: u32 = 0x2000_0000;
const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;
/// The right to take a file's name away.
const DELETE: u32 = 0x0001_0000;
const ERROR_INVALID_FUNCTION: i32 = 1;
const ERROR_NOT_SUPPORTED: i32 = 50;
const ERROR_INVALID_PARAMETER: i32 = 87;

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

/// The number of names of a file.
pub(crate) fn links(file: &File, _about: &Metadata) -> io::Result<u64> {
    calls::links(file)
}

/// As `links`. Asks a handle of its own, which a directory does not give.
pub(crate) fn links_by_name(path: &Path, about: &Metadata) -> io::Result<u64> {
    if about.is_file() { calls::links(&File::open(path)?) } else { Ok(1) }
}

/// Takes a name away at once, also of a file that somebody has open: otherwise it would be taken until the last handle is closed, and no
/// other file could have it. File systems without that form (FAT) have the other one.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let file =
        OpenOptions::new().access_mode(DELETE).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT).open(path)?;
    match calls::remove(&file) {
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(ERROR_INVALID_FUNCTION | ERROR_NOT_SUPPORTED | ERROR_INVALID_PARAMETER)
            ) =>
        {
            drop(file);
            std::fs::remove_file(path)
        }
        removed => removed,
    }
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

/// The calls that the standard library has no stable name for.
#[allow(unsafe_code)]
mod calls {
    use std::ffi::c_void;
    use std::fs::File;
    use std::io;
    use std::os::windows::io::AsRawHandle;

    /// `BY_HANDLE_FILE_INFORMATION`: thirteen numbers of 32 bits, of which one is the number of names.
    type Information = [u32; 13];
    const NUMBER_OF_LINKS: usize = 10;
    /// `FileDispositionInfoEx`, whose argument are flags.
    const DISPOSITION_INFO_EX: i32 = 21;
    const DISPOSITION_DELETE: u32 = 1;
    const DISPOSITION_POSIX_SEMANTICS: u32 = 2;

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GetFileInformationByHandle(file: *mut c_void, information: *mut Information) -> i32;
        fn SetFileInformationByHandle(
            file: *mut c_void,
            class: i32,
            information: *const u32,
            size: u32,
        ) -> i32;
    }

    /// The number of names of `file`.
    pub(super) fn links(file: &File) -> io::Result<u64> {
        let mut information = Information::default();
        // SAFETY: the handle is open for the length of the call, which writes a structure of this size.
        let done = unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut information) };
        if done == 0 { Err(io::Error::last_os_error()) } else { Ok(u64::from(information[NUMBER_OF_LINKS])) }
    }

    /// Takes the name away by which `file` was opened.
    pub(super) fn remove(file: &File) -> io::Result<()> {
        let flags = DISPOSITION_DELETE | DISPOSITION_POSIX_SEMANTICS;
        let size = size_of_val(&flags) as u32;
        // SAFETY: the handle is open for the length of the call, which reads flags of the size that it is told.
        let done = unsafe {
            SetFileInformationByHandle(file.as_raw_handle(), DISPOSITION_INFO_EX, &raw const flags, size)
        };
        if done == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
