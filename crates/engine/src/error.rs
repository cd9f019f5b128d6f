//! Errors of engines and write sets.

/// Why an engine could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The operating system said no.
    #[error("storage engine {engine}: {source}")]
    Io {
        /// The engine's name.
        engine: &'static str,
        /// Its error.
        #[source]
        source: std::io::Error,
    },
    /// A large transaction's writes could not go to a temporary file, or be read from it.
    #[error("temporary file of a large transaction: {0}")]
    Spill(#[source] std::io::Error),
    /// The engine has no redo log.
    #[error("storage engine {engine} can not take part in a two-phase commit")]
    NotTwoPhase {
        /// The engine's name.
        engine: &'static str,
    },
    /// Stored data contradicts itself.
    #[error("storage engine {engine}: damaged data: {detail}")]
    Corrupt {
        /// The engine's name.
        engine: &'static str,
        /// The finding.
        detail: String,
    },
    /// The data directory was written by another version.
    #[error(
        "storage engine {engine}: data format {found} is not supported by this version (supports {supported})"
    )]
    Format {
        /// The engine's name.
        engine: &'static str,
        /// The format in the directory.
        found: String,
        /// The formats that this program can open.
        supported: String,
    },
}

impl EngineError {
    /// Returns whether a disk or a quota is full.
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
