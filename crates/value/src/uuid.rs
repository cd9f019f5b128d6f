//! Texts of UUIDs. Those who read them differ in the dashes and braces that they take.

use crate::hex;

/// 32 hexadecimal digits with any dashes between them, as the type UUID takes them.
#[must_use]
pub fn parse_loose(text: &[u8]) -> Option<[u8; 16]> {
    if text.first() == Some(&b'-') || text.last() == Some(&b'-') {
        return None;
    }
    let mut out = [0; 16];
    let mut count = 0;
    for &byte in text.iter().filter(|byte| **byte != b'-') {
        *out.get_mut(count / 2)? |= hex::digit(byte)? << (4 * (1 - count % 2));
        count += 1;
    }
    (count == 32).then_some(out)
}

/// 32 hexadecimal digits, with dashes in the usual places or without any, optionally in braces: those of UUID_TO_BIN and of servers.
#[must_use]
pub fn parse(text: &[u8]) -> Option<[u8; 16]> {
    let inner = text.strip_prefix(b"{").and_then(|text| text.strip_suffix(b"}")).unwrap_or(text);
    let dashed = match inner.len() {
        32 => false,
        36 => true,
        _ => return None,
    };
    let in_place = |(at, byte): (usize, &u8)| (*byte == b'-') == (dashed && matches!(at, 8 | 13 | 18 | 23));
    if inner.iter().enumerate().all(in_place) { parse_loose(inner) } else { None }
}

/// Appends a UUID with its dashes, in small letters.
pub fn write(bytes: &[u8; 16], out: &mut Vec<u8>) {
    for (at, part) in [(0, 4), (4, 6), (6, 8), (8, 10), (10, 16)].into_iter().enumerate() {
        if at > 0 {
            out.push(b'-');
        }
        hex::write_lower(&bytes[part.0..part.1], out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; 16] =
        [0x3e, 0x11, 0xfa, 0x47, 0x71, 0xca, 0x11, 0xe1, 0x9e, 0x33, 0xc8, 0x0a, 0xa9, 0x42, 0x95, 0x62];

    #[test]
    fn the_usual_form_is_read_by_both() {
        let mut text = Vec::new();
        write(&BYTES, &mut text);
        assert_eq!(text, b"3e11fa47-71ca-11e1-9e33-c80aa9429562");
        for text in [&text[..], b"3E11FA4771CA11E19E33C80AA9429562"] {
            assert_eq!((parse(text), parse_loose(text)), (Some(BYTES), Some(BYTES)));
        }
    }

    #[test]
    fn braces_are_one_s_and_dashes_anywhere_the_other_s() {
        assert_eq!(parse(b"{3e11fa47-71ca-11e1-9e33-c80aa9429562}"), Some(BYTES));
        assert_eq!(parse_loose(b"{3e11fa47-71ca-11e1-9e33-c80aa9429562}"), None);
        let odd = b"3e-11fa4771ca--11e19e33c80aa9429562";
        assert_eq!((parse(odd), parse_loose(odd)), (None, Some(BYTES)));
        for bad in
            [&b""[..], b"{}", b"-3e11fa4771ca11e19e33c80aa9429562", b"3e11fa47-71ca-11e1-9e33-c80aa942956g"]
        {
            assert_eq!((parse(bad), parse_loose(bad)), (None, None));
        }
    }
}
