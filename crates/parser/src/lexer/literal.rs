//! The meaning of a literal token's bytes: escapes, hex and bit digits, identifiers.

use super::{Tok, Token};

/// The bytes between the quotes of a string token whose opening quote is at `open` in `text`.
fn inner(text: &[u8], open: usize) -> &[u8] {
    text.get(open + 1..text.len().saturating_sub(1)).unwrap_or(&[])
}

/// A string token's bytes between its quotes, escapes untouched.
pub(crate) fn raw<'a>(token: &Token, text: &'a [u8]) -> &'a [u8] {
    let open = usize::from(!matches!(token.kind, Tok::Str | Tok::Quoted));
    inner(text, open)
}

/// Resolves escapes and doubled quotes onto `out`. `quote` is the delimiter.
pub(crate) fn unescape(raw: &[u8], quote: u8, backslash: bool, out: &mut Vec<u8>) {
    out.reserve(raw.len());
    let mut bytes = raw.iter().copied();
    while let Some(b) = bytes.next() {
        if b == quote {
            // A quote inside is always doubled.
            bytes.next();
            out.push(b);
        } else if b == b'\\' && backslash {
            let Some(escaped) = bytes.next() else { break };
            match escaped {
                b'0' => out.push(0),
                b'b' => out.push(8),
                b'n' => out.push(b'\n'),
                b'r' => out.push(b'\r'),
                b't' => out.push(b'\t'),
                b'Z' => out.push(26),
                // Kept for LIKE, which gives them their meaning.
                b'%' | b'_' => out.extend([b'\\', escaped]),
                other => out.push(other),
            }
        } else {
            out.push(b);
        }
    }
}

/// Whether the digits of `x'..'` (an even number) or `b'..'` are digits.
pub(crate) fn digits_ok(kind: Tok, digits: &[u8]) -> bool {
    match kind {
        Tok::HexStr => digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit),
        _ => digits.iter().all(|b| matches!(b, b'0' | b'1')),
    }
}

/// Hex digits to bytes; an odd number is padded at the front, as `0x` literals are.
pub(crate) fn hex(digits: &[u8]) -> Vec<u8> {
    omnibus_value::hex::parse(digits).unwrap_or_default()
}

/// Bit digits to bytes, padded at the front.
pub(crate) fn bits(digits: &[u8]) -> Vec<u8> {
    let mut out = vec![0u8; digits.len().div_ceil(8)];
    for (i, &digit) in digits.iter().rev().enumerate() {
        let at = out.len() - 1 - i / 8;
        out[at] |= (digit & 1) << (i % 8);
    }
    out
}

/// Character sets whose introducers (`_utf8mb4'..'`) are recognised.
pub(crate) fn is_charset(name: &[u8]) -> bool {
    const NAMES: &[&str] = &[
        "utf8mb4", "utf8", "utf8mb3", "latin1", "binary", "ascii", "ucs2", "utf16", "utf16le", "utf32",
        "latin2", "latin5", "latin7", "big5", "gbk", "gb2312", "gb18030", "sjis", "cp932", "ujis", "eucjpms",
        "euckr", "tis620", "hebrew", "greek", "koi8r", "koi8u", "cp1250", "cp1251", "cp1256", "cp1257",
        "cp850", "cp852", "cp866", "dec8", "hp8", "swe7", "keybcs2", "macce", "macroman", "armscii8",
        "geostd8",
    ];
    NAMES.iter().any(|n| n.as_bytes().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_those_of_the_manual() {
        let mut out = Vec::new();
        unescape(br#"a\0\'\"\b\n\r\t\Z\\\%\_\x''"#, b'\'', true, &mut out);
        assert_eq!(out, b"a\0'\"\x08\n\r\t\x1a\\\\%\\_x'");
        out.clear();
        unescape(br"a\n''", b'\'', false, &mut out);
        assert_eq!(out, br"a\n'");
    }

    #[test]
    fn hex_and_bits() {
        assert_eq!(hex(b"4aF"), [0x04, 0xaf]);
        assert_eq!(hex(b"4aFf"), [0x4a, 0xff]);
        assert_eq!(hex(b""), [0u8; 0]);
        assert_eq!(bits(b"101"), [5]);
        assert_eq!(bits(b"100000001"), [1, 1]);
        assert_eq!(bits(b""), [0u8; 0]);
    }
}
