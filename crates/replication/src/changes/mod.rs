//! Changes out of events, for who applies them: all providers of changes, whatever their form, call one trait.
//!
//! [`ApplyTarget`] executes the changes; it is responsible for the complete set-up and clean-up of a change's context.
//! The SQL layer has the real one; tests and tools have theirs. [`EventDecoder`] is the provider for binlog events of
//! any dialect: fed with one event after the other it calls a target. [`Borders`] only finds the beginnings and ends of
//! transactions, for code that cuts a stream into transactions first.
//!
//! Connections, the meaning of positions, and scheduling are elsewhere. There are no threads here.

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
pub use statement::{EventStatement, StatementVariables};

pub(crate) use tables::Tables;

use crate::model::{RowsView, StatementView, TrxHeader};
use omnibus_format::DecodeError;
use omnibus_format::events::XaPrepare;

/// The position of a channel. It is stored in the same transaction as the changes before it, so that the two never
/// disagree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The name of the channel. For each name only the latest position is kept.
    pub channel: String,
    /// The channel's state at this position; opaque to its storage.
    pub state: Vec<u8>,
}

/// The reason why a change could not be applied.
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
    /// Creates an error that a retry does not resolve.
    #[must_use]
    pub fn new(code: u16, message: impl Into<String>) -> ApplyError {
        ApplyError { code, sqlstate: *b"HY000", message: message.into(), temporary: false }
    }

    /// Creates the error for events that do not follow the format (1594).
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

/// Executes changes. The order of calls is `begin`, changes, then `commit`, `prepare` or `rollback`; after an error
/// only `rollback` may follow.
pub trait ApplyTarget {
    /// The ticket of a commit, which completes when it is durable.
    type Ticket;

    /// Begins a transaction.
    ///
    /// # Errors
    /// The target refuses it.
    fn begin(&mut self, trx: &TrxHeader) -> Result<(), ApplyError>;

    /// Announces that the statement that follows is the transaction's last change, and that `commit` will be called
    /// with this position. A target whose statements may commit by themselves (definitions) stores the position with
    /// that commit.
    fn ends_with(&mut self, _position: Option<&Position>) {}

    /// Executes a statement. The settings of its context are in effect for it and restored behind it. XA START and XA
    /// END are statements, too.
    ///
    /// # Errors
    /// The statement failed, or ended otherwise than on its first server.
    fn statement(&mut self, statement: &dyn StatementView) -> Result<(), ApplyError>;

    /// Applies changed rows of one table.
    ///
    /// # Errors
    /// The table is missing or too different, a row is missing or exists already, or the images are damaged.
    fn rows(&mut self, rows: &dyn RowsView) -> Result<(), ApplyError>;

    /// Commits the transaction, with the position as a part of it. It must not wait for the device: it takes its place
    /// in the commit order and returns.
    ///
    /// # Errors
    /// The transaction could not be enrolled, and is rolled back.
    fn commit(&mut self, position: Option<&Position>) -> Result<Self::Ticket, ApplyError>;

    /// Completes the first phase of an XA transaction.
    ///
    /// # Errors
    /// As [`ApplyTarget::commit`].
    fn prepare(
        &mut self,
        xid: &XaPrepare<'_>,
        position: Option<&Position>,
    ) -> Result<Self::Ticket, ApplyError>;

    /// Undoes the changes since `begin`. Without a transaction it does nothing.
    fn rollback(&mut self);
}
