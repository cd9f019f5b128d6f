//! When numbers of documents are equal, and the bytes by which equal documents are known: [`Json::compare`] and
//! [`Json::write_hash_key`] both ask [`Number`], so neither can say otherwise than the other.

use std::cmp::Ordering;

use super::Json;
use crate::decimal::Decimal;

/// A number in the one form that all equal ones have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    /// A whole number within 64 bits.
    Integer(i128),
    /// Another one that DECIMAL holds exactly.
    Decimal(Decimal),
    /// A double that no DECIMAL is.
    Real(f64),
}

impl Number {
    pub(super) fn of(json: &Json) -> Option<Number> {
        Some(match json {
            Json::Int(n) => Number::Integer(i128::from(*n)),
            Json::UInt(n) => Number::Integer(i128::from(*n)),
            Json::Decimal(n) => Number::of_decimal(n),
            Json::Double(n) => match Decimal::from_f64(*n) {
                Ok(decimal) if decimal.to_f64() == *n => Number::of_decimal(&decimal),
                _ => Number::Real(*n),
            },
            _ => return None,
        })
    }

    fn of_decimal(n: &Decimal) -> Number {
        let whole = match (n.to_i64(), n.to_u64()) {
            (Ok(whole), _) => i128::from(whole),
            (_, Ok(whole)) => i128::from(whole),
            _ => return Number::Decimal(*n),
        };
        if Decimal::from_i128(whole, 0) == *n { Number::Integer(whole) } else { Number::Decimal(*n) }
    }

    fn to_f64(self) -> f64 {
        match self {
            Number::Integer(n) => n as f64,
            Number::Decimal(n) => n.to_f64(),
            Number::Real(n) => n,
        }
    }

    /// The side of all decimals that round to the same double on which a double that no decimal is stands.
    fn beyond(self) -> i8 {
        match self {
            Number::Integer(_) | Number::Decimal(_) => 0,
            Number::Real(n) if n < 0.0 => -1,
            Number::Real(_) => 1,
        }
    }

    pub(super) fn compare(self, other: Number) -> Ordering {
        match (self, other) {
            (Number::Integer(a), Number::Integer(b)) => a.cmp(&b),
            (Number::Integer(a), Number::Decimal(b)) => Decimal::from_i128(a, 0).cmp(&b),
            (Number::Decimal(a), Number::Integer(b)) => a.cmp(&Decimal::from_i128(b, 0)),
            (Number::Decimal(a), Number::Decimal(b)) => a.cmp(&b),
            // A double that no decimal is equals none; doubles are finite here.
            (a, b) => a.to_f64().total_cmp(&b.to_f64()).then_with(|| a.beyond().cmp(&b.beyond())),
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        match self {
            Number::Integer(n) => {
                out.push(1);
                out.extend_from_slice(&n.to_be_bytes());
            }
            Number::Decimal(n) => {
                out.push(2);
                n.to_sort_key(out);
            }
            Number::Real(n) => {
                out.push(3);
                out.extend_from_slice(&n.to_bits().to_be_bytes());
            }
        }
    }
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
    out.extend_from_slice(bytes);
}

impl Json {
    /// Appends bytes that two documents share exactly when `compare` calls them equal. They say where they end.
    pub fn write_hash_key(&self, out: &mut Vec<u8>) {
        match self {
            Json::Null => out.push(0),
            Json::String(text) => {
                out.push(4);
                write_bytes(text.as_bytes(), out);
            }
            Json::Object(members) => {
                out.push(5);
                out.extend_from_slice(&(members.len() as u64).to_be_bytes());
                for (name, value) in members {
                    write_bytes(name.as_bytes(), out);
                    value.write_hash_key(out);
                }
            }
            Json::Array(items) => {
                out.push(6);
                out.extend_from_slice(&(items.len() as u64).to_be_bytes());
                items.iter().for_each(|item| item.write_hash_key(out));
            }
            Json::Bool(is) => out.extend_from_slice(&[7, u8::from(*is)]),
            Json::Date(date) => {
                out.push(8);
                out.extend_from_slice(&date.to_number().to_be_bytes());
            }
            Json::Time(time) => {
                out.push(9);
                out.extend_from_slice(&time.packed().to_be_bytes());
            }
            Json::DateTime(at) | Json::Timestamp(at) => {
                out.push(10);
                out.extend_from_slice(&at.packed().to_be_bytes());
            }
            Json::Opaque(kind, bytes) => {
                out.extend_from_slice(&[11, *kind]);
                write_bytes(bytes, out);
            }
            Json::Int(_) | Json::UInt(_) | Json::Double(_) | Json::Decimal(_) => {
                if let Some(number) = Number::of(self) {
                    number.write(out);
                }
            }
        }
    }
}
