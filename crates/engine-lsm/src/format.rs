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
//! two are refused.
//!
//! Format 1 had a bare number and no checksums, format 2 no packed rows in its tables (`large`). Opening such a directory writes both files anew,
//! so that a version that would take a packed row for the row refuses it.

use crate::{NAME, io_error};
use omnibus_disk::{Disk, Open};
use omnibus_engine::EngineError;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The format of this engine's files that this version writes, and the newest that it reads.
pub const FORMAT: u32 = 3;
const FORMAT_FILE: &str = "format";
const FORMAT_WORD: &str = "omnibus-engine-lsm";
const APPLIED_FILE: &str = "applied";
const APPLIED_WORD: &str = "omnibus-engine-lsm-applied";
/// Offset of the second copy of `applied`, in another block because damage comes in blocks.
const COPY: usize = 4096;
/// The name of the tree's directory.
pub(crate) const TREE_DIRECTORY: &str = "tree";

/// The two files of a directory. One thread at a time.
#[derive(Clone, Debug)]
pub struct StateFiles {
    disk: Disk,
    directory: PathBuf,
}

impl StateFiles {
    /// Creates access to the state files in `directory`, which must exist by the first call.
    #[must_use]
    pub fn new(disk: Disk, directory: PathBuf) -> StateFiles {
        StateFiles { disk, directory }
    }

    /// Checks the directory, or makes one of a new engine, and gives the number that was written last.
    ///
    /// # Errors
    /// A file is damaged, missing or of a later version; those of the disk.
    pub fn open(&self) -> Result<u64, EngineError> {
        let found = self.read(FORMAT_FILE)?.map(|bytes| accept(&self.directory, &bytes)).transpose()?;
        match found {
            Some(FORMAT) => self.read_applied(),
            Some(older) => {
                let applied =
                    if older == 1 { self.read_applied_of_format_1()? } else { self.read_applied()? };
                self.create(applied)?;
                Ok(applied)
            }
            None if self.disk.exists(&self.directory.join(TREE_DIRECTORY)).map_err(io_error)? => {
                Err(self.damaged(FORMAT_FILE, "it is missing, but there are table files"))
            }
            None => self.create(0).map(|()| 0),
        }
    }

    /// Durable on return. `format` comes last: with it, `applied` must be there.
    fn create(&self, applied: u64) -> Result<(), EngineError> {
        self.write_applied(applied)
            .and_then(|()| self.replace(FORMAT_FILE, record(FORMAT_WORD, u64::from(FORMAT)).as_bytes()))
            .map_err(io_error)
    }

    /// Writes down what is applied. Durable on return; after an error the number is this one or the one before.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn write_applied(&self, applied: u64) -> std::io::Result<()> {
        let record = record(APPLIED_WORD, applied);
        let mut bytes = record.clone().into_bytes();
        bytes.resize(COPY, 0);
        bytes.extend_from_slice(record.as_bytes());
        self.replace(APPLIED_FILE, &bytes)
    }

    /// Old content or new, never a mixture, whenever a crash comes.
    fn replace(&self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        let temporary = self.directory.join(format!("{name}.new"));
        let file = self.disk.open(&temporary, Open::Replace)?;
        file.write_all_at(bytes, 0)?;
        file.sync_all()?;
        self.disk.rename(&temporary, &self.directory.join(name))?;
        self.disk.sync_dir(&self.directory)
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, EngineError> {
        match self.disk.read(&self.directory.join(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io_error(error)),
        }
    }

    fn read_applied(&self) -> Result<u64, EngineError> {
        let damaged = |what| Err(self.damaged(APPLIED_FILE, what));
        let Some(bytes) = self.read(APPLIED_FILE)? else { return damaged("the file is missing") };
        let (first, second) = bytes.split_at(bytes.len().min(COPY));
        match (parse(APPLIED_WORD, first), parse(APPLIED_WORD, second)) {
            (Some(first), Some(second)) if first == second => Ok(first),
            (None, None) => damaged("both copies of its record are damaged"),
            (Some(_), Some(_)) => damaged("its two copies disagree"),
            (Some(applied), None) | (None, Some(applied)) => {
                let path = self.directory.join(APPLIED_FILE);
                tracing::error!(path = %path.display(), applied, "engine-lsm: one of two copies was damaged; the other one is used");
                self.write_applied(applied).map_err(io_error)?;
                Ok(applied)
            }
        }
    }

    /// A bare number, or what an upgrade that was interrupted has written already. None before the first flush.
    fn read_applied_of_format_1(&self) -> Result<u64, EngineError> {
        let Some(bytes) = self.read(APPLIED_FILE)? else { return Ok(0) };
        if bytes.len() > COPY {
            return self.read_applied();
        }
        let number = std::str::from_utf8(&bytes).ok().and_then(|text| text.trim_end().parse().ok());
        number.ok_or_else(|| self.damaged(APPLIED_FILE, "it holds no number"))
    }

    fn damaged(&self, file: &str, what: &str) -> EngineError {
        damaged(&self.directory, file, what)
    }
}

fn accept(directory: &Path, bytes: &[u8]) -> Result<u32, EngineError> {
    let text = String::from_utf8_lossy(bytes);
    let number = text.strip_prefix(FORMAT_WORD).and_then(|rest| rest.split_whitespace().next());
    match number.and_then(|number| number.parse::<u32>().ok()) {
        Some(1) if text.trim_end() == format!("{FORMAT_WORD} 1") => Ok(1),
        Some(number @ 2..=FORMAT) if parse(FORMAT_WORD, bytes) == Some(u64::from(number)) => Ok(number),
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
