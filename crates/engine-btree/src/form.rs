//! The form of the file: encrypted or not. The whole file is in one form, because it is written in place; so a start whose disk would
//! give new files another one writes it anew. Its checksums (`sums`) are of the contents, and stay good.
//!
//! After a crash: the file under its name is the old one or the new one, with the same contents.

use omnibus_disk::{Disk, Open};
use std::io::{ErrorKind, Result};
use std::path::Path;

/// Gives the files the form of new ones, if they have another one. If the disk is too full for that, they stay as they
/// are.
pub(crate) fn renew(disk: &Disk, files: &[&Path]) -> Result<()> {
    for path in files {
        // Of a start that was killed; it may be in clear text.
        disk.remove_if_there(&path.with_added_extension("new"))?;
        if disk.exists(path)? && disk.has_other_form(path)? {
            match copy(disk, path) {
                Err(error) if error.kind() == ErrorKind::StorageFull => {
                    tracing::warn!(path = %path.display(), "engine-btree: no room to give the file the form of new ones (default_table_encryption); it stays as it is");
                }
                done => done?,
            }
        }
    }
    Ok(())
}

fn copy(disk: &Disk, path: &Path) -> Result<()> {
    let new = path.with_added_extension("new");
    let len = disk.metadata(path)?.len;
    tracing::info!(path = %path.display(), bytes = len, "engine-btree: writing the file anew, as default_table_encryption says");
    let copied = disk.copy_start(path, &new, len).and_then(|()| disk.open(&new, Open::Write)?.sync_all());
    if let Err(error) = copied {
        let _ = disk.remove_if_there(&new);
        return Err(error);
    }
    disk.rename(&new, path)?;
    path.parent().map_or(Ok(()), |folder| disk.sync_dir(folder))
}
