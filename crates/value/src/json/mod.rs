//! JSON: MySQL's document model, its text, its binary form, paths and comparison.
//!
//! Depth is limited to 100 everywhere, so recursion is bounded. Object members are kept in MySQL's
//! order, by key length and then by bytes; of duplicate keys the last one wins.

mod binary;
mod compare;
mod equal;
mod modify;
mod number;
mod parse;
mod path;
mod text;

#[cfg(test)]
mod tests;

use bytes::Bytes;

use crate::decimal::Decimal;
use crate::temporal::{Date, DateTime, Time};

pub use modify::SetMode;
pub use path::{Index, Leg, Path};

/// Deepest nesting of arrays and objects.
pub const MAX_DEPTH: usize = 100;

/// A JSON document or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// null
    Null,
    /// true, false
    Bool(bool),
    /// An integer that fits BIGINT.
    Int(i64),
    /// An integer that fits only BIGINT UNSIGNED.
    UInt(u64),
    /// Any other number in a text.
    Double(f64),
    /// A DECIMAL that was converted to JSON.
    Decimal(Decimal),
    /// A string, valid UTF-8.
    String(String),
    /// A DATE that was converted to JSON.
    Date(Date),
    /// A DATETIME that was converted to JSON.
    DateTime(DateTime),
    /// A TIMESTAMP that was converted to JSON.
    Timestamp(DateTime),
    /// A TIME that was converted to JSON.
    Time(Time),
    /// Another MySQL value: its MYSQL_TYPE and bytes.
    Opaque(u8, Bytes),
    /// An array.
    Array(Vec<Json>),
    /// An object, in MySQL's key order, keys unique.
    Object(Vec<(String, Json)>),
}

/// Why text or bytes are no JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The text is not JSON; the offset is where reading stopped.
    #[error("{message}")]
    Syntax {
        /// MySQL's words for it.
        message: &'static str,
        /// Byte offset.
        offset: usize,
    },
    /// More than 100 levels.
    #[error("The JSON document exceeds the maximum depth.")]
    TooDeep,
    /// Longer than 4 GiB.
    #[error("The JSON document is too large.")]
    TooLarge,
    /// A key of 64 KiB or more.
    #[error("The JSON object contains a key name that is too long.")]
    LongKey,
    /// The binary form is damaged.
    #[error("Invalid JSON binary data.")]
    Damaged,
    /// The text is not a path; the offset is where reading stopped.
    #[error("Invalid JSON path expression. The error is around character position {offset}.")]
    Path {
        /// Character position.
        offset: usize,
    },
}

impl Json {
    /// Reads text; it must be UTF-8.
    pub fn parse(text: &[u8]) -> Result<Json, JsonError> {
        parse::parse(text)
    }
    /// Reads the binary form.
    pub fn decode(binary: &[u8]) -> Result<Json, JsonError> {
        binary::decode(binary)
    }
    /// Writes the binary form.
    pub fn encode(&self) -> Result<Bytes, JsonError> {
        binary::encode(self)
    }
    /// Appends MySQL's text form.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        text::write(self, out);
    }
    /// An object from members in any order.
    pub fn object(members: impl IntoIterator<Item = (String, Json)>) -> Json {
        let mut members: Vec<_> = members.into_iter().collect();
        sort_members(&mut members);
        Json::Object(members)
    }
    /// JSON_TYPE's name.
    pub fn type_name(&self) -> &'static str {
        match self {
            Json::Null => "NULL",
            Json::Bool(_) => "BOOLEAN",
            Json::Int(_) => "INTEGER",
            Json::UInt(_) => "UNSIGNED INTEGER",
            Json::Double(_) => "DOUBLE",
            Json::Decimal(_) => "DECIMAL",
            Json::String(_) => "STRING",
            Json::Date(_) => "DATE",
            Json::DateTime(_) => "DATETIME",
            Json::Timestamp(_) => "TIMESTAMP",
            Json::Time(_) => "TIME",
            Json::Opaque(16, _) => "BIT",
            Json::Opaque(249..=252 | 15 | 253 | 254, _) => "BLOB",
            Json::Opaque(..) => "OPAQUE",
            Json::Array(_) => "ARRAY",
            Json::Object(_) => "OBJECT",
        }
    }
    /// JSON_DEPTH.
    pub fn depth(&self) -> usize {
        match self {
            Json::Array(items) => 1 + items.iter().map(Json::depth).max().unwrap_or(0),
            Json::Object(items) => 1 + items.iter().map(|(_, v)| v.depth()).max().unwrap_or(0),
            _ => 1,
        }
    }
    /// About how many bytes it takes, which is no less than its binary form does.
    #[must_use]
    pub fn memory(&self) -> usize {
        let inside = match self {
            Json::Array(items) => items.iter().map(Json::memory).sum(),
            Json::Object(members) => {
                let member = |(name, value): &(String, Json)| {
                    size_of::<String>() + name.len() + SMALLEST + value.memory()
                };
                members.iter().map(member).sum()
            }
            Json::String(text) => text.len() + SMALLEST,
            Json::Opaque(_, bytes) => bytes.len() + SMALLEST,
            _ => 0,
        };
        size_of::<Json>() + inside
    }
    /// JSON_LENGTH.
    pub fn length(&self) -> usize {
        match self {
            Json::Array(items) => items.len(),
            Json::Object(items) => items.len(),
            _ => 1,
        }
    }
    /// JSON_UNQUOTE: a string's characters, anything else as text.
    pub fn unquote(&self, out: &mut Vec<u8>) {
        match self {
            Json::String(s) => out.extend_from_slice(s.as_bytes()),
            Json::Opaque(kind, data) => out.extend_from_slice(text::opaque(*kind, data).as_bytes()),
            Json::Date(_) | Json::DateTime(_) | Json::Timestamp(_) | Json::Time(_) => {
                let mut quoted = Vec::new();
                self.write_text(&mut quoted);
                out.extend_from_slice(&quoted[1..quoted.len() - 1]);
            }
            other => other.write_text(out),
        }
    }
    /// A member of an object.
    pub fn get(&self, key: &str) -> Option<&Json> {
        let Json::Object(members) = self else { return None };
        let at = members.binary_search_by(|(k, _)| key_order(k, key)).ok()?;
        Some(&members[at].1)
    }
}

/// Text to binary, as storing into a JSON column does.
pub fn text_to_binary(text: &[u8]) -> Result<Bytes, JsonError> {
    Json::parse(text)?.encode()
}

/// Binary to text, as reading a JSON column does.
pub fn binary_to_text(binary: &[u8], out: &mut Vec<u8>) -> Result<(), JsonError> {
    Json::decode(binary).map(|json| json.write_text(out))
}

/// JSON_VALID of text.
///
/// # Errors
/// `TooDeep`, which MySQL does not take for an answer.
pub fn is_valid_text(text: &[u8]) -> Result<bool, JsonError> {
    match Json::parse(text) {
        Ok(_) => Ok(true),
        Err(JsonError::TooDeep) => Err(JsonError::TooDeep),
        Err(_) => Ok(false),
    }
}

/// A double as MySQL prints it inside JSON.
pub fn write_double(n: f64, out: &mut Vec<u8>) {
    text::write_double(n, out);
}

/// Appends a JSON string literal (JSON_QUOTE).
pub fn write_quoted(s: &str, out: &mut Vec<u8>) {
    text::write_string(s, out);
}

/// Room for a member of an object, or an item of an array.
const MEMBER: usize = size_of::<(String, Json)>();
/// The smallest allocation in bytes.
const SMALLEST: usize = 16;

/// Returns an upper bound of the bytes that parsing a text takes, computed from its punctuation without parsing it.
#[must_use]
pub fn memory_of_text(text: &[u8]) -> usize {
    let (mut opens, mut commas, mut quotes) = (0usize, 0usize, 0usize);
    for byte in text {
        match byte {
            b'[' | b'{' => opens += 1,
            b',' => commas += 1,
            b'"' => quotes += 1,
            _ => {}
        }
    }
    // Lists begin with room for four and grow by doubling.
    let lists = MEMBER * (4 * opens + 2 * commas + 1);
    let texts = if quotes == 0 { 0 } else { 2 * text.len() + SMALLEST * quotes };
    lists + texts
}

/// The same of the binary form.
#[must_use]
pub fn memory_of_binary(binary: &[u8]) -> usize {
    // Texts, and names with what they take at least.
    let nodes = binary::nodes(binary);
    size_of::<Json>() + nodes * (MEMBER + SMALLEST) + binary.len()
}

fn key_order(a: &str, b: &str) -> std::cmp::Ordering {
    a.len().cmp(&b.len()).then_with(|| a.as_bytes().cmp(b.as_bytes()))
}

fn sort_members(members: &mut Vec<(String, Json)>) {
    // Stable, so that of equal keys the last written is the last here.
    members.sort_by(|a, b| key_order(&a.0, &b.0));
    members.dedup_by(|later, earlier| {
        let same = later.0 == earlier.0;
        if same {
            std::mem::swap(later, earlier);
        }
        same
    });
}
