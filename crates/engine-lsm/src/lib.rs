//! The default storage engine: table files of the `lsm-tree` crate under memtables of this crate.
//!
//! It has no log of its own. The binary log is its write-ahead log (ENGINE-1); a crash takes it back to the last flush,
//! and the server replays from `applied` on.
//!
//! Structure, and the reasons for not using `lsm_tree::Tree` alone:
//! - One tree holds all spaces, so the persistent state is one prefix of commit numbers. The tree's sequence number is
//!   the commit number.
//! - *Memtables are this crate's* (`memtable`), not the tree's. The tree keeps its list of memtables under a lock that
//!   it also holds while it syncs its manifest, so a flush would stop every reader and the commit thread; and its flush
//!   cannot stop at a commit number.
//! - *Reads go through a view* (`view`): the memtables and one version of the tables, swapped as a whole. A read takes
//!   the view's lock only to clone one pointer.
//! - *Blocks are read by this crate* (`table`): the tree's way to one row allocates, asks the cache twice and parses rows that it passes; to walk
//!   on it shares key and value of each. Tables of a form that `block` does not know, or for whose index there is no room, are read by the tree.
//! - *Names change through libc.* The tree renames its files by `tempfile`, and that by `rustix`, whose feature
//!   `use-libc` makes these calls visible to a preloaded library, which can delay or fail them.
//! - *Old versions* are dropped where that is exact: at a flush by this crate's rule, in a compaction only when no
//!   table holds anything newer than the watermark (`compaction` explains).
//!
//! Threads: the commit thread calls `prepare_ordered` and `commit_ordered`; one background thread flushes, one
//! compacts. Neither ever delays the commit thread by I/O.
//!
//! After a crash: every table in the tree's manifest holds only numbers up to `applied`, and all of
//! them are there.

mod arena;
mod backup;
mod barrier;
mod block;
mod checksum;
mod compaction;
mod config;
mod engine;
mod files;
mod filter;
mod flush;
mod format;
mod index;
#[cfg(test)]
mod interleavings;
mod key;
mod large;
mod list;
mod load;
mod manifest;
mod memtable;
mod scan;
mod shared;
mod signals;
mod snapshot;
mod space;
mod spaces;
mod staged;
mod stall;
mod sweep;
mod table;
mod tables;
mod threshold;
mod verify;
mod view;
mod visit;
mod walk;

#[cfg(test)]
mod tests;

pub use config::LsmConfig;
pub use engine::LsmEngine;
pub use format::{FORMAT, StateFiles};
use omnibus_sync as sync;
pub use verify::check;

/// The number of a memtable's elements per chunk, as a power of two.
const ARENA_BITS: u32 = 12;

/// The name in errors.
const NAME: &str = "lsm";

fn io_error(source: std::io::Error) -> omnibus_engine::EngineError {
    omnibus_engine::EngineError::Io { engine: NAME, source }
}

/// The remedy for damage, for errors.
const ADVICE: &str = "restore the data directory from a backup, or make this server anew from a replica";

/// Damage of one file.
fn damaged(path: &std::path::Path, what: impl std::fmt::Display) -> omnibus_engine::EngineError {
    let detail = format!("{}: {what}; {ADVICE}", path.display());
    omnibus_engine::EngineError::Corrupt { engine: NAME, detail }
}

/// An error of reading one file of tables.
fn table_error(path: &std::path::Path, error: lsm_tree::Error) -> omnibus_engine::EngineError {
    match error {
        lsm_tree::Error::Io(source) => {
            io_error(std::io::Error::new(source.kind(), format!("{}: {source}", path.display())))
        }
        other => damaged(path, other),
    }
}

fn tree_error(error: lsm_tree::Error) -> omnibus_engine::EngineError {
    match error {
        lsm_tree::Error::Io(source) => io_error(source),
        other => omnibus_engine::EngineError::Corrupt {
            engine: NAME,
            detail: format!("{other}; `omnibus check` names the file; {ADVICE}"),
        },
    }
}
