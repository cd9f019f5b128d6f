//! A log directory before the server writes to it. Lists and reads the files, cuts the torn tail, and then starts the
//! writer with a new file.
//!
//! Order at start-up: [`LogDir::open`] (index, leftovers of an interrupted rotation), [`RecoveryScan::new`](crate::RecoveryScan::new),
//! [`LogDir::truncate_tail`] if the tail needs it, [`LogWriter::start`](crate::LogWriter::start). A start always begins a new file, as the peers do:
//! nothing is ever appended behind a place where a crash happened, so stale bytes can not follow new ones (LOG-2).
//! The directory belongs to one process; see [`crate::DirLock`]. Main thread only.

mod cuts;

use crate::config::LogConfig;
use crate::error::{IndexError, OpenError, ReadError, failed};
use crate::fault::Point;
use crate::finish::{TEMPORARY, finish_torn, open_to_cut};
use crate::index::Index;
use crate::io;
use crate::position::{FileNames, FileSeq, LogOffset};
use crate::scan::{Next, ReadFile};
use omnibus_format::EventType;
use std::path::{Path, PathBuf};

/// A log directory before the server writes to it; see the module.
#[derive(Debug)]
pub struct LogDir {
    pub(crate) path: PathBuf,
    pub(crate) names: FileNames,
    pub(crate) config: LogConfig,
    pub(crate) index: Index,
    pub(crate) files: Vec<FileSeq>,
    /// The files that an interrupted purge has still to delete.
    pub(crate) leftovers: Vec<FileSeq>,
}

/// Returns the paths of the files that the index of the log in `path` names; none without an index. Changes nothing.
///
/// # Errors
/// The index is unreadable.
pub fn listed_files(path: &Path, config: &LogConfig) -> Result<Vec<PathBuf>, IndexError> {
    let index = Index::new(path, config);
    let files = index.read()?.unwrap_or_default();
    Ok(files.into_iter().map(|seq| path.join(index.names.log(seq))).collect())
}

impl LogDir {
    /// Reads the index of the log in `path` and brings directory and index to agreement after an interrupted rotation.
    /// Creates the directory if there is none. Changes no event of a file that the index names.
    ///
    /// # Errors
    /// The index is unreadable or contradicts the directory, or the operating system refuses.
    pub fn open(path: impl Into<PathBuf>, config: LogConfig) -> Result<LogDir, OpenError> {
        let path = path.into();
        config.disk.create_dir_all(&path).map_err(failed("create", &path))?;
        // Asserts RECOVER-3: a kill may have come between a new index and the sync of its name, and files are removed by it.
        config.disk.sync_dir(&path).map_err(failed("sync", &path))?;
        let index = Index::new(&path, &config);
        let names = index.names.clone();
        let mut dir = LogDir { path, names, config, index, files: Vec::new(), leftovers: Vec::new() };
        let there = dir.directory_listing()?;
        dir.leftovers = dir.index.read_purge_list()?;
        match dir.index.read()? {
            Some(files) => dir.files = files,
            None => dir.rebuild_index(&there)?,
        }
        if !dir.leftovers.is_empty() {
            dir.leftovers.retain(|seq| !dir.files.contains(seq));
            // The purge was interrupted before the index was replaced, so it did not happen.
            if dir.leftovers.is_empty() {
                dir.index.remove_purge_list()?;
            }
        }
        if let Some(&missing) = dir.files.iter().find(|seq| !there.contains(seq)) {
            return Err(IndexError::Missing(dir.path_of(missing)).into());
        }
        dir.clear_unlisted(&there)?;
        dir.free_coming_names()?;
        dir.resume_cuts()?;
        Ok(dir)
    }

    /// The files of the log, oldest first.
    #[must_use]
    pub fn files(&self) -> &[FileSeq] {
        &self.files
    }

    /// The configuration that the directory was opened with.
    #[must_use]
    pub fn config(&self) -> &LogConfig {
        &self.config
    }

    /// The naming scheme of the log's files.
    #[must_use]
    pub fn names(&self) -> &FileNames {
        &self.names
    }

    /// The path of a file of the log.
    #[must_use]
    pub fn path_of(&self, seq: FileSeq) -> PathBuf {
        self.path.join(self.names.log(seq))
    }

    /// Opens one file for reading.
    ///
    /// # Errors
    /// It can not be opened.
    pub fn read(&self, seq: FileSeq) -> Result<ReadFile, ReadError> {
        ReadFile::open(&self.config.disk, seq, &self.path_of(seq))
    }

    /// Cuts the last file at `offset`, marks it as closed and makes that durable. Returns the number of bytes cut.
    /// Warns in the error log about the bytes that are lost; zeros that were never written are cut without a warning.
    ///
    /// # Errors
    /// `file` is not the last one, or the operating system refuses.
    pub fn truncate_tail(&self, file: FileSeq, offset: LogOffset) -> Result<u64, OpenError> {
        if self.files.last() != Some(&file) || offset <= LogOffset::FIRST_EVENT {
            return Err(ReadError::NoSuchFile(file).into());
        }
        let path = self.path_of(file);
        let len = self.config.disk.metadata(&path).map_err(failed("read the size of", &path))?.len;
        let dropped = len.saturating_sub(offset.0);
        let open = open_to_cut(&self.config.disk, &self.config.faults, &path, offset.0)?;
        finish_torn(&self.config.faults, &open, &path, offset.0.min(len))?;
        tracing::info!(file = %self.names.log(file), %offset, dropped, "cut the tail of the last log file");
        Ok(dropped)
    }

    /// The file that [`LogWriter::start`](crate::LogWriter::start) will create; `None` once the numbers are used up.
    #[must_use]
    pub fn next_file(&self) -> Option<FileSeq> {
        self.files.last().map_or(Some(FileSeq::FIRST), |last| last.next())
    }

    fn directory_listing(&self) -> Result<Vec<FileSeq>, OpenError> {
        let mut found = Vec::new();
        for name in self.config.disk.list(&self.path).map_err(failed("list", &self.path))? {
            let Some(name) = name.to_str() else { continue };
            found.extend(self.names.parse(name));
            // A copy that was not finished.
            if name
                .rsplit_once('.')
                .is_some_and(|(log, end)| end == TEMPORARY && self.names.parse(log).is_some())
            {
                let path = self.path.join(name);
                self.config.disk.remove_if_there(&path).map_err(failed("remove", &path))?;
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Without an index the directory itself is the list; a purge that was interrupted is still respected.
    fn rebuild_index(&mut self, there: &[FileSeq]) -> Result<(), OpenError> {
        let mut files: Vec<FileSeq> = there.to_vec();
        files.retain(|seq| !self.leftovers.contains(seq));
        // The last file may be one whose rotation never completed.
        if let Some(&last) = files.last()
            && !self.holds_more_than_head(last)?
        {
            files.pop();
        }
        if files.is_empty() {
            return Ok(());
        }
        // Nothing is changed if a file in the middle is missing too.
        self.index.check_sequence(&self.path, &files)?;
        tracing::warn!(files = files.len(), dir = %self.path.display(), "no index file; made one from the directory");
        self.index.replace(&files)?;
        self.files = self.index.read()?.unwrap_or_default();
        Ok(())
    }

    /// Handles files that the index does not name. A file behind the last one is left by an interrupted rotation (or by
    /// RESET BINARY LOGS TO) and is deleted if it holds no transaction. Older ones were put there by somebody else and
    /// are left alone.
    fn clear_unlisted(&self, there: &[FileSeq]) -> Result<(), OpenError> {
        let next = self.next_file();
        for &seq in there.iter().filter(|seq| !self.files.contains(seq) && !self.leftovers.contains(seq)) {
            let path = self.path_of(seq);
            if Some(seq) < next {
                tracing::warn!(file = %path.display(), "is not named by the index; left alone");
            } else if !self.holds_more_than_head(seq)? {
                tracing::info!(file = %path.display(), "removed a file whose rotation did not complete");
                io::remove(&self.config.disk, &self.config.faults, Point::OrphanRemove, &path)
                    .map_err(failed("remove", &path))?;
            } else {
                return Err(IndexError::Unlisted(path).into());
            }
        }
        Ok(())
    }

    /// Deletes files that an interrupted reset left, if their names will be used again.
    fn free_coming_names(&mut self) -> Result<(), OpenError> {
        let next = self.next_file();
        for &seq in self.leftovers.iter().filter(|seq| Some(**seq) >= next) {
            let path = self.path_of(seq);
            io::remove(&self.config.disk, &self.config.faults, Point::PurgeRemove, &path)
                .map_err(failed("remove", &path))?;
        }
        let before = self.leftovers.len();
        self.leftovers.retain(|seq| Some(*seq) < next);
        if self.leftovers.is_empty() && before > 0 {
            self.index.sync_names()?;
            self.index.remove_purge_list()?;
        }
        Ok(())
    }

    /// Returns whether a file contains more than its header. One ignorable event belongs to the header: the server's
    /// private note. A second one may be a transaction of private events.
    fn holds_more_than_head(&self, seq: FileSeq) -> Result<bool, ReadError> {
        holds_more_than_head(&mut self.read(seq)?)
    }
}

/// As [`LogDir::holds_more_than_head`] for an open file, which is read from its present position.
pub(crate) fn holds_more_than_head(file: &mut ReadFile) -> Result<bool, ReadError> {
    let mut ignorable = 0;
    loop {
        match file.next()? {
            Next::End(_) => return Ok(false),
            Next::Event(event) => match event.header.event_type {
                EventType::FORMAT_DESCRIPTION
                | EventType::PREVIOUS_GTIDS
                | EventType::MARIADB_GTID_LIST
                | EventType::MARIADB_BINLOG_CHECKPOINT => {}
                EventType::IGNORABLE if ignorable == 0 => ignorable += 1,
                _ => return Ok(true),
            },
        }
    }
}

/// The directory of prepared files below a log directory.
pub(crate) fn prepared_dir(path: &Path) -> PathBuf {
    path.join("pre-allocated-binlog")
}
