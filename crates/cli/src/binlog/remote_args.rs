//! Options for reading a log from a server: `--read-from-remote-server` and those that belong to it.

use super::ServerArgs;
use clap::Args;
use omnibus_replication::client::Endpoint;
use std::io;

/// A server to read from.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct RemoteArgs {
    /// Ask a server for its log: Omnibus, MySQL or MariaDB. FILEs are names in its SHOW BINARY LOGS. The account needs
    /// REPLICATION SLAVE.
    #[arg(short = 'R', long = "read-from-remote-server")]
    pub(super) on: bool,
    #[command(flatten)]
    server: ServerArgs,
    /// Copy the log byte for byte into files of the same names, instead of printing it. Of Omnibus this needs BACKUP_ADMIN
    /// or RELOAD, too: its files hold what only recovery reads.
    #[arg(long, requires = "on", conflicts_with_all = ["sql", "json"])]
    pub(super) raw: bool,
    /// Go on to the end of the server's last file.
    #[arg(short = 't', long, requires = "on")]
    to_last_log: bool,
    /// Wait for more at the end, for ever.
    #[arg(long, requires = "on")]
    pub(super) stop_never: bool,
    /// The server id to appear under with --stop-never; no replica may have it.
    #[arg(long, alias = "stop-never-slave-server-id", value_name = "N", requires = "on")]
    connection_server_id: Option<u32>,
}

impl RemoteArgs {
    /// Returns whether files behind the given one are wanted.
    pub(super) fn to_last(&self) -> bool {
        self.to_last_log || self.stop_never
    }

    /// The id that the dump is asked for with; 0 from those who do not wait at the end.
    pub(super) fn server_id(&self) -> u32 {
        if self.stop_never { self.connection_server_id.unwrap_or(65535) } else { 0 }
    }

    /// Returns whether a server is given and reading from it is not requested.
    pub(super) fn is_idle(&self) -> bool {
        !self.on && self.server.is_given()
    }

    /// See [`ServerArgs::endpoint`].
    ///
    /// # Errors
    /// The password cannot be asked for.
    pub(super) fn endpoint(&self) -> io::Result<(Endpoint, bool)> {
        self.server.endpoint()
    }
}
