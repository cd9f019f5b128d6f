//! Operations of a disk with a fault point each.

use crate::fault::{Faults, Point, Verdict};
use omnibus_disk::{Disk, File};
use std::io;
use std::path::Path;

/// Writes all of `bytes` at `offset`.
pub(crate) fn write_all_at(
    faults: &Faults,
    point: Point,
    file: &File,
    bytes: &[u8],
    offset: u64,
) -> io::Result<()> {
    write_with_room(faults, point, file, (bytes, bytes.len()), offset)
}

/// Writes all of `bytes` at `offset`, of which only a leading part is content.
pub(crate) fn write_with_room(
    faults: &Faults,
    point: Point,
    file: &File,
    (bytes, content): (&[u8], usize),
    offset: u64,
) -> io::Result<()> {
    match faults.before(point)? {
        Verdict::Go => {}
        #[cfg(any(test, feature = "faults"))]
        Verdict::Skip => return Ok(()),
        #[cfg(any(test, feature = "faults"))]
        Verdict::Short(limit) => {
            let bytes = &bytes[..limit.min(bytes.len())];
            file.write_all_with_room(bytes, content.min(bytes.len()), offset)?;
            return Err(io::ErrorKind::StorageFull.into());
        }
    }
    let result = file.write_all_with_room(bytes, content, offset);
    faults.after(point);
    result
}

/// `fdatasync`.
pub(crate) fn sync_data(faults: &Faults, point: Point, file: &File) -> io::Result<()> {
    faults.around_step(point, || file.sync_data())
}

/// `fsync`.
pub(crate) fn sync_all(faults: &Faults, point: Point, file: &File) -> io::Result<()> {
    faults.around_step(point, || file.sync_all())
}

/// Makes creations, renames and removals in a directory durable.
pub(crate) fn sync_dir(disk: &Disk, faults: &Faults, point: Point, dir: &Path) -> io::Result<()> {
    faults.around_step(point, || disk.sync_dir(dir))
}

/// Atomically gives a file a new name, replacing what was there.
pub(crate) fn rename(disk: &Disk, faults: &Faults, point: Point, from: &Path, to: &Path) -> io::Result<()> {
    faults.around_step(point, || disk.rename(from, to))
}

/// Gives `from` the new name `to` only if that name is free.
///
/// A hard link fails when the name exists, which a rename does not; where links are unknown a check has to do.
pub(crate) fn rename_new(disk: &Disk, from: &Path, to: &Path) -> io::Result<()> {
    match disk.hard_link(from, to) {
        Ok(()) => disk.remove(from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        Err(_) if !disk.exists(to)? => disk.rename(from, to),
        Err(_) => Err(io::Error::from(io::ErrorKind::AlreadyExists)),
    }
}

/// Deletes a file; succeeds if it does not exist.
pub(crate) fn remove(disk: &Disk, faults: &Faults, point: Point, path: &Path) -> io::Result<()> {
    faults.around(point, || disk.remove_if_there(path))
}
