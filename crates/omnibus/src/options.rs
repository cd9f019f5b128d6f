//! The options of an embedded server: system variables, as in an option file.

use std::fmt::Display;
use std::path::PathBuf;

/// Options of a server: the data directory, and system variables by name.
#[derive(Clone, Debug)]
pub struct Options {
    datadir: PathBuf,
    given: Vec<String>,
}

impl Options {
    /// Creates options for a data directory, which is created if it does not exist. The server listens nowhere.
    #[must_use]
    pub fn new(datadir: impl Into<PathBuf>) -> Options {
        // Later ones win. A certificate is made for clients from elsewhere only.
        let given = ["--skip-networking", "--socket=", "--auto-generate-certs=OFF"];
        Options { datadir: datadir.into(), given: given.map(str::to_owned).into() }
    }

    /// Sets a variable: `set("sync_binlog", 1)`. The value is checked at the start.
    #[must_use]
    pub fn set(mut self, name: &str, value: impl Display) -> Options {
        self.given.push(format!("--{name}={value}"));
        self
    }

    /// Listens for other programs by TCP on an address of this machine; port 0 is any free one.
    #[must_use]
    pub fn listen(self, address: &str, port: u16) -> Options {
        self.set("skip_networking", "OFF").set("bind_address", address).set("port", port)
    }

    /// Returns the options as arguments of the server.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut arguments = self.given.clone();
        arguments.push(format!("--datadir={}", self.datadir.display()));
        arguments
    }

    /// Returns whether an option can express the path.
    pub(crate) fn has_plain_path(&self) -> bool {
        self.datadir.to_str().is_some()
    }
}
