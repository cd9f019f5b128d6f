//! The index file: the names of the log's files, one `./binlog.000001` per line, oldest first.
//!
//! It is only ever replaced as a whole: a temporary file is written and synced, renamed over the index, and the
//! directory is synced. So after a crash it is the old list or the new one. INDEX-1: a file is named only after its
//! header is durable. INDEX-2: a file is named before the first transaction goes into it. A name is taken out before
//! its file is deleted; the files still to delete are kept in a list of their own until they are gone.

use crate::config::LogConfig;
use crate::error::{IndexError, IoFailure, failed};
use crate::fault::{Faults, Point};
use crate::io;
use crate::position::{FileNames, FileSeq};
use omnibus_disk::{Disk, Open};
use std::path::{Path, PathBuf};

/// Reads and replaces the index of one directory. The caller serialises replacements.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    pub(crate) dir: PathBuf,
    pub(crate) names: FileNames,
    pub(crate) disk: Disk,
    pub(crate) faults: Faults,
}

impl Index {
    /// The index of the log in `dir`.
    pub(crate) fn new(dir: &Path, config: &LogConfig) -> Index {
        Index {
            dir: dir.to_owned(),
            names: FileNames::new(config.basename.clone()),
            disk: config.disk.clone(),
            faults: config.faults.clone(),
        }
    }

    /// The files named, oldest first; `None` if there is no index.
    pub(crate) fn read(&self) -> Result<Option<Vec<FileSeq>>, IndexError> {
        let path = self.dir.join(self.names.index());
        let Some(files) = self.read_names(&path)? else { return Ok(None) };
        self.check_sequence(&path, &files)?;
        Ok(Some(files))
    }

    /// Checks that each file's number follows the one before. Lists are checked before they are written, too.
    pub(crate) fn check_sequence(&self, path: &Path, files: &[FileSeq]) -> Result<(), IndexError> {
        for pair in files.windows(2) {
            if pair[0].next() != Some(pair[1]) {
                let (first, second) = (self.names.log(pair[0]), self.names.log(pair[1]));
                return Err(IndexError::Gap { path: path.to_owned(), first, second });
            }
        }
        Ok(())
    }

    /// Replaces the index by one with `files`.
    pub(crate) fn replace(&self, files: &[FileSeq]) -> Result<(), IoFailure> {
        self.replace_list(&self.names.index(), files, Point::IndexWrite)
    }

    /// Reads the list of files that a purge took out of the index and that may still exist.
    pub(crate) fn read_purge_list(&self) -> Result<Vec<FileSeq>, IndexError> {
        Ok(self.read_names(&self.dir.join(self.names.purge_list()))?.unwrap_or_default())
    }

    /// Writes the list of files that are about to leave the index.
    pub(crate) fn write_purge_list(&self, files: &[FileSeq]) -> Result<(), IoFailure> {
        self.replace_list(&self.names.purge_list(), files, Point::PurgeListWrite)
    }

    /// Makes the removal of files durable, before the list that names them goes.
    pub(crate) fn sync_names(&self) -> Result<(), IoFailure> {
        io::sync_dir(&self.disk, &self.faults, Point::PurgeDirSync, &self.dir)
            .map_err(failed("sync", &self.dir))
    }

    /// Removes the purge list, once all its files are gone.
    pub(crate) fn remove_purge_list(&self) -> Result<(), IoFailure> {
        let path = self.dir.join(self.names.purge_list());
        io::remove(&self.disk, &self.faults, Point::PurgeListRemove, &path).map_err(failed("remove", &path))
    }

    fn read_names(&self, path: &Path) -> Result<Option<Vec<FileSeq>>, IndexError> {
        let text = match self.disk.read(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(failed("read", path))?,
        };
        let text = String::from_utf8_lossy(&text);
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines
            .map(|(number, line)| {
                self.names.parse(line.trim()).ok_or_else(|| IndexError::BadLine {
                    path: path.to_owned(),
                    line: number + 1,
                    text: line.to_owned(),
                })
            })
            .collect::<Result<_, _>>()
            .map(Some)
    }

    fn replace_list(&self, name: &str, files: &[FileSeq], write: Point) -> Result<(), IoFailure> {
        let text: String = files.iter().map(|&seq| format!("./{}\n", self.names.log(seq))).collect();
        let temporary = self.dir.join(format!("{name}.tmp"));
        let target = self.dir.join(name);
        let file = self.disk.open(&temporary, Open::Replace).map_err(failed("create", &temporary))?;
        io::write_all_at(&self.faults, write, &file, text.as_bytes(), 0)
            .map_err(failed("write", &temporary))?;
        io::sync_all(&self.faults, Point::IndexSync, &file).map_err(failed("sync", &temporary))?;
        io::rename(&self.disk, &self.faults, Point::IndexRename, &temporary, &target)
            .map_err(failed("rename", &temporary))?;
        io::sync_dir(&self.disk, &self.faults, Point::IndexDirSync, &self.dir)
            .map_err(failed("sync", &self.dir))
    }
}
