//! Groups of a log file: bytes that are written at once follow a private event with their length and checksum.
//!
//! The *chain* goes through a file: it begins in the file start event with a random salt, and each group's checksum is
//! computed from the salt, the chain so far and the group's bytes. So a reader can tell of every group whether it is
//! whole and whether it is the next one, without the checksums of its events (`binlog_checksum=NONE`). A group's head
//! has a checksum of its own, the *seal*, over its fields and its offset: a head that is found by itself, behind a
//! damaged place, can still be verified. A client that can only write rows cannot forge one, because the salt is not
//! told to clients. Pure.

use crate::checksum::crc32;
use crate::header::HEADER_LEN;
use crate::header::PRIVATE_MAGIC;
use crate::{EventType, RawEvent};
use crc32fast::Hasher;

/// The first bytes of the body of a group's head.
pub const GROUP_MARK: &[u8] = b"OMNI\xcb\x01";
/// Bytes of a private body's beginning: magic, kind, version.
const PREFIX: usize = PRIVATE_MAGIC.len() + 2;
/// The byte range of the head's checksum in a file start event.
const HEAD_CRC: std::ops::Range<usize> = HEADER_LEN + PREFIX + 28..HEADER_LEN + PREFIX + 32;
/// Bytes of a group's head: an event with its header, without padding and checksum.
pub const GROUP_HEAD_LEN: usize = HEADER_LEN + PREFIX + GroupHead::FIELDS;

/// The chain's start, from a file start event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainStart {
    /// Random, so that bytes from elsewhere never match.
    pub salt: u64,
    /// The end of the previous file's last group; 0 if it is not known.
    pub before_end: u64,
    /// The chain's value at that end.
    pub before_chain: u32,
    /// Checksum of the salt and of the file's head behind FORMAT_DESCRIPTION: see [`ChainStart::head_crc`].
    pub crc: u32,
}

impl ChainStart {
    /// Computes the checksum of a file's head. `before` are the bytes between FORMAT_DESCRIPTION and the file start
    /// event; `event` is the file start event, without its own checksum.
    #[must_use]
    pub fn head_crc(&self, before: &[u8], event: &[u8]) -> u32 {
        let mut hash = Hasher::new();
        hash.update(&self.salt.to_le_bytes());
        hash.update(before);
        hash.update(event.get(..HEAD_CRC.start).unwrap_or(event));
        hash.update(event.get(HEAD_CRC.end..).unwrap_or_default());
        hash.finalize()
    }

    /// Returns the chain at the beginning of the file.
    #[must_use]
    pub fn chain(&self) -> Chain {
        Chain { salt: self.salt, last: self.crc }
    }
}

/// The fields of a group's head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupHead {
    /// Bytes of the group behind this event.
    pub len: u64,
    /// Every commit up to this number was durable when the group was sealed.
    pub durable: u64,
    /// The chain's value before the group.
    pub previous: u32,
    /// The chain's value behind the group.
    pub chain: u32,
    /// The seal; see the module.
    pub seal: u32,
}

impl GroupHead {
    pub(crate) const FIELDS: usize = 28;

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.len.to_le_bytes());
        out.extend_from_slice(&self.durable.to_le_bytes());
        for number in [self.previous, self.chain, self.seal] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }

    pub(crate) fn decode(payload: &[u8]) -> Option<GroupHead> {
        let long = |at: usize| Some(u64::from_le_bytes(*payload.get(at..)?.first_chunk()?));
        let short = |at: usize| Some(u32::from_le_bytes(*payload.get(at..)?.first_chunk()?));
        Some(GroupHead {
            len: long(0)?,
            durable: long(8)?,
            previous: short(16)?,
            chain: short(20)?,
            seal: short(24)?,
        })
    }

    /// Returns whether the head was written at `offset` of the file with this salt.
    #[must_use]
    pub fn is_sealed(&self, salt: u64, offset: u64) -> bool {
        self.seal == self.seal_of(salt, offset)
    }

    fn seal_of(&self, salt: u64, offset: u64) -> u32 {
        let mut bytes = Vec::with_capacity(16 + Self::FIELDS);
        bytes.extend_from_slice(&salt.to_le_bytes());
        bytes.extend_from_slice(&offset.to_le_bytes());
        GroupHead { seal: 0, ..*self }.encode(&mut bytes);
        crc32(&bytes)
    }
}

/// Returns whether an event is the head of a group.
#[must_use]
pub fn opens_group(event: &RawEvent<'_>) -> bool {
    event.header.event_type == EventType::IGNORABLE && event.body.starts_with(GROUP_MARK)
}

/// The chain up to some group of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    salt: u64,
    last: u32,
}

impl Chain {
    /// The file's salt.
    #[must_use]
    pub fn salt(&self) -> u64 {
        self.salt
    }

    /// The chain's value behind the last group.
    #[must_use]
    pub fn last(&self) -> u32 {
        self.last
    }

    /// Creates the hash for the bytes of the next group.
    #[must_use]
    pub fn hash(&self) -> GroupHash {
        let mut hash = GroupHash::default();
        hash.update(&self.salt.to_le_bytes());
        hash.update(&self.last.to_le_bytes());
        hash
    }

    /// Adds a group of `len` bytes with this hash, and returns its head for file offset `offset`.
    pub fn add(&mut self, hash: GroupHash, offset: u64, len: u64, durable: u64) -> GroupHead {
        let mut head = GroupHead { len, durable, previous: self.last, chain: hash.finish(), seal: 0 };
        head.seal = head.seal_of(self.salt, offset);
        self.last = head.chain;
        head
    }

    /// Returns whether `head`, found at `offset`, is the head of the next group.
    #[must_use]
    pub fn expects(&self, head: &GroupHead, offset: u64) -> bool {
        head.previous == self.last && head.is_sealed(self.salt, offset)
    }

    /// Advances behind a group whose bytes have this hash. Returns false, without advancing, if its head has another
    /// hash.
    #[must_use]
    pub fn follow(&mut self, head: &GroupHead, hash: GroupHash) -> bool {
        let whole = hash.finish() == head.chain;
        if whole {
            self.last = head.chain;
        }
        whole
    }
}

/// The incremental hash of a group's bytes.
#[derive(Clone, Debug, Default)]
pub struct GroupHash(Hasher);

impl GroupHash {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Adds the bytes that were hashed by `other`, which began as a default.
    pub fn append(&mut self, other: &GroupHash) {
        self.0.combine(&other.0);
    }

    fn finish(self) -> u32 {
        self.0.finalize()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn start() -> Chain {
        ChainStart { salt: 77, crc: 5, ..ChainStart::default() }.chain()
    }

    #[test]
    fn a_group_is_the_next_one_only_at_its_place_with_its_bytes_behind_its_predecessor() {
        let mut writer = start();
        let hash = |chain: &Chain, bytes: &[u8]| {
            let mut hash = chain.hash();
            hash.update(bytes);
            hash
        };
        let first = writer.add(hash(&writer, b"one"), 100, 3, 0);
        let second = writer.add(hash(&writer, b"two"), 200, 3, 1);
        let mut reader = start();
        assert!(!reader.expects(&second, 200), "not before the first");
        assert!(!reader.expects(&first, 101), "not elsewhere");
        assert!(reader.expects(&first, 100));
        assert!(!reader.follow(&first, hash(&reader, b"onf")));
        assert!(reader.follow(&first, hash(&reader, b"one")));
        assert!(reader.expects(&second, 200) && reader.follow(&second, hash(&reader, b"two")));
        assert_eq!(reader, writer);
        assert!(second.is_sealed(77, 200) && !second.is_sealed(78, 200));
        assert!(!GroupHead { durable: 2, ..second }.is_sealed(77, 200), "what it claims is sealed too");
    }

    #[test]
    fn bytes_that_were_hashed_elsewhere_count_the_same() {
        let (mut whole, mut part, mut other) = (start().hash(), start().hash(), GroupHash::default());
        whole.update(b"front and rest");
        part.update(b"front ");
        other.update(b"and rest");
        part.append(&other);
        assert_eq!(part.finish(), whole.finish());
    }

    #[test]
    fn any_flipped_bit_of_a_files_head_shows() {
        let start = ChainStart { salt: 9, before_end: 1, before_chain: 2, crc: 0 };
        let event: Vec<u8> = (0..HEAD_CRC.end as u8 + 20).collect();
        let whole = start.head_crc(b"previous", &event);
        for bit in 0..event.len() * 8 {
            let mut flipped = event.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let same = start.head_crc(b"previous", &flipped) == whole;
            assert_eq!(same, HEAD_CRC.contains(&(bit / 8)), "bit {bit}");
        }
        assert_ne!(start.head_crc(b"previout", &event), whole);
    }
}
