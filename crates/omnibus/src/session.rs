//! A session with an embedded server: statements as text, rows as text.

use omnibus_replication::client::{ClientError, Connection};
use std::os::unix::net::UnixStream;

/// A statement or a login failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct Error {
    /// MySQL's number: 1062 for a duplicate key, 2013 for a connection that the server has ended.
    pub code: u16,
    /// The error's text.
    pub message: String,
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Error {
        let code = error.code();
        let message = match error {
            ClientError::Server { message, .. } => message,
            ClientError::Lost(_) | ClientError::Ended => "the server has ended the connection".to_owned(),
            other => other.to_string(),
        };
        Error { code, message }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error { code: 2013, message: error.to_string() }
    }
}

/// The rows of a result, each value as text; empty for a statement without a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows(pub Vec<Vec<Option<Vec<u8>>>>);

impl Rows {
    /// Returns a value; `None` for NULL, for bytes that are not UTF-8, and outside of the rows and columns.
    #[must_use]
    pub fn text(&self, row: usize, column: usize) -> Option<&str> {
        std::str::from_utf8(self.0.get(row)?.get(column)?.as_deref()?).ok()
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A session, for one thread at a time. Uncommitted changes are rolled back when it is dropped.
pub struct Session {
    connection: Connection,
}

impl Session {
    pub(crate) fn open(stream: UnixStream, user: &str, password: &str) -> Result<Session, Error> {
        let attributes = [("program_name", "embedded")];
        let mut connection = Connection::over(stream, user, password, &attributes)?;
        connection.query("SET NAMES utf8mb4")?;
        Ok(Session { connection })
    }

    /// Executes one statement and blocks until it is answered: a change is then durable.
    ///
    /// # Errors
    /// The server's error. The session can be used further, unless the number is 2013.
    pub fn query(&mut self, sql: &str) -> Result<Rows, Error> {
        Ok(Rows(self.connection.query(sql)?))
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.connection.id()).finish_non_exhaustive()
    }
}
