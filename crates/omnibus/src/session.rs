//! A session with an embedded server: statements as text, rows as text.

use omnibus_replication::client::{ClientError, Connection};
use std::os::unix::net::UnixStream;

/// A statement or a login failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct Error {
    /// MySQL's number: 1062 for a duplicate key, 2013 for a connection that the server has ended.
    pub code: u16,
    /// What happened.
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

/// Rows of an answer, each value as text; none for a statement that has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows(pub Vec<Vec<Option<Vec<u8>>>>);

impl Rows {
    /// A value; `None` for NULL, for what is no UTF-8, and where there is none.
    #[must_use]
    pub fn text(&self, row: usize, column: usize) -> Option<&str> {
        std::str::from_utf8(self.0.get(row)?.get(column)?.as_deref()?).ok()
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// One session, for one thread at a time. What it has not committed is rolled back when it is dropped.
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

    /// Runs one statement and blocks until it is answered: a change is durable then.
    ///
    /// # Errors
    /// The server's. The session goes on, unless the number is 2013.
    pub fn query(&mut self, sql: &str) -> Result<Rows, Error> {
        Ok(Rows(self.connection.query(sql)?))
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.connection.id()).finish_non_exhaustive()
    }
}
