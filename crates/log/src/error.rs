//! Errors, one type per operation. Nothing is logged here: an error is logged where it is consumed.

use crate::position::LogPosition;
pub use omnibus_format::ScanErrorKind as TornReason;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A failed call to the operating system: operation, file, and error. It can be cloned, so that every transaction of a
/// group can get the same error.
#[derive(Clone, Debug, thiserror::Error)]
#[error("can not {operation} {}: {message}", path.display())]
pub struct IoFailure {
    /// The attempted operation as a verb: "write", "sync", "rename".
    pub operation: &'static str,
    /// The file.
    pub path: PathBuf,
    /// The class of the error.
    pub kind: io::ErrorKind,
    /// The operating system's error number.
    pub errno: Option<i32>,
    /// The operating system's error text.
    pub message: String,
}

impl IoFailure {
    /// Returns whether a write failed, in whole or in part, because the disk was full, or a name could not be created
    /// for that reason. A sync that fails so is excluded: it is unknown which of the earlier bytes reached the device.
    pub(crate) fn is_full_on_write(&self) -> bool {
        matches!(self.operation, "write" | "create" | "rename") && omnibus_disk::is_full(self.kind)
    }

    /// As [`IoFailure::is_full_on_write`], or the file would exceed the largest permitted size: earlier bytes are not
    /// lost.
    pub(crate) fn is_no_room(&self) -> bool {
        self.is_full_on_write() || self.operation == "write" && self.kind == io::ErrorKind::FileTooLarge
    }

    /// Records the operating system's error for `operation` on `path`.
    #[must_use]
    pub fn new(operation: &'static str, path: &Path, error: &io::Error) -> IoFailure {
        IoFailure {
            operation,
            path: path.to_owned(),
            kind: error.kind(),
            errno: error.raw_os_error(),
            message: error.to_string(),
        }
    }
}

/// A closure for `map_err` that makes an [`IoFailure`].
pub(crate) fn failed(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> IoFailure {
    move |error| IoFailure::new(operation, path, &error)
}

/// A write or sync of the log failed, now or earlier. The log takes no more writes until it is opened again, and every
/// later call returns the same error: the content of the device is unknown, so nothing is retried.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the binary log is closed for writing: {0}")]
pub struct WriteError(pub Arc<IoFailure>);

/// Reading the log failed in a way that says nothing about its contents.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] IoFailure),
    /// The file is not (or no longer) part of the log.
    #[error("log file {0} does not exist")]
    NoSuchFile(crate::position::FileSeq),
    /// A file that should be whole is damaged. Only the last file of a log may have a torn tail.
    #[error("log file damaged at {position}: {reason}")]
    Damaged {
        /// Where the first unreadable event starts.
        position: LogPosition,
        /// The kind of damage.
        reason: TornReason,
    },
    /// The requested position is behind the end of the log.
    #[error("position {position} is behind the end of the log at {end}")]
    BehindEnd {
        /// The requested position.
        position: LogPosition,
        /// The end of the log.
        end: LogPosition,
    },
}

/// The index file does not agree with itself or with the directory.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] IoFailure),
    /// A line is not the name of one of this log's files.
    #[error("line {line} of {} is not a log file of this server: {text:?}", path.display())]
    BadLine {
        /// The index file.
        path: PathBuf,
        /// The line number, counted from 1.
        line: usize,
        /// The text of the line.
        text: String,
    },
    /// Two neighbouring lines do not have consecutive file numbers.
    #[error("{} has {second} right after {first}: a log file is missing in between", path.display())]
    Gap {
        /// The index file.
        path: PathBuf,
        /// The name before the gap.
        first: String,
        /// The name after it.
        second: String,
    },
    /// The index names a file that does not exist.
    #[error("the index names {}, which does not exist", .0.display())]
    Missing(PathBuf),
    /// A file that the index does not name contains transactions.
    #[error(
        "{} holds transactions and is not named by the index {}; add it or move it away",
        .0.display(), .0.with_extension("index").display()
    )]
    Unlisted(PathBuf),
}

/// Opening a log directory failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] IoFailure),
    /// See [`IndexError`].
    #[error(transparent)]
    Index(#[from] IndexError),
    /// See [`ReadError`].
    #[error(transparent)]
    Read(#[from] ReadError),
    /// See [`WriteError`].
    #[error(transparent)]
    Write(#[from] WriteError),
    /// There is no file number left.
    #[error(
        "all numbers of log files are used up, and a start needs one: a thousand starts before this one have warned of it. The data \
         is whole; go on with a replica of this server"
    )]
    NumbersUsedUp,
}

/// Switching to the next file, or closing the log, failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RotateError {
    /// The log is closed for writing.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A write that was sealed earlier has not come back yet. Nothing was done; wait and call again.
    #[error("{0} write(s) of the current file are still under way")]
    JobsOutstanding(usize),
    /// There is no file number left.
    #[error("all log file numbers are used up")]
    NumbersUsedUp,
}

/// Removing old files failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PurgeError {
    /// The operating system refused; files that the index still names are untouched.
    #[error(transparent)]
    Io(#[from] IoFailure),
    /// There is no such file in the index.
    #[error("log file {0} is not in the index")]
    NoSuchFile(crate::position::FileSeq),
    /// The first file that recovery needs could not be determined.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Starting the log again from an empty one failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResetError {
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] IoFailure),
    /// A file in the way could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The log is closed for writing.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The old files could not be taken out of the index.
    #[error(transparent)]
    Purge(PurgeError),
    /// The number is not valid for a log file.
    #[error("log files can not be numbered from {0}")]
    BadNumber(crate::position::FileSeq),
    /// A file that is not part of the log has the name that the first file would get.
    #[error("{} is not part of the log and holds transactions; move it away", .0.display())]
    InTheWay(PathBuf),
    /// An old file could not be deleted; it is no longer part of the log.
    #[error("{} could not be deleted", .0.display())]
    NotDeleted(PathBuf),
}

/// Preparing an empty file failed. Nothing is left behind.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrepareError {
    /// The operating system refused, for example because the disk is full.
    #[error(transparent)]
    Io(#[from] IoFailure),
    /// The name is taken; a file is never overwritten.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// The caller asked to stop.
    #[error("preparing {} was stopped", .0.display())]
    Stopped(PathBuf),
}

/// The data directory could not be taken.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] IoFailure),
    /// Another process owns it.
    #[error("{} is in use by {}", path.display(), owner(*pid))]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The process that wrote its number into the lock file, if it could be read.
        pid: Option<u32>,
    },
}

fn owner(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}
