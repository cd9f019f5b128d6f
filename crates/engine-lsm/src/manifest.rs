//! The tree's own two small files, `current` and the version that it names: checked before the tree reads them.
//!
//! `current` holds a version's number (u64 LE), the checksum (XXH3-128, u128 LE) of that version's file, and 0. The tree
//! writes the checksum and does not look at it; and without a `current` it would begin with no tables.

use crate::format::TREE_DIRECTORY;
use crate::io_error;
use omnibus_engine::EngineError;
use std::io::ErrorKind;
use std::path::Path;

const CURRENT: &str = "current";

/// `applied` is what the engine had persisted: above 0 there are tables.
pub(crate) fn check(directory: &Path, applied: u64) -> Result<(), EngineError> {
    let tree = directory.join(TREE_DIRECTORY);
    let damaged = |name: &str, what: &str| crate::damaged(&tree.join(name), what);
    let read = |name: &str| match std::fs::read(tree.join(name)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error(error)),
    };
    let Some(current) = read(CURRENT)? else {
        // A first start that was interrupted; the tree is made anew.
        return if applied == 0 { Ok(()) } else { Err(damaged(CURRENT, "the file is missing")) };
    };
    let fields = current.split_first_chunk::<8>().and_then(|(number, rest)| {
        let (checksum, kind) = rest.split_first_chunk::<16>()?;
        (kind == [0]).then_some((u64::from_le_bytes(*number), u128::from_le_bytes(*checksum)))
    });
    let Some((number, checksum)) = fields else { return Err(damaged(CURRENT, "it is damaged")) };
    let version = format!("v{number}");
    let Some(bytes) = read(&version)? else {
        return Err(damaged(CURRENT, &format!("it names `{version}`, which is not there")));
    };
    if xxhash_rust::xxh3::xxh3_128(&bytes) != checksum {
        return Err(damaged(&version, &format!("its checksum is not the one in `{CURRENT}`")));
    }
    Ok(())
}
