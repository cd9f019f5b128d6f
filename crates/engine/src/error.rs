//! What engines, and the write sets that they take, fail with.

/// Why an engine could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The operating system said no.
    #[error("storage engine {engine}: {source}")]
    Io {
        /// Which engine.
        engine: &'static str,
        /// What it said.
        #[source]
        source: std::io::Error,
    },
    /// A large transaction's writes could not go to a temporary file, or be read from it.
    #[error("temporary file of a large transaction: {0}")]
    Spill(#[source] std::io::Error),
    /// It has no redo log.
    #[error("storage engine {engine} can not take part in a two-phase commit")]
    NotTwoPhase {
        /// Which engine.
        engine: &'static str,
    },
    /// Stored data contradicts itself.
    #[error("storage engine {engine}: damaged data: {detail}")]
    Corrupt {
        /// Which engine.
        engine: &'static str,
        /// What was found.
        detail: String,
    },
    /// The data directory was written by another version.
    #[error(
        "storage engine {engine}: data format {found} is not supported by this version (supports {supported})"
    )]
    Format {
        /// Which engine.
        engine: &'static str,
        /// What the directory says.
        found: String,
        /// What this program can open.
        supported: String,
    },
}

impl EngineError {
    /// Whether a disk, or a quota, has no room.
    #[must_use]
    pub fn is_full(&self) -> bool {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self, EngineError::Io { source, .. } | EngineError::Spill(source) if matches!(source.kind(), StorageFull | QuotaExceeded))
    }

    /// Names what the damage was met in, if it is damage.
    #[must_use]
    pub fn in_table(self, table: &str) -> EngineError {
        match self {
            EngineError::Corrupt { engine, detail } => {
                EngineError::Corrupt { engine, detail: format!("table {table}: {detail}") }
            }
            other => other,
        }
    }
}
