//! A running server.

use crate::options::Options;
use crate::session::{Error, Session};
use omnibus_server::Embedded;
use std::io;
use std::os::unix::net::UnixStream;

/// Why a server did not start, or ended without being asked to; the text is for people.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(String);

/// A server in this process, on threads of its own. Dropping it stops it.
#[derive(Debug)]
pub struct Server(Embedded);

impl Server {
    /// Starts a server and blocks until it is ready; after a crash it first recovers from its log. In an async program call it, and
    /// `stop`, where blocking is allowed (tokio: `spawn_blocking`).
    ///
    /// # Errors
    /// An option that is not one, a data directory that another server has or that is not one, no address to listen on.
    pub fn start(options: &Options) -> Result<Server, StartError> {
        if !options.has_plain_path() {
            return Err(StartError("the data directory's path is not UTF-8".into()));
        }
        let parsed = omnibus_server::options::parse(&options.arguments(), &[]);
        let parsed = parsed.map_err(|error| StartError(error.to_string()))?;
        Embedded::start(parsed).map(Server).map_err(|error| StartError(error.to_string()))
    }

    /// A session of an account, such as `root`, which a new data directory has without a password.
    ///
    /// # Errors
    /// The server's, if it does not let the account in.
    pub fn session(&self, user: &str, password: &str) -> Result<Session, Error> {
        Session::open(self.connect()?, user, password)
    }

    /// A connection for a client of your own: the server greets next, in MySQL's protocol. It blocks as it is; an async runtime
    /// takes it after `set_nonblocking(true)` (tokio: `UnixStream::from_std`). No address leads to it.
    ///
    /// # Errors
    /// The server has been stopped, or there is no file handle left.
    pub fn connect(&self) -> io::Result<UnixStream> {
        self.0.connect()
    }

    /// The TCP port that it listens on, after [`Options::listen`]; 0 for none.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.port()
    }

    /// Blocks until the server has ended by itself: by SHUTDOWN, or because its log failed.
    ///
    /// # Errors
    /// What failed.
    pub fn wait(self) -> Result<(), StartError> {
        self.0.wait().map_err(|error| StartError(error.to_string()))
    }

    /// Stops the server: sessions get some seconds for what they run. Blocks until everything is on the disk and the data directory
    /// is free.
    ///
    /// # Errors
    /// It had ended already, by a failure.
    pub fn stop(self) -> Result<(), StartError> {
        self.0.stop().map_err(|error| StartError(error.to_string()))
    }
}
