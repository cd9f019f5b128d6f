//! Temporary files of records: what a statement collects beyond its memory.
//!
//! A file has any number of runs, which grow side by side in blocks; a run is read back in the order it was written. The file
//! has no name, so it vanishes with its last user or with the process. Used where statements may block only.

use super::Running;
use crate::error::{ExecResult, SqlError, SqlResult, is_full};
use bytes::Bytes;
use omnibus_temporary::TempFile;
use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering;

/// Bytes of a block of a run that grows alone.
pub const BLOCK: usize = 64 << 10;
/// Length of a record, in front of it.
const HEAD: usize = 4;

/// A file.
#[derive(Debug)]
pub struct SpillFile {
    file: Rc<TempFile>,
    end: u64,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    at: u64,
    len: u32,
}

/// Records in order.
#[derive(Debug, Default)]
pub struct Run {
    blocks: Vec<Block>,
    records: u64,
}

/// A run that grows.
#[derive(Debug)]
pub struct RunWriter {
    run: Run,
    buffer: Vec<u8>,
    block: usize,
}

/// Reads a run.
#[derive(Debug)]
pub struct RunReader {
    file: Rc<TempFile>,
    blocks: std::vec::IntoIter<Block>,
    rest: Bytes,
}

impl SpillFile {
    /// A new file in `tmpdir`.
    ///
    /// # Errors
    /// `NeedBlocking` where a statement may not wait for a disk; 1021 and 1026 as the system refuses.
    pub fn create(cx: &mut impl Running) -> ExecResult<SpillFile> {
        cx.need_blocking()?;
        let file = cx.session().settings.tmpdir.file().map_err(|error| write_error(&error))?;
        cx.session().connection.memory.server().tmp_files.fetch_add(1, Ordering::Relaxed);
        Ok(SpillFile { file: Rc::new(file), end: 0 })
    }

    fn append(&mut self, bytes: &[u8]) -> SqlResult<Block> {
        self.file.write_all_at(bytes, self.end).map_err(|error| write_error(&error))?;
        let len = u32::try_from(bytes.len()).map_err(|_| SqlError::internal("a temporary block of 4 GiB"))?;
        let block = Block { at: self.end, len };
        self.end += bytes.len() as u64;
        Ok(block)
    }

    /// Reads a run from its beginning.
    #[must_use]
    pub fn read(&self, run: &Run) -> RunReader {
        RunReader { file: self.file.clone(), blocks: run.blocks.clone().into_iter(), rest: Bytes::new() }
    }

    /// The record at an offset that [`RunWriter::push_alone`] gave.
    ///
    /// # Errors
    /// 1024: the file cannot be read.
    pub fn record_at(&self, at: u64) -> SqlResult<Bytes> {
        let mut first = [0; 512];
        let here = usize::try_from(self.end - at).unwrap_or(usize::MAX).min(first.len());
        self.file.read_exact_at(&mut first[..here], at).map_err(|error| read_error(&error))?;
        let (head, rest) = first[..here].split_first_chunk().ok_or_else(|| read_error(&short()))?;
        let len = u32::from_le_bytes(*head) as usize;
        if len <= rest.len() {
            return Ok(Bytes::copy_from_slice(&rest[..len]));
        }
        let mut record = vec![0; len];
        record[..rest.len()].copy_from_slice(rest);
        let from = at + (HEAD + rest.len()) as u64;
        self.file.read_exact_at(&mut record[rest.len()..], from).map_err(|error| read_error(&error))?;
        Ok(record.into())
    }
}

impl Run {
    /// How many records it has.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }
}

impl Default for RunWriter {
    fn default() -> RunWriter {
        RunWriter::with_block(BLOCK)
    }
}

impl RunWriter {
    /// A run written in blocks of about so many bytes: small where many grow at once.
    #[must_use]
    pub fn with_block(block: usize) -> RunWriter {
        RunWriter { run: Run::default(), buffer: Vec::new(), block }
    }

    /// Adds a record made of parts.
    ///
    /// # Errors
    /// The file cannot be written: 1021, 1026.
    pub fn push(&mut self, file: &mut SpillFile, parts: &[&[u8]]) -> SqlResult<()> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        if !self.buffer.is_empty() && self.buffer.len() + HEAD + len > self.block {
            self.flush(file)?;
        }
        let len = u32::try_from(len).map_err(|_| SqlError::internal("a temporary record of 4 GiB"))?;
        self.buffer.extend_from_slice(&len.to_le_bytes());
        parts.iter().for_each(|part| self.buffer.extend_from_slice(part));
        self.run.records += 1;
        Ok(())
    }

    /// As `push`, where no other run grows in the file: where the record is.
    ///
    /// # Errors
    /// As `push`.
    pub fn push_alone(&mut self, file: &mut SpillFile, record: &[u8]) -> SqlResult<u64> {
        self.push(file, &[record])?;
        Ok(file.end + (self.buffer.len() - record.len() - HEAD) as u64)
    }

    /// How many records it has so far.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.run.records
    }

    fn flush(&mut self, file: &mut SpillFile) -> SqlResult<()> {
        self.run.blocks.push(file.append(&self.buffer)?);
        self.buffer.clear();
        // One that was made for a long record is not kept.
        if self.buffer.capacity() > 2 * self.block {
            self.buffer = Vec::new();
        }
        Ok(())
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// As `push`.
    pub fn finish(mut self, file: &mut SpillFile) -> SqlResult<Run> {
        if !self.buffer.is_empty() {
            self.flush(file)?;
        }
        Ok(self.run)
    }
}

impl RunReader {
    /// The next record. It shares its block's memory.
    ///
    /// # Errors
    /// 1024: the file cannot be read.
    pub fn next_record(&mut self) -> SqlResult<Option<Bytes>> {
        if self.rest.is_empty() {
            let Some(block) = self.blocks.next() else { return Ok(None) };
            let mut bytes = vec![0; block.len as usize];
            self.file.read_exact_at(&mut bytes, block.at).map_err(|error| read_error(&error))?;
            self.rest = bytes.into();
        }
        let head = self.rest.first_chunk().ok_or_else(|| read_error(&short()))?;
        let len = u32::from_le_bytes(*head) as usize;
        if self.rest.len() < HEAD + len {
            return Err(read_error(&short()));
        }
        let mut record = self.rest.split_to(HEAD + len);
        Ok(Some(record.split_off(HEAD)))
    }
}

fn short() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

fn write_error(error: &io::Error) -> SqlError {
    tracing::warn!(%error, "a temporary file cannot be written");
    if is_full(error) {
        return SqlError::disk_full(format_args!("tmpdir: {error}"));
    }
    SqlError::new(1026, b"HY000", format!("Error writing file in tmpdir ({error})"))
}

fn read_error(error: &io::Error) -> SqlError {
    tracing::warn!(%error, "a temporary file cannot be read");
    SqlError::new(1024, b"HY000", format!("Error reading file in tmpdir ({error})"))
}
