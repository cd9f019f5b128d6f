//! Start-up options: `--kebab-case` arguments and `my.cnf`-style files, all of them system variables.
//!
//! Not the command line's own sub-commands, which are the program's. Pure, apart from reading option
//! files.

mod file;
mod near;
mod parse;
#[cfg(test)]
mod tests;

pub use parse::{OptionError, parse};

use crate::net::Places;
use crate::sysvars::persisted::{self, Kept};
use crate::sysvars::{GlobalVars, Registry, VarDef, VarValue, about};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// How the server is to be started.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Every global variable as it shall be at start.
    pub globals: GlobalVars,
    /// Things to tell the user once logging works.
    pub warnings: Vec<String>,
    /// Where `ready for connections` goes besides the log; standard output unless told otherwise.
    pub announce: bool,
    /// The process is somebody else's: its signals, its limits, its messages and its supervisor are left alone.
    pub embedded: bool,
    /// The values that SET PERSIST has kept.
    pub(crate) persisted: BTreeMap<String, Kept>,
    /// Names of the variables that were given.
    pub given: BTreeSet<&'static str>,
    /// The task of this start.
    pub task: Task,
}

/// The task of a start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Task {
    /// To serve.
    #[default]
    Serve,
    /// `--initialize-insecure`: makes the data directory, with an account root that has no password, and ends.
    Initialize,
    /// `--help`: says what there is.
    Help,
    /// `--version`: says what it is.
    Version,
}

impl Default for ServerOptions {
    fn default() -> Self {
        ServerOptions {
            globals: GlobalVars::default(),
            warnings: Vec::new(),
            announce: true,
            embedded: false,
            persisted: BTreeMap::new(),
            given: BTreeSet::new(),
            task: Task::Serve,
        }
    }
}

impl ServerOptions {
    /// The data directory, absolute.
    #[must_use]
    pub fn datadir(&self) -> PathBuf {
        absolute(Path::new(self.globals.named("datadir").as_str()))
    }

    /// Reads what SET PERSIST has kept in the data directory: it replaces what was given here.
    ///
    /// # Errors
    /// The file can't be read, or has a value that its variable does not take.
    pub fn load_persisted(&mut self) -> Result<(), OptionError> {
        let kept = persisted::read(&self.datadir()).map_err(OptionError)?;
        if self.globals.named("persisted_globals_load").as_bool() {
            for (name, one) in &kept {
                parse::apply_persisted(self, name, &one.value)?;
            }
            parse::check(self)?;
        }
        self.persisted = kept;
        Ok(())
    }

    /// The text of `--version`, in the form of MySQL's server, which programs take apart.
    #[must_use]
    pub fn version(&self) -> String {
        let version = match self.globals.named("dialect").as_str() {
            "mariadb" => crate::MARIADB_VERSION,
            _ => crate::VERSION,
        };
        format!("mysqld  Ver {version} for Linux on {} (Omnibus)", std::env::consts::ARCH)
    }

    /// Whether a variable was given, and does not only have its default.
    #[must_use]
    pub fn given(&self, name: &str) -> bool {
        self.given.contains(name)
    }

    /// The unix socket, inside the data directory unless an absolute path was given; none if empty.
    #[must_use]
    pub fn socket(&self) -> Option<PathBuf> {
        let name = self.globals.named("socket");
        (!name.as_str().is_empty()).then(|| self.datadir().join(name.as_str()))
    }

    /// The file for the process's number, in the data directory unless an absolute path was given; none if empty.
    #[must_use]
    pub fn pid_file(&self) -> Option<PathBuf> {
        let name = self.globals.named("pid_file");
        (!name.as_str().is_empty()).then(|| self.datadir().join(name.as_str()))
    }

    /// The file for the server's messages, in the data directory unless an absolute path was given; none for standard error.
    #[must_use]
    pub fn log_error(&self) -> Option<PathBuf> {
        let name = self.globals.named("log_error");
        (!matches!(name.as_str(), "" | "stderr")).then(|| self.datadir().join(name.as_str()))
    }

    /// Whether the server's messages are JSON, an object a line: `log_error_services` names MySQL's part that writes them so.
    #[must_use]
    pub fn log_error_is_json(&self) -> bool {
        self.globals.named("log_error_services").as_str().contains("log_sink_json")
    }

    /// Where to listen.
    #[must_use]
    pub fn places(&self) -> Places {
        let port = |name| self.globals.named(name).as_u64() as u16;
        let admin_address = match self.skips_networking() {
            true => String::new(),
            false => self.globals.named("admin_address").as_str().to_owned(),
        };
        Places {
            bind_address: self.bind_address(),
            port: port("port"),
            admin_address,
            admin_port: port("admin_port"),
            socket: self.socket(),
        }
    }

    /// Where nobody's password is asked, nobody comes from elsewhere.
    fn skips_networking(&self) -> bool {
        ["skip_networking", "skip_grant_tables"].iter().any(|name| self.globals.named(name).as_bool())
    }

    /// Addresses to listen on; empty for none.
    #[must_use]
    pub fn bind_address(&self) -> String {
        if self.skips_networking() {
            return String::new();
        }
        self.globals.named("bind_address").as_str().to_owned()
    }

    /// Changes one variable, for callers that build options themselves.
    pub fn set(&mut self, name: &str, value: VarValue) {
        self.globals.set_named(name, value);
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// All options with their defaults, for `--help`: with a line about each that acts, and the others behind them.
#[must_use]
pub fn help() -> String {
    use std::fmt::Write;
    let mut text = String::from(
        "--initialize-insecure makes the data directory, whose account root has no password, and ends; --version says which this is.\n\
         Options are MySQL's system variables, as --name=value; --skip-NAME switches one off, and sizes take K, M, G.\n\
         --defaults-file=FILE reads groups [mysqld], [server] and [omnibus] of an option file; --no-defaults reads none.\n\n",
    );
    let options = || Registry::get().iter().map(|(_, def)| def).filter(|def| def.is_option());
    let line = |def: &VarDef, what: &str| {
        let default = match def.default.value() {
            VarValue::Null => "NULL".to_owned(),
            value => value.text(),
        };
        let name = format!("--{}={default}", def.name.replace('_', "-"));
        format!("  {name:<46} {what}").trim_end().to_owned()
    };
    for def in options() {
        if let Some(what) = about(def.name) {
            let _ = writeln!(text, "{}", line(def, what));
        }
    }
    text.push_str("\nTaken, with what docs/use/variables.md says of them:\n\n");
    for def in options().filter(|def| about(def.name).is_none()) {
        let _ = writeln!(text, "{}", line(def, ""));
    }
    text
}
