//! MySQL's order of JSON values: by type first, then within the type.

use std::cmp::Ordering;

use super::Json;
use super::equal::Number;

/// Higher is greater; numbers are one class.
fn class(json: &Json) -> u8 {
    match json {
        Json::Null => 0,
        Json::Int(_) | Json::UInt(_) | Json::Double(_) | Json::Decimal(_) => 1,
        Json::String(_) => 2,
        Json::Object(_) => 3,
        Json::Array(_) => 4,
        Json::Bool(_) => 5,
        Json::Date(_) => 6,
        Json::Time(_) => 7,
        Json::DateTime(_) | Json::Timestamp(_) => 8,
        Json::Opaque(..) => 9,
    }
}

impl Json {
    /// The order that comparison operators and ORDER BY use.
    pub fn compare(&self, other: &Json) -> Ordering {
        match (self, other) {
            (Json::String(a), Json::String(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Json::Bool(a), Json::Bool(b)) => a.cmp(b),
            (Json::Date(a), Json::Date(b)) => a.cmp(b),
            (Json::Time(a), Json::Time(b)) => a.cmp(b),
            (Json::DateTime(a) | Json::Timestamp(a), Json::DateTime(b) | Json::Timestamp(b)) => a.cmp(b),
            (Json::Opaque(k, a), Json::Opaque(l, b)) => (k, a).cmp(&(l, b)),
            (Json::Array(a), Json::Array(b)) => {
                let unequal = a.iter().zip(b).map(|(x, y)| x.compare(y)).find(|o| o.is_ne());
                unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            (Json::Object(a), Json::Object(b)) => a.len().cmp(&b.len()).then_with(|| {
                let pair = |((k, v), (l, w)): (&(String, Json), &(String, Json))| {
                    super::key_order(k, l).then_with(|| v.compare(w))
                };
                a.iter().zip(b).map(pair).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
            }),
            _ => match (Number::of(self), Number::of(other)) {
                (Some(a), Some(b)) => a.compare(b),
                _ => class(self).cmp(&class(other)),
            },
        }
    }

    /// Its truth in WHERE, AND, NOT and their kind: whether it is another document than the number 0. So false is true there; IF and
    /// CASE take the number that it is.
    pub fn is_true(&self) -> bool {
        self.compare(&Json::Int(0)).is_ne()
    }

    /// A number as a double.
    pub fn as_f64(&self) -> Option<f64> {
        Some(match self {
            Json::Int(n) => *n as f64,
            Json::UInt(n) => *n as f64,
            Json::Double(n) => *n,
            Json::Decimal(n) => n.to_f64(),
            _ => return None,
        })
    }
}
