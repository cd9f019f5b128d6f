//! A file that was written beforehand becomes the log's next file: how a large transaction is committed without
//! copying it.
//!
//! Its owner has written the transaction's final events from a block boundary on (`reserve`), zeros before them, and
//! has synced all of it; what is left is a rotation with one more write. As for any rotation (see `writer.rs`), and what a
//! crash at each step leaves:
//! 1. the old file is finished, with the ROTATE event — the other one is no log file yet, and its owner's start removes it;
//! 2. it can be read if it is encrypted, gets its name, its header is written and synced, then the directory — a file that the index does not name. Zeros
//!    follow the header, so no transaction is in it (INDEX-2), and opening removes it;
//! 3. the index names it — an active file with a header only. Nobody reads past the zeros (LOG-2); recovery cuts it
//!    there;
//! 4. one write fills the gap between header and `reserve` with whole events, the last of which opens the transaction.
//!    Torn, it leaves what step 3 did. Whole, the transaction is in the log (COMMIT-3).
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
    /// Where it is now.
    pub path: PathBuf,
    /// Where its events begin; zeros before. A block of the file begins there.
    pub reserve: u64,
    /// Where they end; zeros behind, up to a whole number of blocks at least.
    pub end: u64,
    /// What of them is in the last, partial block.
    pub tail: Vec<u8>,
    /// How much is in front of position 0: blocks are where they are in such files only.
    pub front: u64,
}

impl LogWriter {
    /// Whether `spilled` has the form that the next file has: not if it is encrypted and the log's files are no more, or the other
    /// way round.
    #[must_use]
    pub fn can_promote(&self, spilled: &Spilled) -> bool {
        self.catalog().config.disk.front() == spilled.front
    }

    /// Switches to `spilled` as the next file, as [`LogWriter::rotate`] does to an empty one, and puts `opening` behind its
    /// `head`: whole final events that end where those of the file begin. Durable on return. Gives the position
    /// behind the file's events.
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

/// Steps 2's first half.
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
