//! A value as the client reads it in the text protocol: its text without length or quotes.
//!
//! Integers, strings and temporal values take the short way here; the rest is the value crate's.

use omnibus_value::{ColumnKind, ColumnType, Value, json, text};

/// Appends the text of a value. NULL has none.
pub fn put(out: &mut Vec<u8>, value: &Value, ty: &ColumnType) {
    let fsp = ty.decimals.min(6);
    match value {
        Value::Null => {}
        Value::Int(n) => put_int(out, *n, ty),
        Value::UInt(n) => put_uint(out, *n, ty),
        Value::Bytes(b) => out.extend_from_slice(b),
        Value::Date(d) => d.write_text(out),
        Value::DateTime(t) => t.write_text(fsp, out),
        Value::Time(t) => t.write_text(fsp, out),
        Value::Year(y) => put_padded(out, u64::from(*y), 4),
        Value::Bit(bits) => out.extend_from_slice(bit_bytes(*bits, ty.length, &mut [0; 8])),
        Value::Enum(n) => out.extend_from_slice(enum_label(*n, ty)),
        Value::Set(mask) => put_set(out, *mask, ty),
        Value::Fixed(v) => v.write_text(out),
        Value::Json(_) | Value::Float(_) | Value::Double(_) | Value::Decimal(_) => {
            put_other(out, value, ty);
        }
    }
}

fn put_other(out: &mut Vec<u8>, value: &Value, ty: &ColumnType) {
    let start = out.len();
    match value {
        Value::Float(f) if ty.decimals < 31 => text::write_f64_fixed(f64::from(*f), ty.decimals, out),
        Value::Float(f) => text::write_f32(*f, out),
        Value::Double(f) if ty.decimals < 31 && ty.kind != ColumnKind::BigInt => {
            text::write_f64_fixed(*f, ty.decimals, out);
        }
        Value::Double(f) => text::write_f64(*f, out),
        Value::Decimal(d) => d.write_text(out),
        // Stored JSON was checked when it was stored; damage shows as what could be read of it.
        Value::Json(binary) => drop(json::binary_to_text(binary, out)),
        _ => {}
    }
    omnibus_value::convert::zero_fill(ty, start, out);
}

fn put_int(out: &mut Vec<u8>, n: i64, ty: &ColumnType) {
    if n < 0 {
        out.push(b'-');
    }
    put_uint(out, n.unsigned_abs(), ty);
}

fn put_uint(out: &mut Vec<u8>, n: u64, ty: &ColumnType) {
    if ty.zerofill { put_padded(out, n, ty.length.min(255) as usize) } else { put_digits(out, n) }
}

/// Appends decimal digits.
pub fn put_digits(out: &mut Vec<u8>, mut n: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn put_padded(out: &mut Vec<u8>, n: u64, width: usize) {
    let digits = n.checked_ilog10().unwrap_or(0) as usize + 1;
    out.extend(std::iter::repeat_n(b'0', width.saturating_sub(digits)));
    put_digits(out, n);
}

/// BIT(n) as the (n+7)/8 bytes that MySQL sends.
pub fn bit_bytes(bits: u64, length: u32, scratch: &mut [u8; 8]) -> &[u8] {
    *scratch = bits.to_be_bytes();
    let n = (length.clamp(1, 64) as usize).div_ceil(8);
    &scratch[8 - n..]
}

/// The label of an ENUM value; 0 and impossible numbers are the empty string.
#[must_use]
pub fn enum_label(n: u16, ty: &ColumnType) -> &[u8] {
    usize::from(n).checked_sub(1).and_then(|i| ty.labels.get(i)).map_or(&[], |l| l)
}

/// Appends the labels of a SET value with commas between.
pub fn put_set(out: &mut Vec<u8>, mask: u64, ty: &ColumnType) {
    let mut first = true;
    for (i, label) in ty.labels.iter().take(64).enumerate() {
        if mask & (1 << i) != 0 {
            if !first {
                out.push(b',');
            }
            first = false;
            out.extend_from_slice(label);
        }
    }
}
