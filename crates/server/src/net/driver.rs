//! How replies leave: with those of other sockets in one system call, where the kernel's ring may be used, or each by itself.
//!
//! Everything else is the runtime's, which waits for sockets with epoll: connections, what clients send, and replies that are long, encrypted
//! or compressed. So both drivers differ in nothing that a client sees, and a start may choose either.

use super::ring::Ring;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// A driver, with what it has done.
#[derive(Debug, Default)]
pub struct Driver {
    ring: bool,
    turns: AtomicU64,
    replies: AtomicU64,
}

impl Driver {
    /// By its name in `network_driver`; `auto` is `io_uring` where the kernel lets this process have it.
    ///
    /// # Errors
    /// `io_uring` is asked for and not to be had.
    pub fn choose(name: &str) -> io::Result<Driver> {
        let ring = match name {
            "epoll" => false,
            "auto" => Ring::new().is_ok(),
            _ => Ring::new().map(|_| true)?,
        };
        Ok(Driver { ring, ..Driver::default() })
    }

    /// One that gathers whether or not there is a ring.
    #[cfg(test)]
    pub(super) fn gathering() -> std::sync::Arc<Driver> {
        std::sync::Arc::new(Driver { ring: true, ..Driver::default() })
    }

    /// Its name in `network_driver`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        if self.ring { "io_uring" } else { "epoll" }
    }

    /// Whether replies may wait for others.
    pub(super) fn gathers(&self) -> bool {
        self.ring
    }

    /// Counts a system call that sent so many replies.
    pub(super) fn count(&self, replies: usize) {
        self.turns.fetch_add(1, Ordering::Relaxed);
        self.replies.fetch_add(replies as u64, Ordering::Relaxed);
    }

    /// Status variables.
    #[must_use]
    pub fn status(&self) -> Vec<(String, String)> {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed).to_string();
        vec![
            ("Omnibus_network_driver".into(), self.name().into()),
            ("Omnibus_network_gathered_replies".into(), load(&self.replies)),
            ("Omnibus_network_gathered_sends".into(), load(&self.turns)),
        ]
    }
}
