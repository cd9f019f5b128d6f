//! A document as MySQL prints it: `{"a": 1, "b": [1.5, "x"]}`.

use super::Json;
use crate::text::{write_f64, write_i64, write_u64};

pub(super) fn write(json: &Json, out: &mut Vec<u8>) {
    match json {
        Json::Null => out.extend_from_slice(b"null"),
        Json::Bool(true) => out.extend_from_slice(b"true"),
        Json::Bool(false) => out.extend_from_slice(b"false"),
        Json::Int(n) => write_i64(*n, out),
        Json::UInt(n) => write_u64(*n, out),
        Json::Double(n) => write_double(*n, out),
        Json::Decimal(n) => n.write_text(out),
        Json::String(s) => write_string(s, out),
        Json::Date(v) => quoted(out, |out| v.write_text(out)),
        Json::DateTime(v) => quoted(out, |out| v.write_text(6, out)),
        Json::Time(v) => quoted(out, |out| v.write_text(6, out)),
        Json::Opaque(kind, data) => quoted(out, |out| {
            out.extend_from_slice(format!("base64:type{kind}:").as_bytes());
            base64(data, out);
        }),
        Json::Array(items) => list(out, b'[', b']', items, write_ref),
        Json::Object(items) => list(out, b'{', b'}', items, |(key, value), out| {
            write_string(key, out);
            out.extend_from_slice(b": ");
            write(value, out);
        }),
    }
}

fn write_ref(json: &Json, out: &mut Vec<u8>) {
    write(json, out);
}

fn quoted(out: &mut Vec<u8>, inner: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    inner(out);
    out.push(b'"');
}

fn list<T>(out: &mut Vec<u8>, open: u8, close: u8, items: &[T], each: fn(&T, &mut Vec<u8>)) {
    out.push(open);
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        each(item, out);
    }
    out.push(close);
}

/// A double always looks like one: 1.0, not 1.
pub(super) fn write_double(n: f64, out: &mut Vec<u8>) {
    if n == 0.0 && n.is_sign_negative() {
        out.extend_from_slice(b"-0.0");
        return;
    }
    let start = out.len();
    write_f64(n, out);
    if !out[start..].iter().any(|c| matches!(c, b'.' | b'e')) {
        out.extend_from_slice(b".0");
    }
}

pub(super) fn write_string(s: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut plain = 0;
    let bytes = s.as_bytes();
    for (i, &c) in bytes.iter().enumerate() {
        let short = match c {
            b'"' => b'"',
            b'\\' => b'\\',
            0x08 => b'b',
            0x0c => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0..0x20 => b'u',
            _ => continue,
        };
        out.extend_from_slice(&bytes[plain..i]);
        plain = i + 1;
        out.extend_from_slice(&[b'\\', short]);
        if short == b'u' {
            out.extend_from_slice(format!("{c:04x}").as_bytes());
        }
    }
    out.extend_from_slice(&bytes[plain..]);
    out.push(b'"');
}

fn base64(data: &[u8], out: &mut Vec<u8>) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for chunk in data.chunks(3) {
        let n = chunk.iter().fold(0u32, |n, &b| n << 8 | u32::from(b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let six = ALPHABET[(n >> (18 - 6 * i) & 63) as usize];
            out.push(if i <= chunk.len() { six } else { b'=' });
        }
    }
}

/// Decodes runs of base64, each with its own padding, with blanks and line ends anywhere.
pub fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let mut group = [0u8; 4];
    let (mut filled, mut padding) = (0, 0);
    for byte in text.iter().filter(|byte| !byte.is_ascii_whitespace()) {
        group[filled] = match byte {
            b'A'..=b'Z' if padding == 0 => byte - b'A',
            b'a'..=b'z' if padding == 0 => byte - b'a' + 26,
            b'0'..=b'9' if padding == 0 => byte - b'0' + 52,
            b'+' if padding == 0 => 62,
            b'/' if padding == 0 => 63,
            b'=' if filled >= 2 => {
                padding += 1;
                0
            }
            _ => return None,
        };
        filled += 1;
        if filled == 4 {
            let bits = group.iter().fold(0u32, |bits, six| bits << 6 | u32::from(*six));
            out.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
            (filled, padding) = (0, 0);
        }
    }
    (filled == 0).then_some(out)
}
