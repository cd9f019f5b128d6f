//! What operators that collect rows share: memory that is asked for, temporary files for what it does not hold, and the
//! operators' own stores, one file each.
//!
//! Not the plans and not the loops that push rows (`select`). Everything here belongs to one running statement and is used
//! on its session's thread; a temporary file vanishes with its owner, or with the process.

pub mod codec;
pub mod distinct;
pub mod held;
pub mod kept;
pub mod matching;
pub mod memory;
pub mod partition;
pub mod rows;
pub mod sort;
pub mod spill;

pub use memory::{Account, ServerMemory, SessionMemory};

/// Whether a consumer of rows wants more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Yes.
    Continue,
    /// No.
    Stop,
}
