//! Makes a file that was written beforehand the log's next file, so that a large transaction is committed without
//! copying it.
//!
//! The owner of the file has written the transaction's final events from a block boundary (`reserve`) on, with zeros in
//! front, and has synced all of it. What remains is a rotation with one additional write. The steps are those of any
//! rotation (see `writer.rs`); a crash after each step leaves:
//! 1. The old file is finished with the ROTATE event: the other file is not a log file yet, and the next start removes
//!    it.
//! 2. The file becomes readable if it is encrypted, gets its name, its header is written and synced, then the
//!    directory: a file that the index does not name. Zeros follow the header, so it holds no transaction (INDEX-2),
//!    and opening the log removes it.
//! 3. The index names it: an active file with a header only. Readers stop at the zeros (LOG-2); recovery cuts it there.
//! 4. One write fills the gap between header and `reserve` with whole events, the last of which opens the transaction.
//!    If it is torn, the state is that of step 3. If it is whole, the transaction is in the log (COMMIT-3).
//!
//! Called by the flush stage, like [`LogWriter::rotate`].

use crate::config::LogConfig;
use crate::error::{IoFailure, RotateError, failed};
use crate::fault::Point;
use crate::file::LogFile;
use crate::handle::Catalog;
use crate::io;
use crate::position::{FileSeq, LogPosition};
use crate::writer::LogWriter;
use omnibus_format::header::MAGIC;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A transaction's events in a file of their own, durable, in the log's file system.
#[derive(Debug)]
pub struct Spilled {
    /// The file's present path.
    pub path: PathBuf,
    /// File offset of its first event, a block boundary; zeros precede it.
    pub reserve: u64,
    /// File offset behind its last event; zeros follow, at least up to a block boundary.
    pub end: u64,
    /// The bytes of its events in the last, partial block.
    pub tail: Vec<u8>,
    /// The number of bytes in front of offset 0. It determines where blocks are, so only files with the same number can
    /// be promoted.
    pub front: u64,
}

impl LogWriter {
    /// Returns whether `spilled` has the form of the log's next file: both encrypted, or neither.
    #[must_use]
    pub fn can_promote(&self, spilled: &Spilled) -> bool {
        self.catalog().config.disk.front() == spilled.front
    }

    /// Switches to `spilled` as the next file, as [`LogWriter::rotate`] does to an empty one, and writes `opening`
    /// behind its `head`: whole final events that end where those of the file begin. Durable on return. Returns the
    /// position behind the file's events.
    ///
    /// # Errors
    /// As [`LogWriter::rotate`].
    pub fn promote(
        &mut self,
        head: &[u8],
        opening: &[u8],
        spilled: &Spilled,
    ) -> Result<LogPosition, RotateError> {
        debug_assert_eq!((MAGIC.len() + head.len() + opening.len()) as u64, spilled.reserve);
        self.rotate_into(head, |catalog, seq| take(catalog, seq, &spilled.path), Catalog::add)?;
        self.buffer().extend_from_slice(opening);
        self.seal().run()?;
        self.go_on_at(spilled.end, &spilled.tail);
        Ok(self.position())
    }
}

/// The first half of step 2.
fn take(catalog: &Catalog, seq: FileSeq, from: &Path) -> Result<Arc<LogFile>, IoFailure> {
    let path = catalog.path_of(seq);
    if catalog.config.disk.exists(&path).map_err(failed("look at", &path))? {
        return Err(IoFailure::new("create", &path, &std::io::ErrorKind::AlreadyExists.into()));
    }
    let LogConfig { disk, faults, .. } = &catalog.config;
    faults.around_step(Point::FileBegin, || disk.reveal(from)).map_err(failed("begin", from))?;
    io::rename(disk, faults, Point::PromoteRename, from, &path).map_err(failed("rename", from))?;
    LogFile::open(seq, path, catalog.method, &catalog.config).map(Arc::new)
}
