//! The differences between operating systems: opening a file for write-through, positioned reads and writes, reserving
//! space, making a name durable, lowering a thread's priority. The rest of this crate is the same everywhere.
//!
//! | | Linux | other Unix | Windows |
//! |---|---|---|---|
//! | `fdatasync` | `fdatasync` | `fdatasync` | `FlushFileBuffers` |
//! | `O_DSYNC` | `O_DSYNC` | `O_DSYNC` | `FILE_FLAG_WRITE_THROUGH` |
//! | `O_DIRECT_DSYNC` | `O_DIRECT` and `O_DSYNC` | refused, falls back | `FILE_FLAG_NO_BUFFERING` and `FILE_FLAG_WRITE_THROUGH` |
//! | reserving | `fallocate` | none, zero-filled | `SetEndOfFile` |
//! | names | sync of the directory | sync of the directory | the file system's own journal |
//! | a name taken away | `unlink` | `unlink` | `FileDispositionInfoEx`, at once as on Unix |
//! | how many names | `st_nlink` | `st_nlink` | `GetFileInformationByHandle` |
//!
//! It makes no decisions: an unsupported form is an `Unsupported` error, and the caller falls back. `make static`
//! compiles the Windows form where the toolchain has that target, and `make windows` runs its tests under Wine.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::*;
#[cfg(windows)]
pub(crate) use windows::*;

#[cfg(unix)]
pub use unix::lower_this_thread;
#[cfg(windows)]
pub use windows::lower_this_thread;
