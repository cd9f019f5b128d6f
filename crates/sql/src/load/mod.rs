//! LOAD DATA: a file's bytes become rows; and SELECT .. INTO OUTFILE, which makes such files.
//!
//! - `input`: where the bytes are. - `format`: what separates lines and fields. - `reader`: bytes to
//!   fields. - `plan`: fields to rows. -
//!   `outfile`: rows to a file. - `event`: the statement and its file from a log.
//!
//! Not how the bytes get here: the server opens a file of its own, or asks the client for one of its
//! (`Interrupt::NeedFile`). Runs where it may block. The input can be read again from its start, so the
//! statement can be run again after it lost a lock or its plan.

pub(crate) mod event;
mod format;
mod input;
mod outfile;
mod plan;
mod reader;
#[cfg(test)]
mod tests;

pub use input::{LoadInput, Spool};
pub(crate) use outfile::{Outfile, OutfileSink};
pub(crate) use plan::{LoadPlan, announce_variables};
