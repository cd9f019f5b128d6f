//! The server without the program around it: `cargo run -p omnibus-server --example serve -- --datadir=D`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match omnibus_server::options::parse(&args, &[]) {
        Ok(options) => omnibus_server::serve(options),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
