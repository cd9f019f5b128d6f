//! The replacement of a command that this program was built without, because it needs libraries that a server does not.

use clap::Args;
use std::ffi::OsString;
use std::process::ExitCode;

/// Accepts all arguments of the command.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub struct NotBuilt {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<OsString>,
}

/// Names the build that has the command.
pub fn reason(feature: &str) -> String {
    format!(
        "this program was built without `{feature}`: packages have it, and `make all` builds it (cargo build --release --features omnibus-cli/archive,omnibus-cli/stream)"
    )
}

/// Prints the reason.
#[must_use]
pub fn run(command: &str, _: &NotBuilt) -> ExitCode {
    eprintln!("omnibus {command}: {}", reason(command));
    ExitCode::FAILURE
}
