//! A server inside somebody else's program: started, connected to without an address, and stopped.
//!
//! It lives on threads of its own, so nothing here needs a runtime, and nothing may be dropped where another one runs. The
//! process stays the program's: no signal is watched, no limit raised, no message printed, no supervisor told. Several may live
//! in one process, each with a data directory of its own.

use crate::assemble::StartError;
use crate::net::ClientHost;
use crate::net::Gate;
use crate::net::Stream;
use crate::options::ServerOptions;
use crate::serve::live;
use crate::server::Server;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use tokio::runtime::Handle;

/// A running server. Dropping it stops it.
pub struct Embedded {
    server: Arc<Server>,
    runtime: Handle,
    life: Option<JoinHandle<Result<(), StartError>>>,
}

impl std::fmt::Debug for Embedded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Embedded").field("stopping", &self.server.is_stopping()).finish_non_exhaustive()
    }
}

impl Embedded {
    /// Starts a server. Blocks until it is ready: after a crash it first recovers from its log.
    ///
    /// # Errors
    /// The reason why it does not start, as a text for people. Nothing is left running.
    pub fn start(mut options: ServerOptions) -> Result<Embedded, StartError> {
        (options.embedded, options.announce) = (true, false);
        let (sender, ready) = channel();
        let name = std::thread::Builder::new().name("omnibus".into());
        let life = name
            .spawn(move || {
                let ended = live(options, |server, runtime| drop(sender.send((server, runtime))));
                ended.map(|_| ())
            })
            .map_err(|error| StartError(format!("starting a thread: {error}")))?;
        match ready.recv() {
            Ok((server, runtime)) => Ok(Embedded { server, runtime, life: Some(life) }),
            Err(_) => Err(end_of(life).err().unwrap_or_else(|| StartError("it ended as it started".into()))),
        }
    }

    /// A connection within the process, where the server greets next. It is a client from `localhost` as one on the unix socket
    /// is, and logs in as that one does.
    ///
    /// # Errors
    /// The server has been stopped, or there is no file handle left.
    pub fn connect(&self) -> io::Result<UnixStream> {
        if self.server.is_stopping() {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "the server has been stopped"));
        }
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let _inside = self.runtime.enter();
        let stream = Stream::from(tokio::net::UnixStream::from_std(ours)?);
        self.server.arrived(stream, ClientHost::local(), 0, Gate::Public);
        Ok(theirs)
    }

    /// The server, for who looks into it.
    #[must_use]
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// The TCP port that it listens on; 0 for none.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.server.globals.named("port").as_u64() as u16
    }

    /// Blocks until the server has ended: by SHUTDOWN, or because its log failed.
    ///
    /// # Errors
    /// Why it ended, if nobody asked for that.
    pub fn wait(mut self) -> Result<(), StartError> {
        self.life.take().map_or(Ok(()), end_of)
    }

    /// Stops the server as SHUTDOWN does: connections get some seconds for the statements that they run. Blocks until
    /// everything is on the disk and the data directory is free.
    ///
    /// # Errors
    /// It had ended by a failure.
    pub fn stop(self) -> Result<(), StartError> {
        self.server.stop("its program stops it");
        self.wait()
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.server.stop("its program drops it");
        if let Some(life) = self.life.take() {
            let _ = end_of(life);
        }
    }
}

fn end_of(life: JoinHandle<Result<(), StartError>>) -> Result<(), StartError> {
    life.join().unwrap_or_else(|_| Err(StartError("the server's thread panicked".into())))
}
