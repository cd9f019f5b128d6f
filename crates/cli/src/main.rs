//! The `omnibus` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    omnibus_cli::run()
}
