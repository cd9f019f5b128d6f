//! The storage-engine contract, and the conformance suite that every engine passes.
//!
//! An engine keeps versions of byte keys. It has no log of its own: after a crash the server
//! replays the binary log from `Engine::applied` on (RECOVER-2), so an engine may lose anything
//! newer than its last checkpoint but must never hold anything that the log lost (ENGINE-1).
//!
//! Keys start with a 4-byte big-endian *space* id (one per table index, never reused), so an
//! engine can drop a space as a whole. The id's top bits say which engine of several (`EngineSet`).

#[cfg(feature = "conformance")]
pub mod conformance;
mod contract;
mod error;
mod frozen;
pub mod interruptible;
mod lent;
mod number;
mod set;
mod write_set;

pub use contract::{
    Engine, EngineInfo, EngineStats, Kept, ReadAt, Snapshot, SnapshotIter, SortedWrites, SpaceNames, Staged,
};
pub use error::EngineError;
pub use frozen::FrozenRows;
pub use lent::Lent;
pub use number::{CommitNo, SpaceId, TrxId};
pub use set::EngineSet;
pub use write_set::{
    Held, InMemory, IntoSorted, IntoWrites, Iter as WriteSetIter, MakeFile, Mark, Pending, Write, WriteSet,
};
