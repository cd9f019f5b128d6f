//! The two small files beside the tree: which format this directory has, and what is applied.
//!
//! `format` is written before the tree is made, and a newer one is refused. `applied` is replaced after
//! each flush. A crash between the two leaves an older number there; the tables then know a higher
//! one, and the higher of both is the truth, because tables are flushed in order of their numbers.
//! (The tables alone would not do: the newest version may be a deletion that a compaction removed,
//! or the last transactions may have written nothing.)
//!
//! `applied` decides what is replayed: a number that is too high would drop acknowledged commits. So it has its record
//! twice, in different blocks, each with a checksum; one damaged copy is named in the log of errors and written anew,
//! two are refused. Format 1 had a bare number and no checksums; opening such a directory writes both files anew.

use crate::{NAME, io_error};
use omnibus_engine::EngineError;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;

const FORMAT: u32 = 2;
const FORMAT_FILE: &str = "format";
const FORMAT_WORD: &str = "omnibus-engine-lsm";
const APPLIED_FILE: &str = "applied";
const APPLIED_WORD: &str = "omnibus-engine-lsm-applied";
/// Where the second copy of `applied` begins: damage comes in blocks.
const COPY: usize = 4096;
/// Where the tree lives.
pub(crate) const TREE_DIRECTORY: &str = "tree";

/// Checks the directory, or makes one of a new engine, and gives the number that was written last.
pub(crate) fn open(directory: &Path) -> Result<u64, EngineError> {
    match read(directory, FORMAT_FILE)? {
        Some(bytes) if accept(directory, &bytes)? == FORMAT => read_applied(directory),
        Some(_) => {
            let applied = read_applied_of_format_1(directory)?;
            create(directory, applied)?;
            Ok(applied)
        }
        None if directory.join(TREE_DIRECTORY).exists() => {
            Err(damaged(directory, FORMAT_FILE, "it is missing, but there are table files"))
        }
        None => create(directory, 0).map(|()| 0),
    }
}

/// Durable on return. `format` comes last: with it, `applied` must be there.
fn create(directory: &Path, applied: u64) -> Result<(), EngineError> {
    write_applied(directory, applied)
        .and_then(|()| replace(directory, FORMAT_FILE, record(FORMAT_WORD, u64::from(FORMAT)).as_bytes()))
        .map_err(io_error)
}

fn accept(directory: &Path, bytes: &[u8]) -> Result<u32, EngineError> {
    let text = String::from_utf8_lossy(bytes);
    let number = text.strip_prefix(FORMAT_WORD).and_then(|rest| rest.split_whitespace().next());
    match number.and_then(|number| number.parse::<u32>().ok()) {
        Some(1) if text.trim_end() == format!("{FORMAT_WORD} 1") => Ok(1),
        Some(number) if parse(FORMAT_WORD, bytes) == Some(u64::from(number)) && number == FORMAT => {
            Ok(FORMAT)
        }
        // Newer versions may have other checksums, or none; a damaged number has neither its own nor ours.
        Some(number) if number > FORMAT && !text.ends_with(record_end(FORMAT).as_str()) => {
            Err(EngineError::Format {
                engine: NAME,
                found: text.trim_end().chars().take(64).collect(),
                supported: format!("{FORMAT_WORD} {FORMAT}"),
            })
        }
        _ => Err(damaged(directory, FORMAT_FILE, "its checksum does not match")),
    }
}

fn damaged(directory: &Path, file: &str, what: &str) -> EngineError {
    crate::damaged(&directory.join(file), what)
}

fn read(directory: &Path, name: &str) -> Result<Option<Vec<u8>>, EngineError> {
    match fs::read(directory.join(name)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error(error)),
    }
}

/// A line: the word, the number, and the checksum of both.
fn record(word: &str, number: u64) -> String {
    let body = format!("{word} {number}");
    format!("{body} {:08x}\n", crc32fast::hash(body.as_bytes()))
}

fn record_end(format: u32) -> String {
    record(FORMAT_WORD, u64::from(format)).rsplit(' ').next().unwrap_or_default().to_owned()
}

/// The number of a line that is whole, with nothing but zeros behind it.
fn parse(word: &str, bytes: &[u8]) -> Option<u64> {
    let end = bytes.iter().position(|byte| *byte == b'\n')? + 1;
    let (line, rest) = bytes.split_at(end);
    let number: u64 = std::str::from_utf8(line).ok()?.split(' ').nth(1)?.parse().ok()?;
    (line == record(word, number).as_bytes() && rest.iter().all(|byte| *byte == 0)).then_some(number)
}

fn read_applied(directory: &Path) -> Result<u64, EngineError> {
    let bytes = read(directory, APPLIED_FILE)?
        .ok_or_else(|| damaged(directory, APPLIED_FILE, "the file is missing"))?;
    let (first, second) = bytes.split_at(bytes.len().min(COPY));
    match (parse(APPLIED_WORD, first), parse(APPLIED_WORD, second)) {
        (Some(first), Some(second)) if first == second => Ok(first),
        (None, None) => Err(damaged(directory, APPLIED_FILE, "both copies of its record are damaged")),
        (Some(_), Some(_)) => Err(damaged(directory, APPLIED_FILE, "its two copies disagree")),
        (Some(applied), None) | (None, Some(applied)) => {
            let path = directory.join(APPLIED_FILE);
            tracing::error!(path = %path.display(), applied, "engine-lsm: one of two copies was damaged; the other one is used");
            write_applied(directory, applied).map_err(io_error)?;
            Ok(applied)
        }
    }
}

/// A bare number, or what an upgrade that was interrupted has written already. None before the first flush.
fn read_applied_of_format_1(directory: &Path) -> Result<u64, EngineError> {
    let Some(bytes) = read(directory, APPLIED_FILE)? else { return Ok(0) };
    if bytes.len() > COPY {
        return read_applied(directory);
    }
    let number = std::str::from_utf8(&bytes).ok().and_then(|text| text.trim_end().parse().ok());
    number.ok_or_else(|| damaged(directory, APPLIED_FILE, "it holds no number"))
}

/// Durable on return.
pub(crate) fn write_applied(directory: &Path, applied: u64) -> std::io::Result<()> {
    let record = record(APPLIED_WORD, applied);
    let mut bytes = record.clone().into_bytes();
    bytes.resize(COPY, 0);
    bytes.extend_from_slice(record.as_bytes());
    replace(directory, APPLIED_FILE, &bytes)
}

/// Old content or new, never a mixture, whenever a crash comes.
fn replace(directory: &Path, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    let temporary = directory.join(format!("{name}.new"));
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, directory.join(name))?;
    sync_directory(directory)
}

#[cfg(unix)]
pub(crate) fn sync_directory(directory: &Path) -> std::io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(not(unix))]
pub(crate) fn sync_directory(_directory: &Path) -> std::io::Result<()> {
    Ok(())
}
