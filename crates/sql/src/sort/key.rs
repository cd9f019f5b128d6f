//! Sort keys: values as bytes whose order is that of ORDER BY.
//!
//! The written form of a value depends on the type of its expression, so that all values of one key compare: numbers as
//! integers, decimals or doubles, text under its collation. NULL comes first; DESC turns every bit round. JSON has no such
//! form: a sort by it compares the values themselves (`Form::Values`).

use crate::error::SqlError;
use crate::expr::types::{ExprType, Family};
use crate::expr::{charset, compare, json};
use crate::rows::codec;
use bytes::Bytes;
use omnibus_value::Value;
use omnibus_value::decimal::Decimal;
use omnibus_value::temporal::DateTime;
use std::cmp::Ordering;

/// One member of ORDER BY.
#[derive(Clone, Debug)]
pub struct Part {
    family: Family,
    collation: u16,
    descending: bool,
    /// Arrays and objects are told apart by their lengths alone.
    by_length: bool,
}

/// All members, and what is written for them.
#[derive(Debug)]
pub struct KeyForm {
    parts: Vec<Part>,
    /// Values are written as they are, and compared as such.
    by_value: bool,
}

impl Part {
    /// A key of this type.
    #[must_use]
    pub fn new(ty: &ExprType, collation: u16, descending: bool) -> Part {
        Part { family: ty.family(), collation, descending, by_length: false }
    }
}

impl Part {
    /// The same for ORDER BY, which in MySQL sorts arrays and objects by their lengths.
    #[must_use]
    pub fn by_length(mut self) -> Part {
        self.by_length = true;
        self
    }

    fn order(&self, a: &Value, b: &Value) -> Ordering {
        match (a, b) {
            (Value::Json(a), Value::Json(b)) if self.by_length => json::sort_order(a, b),
            _ => compare::sort_order(a, b, self.collation),
        }
    }
}

impl KeyForm {
    /// The form for these members.
    #[must_use]
    pub fn new(parts: Vec<Part>) -> KeyForm {
        let by_value = parts.iter().any(|part| part.family == Family::Json);
        KeyForm { parts, by_value }
    }

    /// Whether keys compare as bytes.
    #[must_use]
    pub fn is_bytes(&self) -> bool {
        !self.by_value
    }

    /// Appends the key of these values, one a member.
    pub fn write<'v>(&self, values: impl Iterator<Item = &'v Value>, out: &mut Vec<u8>) {
        if self.by_value {
            let values: Vec<Value> = values.cloned().collect();
            return codec::write_values(&values, out);
        }
        for (part, value) in self.parts.iter().zip(values) {
            let start = out.len();
            part.write(value, out);
            if part.descending {
                out[start..].iter_mut().for_each(|byte| *byte = !*byte);
            }
        }
    }

    /// The order of two keys.
    #[must_use]
    pub fn order(&self, a: &[u8], b: &[u8]) -> Ordering {
        if !self.by_value {
            return a.cmp(b);
        }
        let read = |key: &[u8]| codec::read_values(&mut Bytes::copy_from_slice(key));
        let pair =
            |a: Result<Vec<Value>, SqlError>, b: Result<Vec<Value>, SqlError>| Some((a.ok()?, b.ok()?));
        let Some((a, b)) = pair(read(a), read(b)) else { return Ordering::Equal };
        for ((a, b), part) in a.iter().zip(&b).zip(&self.parts) {
            let order = part.order(a, b);
            if order != Ordering::Equal {
                return if part.descending { order.reverse() } else { order };
            }
        }
        Ordering::Equal
    }
}

impl Part {
    fn write(&self, value: &Value, out: &mut Vec<u8>) {
        match value {
            Value::Null => out.push(0),
            Value::Bytes(text) if self.family == Family::String => {
                out.push(1);
                charset::collation(self.collation).write_sort_key(text, out);
            }
            Value::Json(json) => {
                out.push(2);
                let mut text = Vec::new();
                crate::expr::json::print(json, &mut text);
                charset::collation(crate::expr::json::COLLATION).write_sort_key(&text, out);
            }
            Value::Fixed(v) if self.family == Family::Fixed => {
                out.push(1);
                out.extend_from_slice(&v.sort_key());
            }
            Value::Date(date) if !self.is_number() => temporal(DateTime::from(*date).packed(), out),
            Value::DateTime(at) if !self.is_number() => temporal(at.packed(), out),
            Value::Time(time) if !self.is_number() => temporal(time.packed(), out),
            number => self.write_number(number, out),
        }
    }

    fn is_number(&self) -> bool {
        matches!(self.family, Family::Integer | Family::Decimal | Family::Real)
    }

    fn write_number(&self, value: &Value, out: &mut Vec<u8>) {
        out.push(1);
        match (self.family, exact_integer(value)) {
            (Family::Decimal, Some(n)) => Decimal::from_i128(n, 0).to_sort_key(out),
            (Family::Decimal, None) => match value {
                Value::Decimal(d) => d.as_shown().to_sort_key(out),
                value => Decimal::from_f64(compare::as_f64(value)).unwrap_or_default().to_sort_key(out),
            },
            (Family::Real, _) => {
                let bits = compare::as_f64(value).to_bits();
                let flipped = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
                out.extend_from_slice(&flipped.to_be_bytes());
            }
            // Labels are sorted by their numbers. A value that is none of its type's is put near where it belongs.
            (_, n) => {
                let n = n.unwrap_or_else(|| compare::as_f64(value) as i128);
                let n = n.clamp(i128::from(i64::MIN), i128::from(u64::MAX)) - i128::from(i64::MIN);
                out.extend_from_slice(&n.to_be_bytes()[7..]);
            }
        }
    }
}

fn temporal(packed: i64, out: &mut Vec<u8>) {
    out.push(1);
    out.extend_from_slice(&(packed as u64 ^ 1 << 63).to_be_bytes());
}

fn exact_integer(value: &Value) -> Option<i128> {
    Some(match value {
        Value::Int(n) => i128::from(*n),
        Value::UInt(n) | Value::Bit(n) | Value::Set(n) => i128::from(*n),
        Value::Year(n) | Value::Enum(n) => i128::from(*n),
        Value::Date(d) => i128::from(d.to_number()),
        _ => return None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::Int),
            (-3i64..3).prop_map(Value::Int),
            any::<u64>().prop_map(Value::UInt),
        ]
    }

    fn agrees(ty: &ExprType, a: &Value, b: &Value) {
        for descending in [false, true] {
            let form = KeyForm::new(vec![Part::new(ty, ty.column.collation, descending)]);
            let key = |value: &Value| {
                let mut out = Vec::new();
                form.write(std::iter::once(value), &mut out);
                out
            };
            let wanted = compare::sort_order(a, b, ty.column.collation);
            let wanted = if descending { wanted.reverse() } else { wanted };
            assert_eq!(form.order(&key(a), &key(b)), wanted, "{a:?} {b:?} {descending}");
        }
    }

    proptest! {
        #[test]
        fn integers_sort_as_they_compare(a in number(), b in number()) {
            agrees(&ExprType::bigint(), &a, &b);
        }

        #[test]
        fn decimals_sort_as_they_compare(a in any::<i64>(), b in any::<i64>(), s in 0u8..9, t in 0u8..9) {
            let decimal = |n: i64, scale| Value::Decimal(Decimal::from_i128(i128::from(n), scale));
            agrees(&ExprType::decimal(30, 9), &decimal(a, s), &decimal(b, t));
            agrees(&ExprType::decimal(30, 9), &decimal(a, s), &Value::Int(b));
        }

        #[test]
        fn doubles_sort_as_they_compare(a in any::<i32>(), b in -1e3..1e3, c in any::<f32>()) {
            prop_assume!(!c.is_nan());
            agrees(&ExprType::double(), &Value::Double(b), &Value::Double(f64::from(a) / 1e6));
            agrees(&ExprType::double(), &Value::Double(b), &Value::Float(c));
            agrees(&ExprType::double(), &Value::Double(0.0), &Value::Double(-0.0));
        }

        #[test]
        fn text_sorts_as_it_compares(a in "[a-cA-Cäß ]{0,4}", b in "[a-cA-Cäß ]{0,4}") {
            let text = |s: String| Value::Bytes(s.into());
            for collation in [45, 46, 63, 255, 8] {
                let ty = ExprType { column: crate::expr::types::string_column(20, collation), ..ExprType::bigint() };
                agrees(&ty, &text(a.clone()), &text(b.clone()));
            }
        }
    }
}
