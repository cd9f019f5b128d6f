//! Records in parts by their keys, on disk: equal keys are in the same part, so each part can be worked on by itself in
//! memory. One that is still too large is parted again, by other bits of the hash.

use super::Running;
use super::spill::{Run, RunReader, RunWriter, SpillFile};
use crate::error::{ExecResult, SqlResult};
use bytes::Bytes;
use foldhash::quality::FixedState;
use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::atomic::Ordering;

/// Parts of a file.
const PARTS: usize = 32;
/// Each grows in blocks of this size.
const BLOCK: usize = 16 << 10;

/// Parts that grow.
#[derive(Debug)]
pub struct Partitions {
    file: SpillFile,
    parts: Vec<RunWriter>,
    level: u64,
}

/// One part.
#[derive(Debug)]
pub struct Partition {
    file: Rc<SpillFile>,
    run: Run,
    /// How often its records were parted.
    pub level: u64,
}

/// Reads a part.
#[derive(Debug)]
pub struct PartitionReader(RunReader);

impl Partitions {
    /// An empty file of parts, the first at level 0. Counts as a temporary table on disk.
    ///
    /// # Errors
    /// As [`SpillFile::create`].
    pub fn create(level: u64, cx: &mut impl Running) -> ExecResult<Partitions> {
        let file = SpillFile::create(cx)?;
        cx.session().connection.memory.server().tmp_disk_tables.fetch_add(1, Ordering::Relaxed);
        let parts = (0..PARTS).map(|_| RunWriter::with_block(BLOCK)).collect();
        Ok(Partitions { file, parts, level })
    }

    /// Adds a record.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn push(&mut self, key: &[u8], record: &[u8]) -> SqlResult<()> {
        let part = FixedState::with_seed(self.level).hash_one(key) as usize % PARTS;
        self.parts[part].push(&mut self.file, &[&(key.len() as u32).to_le_bytes(), key, record])
    }

    /// All parts in order; some may be empty.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> SqlResult<Vec<Partition>> {
        let mut runs = Vec::with_capacity(PARTS);
        for part in self.parts {
            runs.push(part.finish(&mut self.file)?);
        }
        let (file, level) = (Rc::new(self.file), self.level);
        Ok(runs.into_iter().map(|run| Partition { file: file.clone(), run, level }).collect())
    }
}

impl Partition {
    /// Reads it from its beginning.
    #[must_use]
    pub fn read(&self) -> PartitionReader {
        PartitionReader(self.file.read(&self.run))
    }
}

impl PartitionReader {
    /// The next key and record.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next_record(&mut self) -> SqlResult<Option<(Bytes, Bytes)>> {
        let Some(mut record) = self.0.next_record()? else { return Ok(None) };
        let len = record.first_chunk().map_or(0, |head| u32::from_le_bytes(*head) as usize);
        let rest = record.split_off((4 + len).min(record.len()));
        Ok(Some((record.slice(4.min(record.len())..), rest)))
    }
}
