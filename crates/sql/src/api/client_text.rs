//! `character_set_client`: what a client wrote, as the parser wants it, and back.
//!
//! The parser reads UTF-8. The one character set of clients that is no part of it and not all ASCII is latin1, of which every
//! byte is one character, so texts go to and fro without loss. Trees therefore hold UTF-8 whatever the client's set; texts
//! stay as they were written, because that is what a log of statements says they are. Pure functions, any thread.

use bytes::Bytes;
use omnibus_parser::ast::{Span, Spanned, Statement};
use omnibus_parser::{ParseError, ParseOptions};
use omnibus_value::collation::{self, Charset};
use std::borrow::Cow;

fn charset(collation: u16) -> Charset {
    collation::by_id_or_binary(collation).charset
}

fn converted(text: &[u8], from: Charset, to: Charset) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + text.len() / 8);
    from.convert(to, text, &mut out);
    out
}

/// A client's text for the parser; `client` is the collation of its character set.
#[must_use]
pub fn to_parser(text: &[u8], client: u16) -> Cow<'_, [u8]> {
    if text.is_ascii() || charset(client) != Charset::Latin1 {
        return Cow::Borrowed(text);
    }
    Cow::Owned(converted(text, Charset::Latin1, Charset::Utf8mb4))
}

/// A text in UTF-8 as such a client would have written it.
pub fn of_client(text: &[u8], client: u16) -> Cow<'_, [u8]> {
    if text.is_ascii() || charset(client) != Charset::Latin1 {
        return Cow::Borrowed(text);
    }
    Cow::Owned(converted(text, Charset::Utf8mb4, Charset::Latin1))
}

/// Text of a collation as the client would have written it: statements in variables.
pub(crate) fn of_value(text: &Bytes, collation: u16, client: u16) -> Bytes {
    let (from, to) = (charset(collation), charset(client));
    if text.is_ascii() || from.converts_as_is(to) {
        return text.clone();
    }
    converted(text, from, to).into()
}

/// A text that the client sent as a value, in `character_set_connection`, as a literal of its would be.
#[must_use]
pub fn parameter(text: Bytes, client: u16, connection: u16) -> Bytes {
    let (from, to) = (charset(client), charset(connection));
    if text.is_ascii() || from == Charset::Binary || to == Charset::Binary || from.converts_as_is(to) {
        return text;
    }
    converted(&text, from, to).into()
}

/// A message in `character_set_results`; what that set lacks is told by its number.
#[must_use]
pub fn message(text: &str, results: u16) -> Cow<'_, [u8]> {
    let to = charset(results);
    if text.is_ascii() || to == Charset::Binary || Charset::Utf8mb4.converts_as_is(to) {
        return text.as_bytes().into();
    }
    let mut out = Vec::with_capacity(text.len());
    for c in text.chars() {
        if !to.encode(c.into(), &mut out) {
            let code = u32::from(c);
            let told = if code > 0xFFFF { format!("\\+{code:06X}") } else { format!("\\{code:04X}") };
            out.extend_from_slice(told.as_bytes());
        }
    }
    out.into()
}

/// A string literal of a tree in `character_set_connection`. What that set lacks becomes a question mark.
pub(crate) fn literal(text: &Bytes, client: u16, connection: u16) -> Bytes {
    if text.is_ascii() {
        return text.clone();
    }
    let (client, connection) = (charset(client), charset(connection));
    let to = if connection == Charset::Binary { client } else { connection };
    let from = if client == Charset::Latin1 { Charset::Utf8mb4 } else { client };
    if from.converts_as_is(to) {
        return text.clone();
    }
    converted(text, from, to).into()
}

/// Characters of UTF-8: bytes of the latin1 that it was.
fn characters(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte & 0xC0 != 0x80).count()
}

/// Parses a client's first statement, asking for the memory of its words; places are those of its own text.
pub(crate) fn parse_first(
    text: &[u8],
    options: &ParseOptions,
    client: u16,
    has_room: &mut dyn FnMut(usize) -> bool,
) -> Result<(Spanned<Statement>, Option<usize>), ParseError> {
    let read = to_parser(text, client);
    let (mut statement, next) = omnibus_parser::parse_first_asking(&read, options, has_room)?;
    if let Cow::Owned(read) = &read {
        let written = |at: usize| characters(read.get(..at).unwrap_or(read));
        let Span { start, end } = statement.span;
        statement.span = Span { start: written(start as usize) as u32, end: written(end as usize) as u32 };
        return Ok((statement, next.map(written)));
    }
    Ok((statement, next))
}
