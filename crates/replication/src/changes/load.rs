//! Files of LOAD DATA on their way through the log: collected block by block, on disk when they are large.

use crate::model::LoadedFile;
use omnibus_format::events::{ExecuteLoadQuery, OldLoad, Query};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, Read, Seek, SeekFrom, Write};
use tempfile::SpooledTempFile;

/// The number of a file's bytes that are kept in memory.
const IN_MEMORY: usize = 1 << 20;
/// The number of bytes passed to a reader at a time.
const BLOCK: usize = 64 << 10;

/// Files whose statement has not come yet.
#[derive(Debug, Default)]
pub(super) struct LoadFiles {
    files: HashMap<u32, SpooledTempFile>,
}

impl LoadFiles {
    /// Begins a file with its first block, and drops an earlier file of the same number.
    pub(super) fn create(&mut self, id: u32, data: &[u8]) -> io::Result<()> {
        let mut file = SpooledTempFile::new(IN_MEMORY);
        file.write_all(data)?;
        self.files.insert(id, file);
        Ok(())
    }

    /// Appends a further block. Returns false if the file has not begun.
    pub(super) fn append(&mut self, id: u32, data: &[u8]) -> io::Result<bool> {
        match self.files.get_mut(&id) {
            Some(file) => file.write_all(data).map(|()| true),
            None => Ok(false),
        }
    }

    /// Removes and returns the file, which is complete or given up.
    pub(super) fn take(&mut self, id: u32) -> Option<SpooledTempFile> {
        self.files.remove(&id)
    }

    pub(super) fn clear(&mut self) {
        self.files.clear();
    }
}

/// A LOAD DATA statement in the form of CREATE_FILE's clauses.
pub(super) struct OldStatement {
    thread_id: u32,
    exec_time: u32,
    database: Vec<u8>,
    sql: Vec<u8>,
    span: (u32, u32),
    duplicate_handling: u8,
}

impl OldStatement {
    pub(super) fn of(load: &OldLoad<'_>) -> OldStatement {
        let (sql, span) = load.statement();
        OldStatement {
            thread_id: load.thread_id,
            exec_time: load.exec_time,
            database: load.database.to_vec(),
            sql,
            span,
            duplicate_handling: load.duplicate_handling(),
        }
    }

    /// Returns the statement in the form in which today's servers log it.
    pub(super) fn event(&self, file_id: u32) -> ExecuteLoadQuery<'_> {
        ExecuteLoadQuery {
            query: Query {
                thread_id: self.thread_id,
                exec_time: self.exec_time,
                error_code: 0,
                status: &[],
                database: &self.database,
                sql: &self.sql,
            },
            file_id,
            file_name_span: self.span,
            duplicate_handling: self.duplicate_handling,
        }
    }
}

/// A complete file and its place in the statement's text.
pub(super) struct EventFile {
    pub(super) file: RefCell<SpooledTempFile>,
    pub(super) span: (u32, u32),
    pub(super) duplicate_handling: u8,
}

impl LoadedFile for EventFile {
    fn name_span(&self) -> (u32, u32) {
        self.span
    }
    fn duplicate_handling(&self) -> u8 {
        self.duplicate_handling
    }
    fn blocks(&self, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut file = self.file.try_borrow_mut().map_err(|_| io::Error::other("the file is being read"))?;
        file.seek(SeekFrom::Start(0))?;
        let mut block = vec![0; BLOCK];
        loop {
            match file.read(&mut block)? {
                0 => return Ok(()),
                len => each(&block[..len])?,
            }
        }
    }
}
