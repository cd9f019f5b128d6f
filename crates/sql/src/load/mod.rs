//! LOAD DATA: a file's bytes become rows.
//!
//! - `input`: where the bytes are. - `reader`: bytes to fields. - `plan`: fields to rows. - `event`: the statement and its file
//!   from a log. What separates lines and fields is `text_file`'s.
//!
//! Not how the bytes get here: the server opens a file of its own, or asks the client for one of its
//! (`Interrupt::NeedFile`). Runs where it may block. The input can be read again from its start, so the
//! statement can be run again after it lost a lock or its plan.

pub(crate) mod event;
mod input;
mod plan;
mod reader;
#[cfg(test)]
mod tests;

pub use input::{LoadInput, Spool};
pub(crate) use plan::{LoadPlan, announce_variables};
