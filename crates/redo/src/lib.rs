//! An engine's redo log: what makes it a participant of a two-phase commit.
//!
//! It holds write sets that were prepared and are not persistent in the engine's tables yet, and how each was decided.
//! It is not the engine's write-ahead log for what commits in one phase: that is the binary log (ENGINE-1).
//!
//! - `record`: one record as bytes, with a checksum over itself and its segment's number.
//! - `segment`: files of zeros that records are written over, so that a sync need not change a file's size.
//! - `live`: the prepared transactions in memory, and which segments they keep.
//! - `participant`: the whole, with the locks. An engine owns one and forwards the contract's methods to it.
//!
//! Nothing is created on disk before the first prepare, so a server that never commits in two phases pays nothing.
//! A failed write or sync poisons it: what is durable is unknown then, and every later prepare and sync fails.
//!
//! After a crash: records up to the first torn one of the newest segment. Damage before that is an error. A
//! reopened log is continued in a new segment, never behind a torn record.

mod live;
mod participant;
mod record;
mod segment;

pub use participant::Participant;

use omnibus_engine::EngineError;

/// Bytes of a segment, for engines without a reason to choose otherwise.
pub const SEGMENT_SIZE: u64 = 8 << 20;

/// Converts an error of `Participant::open` to one of the engine that owns it.
#[must_use]
pub fn open_error(engine: &'static str, source: std::io::Error) -> EngineError {
    match source.kind() {
        std::io::ErrorKind::InvalidData => EngineError::Corrupt { engine, detail: source.to_string() },
        _ => EngineError::Io { engine, source },
    }
}
