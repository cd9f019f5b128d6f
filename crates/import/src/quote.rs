//! Names and values as they stand in a statement.

use omnibus_value::literal;
pub(crate) use omnibus_value::literal::{name, write_escaped as put};

/// Returns `database`.`table`.
#[must_use]
pub(crate) fn table(database: &str, table: &str) -> String {
    format!("{}.{}", name(database), name(table))
}

/// Returns a text as a literal, for sessions whose `sql_mode` has backslash escapes.
#[must_use]
pub(crate) fn text(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    put(text.as_bytes(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Returns bytes as a hexadecimal literal.
#[must_use]
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    literal::write_lower_hex(bytes, &mut out);
    String::from_utf8_lossy(&out).into_owned()
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
        put(&[0xFF, b'\'', 0xFE, 0x1a], &mut out);
        assert_eq!(out, b"'\xFF\\'\xFE\\Z'");
    }
}
