//! Splits a file into lines and fields the way MySQL does, byte by byte.
//!
//! Separators are bytes: in every character set that a file may have here an ASCII byte is an ASCII
//! character. A line that ends too early or too late is not an error here; the caller is told
//! (`Field::None`, `next_line`).

use crate::error::{SqlError, SqlResult};
use crate::text_file::{Format, unescaped};
use std::io::Read;

/// Bytes read at a time.
const CHUNK: usize = 128 << 10;

/// The result of `field`; the text that it found is in [`FieldReader::text`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// No more fields in this line, or no more lines.
    None,
    /// NULL.
    Null,
    /// A value.
    Text,
}

/// Reads one file once.
pub(super) struct FieldReader {
    source: Box<dyn Read>,
    buf: Vec<u8>,
    at: usize,
    /// Bytes taken back, last one first.
    back: Vec<u8>,
    format: Format,
    /// Bytes that may mean something within a field.
    special: [bool; 256],
    line_ended: bool,
    ended: bool,
    /// The next line's prefix has to be found first.
    seek_start: bool,
    text: Vec<u8>,
    longest: usize,
    /// Bytes were left over at the end of the line.
    pub cut: bool,
}

impl FieldReader {
    /// Fields longer than `longest` are an error.
    pub(super) fn new(source: Box<dyn Read>, mut format: Format, longest: usize) -> FieldReader {
        if format.line_end == format.field_end {
            format.line_end = bytes::Bytes::new();
        }
        let mut special = [false; 256];
        let firsts = [format.field_end.first(), format.line_end.first()];
        for c in firsts.into_iter().flatten().chain(&format.enclosed).chain(&format.escape) {
            special[usize::from(*c)] = true;
        }
        FieldReader {
            source,
            buf: Vec::new(),
            at: 0,
            back: Vec::new(),
            seek_start: !format.line_start.is_empty(),
            format,
            special,
            line_ended: false,
            ended: false,
            text: Vec::new(),
            longest,
            cut: false,
        }
    }

    /// The bytes of the last field.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Whether nothing is left of the file.
    pub(super) fn at_end(&self) -> bool {
        self.ended
    }

    fn fill(&mut self) -> SqlResult<bool> {
        self.buf.resize(CHUNK, 0);
        let read = loop {
            match self.source.read(&mut self.buf) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        self.at = 0;
        let n = read.map_err(|error| {
            self.buf.clear();
            SqlError::new(1024, b"HY000", format!("Error reading file of LOAD DATA: {error}"))
        })?;
        self.buf.truncate(n);
        Ok(n > 0)
    }

    fn get(&mut self) -> SqlResult<Option<u8>> {
        if let Some(c) = self.back.pop() {
            return Ok(Some(c));
        }
        if self.at == self.buf.len() && !self.fill()? {
            return Ok(None);
        }
        self.at += 1;
        Ok(Some(self.buf[self.at - 1]))
    }

    /// Appends ordinary bytes up to the next special one.
    fn take_plain(&mut self) -> SqlResult<()> {
        if self.back.is_empty() {
            let rest = &self.buf[self.at..];
            let plain = rest.iter().position(|c| self.special[usize::from(*c)]).unwrap_or(rest.len());
            self.text.extend_from_slice(&rest[..plain]);
            self.at += plain;
        }
        if self.text.len() > self.longest {
            return Err(SqlError::new(1153, b"08S01", "Got a packet bigger than 'max_allowed_packet' bytes"));
        }
        Ok(())
    }

    /// Whether the rest of `mark`, whose first byte was taken, comes next; takes it if so.
    fn rest_of(&mut self, line: bool) -> SqlResult<bool> {
        let mark = if line { self.format.line_end.clone() } else { self.format.field_end.clone() };
        for at in 1..mark.len() {
            let c = self.get()?;
            if c != Some(mark[at]) {
                self.back.extend(c);
                self.back.extend(mark[1..at].iter().rev());
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn ends_line(&mut self, c: u8) -> SqlResult<bool> {
        Ok(self.format.line_end.first() == Some(&c) && self.rest_of(true)?)
    }

    fn ends_field(&mut self, c: u8) -> SqlResult<bool> {
        Ok(self.format.field_end.first() == Some(&c) && self.rest_of(false)?)
    }

    /// Passes over everything up to and with the line prefix.
    fn find_start(&mut self) -> SqlResult<bool> {
        let start = self.format.line_start.clone();
        let mut matched = 0;
        while matched < start.len() {
            match self.get()? {
                None => return Ok(false),
                Some(c) if c == start[matched] => matched += 1,
                Some(c) if matched > 0 => {
                    // It may begin within what has matched so far.
                    self.back.push(c);
                    self.back.extend(start[1..matched].iter().rev());
                    matched = 0;
                }
                Some(_) => {}
            }
        }
        Ok(true)
    }

    fn begin(&mut self) -> SqlResult<bool> {
        if self.line_ended {
            return Ok(false);
        }
        if std::mem::take(&mut self.seek_start) && !self.find_start()? {
            self.line_ended = true;
            self.ended = true;
            return Ok(false);
        }
        self.text.clear();
        Ok(true)
    }

    /// The next field of the line.
    pub(super) fn field(&mut self) -> SqlResult<Field> {
        if !self.begin()? {
            return Ok(Field::None);
        }
        let Some(first) = self.get()? else {
            self.line_ended = true;
            self.ended = true;
            return Ok(Field::None);
        };
        let quote = self.format.enclosed.filter(|quote| *quote == first);
        if quote.is_none() {
            self.back.push(first);
        }
        let mut null_escape = false;
        let enclosed = self.body(quote, &mut null_escape)?;
        if !enclosed && let Some(quote) = quote {
            // The closing quote never came, so the opening one was an ordinary character.
            self.text.insert(0, quote);
        }
        let word = !enclosed && self.format.enclosed.is_some() && self.text == b"NULL";
        let escaped = null_escape && self.text.len() == 1;
        Ok(if word || escaped { Field::Null } else { Field::Text })
    }

    /// Reads up to the end of a field; says whether a closing quote ended it.
    fn body(&mut self, quote: Option<u8>, null_escape: &mut bool) -> SqlResult<bool> {
        loop {
            self.take_plain()?;
            let Some(mut c) = self.get()? else {
                self.line_ended = true;
                self.ended = true;
                return Ok(false);
            };
            if self.format.escape == Some(c) {
                let Some(next) = self.get()? else {
                    self.text.push(c);
                    continue;
                };
                // A quote that is also the escape only escapes itself.
                if self.format.escape != self.format.enclosed || next == c {
                    *null_escape |= next == b'N';
                    self.text.push(unescaped(next));
                    continue;
                }
                self.back.push(next);
            }
            match quote {
                None if self.ends_line(c)? => {
                    self.line_ended = true;
                    return Ok(false);
                }
                None if self.ends_field(c)? => return Ok(false),
                Some(quote) if c == quote => match self.get()? {
                    Some(next) if next == quote => c = quote,
                    None => {
                        self.line_ended = true;
                        return Ok(true);
                    }
                    Some(next) if self.ends_line(next)? => {
                        self.line_ended = true;
                        return Ok(true);
                    }
                    Some(next) if self.ends_field(next)? => return Ok(true),
                    Some(next) => self.back.push(next),
                },
                _ => {}
            }
            self.text.push(c);
        }
    }

    /// A line of fields of fixed widths, `width` bytes in all. `false`: there is none.
    pub(super) fn fixed_line(&mut self, width: usize) -> SqlResult<bool> {
        if !self.begin()? {
            return Ok(false);
        }
        while self.text.len() < width {
            let Some(c) = self.get()? else {
                self.line_ended = true;
                self.ended = true;
                return Ok(!self.text.is_empty());
            };
            if self.format.escape == Some(c) {
                match self.get()? {
                    Some(next) => self.text.push(unescaped(next)),
                    None => self.text.push(c),
                }
                continue;
            }
            if self.ends_line(c)? {
                self.line_ended = true;
                return Ok(true);
            }
            self.text.push(c);
        }
        Ok(true)
    }

    /// Goes to the next line; `false` if there is none. `cut` tells whether this one had more.
    pub(super) fn next_line(&mut self) -> SqlResult<bool> {
        self.cut = false;
        self.seek_start = !self.format.line_start.is_empty();
        if self.line_ended || self.ended {
            self.line_ended = false;
            return Ok(!self.ended);
        }
        if self.format.line_end.is_empty() {
            return Ok(true);
        }
        loop {
            let Some(c) = self.get()? else {
                self.ended = true;
                return Ok(false);
            };
            if self.format.escape == Some(c) {
                self.cut = true;
                if self.get()?.is_none() {
                    self.ended = true;
                    return Ok(false);
                }
            } else if self.ends_line(c)? {
                return Ok(true);
            } else {
                self.cut = true;
            }
        }
    }
}
