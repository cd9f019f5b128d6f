//! QUERY: a statement as text, with the session state it needs. Also BEGIN, COMMIT and DDL.

use super::status_vars::StatusVars;
use crate::cursor::Reader;
use crate::error::DecodeError;

/// The decoded event. `status` is kept raw; `status_vars` decodes it on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query<'a> {
    /// Connection id, which names temporary tables.
    pub thread_id: u32,
    /// Duration of the statement in seconds.
    pub exec_time: u32,
    /// Error the statement ended with; 0 for success.
    pub error_code: u16,
    /// Encoded status variables.
    pub status: &'a [u8],
    /// Current database; empty for none.
    pub database: &'a [u8],
    /// The statement, in `character_set_client`.
    pub sql: &'a [u8],
}

impl<'a> Query<'a> {
    /// Appends the body. Database names longer than 255 bytes do not exist and are cut.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let database = &self.database[..self.database.len().min(255)];
        let status = &self.status[..self.status.len().min(usize::from(u16::MAX))];
        out.extend_from_slice(&self.thread_id.to_le_bytes());
        out.extend_from_slice(&self.exec_time.to_le_bytes());
        out.push(database.len() as u8);
        out.extend_from_slice(&self.error_code.to_le_bytes());
        out.extend_from_slice(&(status.len() as u16).to_le_bytes());
        out.extend_from_slice(status);
        out.extend_from_slice(database);
        out.push(0);
        out.extend_from_slice(self.sql);
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let thread_id = r.u32("thread id")?;
        let exec_time = r.u32("execution time")?;
        let database_len = usize::from(r.u8("database length")?);
        let error_code = r.u16("error code")?;
        let status_len = usize::from(r.u16("status length")?);
        let status = r.take(status_len, "status variables")?;
        let database = r.take(database_len, "database")?;
        r.u8("database end")?;
        Ok(Self { thread_id, exec_time, error_code, status, database, sql: r.rest() })
    }

    /// The decoded status variables.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn status_vars(&self) -> Result<StatusVars, DecodeError> {
        StatusVars::decode(self.status)
    }
}
