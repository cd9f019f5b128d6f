//! Statements as a session takes them out of the texts that a client sends.

use bytes::Bytes;
use omnibus_parser::ast::{Spanned, Statement};
use omnibus_sql::{Mode, SqlResult, SqlSession};
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
    let (statement, next) = match first_mode(text) {
        Mode::Inline => sql.parse(text)?,
        Mode::Blocking => tokio::task::block_in_place(|| sql.parse(text))?,
    };
    let kind = crate::status::com_index(statement.node.kind());
    let text = text.slice_ref(statement.span.of(text));
    Ok((Arc::new(Parsed { text, statement, kind }), next))
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
    sql.with_params(text, params).into_owned().into()
}
