//! A data block of a table file, read where it lies.
//!
//! `lsm-tree` reads a block by way of iterators that own the block, parse through cursors and share key and value of each row that they
//! pass. Here a row is four offsets into the block, and only the value that a reader takes is shared.
//!
//! **Form** (`lsm-tree` 3, `table/block/trailer.rs` and `table/data_block/mod.rs` there): rows, the byte 255, the binary index (where each row
//! begins, in 2 or 4 bytes LE), the hash index (a byte for each bucket of XXH3-64 of the key: which row, 254 for none, 255 for several), a trailer
//! of 31 bytes. A row is its kind, its number, the key's length, the key, and but for deletions the value's length and the value; numbers are LEB128.
//! So it is where no row leaves out what its key shares with the one before, which `engine` sees to. [`Block::of`] refuses anything else, and the tree
//! reads such a table.

use bytes::Bytes;
use std::cmp::Ordering;
use std::ops::Range;

/// Bytes of the trailer.
const TRAILER: usize = 31;
/// The trailer's bytes behind its numbers: keys may be cut, which those of one row each are not, and have no fixed lengths.
const PLAIN: [u8; 9] = [1, 0, 0, 0, 0, 0, 0, 0, 0];
/// The byte behind the last row.
const END: u8 = 255;
/// No row has a key of this bucket.
const FREE: u8 = 254;
/// Several have.
const SEVERAL: u8 = 255;

/// The kinds of a row.
const VALUE: u8 = 0;
const DELETED: [u8; 2] = [1, 2];

/// A block, and where its parts are.
pub(crate) struct Block {
    data: Bytes,
    /// Where the rows end.
    end: usize,
    /// The binary index.
    index: Range<usize>,
    /// Bytes of an entry there.
    step: usize,
    /// The hash index; empty if there is none.
    buckets: Range<usize>,
}

/// A version of a row: where it lies in its block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// Where it begins.
    pub(crate) begin: usize,
    pub(crate) number: u64,
    pub(crate) key: Range<usize>,
    /// `None` for a deletion.
    pub(crate) value: Option<Range<usize>>,
    /// Where the next row begins.
    next: usize,
}

/// The end of a search for a key.
pub(crate) enum Found {
    Row(Row),
    /// Its versions here, if any, are too new: older ones may follow in the next block.
    Nothing,
    /// The block is not what it says it is.
    Damaged,
}

impl Block {
    /// `None` if it has another form.
    pub(crate) fn of(data: Bytes) -> Option<Block> {
        let trailer = data.len().checked_sub(TRAILER)?;
        let (numbers, rest) = data[trailer..].split_at_checked(18)?;
        let at = |at: usize| Some(u32::from_le_bytes(*numbers[at..].first_chunk()?) as usize);
        let (restart, step) = (numbers[0], usize::from(numbers[1]));
        let (count, index, buckets, hashes) = (at(2)?, at(6)?, at(10)?, at(14)?);
        let index = index..index.checked_add(count.checked_mul(step)?)?;
        let buckets = hashes..hashes.checked_add(buckets)?;
        let rows = u32::from_le_bytes(*rest[9..].first_chunk()?) as usize;
        let plain = restart == 1 && rest[..9] == PLAIN && matches!(step, 2 | 4) && rows == count && count > 0;
        let fits = index.end <= trailer && buckets.end <= trailer;
        let end = index.start.checked_sub(1)?;
        (plain && fits && data[end] == END).then_some(Block { data, end, index, step, buckets })
    }

    pub(crate) fn data(&self) -> &Bytes {
        &self.data
    }

    /// Where the rows end.
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// Where a row begins.
    #[inline]
    fn begin_of(&self, row: usize) -> usize {
        match self.data[self.index.clone()].get(row * self.step..) {
            Some(&[a, b, ..]) if self.step == 2 => usize::from(u16::from_le_bytes([a, b])),
            Some(&[a, b, c, d, ..]) => u32::from_le_bytes([a, b, c, d]) as usize,
            _ => self.end,
        }
    }

    /// The row that begins at `at`; `None` at the end, or if no row is there.
    #[inline]
    pub(crate) fn row(&self, at: usize) -> Option<Row> {
        let (kind, number, key) = self.head(at)?;
        if kind == VALUE {
            let (len, begin) = varint(&self.data, key.end)?;
            let next = begin.checked_add(usize::try_from(len).ok()?)?;
            return (next <= self.end).then_some(Row {
                begin: at,
                number,
                key,
                value: Some(begin..next),
                next,
            });
        }
        DELETED.contains(&kind).then_some(Row { begin: at, number, next: key.end, key, value: None })
    }

    /// Kind, number and key of the row that begins at `at`.
    #[inline]
    fn head(&self, at: usize) -> Option<(u8, u64, Range<usize>)> {
        let kind = *self.data[..self.end].get(at)?;
        let (number, at) = varint(&self.data, at + 1)?;
        let (len, begin) = varint(&self.data, at)?;
        let end = begin.checked_add(usize::try_from(len).ok()?)?;
        (end <= self.end).then_some((kind, number, begin..end))
    }

    /// Where the first row of a key that is not before `key` begins: at the end, if all are. `None` if the block is damaged.
    pub(crate) fn lower_bound(&self, key: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.index.len() / self.step);
        while low < high {
            let middle = low.midpoint(high);
            let (_, _, of) = self.head(self.begin_of(middle))?;
            if self.data[of] < *key { low = middle + 1 } else { high = middle }
        }
        Some(if low == self.index.len() / self.step { self.end } else { self.begin_of(low) })
    }

    /// The newest version of a key that is no newer than `number`; `hash` is that of the key.
    pub(crate) fn find(&self, key: &[u8], hash: u64, number: u64) -> Found {
        let mut at = match self.bucket(hash) {
            FREE => return Found::Nothing,
            SEVERAL => match self.lower_bound(key) {
                Some(at) => at,
                None => return Found::Damaged,
            },
            row => self.begin_of(usize::from(row)),
        };
        while at < self.end {
            let Some(row) = self.row(at) else { return Found::Damaged };
            match self.data[row.key.clone()].cmp(key) {
                Ordering::Equal if row.number <= number => return Found::Row(row),
                Ordering::Greater => break,
                // Of another key where the hash index leads to, or too new.
                _ => at = row.next,
            }
        }
        Found::Nothing
    }

    #[inline]
    fn bucket(&self, hash: u64) -> u8 {
        let buckets = &self.data[self.buckets.clone()];
        if buckets.is_empty() { SEVERAL } else { buckets[(hash % buckets.len() as u64) as usize] }
    }
}

impl Row {
    /// Where the row behind it begins.
    pub(crate) fn next(&self) -> usize {
        self.next
    }
}

/// A number, and where the next byte is.
#[inline]
fn varint(data: &[u8], at: usize) -> Option<(u64, usize)> {
    let first = *data.get(at)?;
    if first < 0x80 {
        return Some((u64::from(first), at + 1));
    }
    let mut number = u64::from(first & 0x7f);
    for (place, byte) in data[at + 1..].iter().take(9).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * (place + 1)).min(63);
        if *byte < 0x80 {
            return Some((number, at + 2 + place));
        }
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::filter::Filter;
    use lsm_tree::table::DataBlock;
    use lsm_tree::{InternalValue, ValueType};
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    /// Some keys with several versions each, newest first, some of them deletions.
    fn rows(random: &mut SmallRng) -> Vec<InternalValue> {
        let mut keys: Vec<Vec<u8>> = (0..random.random_range(1..400))
            .map(|_| (0..random.random_range(1..20)).map(|_| random.random_range(0..4)).collect())
            .collect();
        keys.sort();
        keys.dedup();
        let mut rows = Vec::new();
        for key in keys {
            let mut number = 1 << random.random_range(1..60);
            for _ in 0..random.random_range(1..4) {
                let value = vec![7; random.random_range(0..300)];
                let kind = if random.random_bool(0.2) { ValueType::Tombstone } else { ValueType::Value };
                let value = if kind == ValueType::Value { value } else { Vec::new() };
                rows.push(InternalValue::from_components(key.clone(), value, number, kind));
                number -= random.random_range(1..2.max(number / 2));
                if number < 2 {
                    break;
                }
            }
        }
        rows
    }

    fn block(rows: &[InternalValue], restart: u8, hashes: f32) -> Option<Block> {
        Block::of(DataBlock::encode_into_vec(rows, restart, hashes).unwrap().into())
    }

    #[test]
    fn a_block_says_what_was_written() {
        let mut random = SmallRng::seed_from_u64(7);
        for round in 0..200 {
            let rows = rows(&mut random);
            let block = block(&rows, 1, if round % 2 == 0 { 4.0 } else { 0.0 }).unwrap();
            let mut at = 0;
            for row in &rows {
                let read = block.row(at).unwrap();
                assert_eq!(&block.data()[read.key.clone()], &row.key.user_key[..]);
                assert_eq!(read.number, row.key.seqno);
                let value = read.value.clone().map(|value| &block.data()[value]);
                assert_eq!(value, (!row.is_tombstone()).then_some(&row.value[..]));
                at = read.next();
            }
            assert_eq!(at, block.end());
            assert!(block.row(at).is_none());
        }
    }

    #[test]
    fn a_search_finds_the_newest_version_that_it_may_see() {
        let mut random = SmallRng::seed_from_u64(8);
        for round in 0..200 {
            let rows = rows(&mut random);
            let block = block(&rows, 1, if round % 2 == 0 { 4.0 } else { 0.0 }).unwrap();
            for _ in 0..100 {
                let mut key = rows[random.random_range(0..rows.len())].key.user_key.to_vec();
                if random.random_bool(0.3) {
                    key.push(random.random_range(0..4));
                }
                let number = 1 << random.random_range(0..61);
                let expected = rows.iter().find(|row| row.key.user_key[..] == key && row.key.seqno <= number);
                match (block.find(&key, Filter::hash(&key), number), expected) {
                    (Found::Row(row), Some(expected)) => assert_eq!(row.number, expected.key.seqno),
                    (Found::Nothing, None) => {}
                    (Found::Row(row), None) => panic!("found {row:?}"),
                    (_, expected) => panic!("did not find {expected:?}"),
                }
                let first = rows.iter().find(|row| row.key.user_key[..] >= key[..]);
                let at = block.lower_bound(&key).unwrap();
                let read = block.row(at).map(|row| (block.data()[row.key.clone()].to_vec(), row.number));
                assert_eq!(read, first.map(|row| (row.key.user_key.to_vec(), row.key.seqno)));
            }
        }
    }

    #[test]
    fn other_forms_and_damage_are_no_block_and_no_panic() {
        let mut random = SmallRng::seed_from_u64(9);
        let rows = rows(&mut random);
        assert!(block(&rows, 16, 0.0).is_none(), "keys are cut");
        assert!(Block::of(Bytes::new()).is_none());
        let whole = DataBlock::encode_into_vec(&rows, 1, 4.0).unwrap();
        for _ in 0..20_000 {
            let mut bytes = whole.clone();
            for _ in 0..random.random_range(1..4) {
                // Where the trailer is, every other time.
                let from = if random.random_bool(0.5) { 0 } else { bytes.len() - TRAILER };
                let at = random.random_range(from..bytes.len());
                bytes[at] = random.random();
            }
            bytes.truncate(random.random_range(bytes.len() - 2..=bytes.len()));
            let Some(block) = Block::of(bytes.into()) else { continue };
            let key = &rows[random.random_range(0..rows.len())].key.user_key;
            let _ = block.find(key, Filter::hash(key), u64::MAX);
            let mut at = 0;
            while let Some(row) = block.row(at) {
                assert!(row.next() > at);
                at = row.next();
            }
        }
    }
}
