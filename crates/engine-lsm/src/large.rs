//! Large values in tables: compressed before they reach a block of the tree.
//!
//! A merge keeps some seventy blocks in memory as they are before they are compressed, because a last key that is not in the file's index yet
//! is a slice of its block. A block holds at least one row: with rows of 8 MB that were 600 MB, however well they compress. A block of
//! what is compressed already is as large in memory as in the file, so that a merge holds no more than the file that it writes.
//!
//! A value in a table is the row itself, or, if it begins with `MAGIC`, a packed one: the magic, the kind, the row's length (u32 LE), the
//! XXH3-64 (u64 LE) of all of that but the magic and of the rest, and the rest: the row as an LZ4 block, or the row itself if that saves little
//! and the row begins with the magic. Memtables, the redo log and the binary log have rows as they are.
//!
//! Format 2 of the directory had no packed values, and its tables are read as they are: no row begins with the magic by chance.

use crate::NAME;
use bytes::Bytes;
use omnibus_engine::EngineError;
use xxhash_rust::xxh3::Xxh3;

/// The size in bytes from which a value is compressed here. Smaller values are left to the block's own compression:
/// seventy such blocks are a few megabytes.
const LARGE: usize = 64 << 10;
/// Random bytes.
const MAGIC: [u8; 16] = *b"\x9f\x14\xe6\x03\xb8\x5a\xd1\x7c\x40\xfd\x2b\x96\xc5\x08\x73\xae";
const KIND_PLAIN: u8 = 0;
const KIND_LZ4: u8 = 1;
/// Offset of the checksum.
const CHECKSUM: usize = MAGIC.len() + 5;
const HEADER: usize = CHECKSUM + 8;

/// A row as a table is to have it.
pub(crate) fn pack(row: Bytes) -> Bytes {
    if row.len() >= LARGE
        && let Some(packed) = compressed(&row)
    {
        return packed;
    }
    if !row.starts_with(&MAGIC) {
        return row;
    }
    let Ok(len) = u32::try_from(row.len()) else { return row };
    let mut packed = vec![0; HEADER];
    packed.extend_from_slice(&row);
    finish(packed, KIND_PLAIN, len)
}

/// `None` if that saves less than an eighth: reading it would not be worth it.
fn compressed(row: &[u8]) -> Option<Bytes> {
    let len = u32::try_from(row.len()).ok()?;
    let mut packed = vec![0; HEADER + lz4_flex::block::get_maximum_output_size(row.len())];
    // The room suffices for any row.
    let size = lz4_flex::block::compress_into(row, &mut packed[HEADER..]).ok()?;
    if size > row.len() - row.len() / 8 {
        return None;
    }
    packed.truncate(HEADER + size);
    packed.shrink_to_fit();
    Some(finish(packed, KIND_LZ4, len))
}

fn finish(mut packed: Vec<u8>, kind: u8, len: u32) -> Bytes {
    packed[..MAGIC.len()].copy_from_slice(&MAGIC);
    packed[MAGIC.len()] = kind;
    packed[MAGIC.len() + 1..CHECKSUM].copy_from_slice(&len.to_le_bytes());
    let checksum = checksum(&packed);
    packed[CHECKSUM..HEADER].copy_from_slice(&checksum.to_le_bytes());
    packed.into()
}

fn checksum(packed: &[u8]) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(&packed[MAGIC.len()..CHECKSUM]);
    hasher.update(&packed[HEADER..]);
    hasher.digest()
}

/// Whether a table has a row so.
#[inline]
pub(crate) fn is_packed(value: &[u8]) -> bool {
    value.starts_with(&MAGIC)
}

/// The row that a table has so.
#[inline]
pub(crate) fn unpack(value: Bytes) -> Result<Bytes, EngineError> {
    if is_packed(&value) { row_of(&value) } else { Ok(value) }
}

#[cold]
fn row_of(packed: &Bytes) -> Result<Bytes, EngineError> {
    let damaged =
        || EngineError::Corrupt { engine: NAME, detail: "a packed row in a table is damaged".to_owned() };
    let header: [u8; HEADER] =
        packed.get(..HEADER).and_then(|header| header.try_into().ok()).ok_or_else(damaged)?;
    let kind = header[MAGIC.len()];
    let field = |from: usize, to: usize| {
        header[from..to].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    let (len, wanted) = (field(MAGIC.len() + 1, CHECKSUM), field(CHECKSUM, HEADER));
    // The decoder looks at no bounds: it may only see what has been written here.
    if checksum(packed) != wanted {
        return Err(damaged());
    }
    let len = usize::try_from(len).map_err(|_| damaged())?;
    match kind {
        KIND_PLAIN => Ok(packed.slice(HEADER..)),
        KIND_LZ4 => {
            let mut row = vec![0; len];
            let size =
                lz4_flex::block::decompress_into(&packed[HEADER..], &mut row).map_err(|_| damaged())?;
            if size == len { Ok(row.into()) } else { Err(damaged()) }
        }
        _ => Err(damaged()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn noise(len: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        std::iter::repeat_with(next).take(len).collect()
    }

    #[test]
    fn a_row_comes_back_as_it_was() {
        let with_magic = |rest: &[u8]| [&MAGIC[..], rest].concat();
        for row in [
            Vec::new(),
            noise(100),
            vec![7; LARGE - 1],
            vec![7; LARGE],
            noise(LARGE + 1),
            vec![7; 9 << 20],
            with_magic(b""),
            with_magic(b"short"),
            with_magic(&noise(LARGE)),
            with_magic(&vec![0; LARGE]),
            with_magic(&pack(vec![7; LARGE].into())),
        ] {
            let row = Bytes::from(row);
            let packed = pack(row.clone());
            assert!(packed.len() <= row.len() + HEADER, "{} of {}", packed.len(), row.len());
            assert_eq!(unpack(packed).unwrap(), row);
        }
    }

    #[test]
    fn only_what_is_large_and_compresses_is_packed() {
        let untouched = |row: Vec<u8>| pack(Bytes::from(row.clone())) == row;
        assert!(untouched(vec![7; LARGE - 1]) && untouched(noise(LARGE)) && untouched(MAGIC[..15].to_vec()));
        assert!(pack(vec![7; 8 << 20].into()).len() < 64 << 10);
    }

    /// The decoder trusts what it is given.
    #[test]
    fn no_damaged_byte_reaches_the_decoder() {
        let packed = pack(vec![7; LARGE].into());
        for at in MAGIC.len()..packed.len() {
            let mut damaged = packed.to_vec();
            damaged[at] ^= 1;
            assert!(unpack(damaged.into()).is_err(), "byte {at}");
        }
        for len in MAGIC.len()..packed.len() {
            assert!(unpack(packed.slice(..len)).is_err(), "cut at {len}");
        }
    }
}
