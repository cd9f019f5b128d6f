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
        Json::DateTime(v) | Json::Timestamp(v) => quoted(out, |out| v.write_text(6, out)),
        Json::Time(v) => quoted(out, |out| v.write_text(6, out)),
        Json::Opaque(kind, data) => write_string(&opaque(*kind, data), out),
        Json::Array(items) => list(out, b'[', b']', items, write_ref),
        Json::Object(items) => list(out, b'{', b'}', items, |(key, value), out| {
            write_string(key, out);
            out.extend_from_slice(b": ");
            write(value, out);
        }),
    }
}

/// The text of a value that no other type of a document has: its type's number and its bytes in base64, a long one in lines.
pub(super) fn opaque(kind: u8, data: &[u8]) -> String {
    let lines = crate::base64::encode_lines(data);
    format!("base64:type{kind}:{}", String::from_utf8_lossy(&lines))
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
