//! Strings as SQL literals that any server reads back.

/// Appends a string literal in single quotes, escaped so that any server reads it back.
pub fn write_quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'\'');
    for &c in text {
        match c {
            b'\'' => out.extend_from_slice(b"''"),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0 => out.extend_from_slice(b"\\0"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            0x1a => out.extend_from_slice(b"\\Z"),
            _ => out.push(c),
        }
    }
    out.push(b'\'');
}

/// Appends X'0A1B'.
pub fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"X'");
    for b in bytes {
        out.extend_from_slice(format!("{b:02X}").as_bytes());
    }
    out.push(b'\'');
}
