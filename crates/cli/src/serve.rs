//! `omnibus serve`: hands its arguments to the server, which knows them as system variables.

use clap::Args;
use omnibus_server::ErrorLog;
use omnibus_server::options::ServerOptions;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The arguments as they are; the server's option parser understands them.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Options, as --name=value or --name value; --help lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
    options: Vec<OsString>,
}

/// Called as `mysqld` the program is the server: what starts MySQL's by that name, as Vitess does, starts this one.
#[must_use]
pub fn as_mysqld(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let name = arguments.first().map(|path| Path::new(path).file_name().unwrap_or_default().to_owned());
    if name.is_some_and(|name| name == "mysqld") {
        arguments.insert(1, "serve".into());
    }
    arguments
}

/// Read if it is there. Not MySQL's own files: a data directory named there belongs to another server.
const OPTION_FILES: [&str; 1] = ["/etc/omnibus/omnibus.cnf"];

/// Runs the server until it is shut down.
#[must_use]
pub fn run(args: ServeArgs) -> ExitCode {
    let mut options = Vec::with_capacity(args.options.len());
    for option in args.options {
        match option.into_string() {
            Ok(option) => options.push(option),
            Err(option) => {
                eprintln!("omnibus serve: option {} is not valid UTF-8", option.display());
                return ExitCode::FAILURE;
            }
        }
    }
    let files = OPTION_FILES.map(PathBuf::from);
    match omnibus_server::options::parse(&options, &files) {
        Ok(options) => {
            begin_log(&options);
            omnibus_server::serve(options)
        }
        Err(error) => {
            eprintln!("omnibus serve: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A message that can't be written, as on a full disk, is lost: to complain about that on a standard error that is on the same
/// disk would be a panic.
fn begin_log(options: &ServerOptions) {
    let on_terminal = options.log_error().is_none() && std::io::IsTerminal::is_terminal(&std::io::stderr());
    let log =
        tracing_subscriber::fmt().with_writer(|| ErrorLog).log_internal_errors(false).with_target(false);
    if options.log_error_is_json() {
        log.json().flatten_event(true).init();
    } else {
        log.with_ansi(on_terminal).init();
    }
}
