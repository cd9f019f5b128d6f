//! Positions in the log: file number and offset, as types that cannot be mixed up, and the names of files.
//!
//! Positions are ordered by file, then by offset; that is the order in which bytes were written. No I/O here.

use std::fmt;

/// The number in a log file's name; `binlog.000042` is 42. Files are numbered from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileSeq(pub u32);

impl FileSeq {
    /// The first file of a new log.
    pub const FIRST: FileSeq = FileSeq(1);
    /// The last number that the peers accept in a name.
    pub const MAX: FileSeq = FileSeq(0x7FFF_FFFF);
    /// The last number that a running log advances to. The higher ones are reserved for starts, each of which takes
    /// one, and for a reset.
    pub const LAST_IN_TURN: FileSeq = FileSeq(FileSeq::MAX.0 - 1000);
    /// The number from which each new file logs a warning.
    pub(crate) const WARNS: FileSeq = FileSeq(2_000_000_000);

    /// The number of the file after this one; `None` once the numbers are used up.
    #[must_use]
    pub fn next(self) -> Option<FileSeq> {
        (self < FileSeq::MAX).then(|| FileSeq(self.0 + 1))
    }

    /// Returns whether a running log may advance to the next file.
    #[must_use]
    pub fn has_next_in_turn(self) -> bool {
        self < FileSeq::LAST_IN_TURN
    }

    /// Logs a warning if file numbers are about to run out.
    pub(crate) fn warn_near_end(self) {
        if self >= FileSeq::WARNS {
            let left = FileSeq::LAST_IN_TURN.0.saturating_sub(self.0);
            tracing::warn!(
                number = self.0,
                left,
                "the numbers of log files run out: when replicas and archives have what they need, RESET BINARY LOGS AND GTIDS \
                 begins again with 1"
            );
        }
    }
}

impl fmt::Display for FileSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06}", self.0)
    }
}

/// Distance in bytes from the start of a log file. The first event of a file is at 4.
#[derive(Default, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogOffset(pub u64);

impl LogOffset {
    /// The offset behind the magic number, where the first event starts.
    pub const FIRST_EVENT: LogOffset = LogOffset(4);
}

impl fmt::Display for LogOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A position in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition {
    /// The file.
    pub file: FileSeq,
    /// The offset in the file.
    pub offset: LogOffset,
}

impl LogPosition {
    /// Puts a position together.
    #[must_use]
    pub fn new(file: FileSeq, offset: u64) -> LogPosition {
        LogPosition { file, offset: LogOffset(offset) }
    }
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.offset)
    }
}

/// The naming scheme of one log's files. All such names are made and parsed here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileNames {
    basename: String,
}

impl FileNames {
    /// Creates a scheme whose names start with `basename`, for example `binlog`.
    pub fn new(basename: impl Into<String>) -> FileNames {
        FileNames { basename: basename.into() }
    }

    /// `binlog.000007`
    #[must_use]
    pub fn log(&self, seq: FileSeq) -> String {
        format!("{}.{seq}", self.basename)
    }

    /// `binlog.index`
    #[must_use]
    pub fn index(&self) -> String {
        format!("{}.index", self.basename)
    }

    /// `binlog.purge`: the files that an unfinished purge still has to delete.
    #[must_use]
    pub fn purge_list(&self) -> String {
        format!("{}.purge", self.basename)
    }

    /// Returns the number in a log file's name, with or without a directory in front; `None` for any other name, and
    /// for a number that is not written in the form of [`FileNames::log`].
    #[must_use]
    pub fn parse(&self, name: &str) -> Option<FileSeq> {
        let name = name.rsplit('/').next()?;
        let digits = name.strip_prefix(self.basename.as_str())?.strip_prefix('.')?;
        if digits.len() < 6 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let seq = FileSeq(digits.parse().ok()?);
        (seq >= FileSeq::FIRST && seq <= FileSeq::MAX && self.log(seq) == name).then_some(seq)
    }
}
