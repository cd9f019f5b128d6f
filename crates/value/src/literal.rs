//! Names and texts as they stand in statements. Statements differ in what they escape, so each form has its name here.

use crate::hex;

/// The bytes of a text that are not written as they are.
struct Escapes {
    quote: &'static [u8],
    /// A control character, and the letter behind a backslash that stands for it.
    controls: &'static [(u8, u8)],
}

const CONTROLS: &[(u8, u8)] = &[(0, b'0'), (b'\n', b'n'), (b'\r', b'r'), (0x1a, b'Z')];

fn escape(text: &[u8], escapes: &Escapes, out: &mut Vec<u8>) {
    let mut from = 0;
    for (at, &byte) in text.iter().enumerate() {
        if !matches!(byte, b'\'' | b'\\' | 0..=0x1a) {
            continue;
        }
        let control = escapes.controls.iter().find(|(control, _)| *control == byte);
        let backslash = &[b'\\', control.map_or(b'\\', |(_, letter)| *letter)];
        let written: &[u8] = match byte {
            b'\'' => escapes.quote,
            b'\\' => backslash,
            _ if control.is_some() => backslash,
            _ => continue,
        };
        out.extend_from_slice(&text[from..at]);
        out.extend_from_slice(written);
        from = at + 1;
    }
    out.extend_from_slice(&text[from..]);
}

fn write(text: &[u8], escapes: &Escapes, out: &mut Vec<u8>) {
    out.push(b'\'');
    escape(text, escapes, out);
    out.push(b'\'');
}

/// Appends a string literal in single quotes, escaped so that any server reads it back.
pub fn write_quoted(text: &[u8], out: &mut Vec<u8>) {
    write(text, &Escapes { quote: b"''", controls: CONTROLS }, out);
}

/// As `write_quoted`, but with a backslash before a quote, as MySQL prints expressions and `mysqldump` writes values. Whatever the bytes are, the literal
/// ends where it should: no character that a session of UTF-8 reads has a quote or a backslash inside.
pub fn write_escaped(text: &[u8], out: &mut Vec<u8>) {
    write(text, &Escapes { quote: b"\\'", controls: CONTROLS }, out);
}

/// A string literal of a definition, which leaves the end of a DOS file as it is, as SHOW CREATE TABLE does.
#[must_use]
pub fn in_definition(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    write(text.as_bytes(), &Escapes { quote: b"''", controls: &CONTROLS[..3] }, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// The inside of a string literal with nothing escaped but quotes and backslashes, as statements about accounts and paths in documents have them.
#[must_use]
pub fn doubled(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    escape(text.as_bytes(), &Escapes { quote: b"''", controls: &[] }, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Appends X'0A1B'.
pub fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"X'");
    hex::write_upper(bytes, out);
    out.push(b'\'');
}

/// Appends x'0a1b'.
pub fn write_lower_hex(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"x'");
    hex::write_lower(bytes, out);
    out.push(b'\'');
}

/// Appends a name in backquotes.
pub fn write_name(name: &[u8], out: &mut Vec<u8>) {
    out.push(b'`');
    for &byte in name {
        if byte == b'`' {
            out.push(b'`');
        }
        out.push(byte);
    }
    out.push(b'`');
}

/// Returns a name in backquotes.
#[must_use]
pub fn name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: fn(&[u8], &mut Vec<u8>), text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write(text, &mut out);
        out
    }

    #[test]
    fn each_form_escapes_what_it_says() {
        let all = b"it's \\ \0\n\r\x1a\xff";
        assert_eq!(written(write_quoted, all), b"'it''s \\\\ \\0\\n\\r\\Z\xff'");
        assert_eq!(written(write_escaped, all), b"'it\\'s \\\\ \\0\\n\\r\\Z\xff'");
        assert_eq!(in_definition("it's \\ \0\n\r\x1a"), "'it''s \\\\ \\0\\n\\r\x1a'");
        assert_eq!(doubled("it's \\ \n"), "it''s \\\\ \n");
        assert_eq!(written(write_hex, &[0, 0xAB]), b"X'00AB'");
        assert_eq!(written(write_lower_hex, &[0, 0xAB]), b"x'00ab'");
    }

    #[test]
    fn a_backquote_in_a_name_is_two() {
        assert_eq!(name("a`b"), "`a``b`");
        assert_eq!(written(write_name, b"a`b\xff"), b"`a``b\xff`");
    }
}
