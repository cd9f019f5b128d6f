//! A running server.

use crate::options::Options;
use crate::session::{Error, Session};
use omnibus_server::Embedded;
use std::io;
use std::os::unix::net::UnixStream;

/// The reason why a server did not start, or ended without being asked to; the text is for people.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(String);

/// A server in this process, on threads of its own. Dropping it stops it.
#[derive(Debug)]
pub struct Server(Embedded);

impl Server {
    /// Starts a server and blocks until it is ready; after a crash it first recovers from its log. In an async program
    /// call it, and `stop`, where blocking is allowed (tokio: `spawn_blocking`).
    ///
    /// # Errors
    /// An unknown option, a data directory that is in use by another server or is not one, or no address to listen on.
    pub fn start(options: &Options) -> Result<Server, StartError> {
        if !options.has_plain_path() {
            return Err(StartError("the data directory's path is not UTF-8".into()));
        }
        let parsed = omnibus_server::options::parse(&options.arguments(), &[]);
        let parsed = parsed.map_err(|error| StartError(error.to_string()))?;
        Embedded::start(parsed).map(Server).map_err(|error| StartError(error.to_string()))
    }

    /// Opens a session of an account, such as `root`, which a new data directory has without a password.
    ///
    /// # Errors
    /// The server's error, if it does not accept the account.
    pub fn session(&self, user: &str, password: &str) -> Result<Session, Error> {
        Session::open(self.connect()?, user, password)
    }

    /// Opens a connection for a client of the program's own: the server sends its greeting next, in MySQL's protocol.
    /// The stream is blocking; an async runtime takes it after `set_nonblocking(true)` (tokio: `UnixStream::from_std`).
    /// It has no address.
    ///
    /// # Errors
    /// The server has been stopped, or no file handle is left.
    pub fn connect(&self) -> io::Result<UnixStream> {
        self.0.connect()
    }

    /// The TCP port that the server listens on, after [`Options::listen`]; 0 for none.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.port()
    }

    /// Blocks until the server has ended by itself: by SHUTDOWN, or because its log failed.
    ///
    /// # Errors
    /// The server ended by a failure.
    pub fn wait(self) -> Result<(), StartError> {
        self.0.wait().map_err(|error| StartError(error.to_string()))
    }

    /// Stops the server: sessions get some seconds to finish. Blocks until everything is on disk and the data directory
    /// is free.
    ///
    /// # Errors
    /// The server had already ended by a failure.
    pub fn stop(self) -> Result<(), StartError> {
        self.0.stop().map_err(|error| StartError(error.to_string()))
    }
}
