//! Characters and collations as expressions need them: counting, cutting, case, comparing.
//!
//! A thin layer over `omnibus_value::collation`, keyed by collation id. Every supported character
//! set is a superset of ASCII with one byte (latin1, ascii, binary) or UTF-8's one to four.

use super::types::BINARY;
use crate::error::SqlError;
use bytes::Bytes;
use omnibus_value::collation::{Charset, Collation, by_id_or_binary};
use std::cmp::Ordering;

/// The collation with an id.
#[must_use]
#[inline]
pub fn collation(id: u16) -> &'static Collation {
    by_id_or_binary(id)
}

fn charset(id: u16) -> Charset {
    collation(id).charset
}

/// Whether a collation's characters have one byte each.
#[must_use]
pub fn is_single_byte(id: u16) -> bool {
    id == BINARY || charset(id).max_len() == 1
}

/// Whether strings of a collation are ordered by their bytes.
#[must_use]
pub fn is_binary_order(id: u16) -> bool {
    collation(id).is_binary_order()
}

/// Bytes of the first character of `text`, at least 1 unless `text` is empty. A byte that is no
/// character counts as one.
#[must_use]
#[inline]
pub fn char_width(text: &[u8], collation: u16) -> usize {
    let Some(&first) = text.first() else { return 0 };
    if first < 0x80 || is_single_byte(collation) {
        return 1;
    }
    let width = match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return 1,
    };
    match text.get(1..width) {
        Some(rest) if rest.iter().all(|b| b & 0xc0 == 0x80) => width,
        _ => 1,
    }
}

/// The characters of a text, each as its bytes.
pub fn chars(text: &[u8], collation: u16) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let width = char_width(rest, collation);
        let (character, tail) = rest.split_at_checked(width).filter(|_| width > 0)?;
        rest = tail;
        Some(character)
    })
}

/// How many characters a text has.
#[must_use]
pub fn char_count(text: &[u8], collation: u16) -> usize {
    if is_single_byte(collation) || text.is_ascii() { text.len() } else { chars(text, collation).count() }
}

/// `length` characters from character `start` on, or as many as there are.
#[must_use]
pub fn slice_chars(text: &Bytes, start: usize, length: usize, collation: u16) -> Bytes {
    text.slice(char_range(text, start, length, collation))
}

/// Where `length` characters from character `start` on lie, or as many as there are.
#[must_use]
pub fn char_range(text: &[u8], start: usize, length: usize, collation: u16) -> std::ops::Range<usize> {
    if is_single_byte(collation) || text.is_ascii() {
        let from = start.min(text.len());
        return from..from.saturating_add(length).min(text.len());
    }
    let width = |from: usize, count: usize| -> usize {
        chars(&text[from..], collation).take(count).map(<[u8]>::len).sum()
    };
    let from = width(0, start);
    from..from + width(from, length)
}

/// The text in upper case; binary strings stay as they are.
#[must_use]
pub fn to_upper(text: &Bytes, id: u16) -> Bytes {
    if id == BINARY {
        return text.clone();
    }
    let mut out = Vec::with_capacity(text.len());
    charset(id).upper(text, &mut out);
    out.into()
}

/// The text in lower case; binary strings stay as they are.
#[must_use]
pub fn to_lower(text: &Bytes, id: u16) -> Bytes {
    if id == BINARY {
        return text.clone();
    }
    let mut out = Vec::with_capacity(text.len());
    charset(id).lower(text, &mut out);
    out.into()
}

/// Order of two strings under a collation, padded if it is a PAD SPACE one.
#[must_use]
#[inline]
pub fn compare(a: &[u8], b: &[u8], id: u16) -> Ordering {
    if id == BINARY {
        return a.cmp(b);
    }
    collation(id).compare(a, b)
}

/// Whether two strings of about the same number of characters are equal under a collation.
/// Trailing spaces are significant where the lengths in characters differ.
#[must_use]
pub fn compare_no_pad(a: &[u8], b: &[u8], id: u16) -> Ordering {
    if id == BINARY {
        return a.cmp(b);
    }
    match collation(id).compare(a, b) {
        Ordering::Equal if a.ends_with(b" ") != b.ends_with(b" ") => a.len().cmp(&b.len()),
        order => order,
    }
}

/// The one of two collations of equal strength that an operation uses, if MySQL chooses one: the binary
/// one of the same character set; the Unicode one of two character sets.
#[must_use]
pub fn prefer(a: u16, b: u16) -> Option<u16> {
    if charset(a) == charset(b) {
        return match (is_binary_order(a), is_binary_order(b)) {
            (true, false) => Some(a),
            (false, true) => Some(b),
            _ => None,
        };
    }
    match (charset(a), charset(b)) {
        (Charset::Utf8mb4, _) => Some(a),
        (_, Charset::Utf8mb4) => Some(b),
        (Charset::Utf8mb3, _) => Some(a),
        (_, Charset::Utf8mb3) => Some(b),
        (Charset::Ascii, _) => Some(b),
        (_, Charset::Ascii) => Some(a),
        _ => None,
    }
}

/// The binary collation of a collation's character set.
#[must_use]
pub fn binary_of(id: u16) -> u16 {
    omnibus_value::collation::by_name(&format!("{}_bin", charset_name(id))).map_or(BINARY, |found| found.id)
}

/// Whether text of one collation is text of another byte for byte.
#[must_use]
pub fn converts_as_is(from: u16, to: u16) -> bool {
    from == to || from == BINARY || to == BINARY || charset(from).converts_as_is(charset(to))
}

/// A text of one character set in another; characters without a counterpart become `?`.
#[must_use]
pub fn convert(text: &Bytes, from: u16, to: u16) -> Bytes {
    if text.is_ascii() || converts_as_is(from, to) {
        return text.clone();
    }
    let mut out = Vec::with_capacity(text.len());
    charset(from).convert(charset(to), text, &mut out);
    out.into()
}

/// Bytes at the start of a text that are characters of a collation's character set.
#[must_use]
pub fn well_formed(text: &[u8], id: u16) -> usize {
    if text.is_ascii() || id == BINARY {
        return text.len();
    }
    let mut at = 0;
    while let Some((_, len)) = charset(id).decode(&text[at..]) {
        at += len;
    }
    at
}

/// A collation's counterpart in UTF-8, the only one that regular expressions read; bytes are taken for it.
#[must_use]
pub fn in_utf8(id: u16) -> u16 {
    match charset(id) {
        Charset::Latin1 if is_binary_order(id) => binary_of(crate::catalog::charset::server_default()),
        Charset::Latin1 => crate::catalog::charset::server_default(),
        _ => id,
    }
}

/// Error 1300 of what begins with bytes that are no character.
#[must_use]
pub fn invalid(rest: &[u8], id: u16) -> SqlError {
    let shown: String = rest.iter().take(6).map(|byte| format!("{byte:02X}")).collect();
    SqlError::new(1300, b"HY000", format!("Invalid {} character string: '{shown}'", charset_name(id)))
}

/// Our own text in a character set.
#[must_use]
pub fn from_utf8(text: &str, to: u16) -> Bytes {
    convert(&Bytes::copy_from_slice(text.as_bytes()), crate::catalog::charset::server_default(), to)
}

/// A collation's name.
#[must_use]
pub fn collation_name(id: u16) -> &'static str {
    collation(id).name
}

/// A character set's name, by collation.
#[must_use]
pub fn charset_name(id: u16) -> &'static str {
    charset(id).name()
}

/// Most bytes of a character.
#[must_use]
pub fn max_width(id: u16) -> u32 {
    charset(id).max_len() as u32
}
