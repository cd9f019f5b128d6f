//! What FIELDS and LINES say, checked: the form of a file that LOAD DATA reads or INTO OUTFILE writes.

use crate::error::{SqlError, SqlResult};
use bytes::Bytes;
use omnibus_parser::ast::FileFormat;

/// Separators of a text file. Empty ones separate nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub field_end: Bytes,
    pub enclosed: Option<u8>,
    pub optionally: bool,
    pub escape: Option<u8>,
    pub line_start: Bytes,
    pub line_end: Bytes,
}

impl Format {
    /// Fills in MySQL's defaults.
    ///
    /// # Errors
    /// 1083 for a quote or an escape of several characters.
    pub(crate) fn new(tree: &FileFormat, no_backslash_escapes: bool) -> SqlResult<Format> {
        let given = |part: &Option<Bytes>, default: &'static [u8]| {
            part.clone().unwrap_or_else(|| Bytes::from_static(default))
        };
        let escape = given(&tree.fields_escaped, if no_backslash_escapes { b"" } else { b"\\" });
        let enclosed = given(&tree.fields_enclosed, b"");
        if escape.len() > 1 || enclosed.len() > 1 {
            return Err(SqlError::new(
                1083,
                b"42000",
                "Field separator argument is not what is expected; check the manual",
            ));
        }
        Ok(Format {
            field_end: given(&tree.fields_terminated, b"\t"),
            enclosed: enclosed.first().copied(),
            optionally: tree.fields_optionally,
            escape: escape.first().copied(),
            line_start: given(&tree.lines_starting, b""),
            line_end: given(&tree.lines_terminated, b"\n"),
        })
    }

    /// Whether fields are found by their width.
    pub(crate) fn is_fixed(&self) -> bool {
        self.field_end.is_empty() && self.enclosed.is_none()
    }

    /// Whether a separator is not ASCII, which is taken byte by byte.
    pub(crate) fn has_non_ascii(&self) -> bool {
        let quotes = [self.enclosed, self.escape];
        !self.field_end.is_ascii()
            || !self.line_start.is_ascii()
            || !self.line_end.is_ascii()
            || quotes.iter().flatten().any(|c| !c.is_ascii())
    }
}

/// What a character behind the escape character stands for.
pub(crate) fn unescaped(c: u8) -> u8 {
    match c {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'0' => 0,
        b'Z' => 26,
        other => other,
    }
}
