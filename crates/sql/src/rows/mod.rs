//! The base of operators that collect rows: memory that is asked for, temporary files for what it does not hold, and the
//! operators' own stores, one file each.
//!
//! Not the plans and not the loops that push rows (`select`). Everything here belongs to one running statement and is used
//! on its session's thread; a temporary file vanishes with its owner, or with the process.

pub mod codec;
pub mod collected;
pub mod distinct;
pub mod held;
pub mod indexed;
pub mod kept;
pub mod matching;
pub mod partition;
pub mod results;
mod row;
pub mod spill;

pub use row::Row;

use crate::error::ExecResult;
use crate::state::SessionState;

/// Whether a consumer of rows wants more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Yes.
    Continue,
    /// No.
    Stop,
}

/// The running statement, as rows see it that are kept and may outgrow memory.
pub trait Running {
    /// Its session: limits, the accountant, the budget.
    fn session(&self) -> &SessionState;
    /// Asks for a thread that may wait for a disk.
    ///
    /// # Errors
    /// `NeedBlocking` where there is none.
    fn need_blocking(&mut self) -> ExecResult<()>;
    /// Counts a row or a comparison in the statement's budget.
    ///
    /// # Errors
    /// 1317, 3024; `NeedBlocking` on an async worker.
    fn tick(&self) -> ExecResult<()> {
        self.session().budget.tick()
    }
}
