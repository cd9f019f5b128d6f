//! A sorted run of writes in a file without a name, which goes with its process.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | length of the key |
//! | 4 | length of the value, or all ones for a deletion |
//! | 8 | the write's number in its set |
//! | | the key, the value; instead of a large value 8 bytes that say where in the file it is |
//!
//! Numbers are little-endian. Writes are in key order, of a key the newest first. They are in blocks of some kilobytes, whose first keys
//! are in memory, and so is a filter of all keys. Large values are between the blocks: who merges sixteen runs has sixteen
//! blocks, and one value at a time. Read by any thread.

use super::Write;
use super::index::prefix;
use bytes::Bytes;
use foldhash::quality::FixedState;
use omnibus_temporary::{Stream, TempFile};
use std::hash::BuildHasher;
use std::io::{BufWriter, Error, ErrorKind, Result, Write as _};
use std::sync::{Mutex, PoisonError};

const HEAD: usize = 16;
const DELETED: u32 = u32::MAX;
/// Bytes of a block, about, and of a value that is not in one.
const BLOCK: usize = if cfg!(test) { 512 } else { 16 << 10 };
const BUFFER: usize = 256 << 10;

/// A write of a run.
#[derive(Debug)]
pub(super) struct Version {
    pub(super) key: Bytes,
    pub(super) value: Value,
    pub(super) number: u64,
}

/// The value written to a key.
#[derive(Debug)]
pub(super) enum Value {
    /// The value is in memory.
    Here(Write),
    /// In the run's file.
    There { at: u64, len: usize },
}

/// A part of a run's file.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) first: Bytes,
    /// Whether the previous block ends with newer writes of this block's first key.
    pub(super) continues: bool,
    at: u64,
    len: usize,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Run {
    file: TempFile,
    pub(super) blocks: Vec<Block>,
    last: Bytes,
    filter: Filter,
    /// The prefixes of its keys, in order.
    spaces: Vec<u32>,
    deletes: bool,
    records: usize,
    /// The block that was read last: neighbours are asked for after one another.
    kept: Mutex<Option<(usize, Bytes)>>,
}

/// Writes a run.
pub(super) struct RunWriter {
    out: BufWriter<Stream<TempFile>>,
    end: u64,
    blocks: Vec<Block>,
    /// The block that is being made; of its entry in `blocks` all but its place is known.
    block: Vec<u8>,
    last: Vec<u8>,
    filter: Filter,
    spaces: Vec<u32>,
    deletes: bool,
    records: usize,
}

impl RunWriter {
    /// Creates a writer for a number of writes.
    pub(super) fn new(file: TempFile, records: usize) -> RunWriter {
        RunWriter {
            out: BufWriter::with_capacity(BUFFER, Stream::new(file)),
            end: 0,
            blocks: Vec::new(),
            block: Vec::new(),
            last: Vec::new(),
            filter: Filter::for_keys(records),
            spaces: Vec::new(),
            deletes: false,
            records: 0,
        }
    }

    /// Adds a write. Keys come in ascending order, the newest write of a key last.
    pub(super) fn push(&mut self, key: &[u8], write: Option<&[u8]>, number: u64) -> Result<()> {
        let is_new = self.last != key || self.blocks.is_empty();
        if self.blocks.is_empty() || self.block.len() >= BLOCK {
            self.end_block()?;
            let first = Bytes::copy_from_slice(key);
            self.blocks.push(Block { first, continues: !is_new, at: 0, len: 0 });
        }
        if is_new {
            if self.spaces.last() != Some(&prefix(key)) {
                self.spaces.push(prefix(key));
            }
            self.filter.insert(hash(key));
            self.last.clear();
            self.last.extend_from_slice(key);
        }
        let value = write.unwrap_or_default();
        self.deletes |= write.is_none();
        self.block.extend_from_slice(&size(key)?.to_le_bytes());
        let len = if write.is_some() { size(value)? } else { DELETED };
        self.block.extend_from_slice(&len.to_le_bytes());
        self.block.extend_from_slice(&number.to_le_bytes());
        self.block.extend_from_slice(key);
        if value.len() < BLOCK {
            self.block.extend_from_slice(value);
        } else {
            self.block.extend_from_slice(&self.end.to_le_bytes());
            self.out.write_all(value)?;
            self.end += value.len() as u64;
        }
        self.records += 1;
        Ok(())
    }

    fn end_block(&mut self) -> Result<()> {
        let Some(block) = self.blocks.last_mut() else { return Ok(()) };
        (block.at, block.len) = (self.end, self.block.len());
        self.out.write_all(&self.block)?;
        self.end += self.block.len() as u64;
        self.block.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Run> {
        self.end_block()?;
        Ok(Run {
            file: self.out.into_inner().map_err(std::io::IntoInnerError::into_error)?.into_inner(),
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

/// Returns the hash of a key in filters.
pub(super) fn hash(key: &[u8]) -> u64 {
    FixedState::default().hash_one(key)
}

/// A Bloom filter with three bits in one word per key, sixteen bits a key. It excludes most absent keys.
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

    /// Returns whether the run may have a deletion.
    pub(super) fn deletes(&self) -> bool {
        self.deletes
    }

    /// About what it takes in memory.
    pub(super) fn memory(&self) -> usize {
        let key = self.blocks.first().map_or(0, |block| block.first.len());
        self.blocks.len() * (size_of::<Block>() + key + 16) + self.filter.0.len() * 8
    }

    /// Returns whether the run has keys with these prefixes.
    pub(super) fn has_spaces(&self, from: u32, to: u32) -> bool {
        let at = self.spaces.partition_point(|space| *space < from);
        self.spaces.get(at).is_some_and(|space| *space <= to)
    }

    /// The newest write of the key with a number below `until`. `hash`: of the key.
    pub(super) fn get(&self, key: &[u8], hash: u64, until: u64) -> Result<Option<Write>> {
        if !self.filter.may_hold(hash) || *key > self.last[..] {
            return Ok(None);
        }
        // The key's newest writes may be at the end of a block that begins with another one.
        let from = self.blocks.partition_point(|block| block.first[..] < *key).saturating_sub(1);
        for at in from..self.blocks.len() {
            if self.blocks[at].first[..] > *key {
                break;
            }
            let mut block = self.block(at)?;
            while let Some(version) = take(&mut block)? {
                if version.key[..] > *key {
                    return Ok(None);
                }
                if version.key[..] == *key && version.number < until {
                    return self.load(version.value).map(Some);
                }
            }
        }
        Ok(None)
    }

    /// Returns the written value, reading it from the file if need be.
    pub(super) fn load(&self, value: Value) -> Result<Write> {
        match value {
            Value::Here(write) => Ok(write),
            Value::There { at, len } => self.read_at(at, len).map(Some),
        }
    }

    pub(super) fn block(&self, at: usize) -> Result<Bytes> {
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

    pub(super) fn read(&self, at: usize) -> Result<Bytes> {
        let block = &self.blocks[at];
        self.read_at(block.at, block.len)
    }

    fn read_at(&self, at: u64, len: usize) -> Result<Bytes> {
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(bytes.into())
    }
}

/// Takes the first write off a block.
pub(super) fn take(block: &mut Bytes) -> Result<Option<Version>> {
    if block.is_empty() {
        return Ok(None);
    }
    let short = || Error::from(ErrorKind::UnexpectedEof);
    let (head, _) = block.split_first_chunk::<HEAD>().ok_or_else(short)?;
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let (key_len, value_len, written) =
        (number(&head[..4]) as usize, number(&head[4..8]) as u32, number(&head[8..]));
    let deleted = value_len == DELETED;
    let len = if deleted { 0 } else { value_len as usize };
    let held = if len < BLOCK { len } else { size_of::<u64>() };
    if block.len() < HEAD + key_len + held {
        return Err(short());
    }
    let mut record = block.split_to(HEAD + key_len + held);
    let key = record.split_to(HEAD + key_len).slice(HEAD..);
    let value = match len < BLOCK {
        true => Value::Here((!deleted).then_some(record)),
        false => Value::There { at: number(&record), len },
    };
    Ok(Some(Version { key, value, number: written }))
}
