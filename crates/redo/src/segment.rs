//! Segment files: `redo.NNNNNN`, filled with zeros and synced before the first record, so that writing one changes
//! no metadata and a sync is one write of the data.

use crate::record::{self, Next, Record};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

const ZEROS: usize = 1 << 20;

pub(crate) fn path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("redo.{number:06}"))
}

/// The segments of a directory, oldest first; none if there is no directory. Leftovers of a creation are removed.
pub(crate) fn list(directory: &Path) -> io::Result<Vec<u64>> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut numbers = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_prefix("redo.")) else { continue };
        match name.parse() {
            Ok(number) => numbers.push(number),
            Err(_) if name.ends_with(".new") => std::fs::remove_file(directory.join(format!("redo.{name}")))?,
            Err(_) => {}
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// A new segment of zeros. It has its name only once it is whole.
pub(crate) fn create(directory: &Path, number: u64, size: u64) -> io::Result<File> {
    std::fs::create_dir_all(directory)?;
    let (path, new) = (path(directory, number), directory.join(format!("redo.{number:06}.new")));
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&new)?;
    let zeros = vec![0; ZEROS];
    let mut left = size;
    while left > 0 {
        let piece = left.min(ZEROS as u64);
        file.write_all(&zeros[..piece as usize])?;
        left -= piece;
    }
    file.sync_all()?;
    std::fs::rename(&new, &path)?;
    sync_directory(directory)?;
    Ok(file)
}

/// Reads a segment's records into `each`. `Some(end of the last whole one)` if something torn follows.
pub(crate) fn read(directory: &Path, number: u64, mut each: impl FnMut(Record)) -> io::Result<Option<u64>> {
    let mut bytes = Vec::new();
    File::open(path(directory, number))?.read_to_end(&mut bytes)?;
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

/// Durably cuts a torn end off: later it will not be the last segment, where one is expected.
pub(crate) fn cut(directory: &Path, number: u64, end: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path(directory, number))?;
    file.set_len(end)?;
    file.sync_all()
}

pub(crate) fn remove(directory: &Path, number: u64) -> io::Result<()> {
    match std::fs::remove_file(path(directory, number)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(unix)]
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
pub(crate) fn write_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        (bytes, offset) = (&bytes[written..], offset + written as u64);
    }
    Ok(())
}

#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}
