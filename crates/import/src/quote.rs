//! Names and values as they stand in a statement.

/// Returns a name in backquotes.
#[must_use]
pub(crate) fn name(text: &str) -> String {
    format!("`{}`", text.replace('`', "``"))
}

/// Returns `database`.`table`.
#[must_use]
pub(crate) fn table(database: &str, table: &str) -> String {
    format!("{}.{}", name(database), name(table))
}

/// Returns a text as a literal, for sessions whose `sql_mode` has backslash escapes.
#[must_use]
pub(crate) fn text(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    put(&mut out, text.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

/// Appends bytes between quotes. Whatever the bytes are, the literal ends where it should: no character that a session of
/// UTF-8 reads has a quote or a backslash inside.
pub(crate) fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'\'');
    let mut from = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let escaped = match byte {
            b'\'' | b'\\' => *byte,
            0 => b'0',
            b'\n' => b'n',
            b'\r' => b'r',
            0x1a => b'Z',
            _ => continue,
        };
        out.extend_from_slice(&bytes[from..at]);
        out.extend_from_slice(&[b'\\', escaped]);
        from = at + 1;
    }
    out.extend_from_slice(&bytes[from..]);
    out.push(b'\'');
}

/// Returns bytes as a hexadecimal literal.
#[must_use]
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2 + 3);
    out.push_str("x'");
    for byte in bytes {
        out.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
        out.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_end_where_they_should() {
        assert_eq!(table("a`b", "c"), "`a``b`.`c`");
        assert_eq!(text("it's\\ \n\0"), "'it\\'s\\\\ \\n\\0'");
        assert_eq!(hex(&[0, 0xAB, 0x1f]), "x'00ab1f'");
        let mut out = Vec::new();
        put(&mut out, &[0xFF, b'\'', 0xFE, 0x1a]);
        assert_eq!(out, b"'\xFF\\'\xFE\\Z'");
    }
}
