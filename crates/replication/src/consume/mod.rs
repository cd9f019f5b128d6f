//! Changes for whoever wants them: transactions of a log as calls of a [`Consumer`], in the words of `crate::model`.
//!
//! A [`Feed`] takes events one after the other (from a file, from the tail of a live log, from a server's dump) and
//! tells its consumer what they mean. The views that a consumer gets read the event's own bytes: what it does not ask
//! for is neither decoded nor copied. [`JsonLines`] and [`Envelopes`] are consumers; `examples/change-stream` has one to copy.
//!
//! [`LogFiles`] feeds from files, those of a live log too.
//!
//! Not here: executing changes (`crate::apply`), keeping positions across restarts: a consumer is told them. No threads
//! of its own.

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

/// Where in a log something begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePosition<'a> {
    /// The file's name, without directory.
    pub file: &'a str,
    /// Bytes from its start.
    pub offset: u64,
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End<'a> {
    /// Committed.
    Commit,
    /// The first phase of an XA transaction: its second phase comes as a statement in a transaction of its own.
    Prepare(&'a XaPrepare<'a>),
}

/// Takes changes in commit order: `begin`, then statements and rows, then `end` or `undo`.
pub trait Consumer {
    /// Why it takes no more.
    type Error;

    /// A transaction begins here.
    ///
    /// # Errors
    /// Its own; the feed stops.
    fn begin(&mut self, trx: &TrxHeader, place: Option<FilePosition<'_>>) -> Result<(), Self::Error>;

    /// A statement: a definition, or a change that was logged as text.
    ///
    /// # Errors
    /// Its own; the feed stops.
    fn statement(&mut self, statement: &dyn StatementView) -> Result<(), Self::Error>;

    /// Rows that were inserted, changed or deleted.
    ///
    /// # Errors
    /// Its own; the feed stops.
    fn rows(&mut self, rows: &dyn RowsView) -> Result<(), Self::Error>;

    /// The transaction ends; `place` is where the next one begins.
    ///
    /// # Errors
    /// Its own; the feed stops.
    fn end(&mut self, end: End<'_>, place: Option<FilePosition<'_>>) -> Result<(), Self::Error>;

    /// What came since `begin` never happened: the log breaks off in the middle, or says so.
    ///
    /// # Errors
    /// Its own; the feed stops.
    fn undo(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}
