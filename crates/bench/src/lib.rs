//! `omnibus bench`: what this machine's disk and the commit path can do, without a server's SQL.

mod device;
mod preallocation;
mod protocols;
mod responder;
mod sync;
mod wakeup;

use clap::Subcommand;
use std::process::ExitCode;

/// The benchmarks, each with its options.
#[derive(Subcommand)]
#[expect(missing_docs, reason = "`--help` shows what the arguments of each say of it")]
pub enum Bench {
    /// Measure the duration of a durable write on your disk, by file preparation, method and size.
    Sync(sync::SyncBenchArgs),
    Preallocation(preallocation::PreallocationArgs),
    Protocols(protocols::ProtocolArgs),
    Wakeup(wakeup::WakeupArgs),
    Responder(responder::ResponderArgs),
}

/// Runs one of them, prints what it measured, and returns the process's status.
#[must_use]
pub fn run(bench: Bench) -> ExitCode {
    match bench {
        Bench::Sync(args) => sync::run(args),
        Bench::Preallocation(args) => preallocation::run(args),
        Bench::Protocols(args) => protocols::run(args),
        Bench::Wakeup(args) => wakeup::run(args),
        Bench::Responder(args) => responder::run(args),
    }
}
