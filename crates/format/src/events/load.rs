//! LOAD DATA in statement format: BEGIN_LOAD_QUERY / APPEND_BLOCK carry the file's bytes,
//! EXECUTE_LOAD_QUERY the statement. Written under `binlog_format=STATEMENT`.

use super::query::Query;
use crate::cursor::Reader;
use crate::error::DecodeError;

/// A block of the file. APPEND_BLOCK has the same body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeginLoadQuery<'a> {
    /// The number of the file among those being transferred.
    pub file_id: u32,
    /// The next bytes of the file.
    pub data: &'a [u8],
}

impl<'a> BeginLoadQuery<'a> {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.file_id.to_le_bytes());
        out.extend_from_slice(self.data);
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        Ok(Self { file_id: r.u32("file id")?, data: r.rest() })
    }
}

/// The statement, with the place of the file name in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecuteLoadQuery<'a> {
    /// As QUERY.
    pub query: Query<'a>,
    /// The file.
    pub file_id: u32,
    /// The byte range of the file name clause in `query.sql`.
    pub file_name_span: (u32, u32),
    /// 0 error, 1 IGNORE, 2 REPLACE.
    pub duplicate_handling: u8,
}

impl<'a> ExecuteLoadQuery<'a> {
    /// Appends the body: QUERY's, with the file between its fixed fields and its variables.
    pub fn encode(&self, out: &mut Vec<u8>) {
        const FIXED: usize = 13;
        let start = out.len();
        self.query.encode(out);
        let mut file = [0; 13];
        file[..4].copy_from_slice(&self.file_id.to_le_bytes());
        file[4..8].copy_from_slice(&self.file_name_span.0.to_le_bytes());
        file[8..12].copy_from_slice(&self.file_name_span.1.to_le_bytes());
        file[12] = self.duplicate_handling;
        out.splice(start + FIXED..start + FIXED, file);
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
        let file_id = r.u32("file id")?;
        let file_name_span = (r.u32("file name start")?, r.u32("file name end")?);
        let duplicate_handling = r.u8("duplicate handling")?;
        let status = r.take(status_len, "status variables")?;
        let database = r.take(database_len, "database")?;
        r.u8("database end")?;
        let sql = r.rest();
        let query = Query { thread_id, exec_time, error_code, status, database, sql };
        Ok(Self { query, file_id, file_name_span, duplicate_handling })
    }
}
