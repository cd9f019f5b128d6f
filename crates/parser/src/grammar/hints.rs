//! Optimizer hints: the comment `/*+ .. */` behind SELECT. Those that are not known here, or are about other query blocks, are read
//! over; what is no hint ends them.

use crate::ast::{Hint, Ident, IndexHintKind, JoinPlace};

/// The hints in what stands between SELECT and the next word.
pub(super) fn hints(blank: &[u8]) -> Vec<Hint> {
    let Some(text) = blank.trim_ascii_start().strip_prefix(b"/*+") else { return Vec::new() };
    let mut reader = Reader { text };
    let mut hints = Vec::new();
    while let Some((name, arguments)) = reader.call() {
        hints.extend(hint(&name, arguments));
    }
    hints
}

/// What a hint says, unless it is read over.
fn hint(name: &str, arguments: &[u8]) -> Option<Hint> {
    let place = |place| Some(Hint::JoinOrder { place, tables: names(arguments)? });
    match name.to_ascii_uppercase().as_str() {
        "MAX_EXECUTION_TIME" => {
            let text = std::str::from_utf8(arguments.trim_ascii()).ok()?;
            Some(Hint::MaxExecutionTime(text.parse().ok()?))
        }
        "JOIN_FIXED_ORDER" => arguments.trim_ascii().is_empty().then_some(Hint::JoinFixedOrder),
        "JOIN_ORDER" => place(JoinPlace::Order),
        "JOIN_PREFIX" => place(JoinPlace::First),
        "JOIN_SUFFIX" => place(JoinPlace::Last),
        "INDEX" | "JOIN_INDEX" => index(arguments, IndexHintKind::Force),
        "NO_INDEX" | "NO_JOIN_INDEX" => index(arguments, IndexHintKind::Ignore),
        _ => None,
    }
}

/// `table [index [, index] ..]`
fn index(arguments: &[u8], kind: IndexHintKind) -> Option<Hint> {
    let mut reader = Reader { text: arguments };
    let table = reader.name()?;
    let indexes = if reader.at_end() { Vec::new() } else { names(reader.text)? };
    Some(Hint::Index { table, indexes, kind })
}

/// Names with commas between them; `None` if there is anything else.
fn names(text: &[u8]) -> Option<Vec<Ident>> {
    let mut reader = Reader { text };
    let mut names = vec![reader.name()?];
    while reader.eat(b',') {
        names.push(reader.name()?);
    }
    reader.at_end().then_some(names)
}

struct Reader<'a> {
    text: &'a [u8],
}

impl<'a> Reader<'a> {
    fn eat(&mut self, byte: u8) -> bool {
        let rest = self.text.trim_ascii_start().strip_prefix(&[byte]);
        rest.map(|rest| self.text = rest).is_some()
    }

    fn at_end(&self) -> bool {
        self.text.trim_ascii().is_empty()
    }

    /// A name, in backticks or not.
    fn name(&mut self) -> Option<Ident> {
        if self.eat(b'`') {
            let mut name = Vec::new();
            loop {
                let end = self.text.iter().position(|byte| *byte == b'`')?;
                name.extend_from_slice(&self.text[..end]);
                self.text = &self.text[end + 1..];
                if self.text.first() != Some(&b'`') {
                    return Some(String::from_utf8(name).ok()?.as_str().into());
                }
                name.push(b'`');
                self.text = &self.text[1..];
            }
        }
        let text = self.text.trim_ascii_start();
        let part =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || !byte.is_ascii();
        let length = text.iter().take_while(|byte| part(byte)).count();
        let (name, rest) = text.split_at(length);
        self.text = rest;
        (length > 0).then_some(())?;
        Some(std::str::from_utf8(name).ok()?.into())
    }

    /// A hint's name, and what stands between its parentheses.
    fn call(&mut self) -> Option<(Ident, &'a [u8])> {
        let name = self.name()?;
        self.eat(b'(').then_some(())?;
        let (mut depth, mut quote) = (1_u32, None);
        for (at, byte) in self.text.iter().enumerate() {
            match (quote, byte) {
                (Some(open), byte) if byte == open => quote = None,
                (Some(_), _) => {}
                (None, b'`' | b'\'' | b'"') => quote = Some(byte),
                (None, b'(') => depth += 1,
                (None, b')') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let arguments = &self.text[..at];
                self.text = &self.text[at + 1..];
                return Some((name, arguments));
            }
        }
        None
    }
}
