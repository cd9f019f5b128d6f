//! Bytes by which values are equal for GROUP BY, DISTINCT, UNION, IN and hash joins: two values
//! write the same bytes exactly when they compare as equal under the collation.

use super::charset;
use omnibus_value::Value;
use omnibus_value::decimal::Decimal;
use omnibus_value::temporal::DateTime;

/// Appends a value's key. Each key says where it ends, so keys may follow one another.
pub fn write(value: &Value, collation: u16, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(0),
        Value::Int(n) => integer(i128::from(*n), out),
        Value::UInt(n) | Value::Bit(n) | Value::Set(n) => integer(i128::from(*n), out),
        Value::Year(n) | Value::Enum(n) => integer(i128::from(*n), out),
        Value::Decimal(d) => {
            let d = d.as_shown();
            let whole = d.to_i64().map(i128::from).or_else(|_| d.to_u64().map(i128::from));
            match whole {
                Ok(n) if Decimal::from_i128(n, 0) == d => integer(n, out),
                _ => {
                    out.push(2);
                    d.to_sort_key(out);
                }
            }
        }
        Value::Float(n) => real(f64::from(*n), out),
        Value::Double(n) => real(*n, out),
        Value::Bytes(text) => write_text(text, collation, out),
        Value::Date(d) => day(DateTime::from(*d), out),
        Value::DateTime(d) => day(*d, out),
        Value::Time(t) => {
            out.push(6);
            out.extend_from_slice(&t.packed().to_be_bytes());
        }
        Value::Fixed(v) => {
            out.push(8);
            out.extend_from_slice(&v.sort_key());
        }
        Value::Json(json) => {
            out.push(7);
            super::json::decode(json).write_hash_key(out);
        }
    }
}

/// As `write`, of text.
pub(super) fn write_text(text: &[u8], collation: u16, out: &mut Vec<u8>) {
    out.push(4);
    charset::collation(collation).write_sort_key(text, out);
}

/// As `write`, of an integer. Nearly all are short: keys of up to 16 bytes are hashed quickly.
#[inline]
pub(super) fn integer(n: i128, out: &mut Vec<u8>) {
    match i64::try_from(n) {
        Ok(n) => {
            out.push(1);
            out.extend_from_slice(&n.to_be_bytes());
        }
        Err(_) => {
            out.push(9);
            out.extend_from_slice(&n.to_be_bytes());
        }
    }
}

/// As `write`, of a DATE or DATETIME.
#[inline]
pub(super) fn day(at: DateTime, out: &mut Vec<u8>) {
    out.push(5);
    out.extend_from_slice(&at.packed().to_be_bytes());
}

fn real(n: f64, out: &mut Vec<u8>) {
    // A whole double equals the integer of the same value.
    if n.fract() == 0.0 && n.abs() < 1e18 {
        return integer(n as i128, out);
    }
    out.push(3);
    out.extend_from_slice(&(n + 0.0).to_bits().to_be_bytes());
}
