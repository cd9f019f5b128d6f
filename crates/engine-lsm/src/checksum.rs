//! The checksum of a table's file as a whole.

use lsm_tree::Table;
use std::io::Read;
use xxhash_rust::xxh3::Xxh3;

const PIECE: usize = 1 << 20;

/// Returns whether a table's file matches its checksum in the manifest.
pub(crate) fn is_whole(table: &Table) -> std::io::Result<bool> {
    Ok(checksum(table.open_file()?)? == table.checksum().into_u128())
}

fn checksum(mut file: impl Read) -> std::io::Result<u128> {
    let (mut piece, mut hasher) = (vec![0; PIECE], Xxh3::new());
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.digest128()),
            len => hasher.update(&piece[..len]),
        }
    }
}
