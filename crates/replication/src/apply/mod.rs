//! Application: whoever has changes to apply says them through one trait, whatever form they had.
//!
//! [`ApplyTarget`] is who executes: it answers for the complete set-up and clean-up of a change's context. The SQL
//! layer has the real one; tests and tools have theirs. [`EventDecoder`] is the provider for binlog events of any
//! dialect: fed with one event after the other it calls a target. [`Borders`] only tells where transactions begin and
//! end, without looking at rows, for those who cut a stream into transactions first.
//!
//! Not here: connections, positions' meaning, scheduling. No threads of its own.

mod borders;
mod compressed;
mod decoder;
mod json;
mod load;
mod rows;
mod statement;
mod tables;

#[cfg(test)]
mod tests;

pub use borders::{Borders, Class, mariadb_xa_start};
pub use compressed::{inflate, plain_event};
pub use decoder::{EventDecoder, Step};
pub use json::{BadLine, JsonReplay, JsonRows};
pub use omnibus_format::payload::Payload;
pub use rows::{EventRows, EventTable};
pub use statement::{EventStatement, StatementContext};

pub(crate) use tables::Tables;

use crate::model::{RowsView, StatementView, TrxHeader};
use omnibus_format::DecodeError;
use omnibus_format::events::XaPrepare;

/// Where a channel is: stored in the same transaction as what it stands behind, so that the two never disagree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Whose it is. One position is kept for each name; the latest commit's.
    pub channel: String,
    /// What the channel needs to go on from here; opaque to who stores it.
    pub state: Vec<u8>,
}

/// Why a change could not be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApplyError {
    /// MySQL's error code.
    pub code: u16,
    /// SQLSTATE.
    pub sqlstate: [u8; 5],
    /// MySQL's text.
    pub message: String,
    /// The same transaction may succeed if it is tried again: a lock wait that timed out, a deadlock.
    pub temporary: bool,
}

impl ApplyError {
    /// An error that trying again does not mend.
    #[must_use]
    pub fn new(code: u16, message: impl Into<String>) -> ApplyError {
        ApplyError { code, sqlstate: *b"HY000", message: message.into(), temporary: false }
    }

    /// Events that do not follow the format (1594).
    #[must_use]
    pub fn damaged(what: impl std::fmt::Display) -> ApplyError {
        ApplyError::new(1594, format!("Relay log read failure: the event cannot be decoded: {what}"))
    }
}

impl From<DecodeError> for ApplyError {
    fn from(error: DecodeError) -> ApplyError {
        ApplyError::damaged(error)
    }
}

/// Executes changes. Calls come in the order `begin`, changes, then `commit`, `prepare` or `rollback`; after an error
/// only `rollback`.
pub trait ApplyTarget {
    /// What a commit gives to wait for until it is durable.
    type Ticket;

    /// A transaction begins.
    ///
    /// # Errors
    /// It cannot be taken.
    fn begin(&mut self, trx: &TrxHeader) -> Result<(), ApplyError>;

    /// The statement that follows is the transaction's last change, and `commit` will be called with this position. A
    /// target whose statements may commit by themselves (definitions) stores it with that commit.
    fn ends_with(&mut self, _position: Option<&Position>) {}

    /// A statement: everything that its context says is set for it and restored behind it. XA START and XA END come as
    /// statements too.
    ///
    /// # Errors
    /// It failed, or ended otherwise than where it was born.
    fn statement(&mut self, statement: &dyn StatementView) -> Result<(), ApplyError>;

    /// Changed rows of one table.
    ///
    /// # Errors
    /// The table is missing or too different, a row is not there or there already, the images are damaged.
    fn rows(&mut self, rows: &dyn RowsView) -> Result<(), ApplyError>;

    /// The transaction is complete. The position becomes part of it. Must not wait for the device: it takes its place
    /// in the commit order and returns.
    ///
    /// # Errors
    /// It could not be enrolled; it is rolled back.
    fn commit(&mut self, position: Option<&Position>) -> Result<Self::Ticket, ApplyError>;

    /// The first phase of an XA transaction is complete.
    ///
    /// # Errors
    /// As `commit`.
    fn prepare(
        &mut self,
        xid: &XaPrepare<'_>,
        position: Option<&Position>,
    ) -> Result<Self::Ticket, ApplyError>;

    /// Undoes what was done since `begin`. Without a transaction it does nothing.
    fn rollback(&mut self);
}
