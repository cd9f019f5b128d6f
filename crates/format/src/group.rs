//! Groups of a log file: what is written at once stands behind a private event that says how long it is and what its bytes add up to.
//!
//! The *chain* goes through a file: it begins in the file start event with a random salt, and each group's checksum is
//! computed from the salt, the chain so far and the group's bytes. So a reader knows of every group whether it is whole and
//! whether it is the next one, without the checksums of its events (`binlog_checksum=NONE`). A group's head has a checksum of its
//! own, the *seal*, over its fields and its place: found by itself, behind a damaged place, it is still known to be true. Nobody
//! who can only write rows can make one, because the salt is not told to clients. Pure.

use crate::checksum::crc32;
use crate::header::HEADER_LEN;
use crate::header::PRIVATE_MAGIC;
use crate::{EventType, RawEvent};
use crc32fast::Hasher;

/// What the body of a group's head begins with.
pub const GROUP_MARK: &[u8] = b"OMNI\xcb\x01";
/// Bytes of a private body's beginning: magic, kind, version.
const PREFIX: usize = PRIVATE_MAGIC.len() + 2;
/// Where in a file start event the checksum of the file's head is, and how long it is.
const HEAD_CRC: std::ops::Range<usize> = HEADER_LEN + PREFIX + 28..HEADER_LEN + PREFIX + 32;
/// Bytes of a group's head: an event with its header, without padding and checksum.
pub const GROUP_HEAD_LEN: usize = HEADER_LEN + PREFIX + GroupHead::FIELDS;

/// What a file start event says of the chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainStart {
    /// Random, so that no bytes from elsewhere fit.
    pub salt: u64,
    /// Where the last group of the file before ends; 0 if there is none that is known.
    pub before_end: u64,
    /// The chain there.
    pub before_chain: u32,
    /// Of the salt and of the file's head behind FORMAT_DESCRIPTION: see [`ChainStart::head_crc`].
    pub crc: u32,
}

impl ChainStart {
    /// The checksum of a file's head: `before` is what stands between FORMAT_DESCRIPTION and the file start event, `event` is
    /// that one without its own checksum.
    #[must_use]
    pub fn head_crc(&self, before: &[u8], event: &[u8]) -> u32 {
        let mut hash = Hasher::new();
        hash.update(&self.salt.to_le_bytes());
        hash.update(before);
        hash.update(event.get(..HEAD_CRC.start).unwrap_or(event));
        hash.update(event.get(HEAD_CRC.end..).unwrap_or_default());
        hash.finalize()
    }

    /// The chain at the beginning.
    #[must_use]
    pub fn chain(&self) -> Chain {
        Chain { salt: self.salt, last: self.crc }
    }
}

/// What a group's head says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupHead {
    /// Bytes of the group behind this event.
    pub len: u64,
    /// Every commit up to this number was durable when the group was sealed.
    pub durable: u64,
    /// The chain before it.
    pub previous: u32,
    /// The chain behind it.
    pub chain: u32,
    /// See the module.
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

    /// Whether this was written at `offset` of the file with this salt.
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

/// Whether an event is the head of a group.
#[must_use]
pub fn opens_group(event: &RawEvent<'_>) -> bool {
    event.header.event_type == EventType::IGNORABLE && event.body.starts_with(GROUP_MARK)
}

/// How far the chain of a file has come.
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

    /// Behind the last group.
    #[must_use]
    pub fn last(&self) -> u32 {
        self.last
    }

    /// For the bytes of the next group.
    #[must_use]
    pub fn hash(&self) -> GroupHash {
        let mut hash = GroupHash::default();
        hash.update(&self.salt.to_le_bytes());
        hash.update(&self.last.to_le_bytes());
        hash
    }

    /// Adds a group of `len` bytes with this hash; gives its head, for file offset `offset`.
    pub fn add(&mut self, hash: GroupHash, offset: u64, len: u64, durable: u64) -> GroupHead {
        let mut head = GroupHead { len, durable, previous: self.last, chain: hash.finish(), seal: 0 };
        head.seal = head.seal_of(self.salt, offset);
        self.last = head.chain;
        head
    }

    /// Whether `head`, found at `offset`, is that of the next group.
    #[must_use]
    pub fn expects(&self, head: &GroupHead, offset: u64) -> bool {
        head.previous == self.last && head.is_sealed(self.salt, offset)
    }

    /// Goes on behind a group whose bytes have this hash, if they are the ones that its head tells of.
    #[must_use]
    pub fn follow(&mut self, head: &GroupHead, hash: GroupHash) -> bool {
        let whole = hash.finish() == head.chain;
        if whole {
            self.last = head.chain;
        }
        whole
    }
}

/// The hash of a group's bytes as they come.
#[derive(Clone, Debug, Default)]
pub struct GroupHash(Hasher);

impl GroupHash {
    /// More bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The bytes that went into `other`, which began as a default.
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
