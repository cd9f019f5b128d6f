//! A sorted run of writes in a file without a name, which goes with its process.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | length of the key |
//! | 4 | length of the value, or all ones for a deletion |
//! | | the key, the value |
//!
//! Numbers are little-endian. Every few kilobytes a key is kept in memory, for lookups.

use bytes::Bytes;
use omnibus_engine::Write as KeyWrite;
use std::fs::File;
use std::io::{BufWriter, Error, ErrorKind, Read, Result, Seek, SeekFrom, Write};
use std::path::Path;

const HEAD: usize = 8;
const DELETED: u32 = u32::MAX;
/// Bytes of a run between two keys in memory.
const STEP: u64 = 32 << 10;
const BUFFER: usize = 1 << 20;
/// Bytes read at once.
const PIECE: usize = 256 << 10;

/// See the module.
pub(super) struct Run {
    file: File,
    len: u64,
    /// A key and where it is.
    index: Vec<(Bytes, u64)>,
}

impl Run {
    /// Writes come in key order, each key once.
    pub(super) fn write(
        folder: &Path,
        writes: impl Iterator<Item = Result<(Bytes, KeyWrite)>>,
    ) -> Result<Run> {
        let mut out = BufWriter::with_capacity(BUFFER, tempfile::tempfile_in(folder)?);
        let (mut len, mut index, mut next) = (0, Vec::new(), 0);
        for write in writes {
            let (key, write) = write?;
            if len >= next {
                index.push((Bytes::copy_from_slice(&key), len));
                next = len + STEP;
            }
            let value = write.as_deref().unwrap_or_default();
            let value_len = if write.is_some() { size(value)? } else { DELETED };
            out.write_all(&size(&key)?.to_le_bytes())?;
            out.write_all(&value_len.to_le_bytes())?;
            out.write_all(&key)?;
            out.write_all(value)?;
            len += (HEAD + key.len() + value.len()) as u64;
        }
        let file = out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        Ok(Run { file, len, index })
    }

    /// What it says of a key.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<KeyWrite>> {
        let behind = self.index.partition_point(|(first, _)| first[..] <= *key);
        let Some((_, at)) = behind.checked_sub(1).and_then(|before| self.index.get(before)) else {
            return Ok(None);
        };
        let end = self.index.get(behind).map_or(self.len, |(_, end)| *end);
        for write in Reader::new(&self.file, *at, end) {
            let (found, write) = write?;
            if found[..] >= *key {
                return Ok((found[..] == *key).then_some(write));
            }
        }
        Ok(None)
    }

    /// All writes, in order.
    pub(super) fn into_reader(self) -> Reader<File> {
        Reader::new(self.file, 0, self.len)
    }
}

fn size(bytes: &[u8]) -> Result<u32> {
    u32::try_from(bytes.len())
        .ok()
        .filter(|len| *len != DELETED)
        .ok_or_else(|| ErrorKind::FileTooLarge.into())
}

/// Reads a part of a run, a large piece at a time. Keys and values share the piece's memory.
pub(super) struct Reader<F> {
    file: F,
    at: u64,
    end: u64,
    piece: Bytes,
}

impl<F> Reader<F> {
    fn new(file: F, at: u64, end: u64) -> Reader<F> {
        Reader { file, at, end, piece: Bytes::new() }
    }
}

/// The file behind a reader, owned or not.
pub(super) trait AsFile {
    fn file(&self) -> &File;
}

impl AsFile for File {
    fn file(&self) -> &File {
        self
    }
}

impl AsFile for &File {
    fn file(&self) -> &File {
        self
    }
}

impl<F: AsFile> Reader<F> {
    /// Has at least so many bytes at hand, unless the end is nearer.
    fn fill(&mut self, wanted: usize) -> Result<()> {
        if self.piece.len() >= wanted {
            return Ok(());
        }
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let more = (wanted.max(PIECE) - self.piece.len()).min(left);
        let mut piece = Vec::with_capacity(self.piece.len() + more);
        piece.extend_from_slice(&self.piece);
        let mut file = self.file.file();
        file.seek(SeekFrom::Start(self.at))?;
        file.take(more as u64).read_to_end(&mut piece)?;
        self.at += more as u64;
        if piece.len() < wanted {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.piece = piece.into();
        Ok(())
    }

    fn record(&mut self) -> Result<(Bytes, KeyWrite)> {
        self.fill(HEAD)?;
        let number = |at: usize| {
            let bytes = self.piece.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u32::from_le_bytes).ok_or_else(|| Error::from(ErrorKind::UnexpectedEof))
        };
        let (key_len, value_len) = (number(0)? as usize, number(4)?);
        let value = if value_len == DELETED { 0 } else { value_len as usize };
        self.fill(HEAD + key_len + value)?;
        let mut record = self.piece.split_to(HEAD + key_len + value);
        let key = record.split_to(HEAD + key_len).slice(HEAD..);
        Ok((key, (value_len != DELETED).then_some(record)))
    }
}

impl<F: AsFile> Iterator for Reader<F> {
    type Item = Result<(Bytes, KeyWrite)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.end && self.piece.is_empty() {
            return None;
        }
        let record = self.record();
        if record.is_err() {
            (self.at, self.piece) = (self.end, Bytes::new());
        }
        Some(record)
    }
}
