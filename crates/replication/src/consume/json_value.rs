//! Builds the bytes of a JSON line without a tree in between.

use std::fmt::Display;
use std::io::Write;

/// A line under construction.
#[derive(Debug, Default)]
pub(super) struct Line {
    bytes: Vec<u8>,
    /// Whether the next member of the open object or list needs a comma before it.
    comma: bool,
}

impl Line {
    /// Begins an object of this type.
    pub fn begin(&mut self, kind: &str) {
        self.bytes.clear();
        self.comma = false;
        self.open('{');
        self.key("type").text(kind);
    }

    /// Begins an object without a type.
    pub fn begin_bare(&mut self) {
        self.bytes.clear();
        self.open('{');
    }

    /// Returns the text so far.
    pub fn text_of(self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Ends the object and returns the whole line.
    pub fn finish(&mut self) -> &[u8] {
        self.bytes.extend_from_slice(b"}\n");
        &self.bytes
    }

    /// Appends a member's name; its value must follow.
    pub fn key(&mut self, name: &str) -> &mut Line {
        self.element().text(name);
        self.bytes.push(b':');
        self.comma = false;
        self
    }

    /// Begins a list's element; its value must follow.
    pub fn element(&mut self) -> &mut Line {
        if std::mem::take(&mut self.comma) {
            self.bytes.push(b',');
        }
        self
    }

    pub fn open(&mut self, bracket: char) {
        self.bytes.push(bracket as u8);
        self.comma = false;
    }

    pub fn close(&mut self, bracket: char) {
        self.bytes.push(bracket as u8);
        self.comma = true;
    }

    pub fn raw(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.comma = true;
    }

    pub fn number(&mut self, n: impl Display) {
        // Writing to a vector cannot fail.
        let _ = write!(self.bytes, "{n}");
        self.comma = true;
    }

    pub fn numbers<T: Display, const N: usize>(&mut self, list: [T; N]) {
        self.open('[');
        for n in list {
            self.element().number(n);
        }
        self.close(']');
    }

    /// Appends the shortest digits that give the same bits back; SQL has no NaN and no infinity.
    pub fn double(&mut self, n: f64) {
        if n.is_finite() { self.number(format_args!("{n:?}")) } else { self.raw("null") }
    }

    pub fn float(&mut self, n: f32) {
        if n.is_finite() { self.number(format_args!("{n:?}")) } else { self.raw("null") }
    }

    pub fn boolean(&mut self, on: bool) {
        self.raw(if on { "true" } else { "false" });
    }

    pub fn text(&mut self, text: &str) {
        omnibus_value::json::write_quoted(text, &mut self.bytes);
        self.comma = true;
    }

    /// Appends `{"base64":"..."}`.
    pub fn base64(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(b"{\"base64\":");
        self.base64_text(bytes);
        self.bytes.push(b'}');
    }

    /// Appends base64 as a string.
    pub fn base64_text(&mut self, bytes: &[u8]) {
        self.bytes.push(b'"');
        omnibus_value::base64::encode(bytes, &mut self.bytes);
        self.bytes.push(b'"');
        self.comma = true;
    }
}

/// Appends text, or base64 of bytes that are not UTF-8.
pub(super) fn bytes_or_text(line: &mut Line, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => line.text(text),
        Err(_) => line.base64(bytes),
    }
}
