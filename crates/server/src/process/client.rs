//! Whether the client of a statement that runs is still there. Who has gone reads no reply, and what its statement holds others wait for.
//!
//! A session that runs a statement does not read, so the server's clock asks the socket: it hears of the client's end also behind
//! bytes that nobody has read.

use super::Process;
use parking_lot::Mutex;
use std::os::fd::RawFd;
use std::sync::Arc;

/// How long a statement has run before anybody asks: a client may send a short one and go, and it is done all the same.
const SHORT_US: i64 = 400_000;

/// The socket of a client, for as long as its session keeps it open.
#[derive(Debug, Default)]
pub(super) struct ClientSocket(Mutex<Option<RawFd>>);

/// Forgets the socket when it goes: before the socket does, unless the connection was killed.
pub(crate) struct Watched(Arc<Process>);

impl Drop for Watched {
    fn drop(&mut self) {
        *self.0.client.0.lock() = None;
    }
}

impl Process {
    /// Its statements end when this socket's other side has gone.
    pub(crate) fn watch(self: &Arc<Self>, socket: Option<RawFd>) -> Watched {
        *self.client.0.lock() = socket;
        Watched(self.clone())
    }

    /// Ends the connection if its client has gone from a statement. Called by the server's clock.
    pub(crate) fn check_client(&self, now_us: i64) {
        // Whoever gives a stream up while it is watched has killed the connection before.
        if self.kill.connection_killed()
            || !self.is_running()
            || now_us.saturating_sub(self.since_us()) < SHORT_US
        {
            return;
        }
        let gone = self.client.0.lock().is_some_and(has_gone);
        if gone {
            tracing::debug!(id = self.id, "the client has gone, its statement ends");
            self.kill_connection();
        }
    }
}

/// Whether the other side of a socket sends nothing any more.
fn has_gone(socket: RawFd) -> bool {
    let mut asked = libc::pollfd { fd: socket, events: libc::POLLRDHUP, revents: 0 };
    // SAFETY: one entry, of this thread's stack; a number that is no file's is told by a bit that is not looked at.
    let answered = unsafe { libc::poll(&raw mut asked, 1, 0) };
    answered > 0 && asked.revents & (libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR) != 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{Activity, Processes};
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn who_has_gone_is_known_behind_what_it_sent() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let process = Processes::default().register();
        let watched = process.watch(Some(ours.as_raw_fd()));
        process.begin(Activity::Query, b"SELECT 1", 0);
        theirs.write_all(b"COM_QUIT").unwrap();
        process.check_client(SHORT_US);
        assert!(!process.kill.connection_killed(), "it is there");
        drop(theirs);
        process.check_client(SHORT_US - 1);
        assert!(!process.kill.connection_killed(), "a short statement ends by itself");
        process.check_client(SHORT_US);
        assert!(process.kill.connection_killed());
        drop(watched);
        assert!(process.client.0.lock().is_none());
    }
}
