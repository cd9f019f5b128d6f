//! Looks for damage: reads every table file as a whole, for `omnibus check`. A read of a row checks only the blocks that it needs.

use crate::checksum::is_whole;
use crate::format::TREE_DIRECTORY;
use crate::{LsmConfig, LsmEngine, io_error};
use lsm_tree::AbstractTree;
use omnibus_disk::{Disk, Overlay};
use omnibus_engine::{CommitNo, EngineError};
use omnibus_redo::Participant;
use std::path::Path;

/// Searches the directory of an engine that is not open for damage, without changing it. The tree removes files when it
/// is opened, so it is opened in another directory, with copies of the small files and links to the tables. `rows` reads the tables
/// and the redo log, and keeps in memory what is written. Returns a line for each damaged file.
///
/// # Errors
/// That other directory can not be made.
pub fn check(directory: &Path, rows: &Disk) -> Result<Vec<String>, EngineError> {
    let shadow = tempfile::tempdir().map_err(io_error)?;
    let shadowed = |error: std::io::Error| {
        io_error(std::io::Error::new(error.kind(), format!("{}: {error}", directory.display())))
    };
    shadow_of(directory, shadow.path()).map_err(shadowed)?;
    let disk = Overlay::disk();
    let config = LsmConfig {
        disk: disk.clone(),
        rows: rows.clone(),
        read_only: true,
        block_cache_size: 1 << 20,
        ..LsmConfig::new(shadow.path())
    };
    let applied = shadow.path().join("applied");
    let before = disk.read(&applied).ok();
    let found = LsmEngine::open(config).and_then(|engine| engine.verify());
    let mut found = found.unwrap_or_else(|error| vec![error.to_string()]);
    if found.is_empty() && before != disk.read(&applied).ok() {
        let what = "one of its two copies is damaged; the next start writes it anew";
        found.push(format!("{}: {what}", applied.display()));
    }
    let redo = directory.join("redo");
    let read = Participant::open(rows, &redo, omnibus_redo::SEGMENT_SIZE, CommitNo::ZERO);
    found.extend(read.err().map(|error| error.to_string()));
    let (here, there) = (shadow.path().display().to_string(), directory.display().to_string());
    Ok(found.into_iter().map(|line| line.replace(&here, &there)).collect())
}

fn shadow_of(directory: &Path, shadow: &Path) -> std::io::Result<()> {
    let tree = Path::new(TREE_DIRECTORY);
    let tables = tree.join("tables");
    for folder in [Path::new(""), tree, &tables] {
        let from = directory.join(folder);
        if !from.is_dir() {
            continue;
        }
        std::fs::create_dir_all(shadow.join(folder))?;
        for entry in std::fs::read_dir(&from)? {
            let entry = entry?;
            let to = shadow.join(folder).join(entry.file_name());
            if entry.file_type()?.is_dir() {
                continue;
            }
            if folder == tables {
                std::os::unix::fs::symlink(std::path::absolute(entry.path())?, to)?;
            } else {
                std::fs::copy(entry.path(), to)?;
            }
        }
    }
    Ok(())
}

impl LsmEngine {
    /// Compares every table file with its checksum in the manifest. Returns a line for each damaged one.
    ///
    /// # Errors
    /// A file can not be read.
    pub fn verify(&self) -> Result<Vec<String>, EngineError> {
        let shared = self.shared();
        let mut found = Vec::new();
        // Compactions would remove files under our hands.
        let _compaction = shared.files.compaction.lock();
        for table in shared.tree.current_version().iter_tables() {
            if !is_whole(table).map_err(io_error)? {
                found.push(format!("{}: its checksum does not match", table.path.display()));
            }
        }
        Ok(found)
    }
}
