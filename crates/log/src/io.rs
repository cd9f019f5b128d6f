//! File operations with a fault point each. What differs between platforms is in `platform`.
//!
//! Everything goes through the standard library, whose calls end in `open64`, `pwrite64`, `fdatasync`, `fsync`,
//! `ftruncate64`, `rename` and `unlink` of the C library, so that a preloaded library can slow or fail each of them.
//! `EINTR` is retried because nothing has happened then; nothing else is.

use crate::fault::{Faults, Point, Verdict};
use crate::platform;
use std::fs::{self, File};
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
    match faults.before(point)? {
        Verdict::Go => {}
        #[cfg(any(test, feature = "faults"))]
        Verdict::Short(limit) => {
            platform::write_all_at(file, &bytes[..limit.min(bytes.len())], offset)?;
            return Err(io::ErrorKind::StorageFull.into());
        }
    }
    let result = platform::write_all_at(file, bytes, offset);
    faults.after(point);
    result
}

/// `fdatasync`.
pub(crate) fn sync_data(faults: &Faults, point: Point, file: &File) -> io::Result<()> {
    faults.around(point, || file.sync_data())
}

/// `fsync`.
pub(crate) fn sync_all(faults: &Faults, point: Point, file: &File) -> io::Result<()> {
    faults.around(point, || file.sync_all())
}

/// Makes creations, renames and removals in a directory durable.
pub(crate) fn sync_dir(faults: &Faults, point: Point, dir: &Path) -> io::Result<()> {
    faults.around(point, || platform::sync_dir(dir))
}

/// Atomically gives a file a new name, replacing what was there.
pub(crate) fn rename(faults: &Faults, point: Point, from: &Path, to: &Path) -> io::Result<()> {
    faults.around(point, || fs::rename(from, to))
}

/// Gives `from` the new name `to` only if that name is free.
///
/// A hard link fails when the name exists, which a rename does not; where links are unknown a check has to do.
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        Err(_) if !to.try_exists()? => fs::rename(from, to),
        Err(_) => Err(io::Error::from(io::ErrorKind::AlreadyExists)),
    }
}

/// Deletes a file; one that is gone already is fine.
pub(crate) fn remove(faults: &Faults, point: Point, path: &Path) -> io::Result<()> {
    faults.around(point, || remove_plain(path))
}

/// As [`remove`], with no fault point.
pub(crate) fn remove_plain(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
