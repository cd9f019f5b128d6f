//! The B-tree storage engine, `ENGINE=BTREE`: one file of the `redb` crate under layers of versions in memory.
//!
//! It has no log of its own. The binary log is its write-ahead log (ENGINE-1); a crash takes it back to the last
//! durable transaction of the file, and the server replays from `applied` on.
//!
//! Structure:
//! - `prepare_ordered` puts versions into the active *layer* (`layer`), in memory; nothing on the commit thread does
//!   I/O, waits or fails.
//! - A writer thread (`writer`) writes layers into the file once the log has them: one write transaction for all that
//!   came together, not durable by itself (`Durability::None`), with the commit number that it reaches in the same
//!   transaction. A checkpoint makes one durable (`Immediate`), and so does each time that a number of bytes has been
//!   written. So a crash always leaves one prefix of the commit order.
//! - Versions are in the file's keys (`key`), a key's newest first. A version is removed when the watermark has passed
//!   the one that replaced it, mostly already when that one is written (`store`, `prune`).
//! - Reads go through a *view* (`view`): the layers and one read transaction of the file, swapped as a whole.
//!
//! Why versions in the keys, and not the file's own read transactions for snapshots: a snapshot is a number, taken
//! at any time above the watermark, so every transaction of the file would have to be kept open for as long as the
//! oldest snapshot, and the pages of all of them with it.

mod backend;
mod backup;
mod check;
mod config;
mod damage;
mod engine;
mod form;
mod key;
mod layer;
mod load;
mod prune;
mod scan;
mod scratch;
mod shared;
mod signals;
mod snapshot;
mod space;
mod spaces;
mod store;
mod sums;
mod view;
mod writer;

#[cfg(test)]
mod tests;

pub use check::check;
pub use config::BtreeConfig;
pub use engine::BtreeEngine;
pub use store::FORMAT;

use omnibus_engine::EngineError;

/// The name in errors.
const NAME: &str = "btree";

fn io_error(source: std::io::Error) -> EngineError {
    EngineError::Io { engine: NAME, source }
}

/// Any of the file's errors. Those that are I/O errors stay so.
fn store_error(error: impl Into<redb::Error>) -> EngineError {
    match error.into() {
        redb::Error::Io(source) => io_error(source),
        // What was before it has been told.
        again @ redb::Error::PreviousIo => io_error(std::io::Error::other(again.to_string())),
        other => EngineError::Corrupt { engine: NAME, detail: other.to_string() },
    }
}
