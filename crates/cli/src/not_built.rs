//! What stands in the place of a command that this program was built without, because it needs libraries that a server does not.

use clap::Args;
use std::ffi::OsString;
use std::process::ExitCode;

/// Whatever the command would take.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub struct NotBuilt {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<OsString>,
}

/// Which build has it.
pub fn reason(feature: &str) -> String {
    format!(
        "this program was built without `{feature}`: packages have it, and `make all` builds it (cargo build --release --features omnibus-cli/archive,omnibus-cli/stream)"
    )
}

/// Says so.
#[must_use]
pub fn run(command: &str, _: &NotBuilt) -> ExitCode {
    eprintln!("omnibus {command}: {}", reason(command));
    ExitCode::FAILURE
}
