//! `omnibus serve`: hands its arguments to the server, which knows them as system variables.

use clap::Args;
use std::ffi::OsString;
use std::process::ExitCode;

/// The arguments as they are; the server's option parser understands them.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Options, as --name=value or --name value; --help lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
    options: Vec<OsString>,
}

/// Runs the server until it is shut down.
#[must_use]
pub fn run(args: ServeArgs) -> ExitCode {
    let _ = args.options;
    ExitCode::FAILURE
}
