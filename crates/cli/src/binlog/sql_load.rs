//! Files of LOAD DATA on their way out of the log: written beside each other in a folder, named in the statements.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use omnibus_format::RawEvent;
use omnibus_format::cursor::Reader;
use omnibus_format::events::{ExecuteLoadQuery, OldLoad, Query};
use omnibus_replication::changes::{EventStatement, StatementVariables};

use super::sql::{Failure, SqlPrinter};

/// The folder.
pub(super) struct LoadedFiles {
    folder: PathBuf,
}

impl LoadedFiles {
    /// Files in `folder`, or where temporary files go.
    pub(super) fn new(folder: Option<PathBuf>) -> LoadedFiles {
        LoadedFiles { folder: folder.unwrap_or_else(std::env::temp_dir) }
    }

    fn path(&self, id: u32) -> PathBuf {
        self.folder.join(format!("omnibus-load-{}-{id}", std::process::id()))
    }

    /// A file begins.
    pub(super) fn begin(&self, id: u32, data: &[u8]) -> io::Result<()> {
        File::create(self.path(id))?.write_all(data)
    }

    /// Appends a block to a file.
    pub(super) fn append(&self, id: u32, data: &[u8]) -> io::Result<()> {
        OpenOptions::new().append(true).open(self.path(id))?.write_all(data)
    }

    /// The statement with the file's name in it.
    pub(super) fn statement(&self, load: &ExecuteLoadQuery<'_>) -> io::Result<Vec<u8>> {
        let (from, to) = (load.file_name_span.0 as usize, load.file_name_span.1 as usize);
        let sql = load.query.sql;
        let (Some(head), Some(tail)) = (sql.get(..from), sql.get(to..)) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "LOAD DATA names its file outside of its text",
            ));
        };
        let mut out = head.to_vec();
        out.extend_from_slice(b" LOCAL INFILE ");
        let path = self.path(load.file_id);
        omnibus_value::literal::write_quoted(path.to_string_lossy().as_bytes(), &mut out);
        let how: &[u8] = match load.duplicate_handling {
            1 => b" IGNORE",
            2 => b" REPLACE",
            _ => b"",
        };
        out.extend_from_slice(how);
        out.extend_from_slice(b" INTO");
        out.extend_from_slice(tail);
        Ok(out)
    }
}

/// LOAD DATA of MySQL 4, before its file is complete.
pub(super) struct OldStatement {
    sql: Vec<u8>,
    span: (u32, u32),
    database: Vec<u8>,
    how: u8,
}

impl SqlPrinter {
    /// CREATE_FILE: the statement as clauses, and the file's first block.
    pub(super) fn old_load_begins(&mut self, load: &OldLoad<'_>) -> Result<(), Failure> {
        let id = load.file_id.unwrap_or(0);
        self.files.begin(id, load.data)?;
        let (sql, span) = load.statement();
        let (database, how) = (load.database.to_vec(), load.duplicate_handling());
        self.old_loads.insert(id, OldStatement { sql, span, database, how });
        Ok(())
    }

    /// EXEC_LOAD: the file is complete.
    pub(super) fn old_load(&mut self, event: &RawEvent<'_>, out: &mut impl Write) -> Result<(), Failure> {
        let file_id = Reader::new(event.body).u32("file id")?;
        let Some(old) = self.old_loads.remove(&file_id) else { return Ok(()) };
        let query = Query {
            thread_id: 0,
            exec_time: 0,
            error_code: 0,
            status: &[],
            database: &old.database,
            sql: &old.sql,
        };
        let (file_name_span, duplicate_handling) = (old.span, old.how);
        self.load(event, &ExecuteLoadQuery { query, file_id, file_name_span, duplicate_handling }, out)
    }

    /// The statement, which names the file where it is now.
    pub(super) fn load(
        &mut self,
        event: &RawEvent<'_>,
        load: &ExecuteLoadQuery<'_>,
        out: &mut impl Write,
    ) -> Result<(), Failure> {
        let database = self.rewritten(load.query.database).to_vec();
        if !self.wants(&database) {
            return Ok(());
        }
        let context = StatementVariables::default();
        let query = Query { database: &database, ..load.query };
        let view = EventStatement::new(event.header, query, &context, self.mariadb)?;
        self.context.set(&view, self.in_transaction, out)?;
        out.write_all(&self.files.statement(load)?)?;
        out.write_all(b"\n/*!*/;\n")?;
        Ok(())
    }
}
