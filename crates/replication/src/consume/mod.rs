//! Changes for consumers: the transactions of a log as calls of a [`Consumer`], in the terms of `crate::model`.
//!
//! A [`Feed`] takes events one after the other (from a file, from the tail of a live log, from a server's dump) and
//! calls its consumer. The views that a consumer gets read the event's own bytes; parts that it does not request are
//! neither decoded nor copied. [`JsonLines`] and [`Envelopes`] are consumers; `examples/change-stream` has one to copy.
//!
//! [`LogFiles`] feeds from files, including those of a live log.
//!
//! Executing changes is in `crate::changes`. Keeping positions across restarts is the consumer's task; it is told them.
//! There are no threads here.

mod envelope;
mod feed;
mod files;
mod json;
mod json_rows;
mod json_value;

#[cfg(test)]
mod tests;

pub use envelope::{Envelope, EnvelopeError, Envelopes, Topic};
pub use feed::{ConsumeError, Feed};
pub use files::{FilesError, LogFiles};
pub use json::JsonLines;

use crate::model::{RowsView, StatementView, TrxHeader};
use omnibus_format::events::XaPrepare;

/// A position in a log where something begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePosition<'a> {
    /// The file's name, without directory.
    pub file: &'a str,
    /// Bytes from its start.
    pub offset: u64,
}

/// The end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End<'a> {
    /// Committed.
    Commit,
    /// The first phase of an XA transaction; its second phase is a statement in a transaction of its own.
    Prepare(&'a XaPrepare<'a>),
}

/// Takes changes in commit order: `begin`, then statements and rows, then `end` or `undo`.
pub trait Consumer {
    /// The consumer's own error.
    type Error;

    /// Begins a transaction; `place` is its position.
    ///
    /// # Errors
    /// The consumer's own; the feed stops.
    fn begin(&mut self, trx: &TrxHeader, place: Option<FilePosition<'_>>) -> Result<(), Self::Error>;

    /// Takes a statement: a definition, or a change that was logged as text.
    ///
    /// # Errors
    /// The consumer's own; the feed stops.
    fn statement(&mut self, statement: &dyn StatementView) -> Result<(), Self::Error>;

    /// Takes rows that were inserted, changed or deleted.
    ///
    /// # Errors
    /// The consumer's own; the feed stops.
    fn rows(&mut self, rows: &dyn RowsView) -> Result<(), Self::Error>;

    /// Ends the transaction; `place` is the position of the next one.
    ///
    /// # Errors
    /// The consumer's own; the feed stops.
    fn end(&mut self, end: End<'_>, place: Option<FilePosition<'_>>) -> Result<(), Self::Error>;

    /// Discards everything since `begin`: the log ends in the middle of the transaction, or says that it was rolled
    /// back.
    ///
    /// # Errors
    /// The consumer's own; the feed stops.
    fn undo(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}
