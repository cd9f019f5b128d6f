//! A table kept for a join, by the key that it is looked up with: in memory up to `join_buffer_size`. The rows behind are on
//! disk, and what stays in memory of each is a hash and where it is.

use super::spill::{RunWriter, SpillFile};
use super::{Row, Running, codec};
use crate::error::{ExecResult, SqlResult};
use crate::memory::Account;
use bytes::{Buf, Bytes};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::hash::BuildHasher;

/// Bytes of a key in the map beside its own.
const KEY_COST: usize = 96;

/// Rows that are being kept.
#[derive(Debug)]
pub struct KeptBuilder {
    kept: KeptRows,
    writer: RunWriter,
}

/// Rows by key.
#[derive(Debug)]
pub struct KeptRows {
    memory: HashMap<Box<[u8]>, Vec<Row>, RandomState>,
    hasher: RandomState,
    file: Option<SpillFile>,
    /// Hashes of keys and where their records are, in order.
    index: Vec<(u64, u64)>,
    account: Account,
}

impl KeptBuilder {
    /// None yet.
    #[must_use]
    pub fn new(cx: &impl Running) -> KeptBuilder {
        let kept = KeptRows {
            memory: HashMap::default(),
            hasher: RandomState::default(),
            file: None,
            index: Vec::new(),
            account: Account::new(&cx.session().connection.memory),
        };
        KeptBuilder { kept, writer: RunWriter::default() }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// As a temporary file; a limit of memory that not even the index fits.
    pub fn push(&mut self, key: &[u8], row: &Row, cx: &mut impl Running) -> ExecResult<()> {
        let kept = &mut self.kept;
        if kept.file.is_none() {
            let more = KEY_COST + key.len() + codec::memory_of_row(row);
            let budget = cx.session().settings.join_buffer_size;
            if kept.account.has_room(more, budget, &cx.session().settings) {
                let row = codec::own_row(row);
                match kept.memory.get_mut(key) {
                    Some(rows) => rows.push(row),
                    None => drop(kept.memory.insert(key.into(), vec![row])),
                }
                return Ok(());
            }
            kept.file = Some(SpillFile::create(cx)?);
        }
        // Twice, because the index grows by doubling.
        kept.account.grow(2 * size_of::<(u64, u64)>(), &cx.session().settings)?;
        let Some(file) = &mut kept.file else { return Ok(()) };
        let mut record = Vec::new();
        record.extend_from_slice(&(key.len() as u32).to_le_bytes());
        record.extend_from_slice(key);
        codec::write_row(row, &mut record);
        let at = self.writer.push_alone(file, &record)?;
        kept.index.push((kept.hasher.hash_one(key), at));
        Ok(())
    }

    /// All of them.
    ///
    /// # Errors
    /// As a temporary file.
    pub fn finish(mut self) -> SqlResult<KeptRows> {
        if let Some(file) = &mut self.kept.file {
            self.writer.finish(file)?;
        }
        self.kept.index.sort_unstable();
        Ok(self.kept)
    }
}

impl KeptRows {
    /// How many rows may have the key: numbers for [`KeptRows::row`].
    #[must_use]
    pub fn find(&self, key: &[u8]) -> Found<'_> {
        let memory = self.memory.get(key).map_or(&[][..], |rows| &rows[..]);
        if self.index.is_empty() {
            return Found { memory, from: 0, to: 0 };
        }
        let hash = self.hasher.hash_one(key);
        let from = self.first_of(hash);
        let to = from + self.index[from..].iter().take_while(|(of, _)| *of == hash).count();
        Found { memory, from, to }
    }

    /// Where the entries of a hash begin. Hashes are spread evenly, so the place is about as far into the index as the hash is into
    /// all numbers; from there in steps that double.
    fn first_of(&self, hash: u64) -> usize {
        let len = self.index.len();
        let guess = ((u128::from(hash) * len as u128) >> 64) as usize;
        let (mut low, mut high, mut step) = (guess, guess, 8);
        while low > 0 && self.index[low].0 >= hash {
            low = low.saturating_sub(step);
            step *= 2;
        }
        step = 8;
        while high < len && self.index[high].0 < hash {
            high = (high + step).min(len);
            step *= 2;
        }
        low + self.index[low..high].partition_point(|(of, _)| *of < hash)
    }

    /// A row of those found; `None` if its key only has the same hash.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub fn row(&self, key: &[u8], found: &Found<'_>, nth: usize) -> SqlResult<Option<Row>> {
        if let Some(row) = found.memory.get(nth) {
            return Ok(Some(row.clone()));
        }
        let at = self.index.get(found.from + nth - found.memory.len());
        let (Some(file), Some((_, at))) = (&self.file, at) else { return Ok(None) };
        let mut record: Bytes = file.record_at(*at)?;
        let len = record.try_get_u32_le().unwrap_or_default() as usize;
        if record.get(..len) != Some(key) {
            return Ok(None);
        }
        record.advance(len);
        Ok(Some(codec::read_row(&mut record)?))
    }
}

/// Where the rows of a key may be.
#[derive(Clone, Copy, Debug)]
pub struct Found<'k> {
    memory: &'k [Row],
    from: usize,
    to: usize,
}

impl Found<'_> {
    /// How many.
    #[must_use]
    pub fn count(&self) -> usize {
        self.memory.len() + self.to - self.from
    }

    /// Whether the key is not needed to tell them from others.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        self.from == self.to
    }
}
