//! Character sets: reading characters, counting them, validity, case and conversion.

use super::{Collation, tables};

/// A character set. `utf8` in a statement means `Utf8mb3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Charset {
    Binary,
    Ascii,
    Latin1,
    Utf8mb3,
    Utf8mb4,
}

impl Charset {
    /// Every character set.
    pub const ALL: [Charset; 5] =
        [Charset::Ascii, Charset::Binary, Charset::Latin1, Charset::Utf8mb3, Charset::Utf8mb4];

    /// MySQL's name.
    pub fn name(self) -> &'static str {
        match self {
            Charset::Binary => "binary",
            Charset::Ascii => "ascii",
            Charset::Latin1 => "latin1",
            Charset::Utf8mb3 => "utf8mb3",
            Charset::Utf8mb4 => "utf8mb4",
        }
    }

    /// The description in SHOW CHARACTER SET.
    pub fn description(self) -> &'static str {
        match self {
            Charset::Binary => "Binary pseudo charset",
            Charset::Ascii => "US ASCII",
            Charset::Latin1 => "cp1252 West European",
            Charset::Utf8mb3 => "UTF-8 Unicode",
            Charset::Utf8mb4 => "UTF-8 Unicode",
        }
    }

    /// Returns the character set of that name, in any case.
    pub fn by_name(name: &str) -> Option<Charset> {
        let lower = name.to_ascii_lowercase();
        let full = if lower == "utf8" { "utf8mb3" } else { &lower };
        Charset::ALL.into_iter().find(|c| c.name() == full)
    }

    /// Its default collation.
    pub fn default_collation(self) -> &'static Collation {
        super::all().find(|c| c.charset == self && c.is_default).unwrap_or_else(|| Collation::binary())
    }

    /// Its `_bin` collation (`binary` for itself).
    pub fn bin_collation(self) -> &'static Collation {
        let found = super::all().find(|c| c.charset == self && c.name.ends_with("_bin"));
        found.unwrap_or_else(|| Collation::binary())
    }

    /// Most bytes of a character.
    pub const fn max_len(self) -> usize {
        match self {
            Charset::Utf8mb3 => 3,
            Charset::Utf8mb4 => 4,
            _ => 1,
        }
    }

    const fn is_utf8(self) -> bool {
        matches!(self, Charset::Utf8mb3 | Charset::Utf8mb4)
    }

    /// The first character and its length; `None` if `text` is empty or does not start with one.
    pub fn decode(self, text: &[u8]) -> Option<(u32, usize)> {
        let &first = text.first()?;
        match self {
            Charset::Binary => Some((u32::from(first), 1)),
            Charset::Ascii => (first < 0x80).then_some((u32::from(first), 1)),
            Charset::Latin1 => Some((latin1_code(first), 1)),
            Charset::Utf8mb3 => decode_utf8(text, 3),
            Charset::Utf8mb4 => decode_utf8(text, 4),
        }
    }

    /// Appends a character; `false` if the set does not have it.
    pub fn encode(self, code: u32, out: &mut Vec<u8>) -> bool {
        match self {
            Charset::Binary if code < 256 => out.push(code as u8),
            Charset::Ascii if code < 128 => out.push(code as u8),
            Charset::Latin1 => match latin1_byte(code) {
                Some(byte) => out.push(byte),
                None => return false,
            },
            Charset::Utf8mb3 | Charset::Utf8mb4 => {
                let Some(c) = char::from_u32(code).filter(|c| c.len_utf8() <= self.max_len()) else {
                    return false;
                };
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            _ => return false,
        }
        true
    }

    /// Bytes at the start of `text` that are whole, valid characters.
    pub fn well_formed_len(self, text: &[u8]) -> usize {
        match self {
            Charset::Binary | Charset::Latin1 => text.len(),
            Charset::Ascii => text.iter().position(|b| !b.is_ascii()).unwrap_or(text.len()),
            Charset::Utf8mb3 | Charset::Utf8mb4 => {
                let valid = match std::str::from_utf8(text) {
                    Ok(_) => text.len(),
                    Err(e) => e.valid_up_to(),
                };
                if self == Charset::Utf8mb4 {
                    return valid;
                }
                text[..valid].iter().position(|&b| b >= 0xf0).unwrap_or(valid)
            }
        }
    }

    /// The byte offset behind the first `chars` characters, at most the length.
    pub fn byte_offset(self, text: &[u8], chars: usize) -> usize {
        if !self.is_utf8() || text.len() <= chars {
            return text.len().min(chars);
        }
        let mut left = chars;
        for (at, &b) in text.iter().enumerate() {
            if b & 0xc0 != 0x80 {
                if left == 0 {
                    return at;
                }
                left -= 1;
            }
        }
        text.len()
    }

    /// Characters `start..start + len`, counted from 0.
    pub fn substring(self, text: &[u8], start: usize, len: usize) -> &[u8] {
        let rest = &text[self.byte_offset(text, start)..];
        &rest[..self.byte_offset(rest, len)]
    }

    /// Appends `text` in upper case.
    pub fn upper(self, text: &[u8], out: &mut Vec<u8>) {
        match self {
            Charset::Binary => out.extend_from_slice(text),
            Charset::Ascii => out.extend(text.iter().map(u8::to_ascii_uppercase)),
            Charset::Latin1 => {
                out.extend(text.iter().map(|&b| tables::LATIN1_UPPER[usize::from(b)]));
            }
            _ => map_chars(self, text, out, |c| single(c, c.to_uppercase())),
        }
    }

    /// Appends `text` in lower case.
    pub fn lower(self, text: &[u8], out: &mut Vec<u8>) {
        match self {
            Charset::Binary => out.extend_from_slice(text),
            Charset::Ascii => out.extend(text.iter().map(u8::to_ascii_lowercase)),
            Charset::Latin1 => {
                out.extend(text.iter().map(|&b| tables::LATIN1_LOWER[usize::from(b)]));
            }
            _ => map_chars(self, text, out, |c| single(c, c.to_lowercase())),
        }
    }

    /// Appends `text`, written in `self`, in `to`. Returns how many characters had no counterpart
    /// and became '?'. To or from `binary` the bytes stay as they are.
    pub fn convert(self, to: Charset, text: &[u8], out: &mut Vec<u8>) -> usize {
        if self.converts_as_is(to) || text.is_ascii() {
            out.extend_from_slice(text);
            return 0;
        }
        let mut bad = 0;
        let mut rest = text;
        while !rest.is_empty() {
            let used = match self.decode(rest) {
                Some((code, len)) if to.encode(code, out) => len,
                other => {
                    out.push(b'?');
                    bad += 1;
                    other.map_or(1, |(_, len)| len)
                }
            };
            rest = &rest[used..];
        }
        bad
    }

    /// Valid text of `self` is valid text of `to`, byte for byte.
    pub fn converts_as_is(self, to: Charset) -> bool {
        self == to
            || to == Charset::Binary
            || self == Charset::Binary
            || self == Charset::Ascii
            || (self == Charset::Utf8mb3 && to == Charset::Utf8mb4)
    }
}

fn latin1_code(byte: u8) -> u32 {
    match byte {
        0x80..=0x9f => u32::from(tables::LATIN1_HIGH[usize::from(byte - 0x80)]),
        _ => u32::from(byte),
    }
}

fn latin1_byte(code: u32) -> Option<u8> {
    match code {
        0..=0x7f | 0xa0..=0xff => Some(code as u8),
        _ => {
            let at = tables::LATIN1_HIGH.iter().position(|&c| u32::from(c) == code)?;
            Some(0x80 + at as u8)
        }
    }
}

/// Decodes one strict UTF-8 character of at most `max` bytes.
fn decode_utf8(text: &[u8], max: usize) -> Option<(u32, usize)> {
    let first = text[0];
    let len = match first {
        0..0x80 => return Some((u32::from(first), 1)),
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return None,
    };
    if len > max {
        return None;
    }
    let s = std::str::from_utf8(text.get(..len)?).ok()?;
    s.chars().next().map(|c| (u32::from(c), len))
}

/// A case mapping only where it is one character, as MySQL's tables are.
fn single(c: char, mut mapped: impl Iterator<Item = char>) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(m), None) => m,
        _ => c,
    }
}

fn map_chars(set: Charset, text: &[u8], out: &mut Vec<u8>, map: impl Fn(char) -> char) {
    let mut rest = text;
    while let Some(&first) = rest.first() {
        let decoded = set.decode(rest).and_then(|(code, len)| Some((char::from_u32(code)?, len)));
        match decoded {
            Some((c, len)) => {
                // A mapping that leaves the set (none is known) keeps the character.
                if !set.encode(u32::from(map(c)), out) {
                    out.extend_from_slice(&rest[..len]);
                }
                rest = &rest[len..];
            }
            None => {
                out.push(first);
                rest = &rest[1..];
            }
        }
    }
}
