//! A sorted run of writes in a file without a name, which goes with its process.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | length of the key |
//! | 4 | length of the value, or all ones for a deletion |
//! | 8 | the write's number in its set |
//! | | the key, the value |
//!
//! Numbers are little-endian. Writes are in key order, of a key the newest first. Every few kilobytes a block begins, with a key
//! that the block before does not have; its first key is in memory, and so is a filter of all keys. Read by any thread.

use super::Write;
use super::index::prefix;
use bytes::Bytes;
use foldhash::quality::FixedState;
use std::collections::VecDeque;
use std::fs::File;
use std::hash::BuildHasher;
use std::io::{BufWriter, Error, ErrorKind, Result, Write as _};
use std::ops::Bound;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

const HEAD: usize = 16;
const DELETED: u32 = u32::MAX;
/// Bytes of a block, about.
const BLOCK: u64 = 16 << 10;
const BUFFER: usize = 256 << 10;

/// A write of a run.
#[derive(Debug)]
pub(super) struct Version {
    pub(super) key: Bytes,
    pub(super) write: Write,
    pub(super) number: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Run {
    file: File,
    end: u64,
    /// Blocks: their first keys, and where they begin.
    blocks: Vec<(Bytes, u64)>,
    last: Bytes,
    filter: Filter,
    /// What its keys begin with, in order.
    spaces: Vec<u32>,
    deletes: bool,
    records: usize,
    /// The block that was read last: neighbours are asked for after one another.
    kept: Mutex<Option<(usize, Bytes)>>,
}

/// Writes a run.
pub(super) struct RunWriter {
    out: BufWriter<File>,
    end: u64,
    blocks: Vec<(Bytes, u64)>,
    last: Vec<u8>,
    filter: Filter,
    spaces: Vec<u32>,
    deletes: bool,
    records: usize,
}

impl RunWriter {
    /// For so many writes.
    pub(super) fn new(file: File, records: usize) -> RunWriter {
        RunWriter {
            out: BufWriter::with_capacity(BUFFER, file),
            end: 0,
            blocks: Vec::new(),
            last: Vec::new(),
            filter: Filter::for_keys(records),
            spaces: Vec::new(),
            deletes: false,
            records: 0,
        }
    }

    /// Writes come in the order of a run.
    pub(super) fn push(&mut self, key: &[u8], write: Option<&[u8]>, number: u64) -> Result<()> {
        if self.last != key || self.blocks.is_empty() {
            if self.blocks.last().is_none_or(|(_, at)| self.end - at >= BLOCK) {
                self.blocks.push((Bytes::copy_from_slice(key), self.end));
            }
            if self.spaces.last() != Some(&prefix(key)) {
                self.spaces.push(prefix(key));
            }
            self.filter.insert(hash(key));
            self.last.clear();
            self.last.extend_from_slice(key);
        }
        let value = write.unwrap_or_default();
        self.deletes |= write.is_none();
        let mut head = [0; HEAD];
        head[..4].copy_from_slice(&size(key)?.to_le_bytes());
        head[4..8].copy_from_slice(&if write.is_some() { size(value)? } else { DELETED }.to_le_bytes());
        head[8..].copy_from_slice(&number.to_le_bytes());
        self.out.write_all(&head)?;
        self.out.write_all(key)?;
        self.out.write_all(value)?;
        self.end += (HEAD + key.len() + value.len()) as u64;
        self.records += 1;
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Run> {
        Ok(Run {
            file: self.out.into_inner().map_err(std::io::IntoInnerError::into_error)?,
            end: self.end,
            blocks: self.blocks,
            last: self.last.into(),
            filter: self.filter,
            spaces: self.spaces,
            deletes: self.deletes,
            records: self.records,
            kept: Mutex::default(),
        })
    }
}

fn size(bytes: &[u8]) -> Result<u32> {
    u32::try_from(bytes.len())
        .ok()
        .filter(|len| *len != DELETED)
        .ok_or_else(|| ErrorKind::FileTooLarge.into())
}

/// What filters know a key by.
pub(super) fn hash(key: &[u8]) -> u64 {
    FixedState::default().hash_one(key)
}

/// Says of most keys that are not there that they are not: three bits of one word for each, of sixteen bits a key.
#[derive(Debug)]
struct Filter(Box<[u64]>);

impl Filter {
    fn for_keys(keys: usize) -> Filter {
        Filter(vec![0; (keys / 4).next_power_of_two()].into())
    }

    fn insert(&mut self, hash: u64) {
        let (at, bits) = self.place(hash);
        self.0[at] |= bits;
    }

    fn place(&self, hash: u64) -> (usize, u64) {
        let bits = 1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63);
        ((hash >> 32) as usize & (self.0.len() - 1), bits)
    }

    fn may_hold(&self, hash: u64) -> bool {
        let (at, bits) = self.place(hash);
        self.0[at] & bits == bits
    }
}

impl Run {
    pub(super) fn records(&self) -> usize {
        self.records
    }

    /// Whether there may be a deletion.
    pub(super) fn deletes(&self) -> bool {
        self.deletes
    }

    /// About what it takes in memory.
    pub(super) fn memory(&self) -> usize {
        let key = self.blocks.first().map_or(0, |(key, _)| key.len());
        self.blocks.len() * (size_of::<(Bytes, u64)>() + key + 16) + self.filter.0.len() * 8
    }

    /// Whether it has keys that begin so.
    pub(super) fn has_spaces(&self, from: u32, to: u32) -> bool {
        let at = self.spaces.partition_point(|space| *space < from);
        self.spaces.get(at).is_some_and(|space| *space <= to)
    }

    /// The newest write of the key with a number below `until`. `hash`: of the key.
    pub(super) fn get(&self, key: &[u8], hash: u64, until: u64) -> Result<Option<Write>> {
        if !self.filter.may_hold(hash) || *key > self.last[..] {
            return Ok(None);
        }
        let Some(at) = self.blocks.partition_point(|(first, _)| first[..] <= *key).checked_sub(1) else {
            return Ok(None);
        };
        let mut block = self.block(at)?;
        while let Some(version) = take(&mut block)? {
            if version.key[..] > *key {
                break;
            }
            if version.key[..] == *key && version.number < until {
                return Ok(Some(version.write));
            }
        }
        Ok(None)
    }

    fn block(&self, at: usize) -> Result<Bytes> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((number, block)) = &*kept
            && *number == at
        {
            return Ok(block.clone());
        }
        let block = self.read(at)?;
        *kept = Some((at, block.clone()));
        Ok(block)
    }

    fn read(&self, at: usize) -> Result<Bytes> {
        let from = self.blocks[at].1;
        let to = self.blocks.get(at + 1).map_or(self.end, |(_, next)| *next);
        let mut block =
            vec![0; usize::try_from(to - from).map_err(|_| Error::from(ErrorKind::FileTooLarge))?];
        self.file.read_exact_at(&mut block, from)?;
        Ok(block.into())
    }
}

/// Takes the first write off a block.
fn take(block: &mut Bytes) -> Result<Option<Version>> {
    if block.is_empty() {
        return Ok(None);
    }
    let short = || Error::from(ErrorKind::UnexpectedEof);
    let (head, _) = block.split_first_chunk::<HEAD>().ok_or_else(short)?;
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let (key_len, value_len, number) =
        (number(&head[..4]) as usize, number(&head[4..8]) as u32, number(&head[8..]));
    let value = if value_len == DELETED { 0 } else { value_len as usize };
    if block.len() < HEAD + key_len + value {
        return Err(short());
    }
    let mut record = block.split_to(HEAD + key_len + value);
    let key = record.split_to(HEAD + key_len).slice(HEAD..);
    Ok(Some(Version { key, write: (value_len != DELETED).then_some(record), number }))
}

/// All writes of a run, of all keys; or of each key within bounds the newest below a number.
#[derive(Debug)]
pub(super) struct Reader {
    run: Arc<Run>,
    /// Blocks that are not read.
    from_block: usize,
    to_block: usize,
    from: Bound<Bytes>,
    to: Bound<Bytes>,
    until: u64,
    reverse: bool,
    /// The block at hand, forward.
    block: Bytes,
    /// Backward: what it has.
    ready: VecDeque<Version>,
    last: Option<Bytes>,
}

impl Reader {
    /// Of all keys, for `next_version`.
    pub(super) fn of_all(run: &Arc<Run>, until: u64) -> Reader {
        Reader::of_range(run, until, Bound::Unbounded, Bound::Unbounded, false)
    }

    pub(super) fn of_range(
        run: &Arc<Run>,
        until: u64,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        reverse: bool,
    ) -> Reader {
        let from_block = match from {
            Bound::Included(key) | Bound::Excluded(key) => {
                run.blocks.partition_point(|(first, _)| first[..] <= *key).saturating_sub(1)
            }
            Bound::Unbounded => 0,
        };
        let to_block = match to {
            Bound::Included(key) | Bound::Excluded(key) => {
                run.blocks.partition_point(|(first, _)| first[..] <= *key)
            }
            Bound::Unbounded => run.blocks.len(),
        };
        Reader {
            run: Arc::clone(run),
            from_block,
            to_block: to_block.max(from_block),
            from: from.map(Bytes::copy_from_slice),
            to: to.map(Bytes::copy_from_slice),
            until,
            reverse,
            block: Bytes::new(),
            ready: VecDeque::new(),
            last: None,
        }
    }

    /// The next write, also one that a newer one hides. Forward.
    pub(super) fn next_version(&mut self) -> Result<Option<Version>> {
        loop {
            if let Some(version) = take(&mut self.block)? {
                if version.number < self.until {
                    return Ok(Some(version));
                }
            } else if self.from_block < self.to_block {
                self.from_block += 1;
                self.block = self.run.read(self.from_block - 1)?;
            } else {
                return Ok(None);
            }
        }
    }

    /// The next key's newest write.
    pub(super) fn next_live(&mut self) -> Result<Option<Version>> {
        if self.reverse { self.backward() } else { self.forward() }
    }

    fn forward(&mut self) -> Result<Option<Version>> {
        loop {
            let Some(version) = take(&mut self.block)? else {
                if self.from_block == self.to_block {
                    return Ok(None);
                }
                self.from_block += 1;
                self.block = self.run.block(self.from_block - 1)?;
                continue;
            };
            if is_behind(&self.to, &version.key) {
                (self.block, self.from_block) = (Bytes::new(), self.to_block);
                return Ok(None);
            }
            let seen = self.last.as_ref() == Some(&version.key);
            if version.number < self.until && !seen && !is_before(&self.from, &version.key) {
                self.last = Some(version.key.clone());
                return Ok(Some(version));
            }
        }
    }

    fn backward(&mut self) -> Result<Option<Version>> {
        while self.ready.is_empty() {
            if self.from_block == self.to_block {
                return Ok(None);
            }
            self.to_block -= 1;
            let mut block = self.run.block(self.to_block)?;
            while let Some(version) = take(&mut block)? {
                let seen = self.ready.back().is_some_and(|newer| newer.key == version.key);
                let within = !is_before(&self.from, &version.key) && !is_behind(&self.to, &version.key);
                if version.number < self.until && !seen && within {
                    self.ready.push_back(version);
                }
            }
        }
        Ok(self.ready.pop_back())
    }
}

fn is_before(from: &Bound<Bytes>, key: &[u8]) -> bool {
    match from {
        Bound::Included(from) => *key < from[..],
        Bound::Excluded(from) => *key <= from[..],
        Bound::Unbounded => false,
    }
}

fn is_behind(to: &Bound<Bytes>, key: &[u8]) -> bool {
    match to {
        Bound::Included(to) => *key > to[..],
        Bound::Excluded(to) => *key >= to[..],
        Bound::Unbounded => false,
    }
}
