//! Statements as a session takes them out of the texts that a client sends.

use bytes::Bytes;
use omnibus_parser::ast::{Spanned, Statement};
use omnibus_sql::{Mode, ReadText, SqlResult, SqlSession};
use omnibus_value::Value;
use std::sync::Arc;

/// A parsed statement and its text.
#[derive(Debug)]
pub struct Parsed {
    /// The text of this one statement.
    pub text: Bytes,
    /// Its tree.
    pub statement: Arc<Spanned<Statement>>,
    /// `Com_` counter.
    pub kind: usize,
    /// The values of the statement's parameters, which the text has: it was prepared for texts with other values.
    pub values: Vec<Value>,
}

/// Longer texts are parsed, planned and run where that may take long: a byte costs some ten nanoseconds.
const INLINE_TEXT: usize = 32 << 10;

/// Where a text may be parsed, and where its statement is tried first.
#[must_use]
pub fn first_mode(text: &[u8]) -> Mode {
    if text.len() > INLINE_TEXT { Mode::Blocking } else { Mode::Inline }
}

/// The first statement of a text, and where the next one starts.
pub fn parse(sql: &mut SqlSession, text: &Bytes) -> SqlResult<(Arc<Parsed>, Option<usize>)> {
    parse_as(sql, text, false)
}

fn parse_as(sql: &mut SqlSession, text: &Bytes, to_prepare: bool) -> SqlResult<(Arc<Parsed>, Option<usize>)> {
    let (statement, next) = match first_mode(text) {
        Mode::Inline => sql.parse(text, to_prepare)?,
        Mode::Blocking => crate::net::blocking(|| sql.parse(text, to_prepare))?,
    };
    Ok(cut(ReadText { span: statement.span, statement, next, values: Vec::new() }, text))
}

/// Parses a text that is prepared: it may have `?`.
///
/// # Errors
/// As `parse`.
pub fn parse_to_prepare(sql: &mut SqlSession, text: &Bytes) -> SqlResult<(Arc<Parsed>, Option<usize>)> {
    parse_as(sql, text, true)
}

/// Parses the first statement of a client's text as `parse` does, or finds one that was prepared for texts with other values.
///
/// # Errors
/// As `parse`.
pub fn read(sql: &mut SqlSession, text: &Bytes) -> SqlResult<(Arc<Parsed>, Option<usize>)> {
    match first_mode(text) {
        Mode::Inline => Ok(cut(sql.read(text)?, text)),
        Mode::Blocking => parse(sql, text),
    }
}

/// Returns a statement with its part of a text, and where the next one starts.
fn cut(read: ReadText, text: &Bytes) -> (Arc<Parsed>, Option<usize>) {
    let ReadText { statement, span, next, values } = read;
    let kind = crate::status::com_index(statement.node.kind());
    (Arc::new(Parsed { text: text.slice_ref(span.of(text)), statement, kind, values }), next)
}

impl Parsed {
    /// Where it is tried first.
    #[must_use]
    pub fn first_mode(&self) -> Mode {
        first_mode(&self.text)
    }
}

/// A statement's text with values as literals in the places of its `?`.
pub fn filled(sql: &SqlSession, text: &Bytes, params: &[Value]) -> Bytes {
    omnibus_sql::session::with_params(&sql.state.settings, text, params).into_owned().into()
}
