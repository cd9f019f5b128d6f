//! `LogFiles`: reads the files of a log independently of the server that writes them.
//!
//! It is a reader only: it needs no server, disturbs none, and does not protect files from purging. Of a live log it
//! returns the events that are in the file; behind them are zeros or an incomplete event, which a later call finds
//! complete. Called by the owner of a consumer, on its own thread; [`LogFiles::read`] never waits.

use super::{ConsumeError, Consumer, Feed};
use omnibus_log::{Disk, FileSeq, LogOffset, Next, ReadError, ReadFile, ScanEnd, TornReason};
use std::io;
use std::path::{Path, PathBuf};

/// The reason why files cannot be read further.
#[derive(Debug, thiserror::Error)]
pub enum FilesError<E> {
    /// The consumer stopped, or an event cannot be decoded.
    #[error(transparent)]
    Consume(#[from] ConsumeError<E>),
    /// A file or the index cannot be read.
    #[error("{path}: {error}")]
    Read {
        /// The file.
        path: String,
        /// The error.
        error: String,
    },
    /// Bytes before the file's end are not an event.
    #[error("{path} is damaged at offset {offset}: {what}")]
    Damaged {
        /// The file.
        path: String,
        /// The offset.
        offset: u64,
        /// The kind of damage.
        what: String,
    },
}

/// Files in order, with the progress of reading them.
#[derive(Debug)]
pub struct LogFiles {
    index: Option<PathBuf>,
    files: Vec<PathBuf>,
    /// The index of the file that is being read, and the offset of its next event; 0 for its first.
    current: usize,
    offset: u64,
}

impl LogFiles {
    /// Creates a reader of these files.
    #[must_use]
    pub fn of(files: Vec<PathBuf>) -> LogFiles {
        LogFiles { index: None, files, current: 0, offset: 0 }
    }

    /// Creates a reader of the files that an index (`binlog.index`) names now and later: a live log.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn of_index(index: &Path) -> io::Result<LogFiles> {
        let mut files = LogFiles { index: Some(index.to_owned()), ..LogFiles::of(Vec::new()) };
        files.refresh()?;
        Ok(files)
    }

    /// Moves to the `file` and `position` of a line that ended a transaction. Returns false if there is no such file.
    pub fn seek(&mut self, file: &str, offset: u64) -> bool {
        let found = self.files.iter().position(|path| path.file_name().is_some_and(|name| name == file));
        if let Some(found) = found {
            (self.current, self.offset) = (found, offset);
        }
        found.is_some()
    }

    /// Reads the index again. The names in it are paths beside it.
    fn refresh(&mut self) -> io::Result<()> {
        let Some(index) = &self.index else { return Ok(()) };
        let folder = index.parent().unwrap_or(Path::new(""));
        let names = std::fs::read_to_string(index)?;
        let named: Vec<PathBuf> =
            names.lines().filter_map(|line| Some(folder.join(Path::new(line.trim()).file_name()?))).collect();
        // What was purged is gone from its head; what is being read stays, whatever its place.
        let at = self.files.get(self.current).and_then(|path| named.iter().position(|other| other == path));
        if let Some(at) = at {
            self.current = at;
            self.files = named;
        } else {
            self.files.truncate(self.current + 1);
            self.files
                .extend(named.into_iter().filter(|path| !self.files.contains(path)).collect::<Vec<_>>());
        }
        Ok(())
    }

    /// Passes all unread events to a feed. For a live log call it again later.
    ///
    /// # Errors
    /// The events passed before are right. After an incomplete transaction, the caller of the next call has to `seek`
    /// to its beginning.
    pub fn read<C: Consumer>(&mut self, feed: &mut Feed<C>) -> Result<(), FilesError<C::Error>> {
        while let Some(path) = self.files.get(self.current).cloned() {
            // A file that has a successor is complete; whether it has one must be known before it is read.
            let complete = self.current + 1 < self.files.len();
            let end = self.one_file(&path, feed)?;
            if let ScanEnd::Torn(torn) = &end {
                let unfinished = matches!(torn.reason, TornReason::Preallocated | TornReason::Torn { .. });
                if !unfinished || complete && torn.reason != TornReason::Preallocated {
                    let (path, offset) = (path.display().to_string(), torn.position.offset.0);
                    return Err(FilesError::Damaged { path, offset, what: torn.reason.to_string() });
                }
            }
            if complete {
                self.current += 1;
                self.offset = 0;
                continue;
            }
            if let Err(error) = self.refresh() {
                let path = self.index.as_deref().unwrap_or(Path::new("")).display().to_string();
                return Err(FilesError::Read { path, error: error.to_string() });
            }
            if self.current + 1 >= self.files.len() {
                break;
            }
        }
        Ok(())
    }

    fn one_file<C: Consumer>(
        &mut self,
        path: &Path,
        feed: &mut Feed<C>,
    ) -> Result<ScanEnd, FilesError<C::Error>> {
        let failed = |error: ReadError| FilesError::Read {
            path: path.display().to_string(),
            error: error.to_string(),
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut file = ReadFile::open(&Disk::default(), FileSeq::FIRST, path).map_err(failed)?;
        let mut first = true;
        loop {
            if !first && file.position().offset.0 < self.offset {
                file.seek(LogOffset(self.offset)).map_err(failed)?;
            }
            match file.next().map_err(failed)? {
                Next::End(end) => return Ok(end),
                Next::Event(event) => {
                    // The first event says how the others are to be read, each time; inside a transaction the feed
                    // knows that already.
                    if event.offset >= self.offset || first && !feed.in_transaction() {
                        feed.event(&event, Some(&name))?;
                        self.offset = self.offset.max(event.end());
                    }
                    first = false;
                }
            }
        }
    }
}
