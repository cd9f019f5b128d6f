//! The owner of a session: the connection that it serves, and the client that has logged in there.

use crate::api::{NoHost, SessionHost};
use crate::memory::SessionMemory;
use std::sync::Arc;

/// A session's connection.
pub struct ClientConnection {
    /// Its number. What statements see of it is `SessionState::thread_id`.
    pub id: u32,
    /// System variables, status and processes.
    pub host: Arc<dyn SessionHost>,
    /// The memory of its statements.
    pub memory: Arc<SessionMemory>,
    /// State of RAND() without a seed, which a reset of the session leaves as it is.
    pub rand: (u64, u64),
}

impl ClientConnection {
    /// One without a host yet.
    pub(crate) fn new(id: u32, memory: Arc<SessionMemory>) -> ClientConnection {
        ClientConnection { id, host: Arc::new(NoHost), memory, rand: (0x1234_5678, 0x9abc_def0) }
    }
}

impl Default for ClientConnection {
    fn default() -> Self {
        ClientConnection::new(0, Arc::default())
    }
}

/// The client that logged in on the connection.
pub struct ClientLogin {
    /// USER(): the name the client gave.
    pub user: String,
    /// The host it came from.
    pub host_name: String,
    /// CURRENT_USER(): the account it was matched to, "name@host".
    pub account: String,
}

impl Default for ClientLogin {
    fn default() -> Self {
        ClientLogin { user: String::new(), host_name: "localhost".into(), account: String::new() }
    }
}
