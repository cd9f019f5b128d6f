//! `omnibus serve`: hands its arguments to the server, which knows them as system variables.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// The arguments as they are; the server's option parser understands them.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Options, as --name=value or --name value; --help lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
    options: Vec<OsString>,
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
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_target(false)
        .init();
    let files = OPTION_FILES.map(PathBuf::from);
    match omnibus_server::options::parse(&options, &files) {
        Ok(options) => omnibus_server::serve(options),
        Err(error) => {
            eprintln!("omnibus serve: {error}");
            ExitCode::FAILURE
        }
    }
}
