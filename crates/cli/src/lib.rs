//! The `omnibus` program: which command runs what. It is a library so that it is compiled while what it depends on still is; `main.rs` only calls it.

mod alloc;
mod allocator;
#[cfg(feature = "archive")]
mod archive;
mod binlog;
mod check;
mod hidden;
mod import;
mod keyring_args;
#[cfg(not(all(feature = "archive", feature = "stream")))]
mod not_built;
mod restore;
mod serve;
mod server_args;
#[cfg(feature = "stream")]
mod stream;
mod version;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// A MySQL-compatible server whose binary log is its only write-ahead log.
#[derive(Parser)]
#[command(name = "omnibus", version = version::text(), about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server. Options are MySQL's system variables: --datadir DIR --port P --socket PATH --sync-binlog 1
    #[command(disable_help_flag = true)]
    Serve(serve::ServeArgs),
    /// Print binary log files and verify their checksums.
    Binlog(Box<binlog::BinlogArgs>),
    Replay(binlog::replay::ReplayArgs),
    Alloc(alloc::AllocArgs),
    /// Measure this machine.
    #[command(subcommand)]
    Bench(omnibus_bench::Bench),
    Check(check::CheckArgs),
    #[cfg(feature = "archive")]
    Archive(Box<archive::ArchiveArgs>),
    /// Ship a running server's log, as it grows, and base backups (not in this build: `make all`).
    #[cfg(not(feature = "archive"))]
    Archive(not_built::NotBuilt),
    #[cfg(feature = "stream")]
    Stream(Box<stream::StreamArgs>),
    /// Send a running server's changes to a broker (not in this build: `make all`).
    #[cfg(not(feature = "stream"))]
    Stream(not_built::NotBuilt),
    Restore(restore::RestoreArgs),
    Import(Box<import::ImportArgs>),
}

/// Runs the command that the process was given.
#[must_use]
pub fn run() -> ExitCode {
    allocator::give_back_soon();
    omnibus_server::keep_files_private();
    let arguments = hidden::arguments(serve::as_mysqld(std::env::args_os().collect()));
    match Cli::parse_from(server_args::with_password_option(arguments)).command {
        Command::Serve(args) => serve::run(args),
        Command::Binlog(args) => binlog::run(&args),
        Command::Replay(args) => binlog::replay::run(args),
        Command::Alloc(args) => alloc::run(args),
        Command::Bench(bench) => omnibus_bench::run(bench),
        Command::Check(args) => check::run(args),
        #[cfg(feature = "archive")]
        Command::Archive(args) => archive::run(&args),
        #[cfg(not(feature = "archive"))]
        Command::Archive(args) => not_built::run("archive", &args),
        #[cfg(feature = "stream")]
        Command::Stream(args) => stream::run(&args),
        #[cfg(not(feature = "stream"))]
        Command::Stream(args) => not_built::run("stream", &args),
        Command::Restore(args) => restore::run(args),
        Command::Import(args) => import::run(&args),
    }
}
