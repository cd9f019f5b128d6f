//! The source of a MySQL GTID's number: a server's UUID and, from MySQL 8.3 on, a tag. MySQL calls it TSID.
//!
//! Text form: `uuid` or `uuid:tag`. Pure.

use crate::server_uuid::{GtidParseError, ServerUuid};
use std::fmt;
use std::str::FromStr;

/// The maximum length of a tag in bytes.
pub const TAG_LEN_MAX: usize = 32;

/// A name that a session gives to a part of its server's transactions: `[a-z_][a-z0-9_]*`, at most 32 bytes; usually
/// empty. It is padded with zeros, so that tags compare as their bytes do and the empty tag comes first.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag([u8; TAG_LEN_MAX]);

impl Tag {
    /// The empty tag.
    pub const NONE: Tag = Tag([0; TAG_LEN_MAX]);

    /// Returns whether the tag is empty.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.0[0] == 0
    }

    /// The tag's bytes without padding.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        let len = self.0.iter().position(|byte| *byte == 0).unwrap_or(TAG_LEN_MAX);
        &self.0[..len]
    }

    /// Creates a tag from its letters, in either case; the empty tag from no bytes. `None` if they are not a tag.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Tag> {
        let mut tag = [0; TAG_LEN_MAX];
        tag.get_mut(..bytes.len())?.copy_from_slice(bytes);
        tag.make_ascii_lowercase();
        let well = |(at, byte): (usize, &u8)| {
            byte.is_ascii_lowercase() || *byte == b'_' || at > 0 && byte.is_ascii_digit()
        };
        tag[..bytes.len()].iter().enumerate().all(well).then_some(Tag(tag))
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{}", char::from(*byte)))
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tag({self})")
    }
}

impl FromStr for Tag {
    type Err = GtidParseError;

    fn from_str(text: &str) -> Result<Tag, GtidParseError> {
        Tag::from_bytes(text.as_bytes())
            .filter(|tag| !tag.is_none())
            .ok_or_else(|| GtidParseError(text.to_owned()))
    }
}

/// A UUID and perhaps a tag. Ordered by UUID, then tag, with the empty tag first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tsid {
    /// The server.
    pub uuid: ServerUuid,
    /// The tag, empty for most transactions.
    pub tag: Tag,
}

impl Tsid {
    /// Combines a server and a tag.
    #[must_use]
    pub fn new(uuid: ServerUuid, tag: Tag) -> Tsid {
        Tsid { uuid, tag }
    }
}

impl From<ServerUuid> for Tsid {
    fn from(uuid: ServerUuid) -> Tsid {
        Tsid { uuid, tag: Tag::NONE }
    }
}

impl fmt::Display for Tsid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tag.is_none() {
            true => self.uuid.fmt(f),
            false => write!(f, "{}:{}", self.uuid, self.tag),
        }
    }
}
