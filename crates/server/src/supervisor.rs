//! The supervisor: systemd, which wants to be told when the server is ready, and whoever starts it again after RESTART.

use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::ExitCode;

/// With what the process ends to be started again; the same as mysqld's, so that what is set up for that one works.
pub(crate) const RESTART: u8 = 16;

/// The supervisor of one server. An embedded one has none: what the environment says is about the program around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Supervisor {
    /// The one that the environment names, if it names one.
    #[default]
    OfProcess,
    /// No supervisor is told anything.
    None,
}

impl Supervisor {
    /// Tells systemd (`Type=notify`) a line, if it asks for that. That it can't be told is said, and nothing else: it will act by itself.
    pub(crate) fn notify(self, state: &str) {
        let Some(name) = self.socket() else { return };
        let bytes = name.as_encoded_bytes();
        let address = match bytes.strip_prefix(b"@") {
            Some(abstract_name) => SocketAddr::from_abstract_name(abstract_name),
            None => SocketAddr::from_pathname(&name),
        };
        let sent =
            address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
        if let Err(error) = sent {
            tracing::warn!("NOTIFY_SOCKET: {error}");
        }
    }

    /// Whether somebody starts the server again when it ends with `RESTART`: systemd, or who says so as mysqld_safe does.
    pub(crate) fn restarts(self) -> bool {
        let parent = std::env::var("MYSQLD_PARENT_PID").ok().and_then(|id| id.parse().ok());
        let safe = self == Supervisor::OfProcess && parent == Some(std::os::unix::process::parent_id());
        self.socket().is_some() || safe
    }

    fn socket(self) -> Option<OsString> {
        std::env::var_os("NOTIFY_SOCKET").filter(|_| self == Supervisor::OfProcess)
    }
}

/// The code of an end that asks for a new start.
pub(crate) fn restart_code() -> ExitCode {
    ExitCode::from(RESTART)
}
