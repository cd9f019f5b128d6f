//! The calls that the standard library has no safe name for: thread priority and reserving space. All the crate's
//! `unsafe` is here.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;

/// Puts the calling thread behind everyone else, for the processor and for the disk. Best effort: a refusal only means
/// that background work competes.
#[cfg(target_os = "linux")]
pub(crate) fn lower_this_thread() {
    const WHO_PROCESS: libc::c_long = 1;
    const CLASS_IDLE: libc::c_long = 3 << 13;
    // SAFETY: plain system calls with integer arguments; on Linux both act on the calling thread when given 0.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, 10);
        libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0 as libc::c_long, CLASS_IDLE);
    }
}

/// Elsewhere nothing is known to do this for one thread.
#[cfg(not(target_os = "linux"))]
pub(crate) fn lower_this_thread() {}

/// Reserves `size` bytes for `file` and makes it that long.
#[cfg(target_os = "linux")]
pub(crate) fn fallocate(file: &File, size: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let size = libc::off_t::try_from(size).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    // SAFETY: the descriptor is open for the length of the call, and the call touches no memory of ours.
    let result = unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
