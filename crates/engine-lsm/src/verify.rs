//! Looks for damage: reads every table file as a whole, for `omnibus check`. A read of a row checks only the blocks that it needs.

use crate::{LsmEngine, io_error};
use lsm_tree::{AbstractTree, Table};
use omnibus_engine::EngineError;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

const PIECE: usize = 1 << 20;

impl LsmEngine {
    /// Compares every table file with the checksum that the manifest has of it. Gives a line for each damaged one.
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

/// Whether a table's file is what the manifest says.
pub(crate) fn is_whole(table: &Table) -> std::io::Result<bool> {
    Ok(checksum(&table.path)? == table.checksum().into_u128())
}

fn checksum(path: &Path) -> std::io::Result<u128> {
    let (mut file, mut piece, mut hasher) = (File::open(path)?, vec![0; PIECE], Xxh3::new());
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.digest128()),
            len => hasher.update(&piece[..len]),
        }
    }
}
