//! Many sends in one system call: the kernel's ring of requests, used as a list that is worked off before the call returns.
//!
//! Every request asks for what can be done at once (`MSG_DONTWAIT`), so the kernel has answered all of them when `send` returns, and none
//! outlives the buffers that it points to. What a socket does not take at once stays with its owner, who waits for it as
//! the runtime does. No file is ever touched here: those have their calls in libc, where tests see them.

use io_uring::{IoUring, opcode, types};
use std::io;
use std::os::fd::RawFd;

/// Requests in one call.
const ENTRIES: u32 = 128;

/// The bytes that wait for one socket. Whoever makes it keeps the socket open and the bytes in place while it lives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Send<'a> {
    pub(super) socket: RawFd,
    pub(super) bytes: &'a [u8],
}

/// Sends as much as goes at once.
pub(super) fn send_now(send: Send<'_>) -> io::Result<usize> {
    let Send { socket, bytes } = send;
    // SAFETY: the pointer and the length are those of a live slice, which the call only reads.
    let sent = unsafe {
        libc::send(socket, bytes.as_ptr().cast(), bytes.len(), libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// A ring of the thread that made it.
pub(super) struct Ring(IoUring);

impl Ring {
    /// Asks the kernel for one.
    ///
    /// # Errors
    /// The kernel has none, is too old (6.1 is needed), or forbids it, as many containers do.
    pub(super) fn new() -> io::Result<Ring> {
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_defer_taskrun().setup_submit_all();
        builder.build(ENTRIES).map(Ring)
    }

    /// Sends all, each as much as goes at once; `results` are in their order.
    pub(super) fn send(&mut self, sends: &[Send<'_>], results: &mut Vec<io::Result<usize>>) {
        for part in sends.chunks(ENTRIES as usize) {
            self.send_part(part, results);
        }
    }

    fn send_part(&mut self, part: &[Send<'_>], results: &mut Vec<io::Result<usize>>) {
        let first = results.len();
        for (at, send) in part.iter().enumerate() {
            let length = u32::try_from(send.bytes.len()).unwrap_or(u32::MAX);
            let entry = opcode::Send::new(types::Fd(send.socket), send.bytes.as_ptr(), length)
                .flags(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
                .build()
                .user_data(at as u64);
            // SAFETY: the bytes are borrowed until this function ends, and it ends when every request has its answer.
            let pushed = unsafe { self.0.submission().push(&entry) };
            // What finds no place is as what the socket does not take now.
            if pushed.is_err() {
                break;
            }
            results.push(Err(io::ErrorKind::WouldBlock.into()));
        }
        let mut left = results.len() - first;
        results.resize_with(first + part.len(), || Err(io::ErrorKind::WouldBlock.into()));
        while left > 0 {
            let called = self.0.submit_and_wait(left);
            for answer in self.0.completion() {
                let count = answer.result();
                results[first + answer.user_data() as usize] =
                    usize::try_from(count).map_err(|_| io::Error::from_raw_os_error(-count));
                left -= 1;
            }
            match called {
                Ok(_) => {}
                // Interrupted, or short of memory for a moment: what was not taken is submitted again.
                Err(error)
                    if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) =>
                {
                    std::thread::yield_now();
                }
                Err(error) => {
                    // The kernel may still read the bytes that requests point to.
                    tracing::error!(%error, "the network ring failed");
                    std::process::abort();
                }
            }
        }
    }
}
