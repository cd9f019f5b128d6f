//! The form of the file: encrypted or not. The whole file is in one form, because it is written in place; so a start whose disk would
//! give new files another one writes it anew, once nothing refuses that start any more (`Engine::recovered`). Its checksums (`sums`) are of
//! the contents, and stay good.
//!
//! After a crash: the file under its name is the old one or the new one, with the same contents.

use omnibus_disk::{Disk, File, Open};
use std::io::{ErrorKind, Result};
use std::path::Path;

/// Puts a copy that has the form of new files in the place of a file that has another one, and opens it. `None`: the file has that form
/// already, or the disk is too full, and it stays as it is. Nobody writes to the file meanwhile.
pub(crate) fn renewed(disk: &Disk, path: &Path) -> Result<Option<File>> {
    // Of a start that was killed; it may be in clear text.
    disk.remove_if_there(&path.with_added_extension("new"))?;
    if !disk.has_other_form(path)? {
        return Ok(None);
    }
    match copy(disk, path) {
        Err(error) if error.kind() == ErrorKind::StorageFull => {
            tracing::warn!(path = %path.display(), "engine-btree: no room to give the file the form of new ones (default_table_encryption); it stays as it is");
            Ok(None)
        }
        done => done.map(Some),
    }
}

fn copy(disk: &Disk, path: &Path) -> Result<File> {
    let new = path.with_added_extension("new");
    let len = disk.metadata(path)?.len;
    tracing::info!(path = %path.display(), bytes = len, "engine-btree: writing the file anew, as default_table_encryption says");
    let copied = disk.copy_start(path, &new, len).and_then(|()| {
        let file = disk.open(&new, Open::Write)?;
        file.sync_all()?;
        Ok(file)
    });
    let file = copied.inspect_err(|_| {
        let _ = disk.remove_if_there(&new);
    })?;
    // As the one in whose place it comes. Nobody else knows the new name, so it fails only where files cannot be locked.
    let _ = file.try_lock();
    disk.rename(&new, path)?;
    path.parent().map_or(Ok(()), |folder| disk.sync_dir(folder))?;
    Ok(file)
}
