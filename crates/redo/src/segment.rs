//! Segment files: `redo.NNNNNN`, filled with zeros and synced before the first record, so that writing one changes
//! no metadata and a sync is one write of the data.

use crate::record::{self, Next, Record};
use omnibus_disk::{Disk, File, Open};
use std::io;
use std::path::{Path, PathBuf};

const ZEROS: usize = 1 << 20;

pub(crate) fn path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("redo.{number:06}"))
}

/// The segments of a directory, oldest first, their names durable; none if there is no directory. Leftovers of a creation are removed.
pub(crate) fn list(disk: &Disk, directory: &Path) -> io::Result<Vec<u64>> {
    let entries = match disk.list(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut numbers = Vec::new();
    for name in entries {
        let Some(name) = name.to_str().and_then(|name| name.strip_prefix("redo.")) else { continue };
        match name.parse() {
            Ok(number) => numbers.push(number),
            Err(_) if name.ends_with(".new") => disk.remove(&directory.join(format!("redo.{name}")))?,
            Err(_) => {}
        }
    }
    // Asserts RECOVER-3: a kill may have come before the name of the last one was durable.
    disk.sync_dir(directory)?;
    numbers.sort_unstable();
    Ok(numbers)
}

/// A new segment of zeros. It has its name only once it is whole.
pub(crate) fn create(disk: &Disk, directory: &Path, number: u64, size: u64) -> io::Result<File> {
    disk.create_dir_all(directory)?;
    let (path, new) = (path(directory, number), directory.join(format!("redo.{number:06}.new")));
    let file = disk.open(&new, Open::Replace)?;
    let zeros = vec![0; ZEROS];
    let mut done = 0;
    while done < size {
        let piece = (size - done).min(ZEROS as u64);
        file.write_all_at(&zeros[..piece as usize], done)?;
        done += piece;
    }
    file.sync_all()?;
    disk.rename(&new, &path)?;
    disk.sync_dir(directory)?;
    directory.parent().map_or(Ok(()), |above| disk.sync_dir(above))?;
    Ok(file)
}

/// Reads a segment's records into `each`. `Some(end of the last whole one)` if something torn follows.
pub(crate) fn read(
    disk: &Disk,
    directory: &Path,
    number: u64,
    mut each: impl FnMut(Record),
) -> io::Result<Option<u64>> {
    let bytes = disk.read(&path(directory, number))?;
    let mut rest = &bytes[..];
    loop {
        match record::next(number, rest) {
            Next::Record(record, behind) => {
                each(record);
                rest = behind;
            }
            Next::End => return Ok(None),
            Next::Torn => return Ok(Some((bytes.len() - rest.len()) as u64)),
        }
    }
}

/// Makes durable what there is of a segment, and has it read from the device: what a killed process wrote last may be in the cache
/// only, and after a sync that failed the cache says that it is clean.
pub(crate) fn sync(disk: &Disk, directory: &Path, number: u64) -> io::Result<()> {
    let file = disk.open(&path(directory, number), Open::Write)?;
    file.sync_all()?;
    file.forget_cached()
}

/// Durably cuts a torn end off: later it will not be the last segment, where one is expected.
pub(crate) fn cut(disk: &Disk, directory: &Path, number: u64, end: u64) -> io::Result<()> {
    let file = disk.open(&path(directory, number), Open::Write)?;
    file.set_len(end)?;
    file.sync_all()
}
