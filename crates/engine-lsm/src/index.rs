//! Where the blocks of a table file are: the last key of each, and its place in the file.
//!
//! The file has that in blocks of its own, which the tree finds through a block of theirs: two searches whose steps parse a row each, and
//! the cache is asked twice. Here it is one search over what nearly every comparison ends with, the first 16 bytes of keys, one after the other.
//! It takes about three thousandths of the blocks' own room.

use crate::list::head;
use lsm_tree::table::{BlockHandle, BlockOffset};

/// The blocks of a table in the order of their keys.
#[derive(Default)]
pub(crate) struct Index {
    /// The first 16 bytes of the last keys.
    heads: Vec<[u64; 2]>,
    /// The last keys, one behind the other, and where each ends.
    keys: Vec<u8>,
    ends: Vec<u32>,
    places: Vec<(u64, u32)>,
}

impl Index {
    /// Adds the next block; false if there are more keys than it can count.
    pub(crate) fn push(&mut self, last: &[u8], offset: u64, size: u32) -> bool {
        self.keys.extend_from_slice(last);
        let Ok(end) = u32::try_from(self.keys.len()) else { return false };
        self.heads.push(head(last));
        self.ends.push(end);
        self.places.push((offset, size));
        true
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Bytes of memory.
    pub(crate) fn size(&self) -> usize {
        self.keys.len() + self.len() * (size_of::<[u64; 2]>() + 4 + size_of::<(u64, u32)>())
    }

    /// Gives back what vectors took for growing.
    pub(crate) fn shrink(&mut self) {
        self.heads.shrink_to_fit();
        self.keys.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.places.shrink_to_fit();
    }

    /// The last key that a block has.
    pub(crate) fn last_key(&self, block: usize) -> &[u8] {
        let begin = if block == 0 { 0 } else { self.ends[block - 1] as usize };
        &self.keys[begin..self.ends[block] as usize]
    }

    pub(crate) fn place(&self, block: usize) -> BlockHandle {
        let (offset, size) = self.places[block];
        BlockHandle::new(BlockOffset(offset), size)
    }

    /// The first block that may have a key that is not before `key`.
    pub(crate) fn lower_bound(&self, key: &[u8]) -> usize {
        let begins = head(key);
        let first = self.heads.partition_point(|head| *head < begins);
        let alike = self.heads[first..].partition_point(|head| *head == begins);
        let (mut low, mut high) = (first, first + alike);
        while low < high {
            let middle = low.midpoint(high);
            if self.last_key(middle) < key { low = middle + 1 } else { high = middle }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_in_the_first_block_that_ends_with_it_or_behind_it() {
        let long = |last: u8| [&b"sixteen bytes ..and more"[..], &[last]].concat();
        let lasts = [b"b".to_vec(), b"d".to_vec(), long(1), long(1), long(3), b"x".to_vec()];
        let mut index = Index::default();
        for (at, last) in lasts.iter().enumerate() {
            assert!(index.push(last, at as u64 * 100, 10));
        }
        let probes =
            [&b"a"[..], b"b", b"ba", b"d", b"e", b"sixteen bytes ..", b"x", b"xa", &long(0), &long(1)];
        for key in probes.into_iter().chain([&long(2)[..], &long(3), &long(4)]) {
            let expected = lasts.iter().position(|last| &last[..] >= key).unwrap_or(lasts.len());
            assert_eq!(index.lower_bound(key), expected, "{key:?}");
        }
        assert_eq!((*index.place(4).offset(), index.place(4).size()), (400, 10));
        assert_eq!(index.last_key(4), long(3));
    }
}
