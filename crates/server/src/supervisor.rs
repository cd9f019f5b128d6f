//! Who watches over the server: systemd, which wants to be told when it is ready, and whoever starts it again after RESTART.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::ExitCode;

/// With what the process ends to be started again; the same as mysqld's, so that what is set up for that one works.
pub(crate) const RESTART: u8 = 16;

/// Tells systemd (`Type=notify`) a line, if it asks for that. That it can't be told is said, and nothing else: it will act by itself.
pub(crate) fn notify(state: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let bytes = name.as_encoded_bytes();
    let address = match bytes.strip_prefix(b"@") {
        Some(abstract_name) => SocketAddr::from_abstract_name(abstract_name),
        None => SocketAddr::from_pathname(&name),
    };
    let sent = address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
    if let Err(error) = sent {
        tracing::warn!("NOTIFY_SOCKET: {error}");
    }
}

/// Whether somebody starts the server again when it ends with `RESTART`: systemd, or who says so as mysqld_safe does.
pub(crate) fn restarts() -> bool {
    let parent = std::env::var("MYSQLD_PARENT_PID").ok().and_then(|id| id.parse().ok());
    std::env::var_os("NOTIFY_SOCKET").is_some() || parent == Some(std::os::unix::process::parent_id())
}

/// The code of an end that asks for a new start.
pub(crate) fn restart_code() -> ExitCode {
    ExitCode::from(RESTART)
}
