//! The position of a channel: a position in the source's files and, for MariaDB sources, a GTID position.

use omnibus_format::{GtidPosition, GtidSet};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A position in the files of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePosition {
    /// File name.
    pub file: Arc<str>,
    /// Offset in bytes.
    pub position: u64,
}

impl Default for SourcePosition {
    fn default() -> SourcePosition {
        SourcePosition { file: "".into(), position: 4 }
    }
}

impl SourcePosition {
    /// Creates a position.
    #[must_use]
    pub fn new(file: &str, position: u64) -> SourcePosition {
        SourcePosition { file: file.into(), position }
    }

    /// Compares two positions; files are ordered by the number at the end of their names. `None` if one name has no
    /// number, or the names differ before it.
    #[must_use]
    pub fn compare(&self, other: &SourcePosition) -> Option<Ordering> {
        if self.file == other.file {
            return Some(self.position.cmp(&other.position));
        }
        let ((base, number), (other_base, other_number)) = (split(&self.file)?, split(&other.file)?);
        (base == other_base).then(|| number.cmp(&other_number))
    }
}

impl fmt::Display for SourcePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.position)
    }
}

fn split(file: &str) -> Option<(&str, u64)> {
    let (base, number) = file.rsplit_once('.')?;
    Some((base, number.parse().ok()?))
}

/// The position that a channel stores with each transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelPosition {
    /// Behind the last transaction applied.
    pub source: SourcePosition,
    /// The same in MariaDB's GTIDs; empty for other sources.
    pub gtids: GtidPosition,
    /// MySQL's GTIDs of applied transactions, if the binary log does not keep them.
    pub unlogged: GtidSet,
}

impl ChannelPosition {
    /// Returns the stored form: three lines, and a fourth if it is not empty.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut text = format!("{}\n{}\n{}", self.source.file, self.source.position, self.gtids);
        if !self.unlogged.is_empty() {
            text.push('\n');
            text.push_str(&self.unlogged.to_string());
        }
        text.into_bytes()
    }

    /// Parses the form of `encode`.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<ChannelPosition> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut lines = text.split('\n');
        let file = lines.next()?;
        let position = lines.next()?.parse().ok()?;
        let gtids = lines.next().unwrap_or_default().parse().ok()?;
        let unlogged = lines.next().unwrap_or_default().parse().ok()?;
        Some(ChannelPosition { source: SourcePosition::new(file, position), gtids, unlogged })
    }
}
