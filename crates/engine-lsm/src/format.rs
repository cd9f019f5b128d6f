//! The two small files beside the tree: which format this directory has, and what is applied.
//!
//! `format` is written before anything else, and a newer one is refused. `applied` is replaced after
//! each flush. A crash between the two leaves an older number there; the tables then know a higher
//! one, and the higher of both is the truth, because tables are flushed in order of their numbers.
//! (The tables alone would not do: the newest version may be a deletion that a compaction removed,
//! or the last transactions may have written nothing.)

use crate::{NAME, io_error};
use omnibus_engine::EngineError;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;

const FORMAT: u32 = 1;
const FORMAT_FILE: &str = "format";
const APPLIED_FILE: &str = "applied";
/// Where the tree lives.
pub(crate) const TREE_DIRECTORY: &str = "tree";

/// Checks or creates the format marker.
pub(crate) fn check(directory: &Path) -> Result<(), EngineError> {
    match fs::read_to_string(directory.join(FORMAT_FILE)) {
        Ok(text) => accept(&text),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if directory.join(TREE_DIRECTORY).exists() {
                let detail = format!("{} has table files but no `{FORMAT_FILE}` file", directory.display());
                return Err(EngineError::Corrupt { engine: NAME, detail });
            }
            replace(directory, FORMAT_FILE, &format!("omnibus-engine-lsm {FORMAT}\n")).map_err(io_error)
        }
        Err(error) => Err(io_error(error)),
    }
}

fn accept(text: &str) -> Result<(), EngineError> {
    let number =
        text.strip_prefix("omnibus-engine-lsm ").and_then(|rest| rest.trim_end().parse::<u32>().ok());
    match number {
        Some(FORMAT) => Ok(()),
        _ => Err(EngineError::Format {
            engine: NAME,
            found: text.trim_end().chars().take(64).collect(),
            supported: format!("omnibus-engine-lsm {FORMAT}"),
        }),
    }
}

/// The number last written; 0 in a new directory.
pub(crate) fn read_applied(directory: &Path) -> Result<u64, EngineError> {
    match fs::read_to_string(directory.join(APPLIED_FILE)) {
        Ok(text) => text.trim_end().parse().map_err(|_| {
            let detail =
                format!("`{APPLIED_FILE}` holds no number: {:?}", text.chars().take(64).collect::<String>());
            EngineError::Corrupt { engine: NAME, detail }
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
        Err(error) => Err(io_error(error)),
    }
}

/// Durable on return.
pub(crate) fn write_applied(directory: &Path, applied: u64) -> std::io::Result<()> {
    replace(directory, APPLIED_FILE, &format!("{applied}\n"))
}

/// Old content or new, never a mixture, whenever a crash comes.
fn replace(directory: &Path, name: &str, text: &str) -> std::io::Result<()> {
    let temporary = directory.join(format!("{name}.new"));
    let mut file = File::create(&temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, directory.join(name))?;
    sync_directory(directory)
}

#[cfg(unix)]
fn sync_directory(directory: &Path) -> std::io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_directory: &Path) -> std::io::Result<()> {
    Ok(())
}
