//! Files of LOAD DATA on their way out of the log: written beside each other in a folder, named in the statements.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use omnibus_format::events::ExecuteLoadQuery;

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

    /// A file goes on.
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
