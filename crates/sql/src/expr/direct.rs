//! Comparisons of a column with constants by the bytes that a row has of the column.
//!
//! The bytes of whole numbers, decimals and days order as the values do, so a constant in the column's own form is compared
//! with them without making a value, which costs more than the comparison. What has no such form (fractions beyond the column's
//! digits, texts, times) is for `in_place` and `in_place_number`.

use super::node::{CompareOp, Expr, Kind};
use crate::catalog::Table;
use omnibus_format::cursor::le_uint;
use omnibus_format::field::code;
use omnibus_format::row::ColumnShape;
use omnibus_value::Value;
use omnibus_value::decimal::Decimal;
use std::cmp::Ordering;

/// A constant in the form of a column.
#[derive(Clone, Debug, PartialEq)]
enum Than {
    Signed(i128),
    Unsigned(i128),
    Day(u32),
    /// The bytes of a decimal, and those of its zero.
    Decimal(Box<[u8]>, Box<[u8]>),
}

/// Conditions on one column, which all have to hold. NULL meets none.
#[derive(Debug)]
pub(super) struct Direct {
    pub(super) column: usize,
    first: (CompareOp, Than),
    second: Option<(CompareOp, Than)>,
}

impl Direct {
    /// A condition on a column of the table in `slot`; `None` if it is of another kind.
    pub(super) fn of(condition: &Expr, slot: u16, table: &Table) -> Option<Direct> {
        let column_of = |e: &Expr| match e.kind {
            Kind::Column { slot: of, column, utc: false } if of == slot => Some(usize::from(column)),
            _ => None,
        };
        match &condition.kind {
            Kind::Compare(op, _, pair) if *op != CompareOp::NullSafeEq => {
                let (column, constant, op) = match (column_of(&pair[0]), column_of(&pair[1])) {
                    (Some(column), None) => (column, &pair[1], *op),
                    (None, Some(column)) => (column, &pair[0], op.flipped()),
                    _ => return None,
                };
                Some(Direct { column, first: (op, than(constant, column, table)?), second: None })
            }
            Kind::Between { args, negated: false, .. } => {
                let column = column_of(&args[0])?;
                let first = (CompareOp::Ge, than(&args[1], column, table)?);
                let second = Some((CompareOp::Le, than(&args[2], column, table)?));
                Some(Direct { column, first, second })
            }
            _ => None,
        }
    }

    /// Takes up another condition, which is given back if it is on another column, or there is no room for it.
    pub(super) fn join(&mut self, other: Direct) -> Option<Direct> {
        if self.column != other.column || self.second.is_some() || other.second.is_some() {
            return Some(other);
        }
        self.second = Some(other.first);
        None
    }

    /// Whether the bytes of a column that is not NULL meet the conditions.
    #[inline]
    pub(super) fn accepts(&self, bytes: &[u8]) -> bool {
        let meets = |(op, than): &(CompareOp, Than)| op.accepts(order(bytes, than));
        meets(&self.first) && self.second.as_ref().is_none_or(meets)
    }
}

fn than(constant: &Expr, column: usize, table: &Table) -> Option<Than> {
    let Kind::Const(value) = &constant.kind else { return None };
    form(value, table.rows.shape().columns().get(column)?)
}

/// A value in the form of a column that it is compared with by its value.
fn form(value: &Value, shape: &ColumnShape) -> Option<Than> {
    let field = shape.field;
    let whole = match value {
        Value::Int(n) => Some(i128::from(*n)),
        Value::UInt(n) => Some(i128::from(*n)),
        _ => None,
    };
    match field.code {
        code::TINY | code::SHORT | code::INT24 | code::LONG | code::LONGLONG => {
            let whole = whole?;
            Some(if shape.unsigned { Than::Unsigned(whole) } else { Than::Signed(whole) })
        }
        code::DATE | code::NEWDATE => match value {
            Value::Date(day) => Some(Than::Day(day.packed())),
            _ => None,
        },
        code::NEWDECIMAL => {
            let value = match (value, whole) {
                (Value::Decimal(decimal), _) => decimal.as_shown(),
                (_, Some(whole)) => Decimal::from_i128(whole, 0),
                _ => return None,
            };
            let (precision, scale) = ((field.meta >> 8) as u8, field.meta as u8);
            // What is lost of it would make two numbers equal that are not.
            let Ok((held, false)) = value.fit(precision, scale) else { return None };
            let bytes = |decimal: Decimal| {
                let mut bytes = Vec::new();
                decimal.to_binlog(precision, scale, &mut bytes);
                bytes.into_boxed_slice()
            };
            Some(Than::Decimal(bytes(held), bytes(Decimal::from(0u64))))
        }
        _ => None,
    }
}

#[inline]
fn order(bytes: &[u8], than: &Than) -> Ordering {
    match than {
        Than::Signed(constant) => {
            let shift = 64 - 8 * bytes.len().min(8) as u32;
            i128::from((le_uint(bytes) << shift) as i64 >> shift).cmp(constant)
        }
        Than::Unsigned(constant) => i128::from(le_uint(bytes)).cmp(constant),
        Than::Day(day) => le_uint(bytes).cmp(&u64::from(*day)),
        Than::Decimal(constant, zero) => {
            // Other servers' images may have a zero with a sign.
            let negative_zero = || bytes.iter().zip(zero).all(|(byte, zero)| *byte == !*zero);
            let bytes = if bytes.first() == Some(&0x7f) && negative_zero() { zero } else { bytes };
            bytes.cmp(constant)
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::expr::compare;
    use omnibus_format::field::{FieldType, decode_field};
    use omnibus_value::temporal::Date;

    /// The order of a field's bytes and a constant, and that of their values.
    fn check(shape: ColumnShape, stored: &Value, constant: &Value) {
        let mut bytes = Vec::new();
        shape.encode(stored, &mut bytes).unwrap();
        let decoded = decode_field(shape.field, shape.unsigned, &bytes, |_| unreachable!()).unwrap();
        let right = compare::values(&decoded, constant, 63).unwrap();
        let than = form(constant, &shape).unwrap();
        assert_eq!(order(&bytes, &than), right, "{decoded:?} and {constant:?}");
    }

    fn field(code: u8, meta: u16, unsigned: bool) -> ColumnShape {
        ColumnShape::new(FieldType { code, meta }, unsigned)
    }

    #[test]
    fn whole_numbers_order_as_their_values() {
        for (code, bits) in
            [(code::TINY, 8), (code::SHORT, 16), (code::INT24, 24), (code::LONG, 32), (code::LONGLONG, 64)]
        {
            let (low, high) = (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits));
            let constants = [i64::MIN, low, -300, -1, 0, 1, 7, high, i64::MAX];
            for stored in [low, low + 1, -1, 0, 1, 7, high] {
                for constant in constants {
                    check(field(code, 0, false), &Value::Int(stored), &Value::Int(constant));
                }
                check(field(code, 0, false), &Value::Int(stored), &Value::UInt(u64::MAX));
            }
            for stored in [0, 1, 7, u64::MAX >> (64 - bits)] {
                for constant in constants {
                    check(field(code, 0, true), &Value::UInt(stored), &Value::Int(constant));
                }
                check(field(code, 0, true), &Value::UInt(stored), &Value::UInt(u64::MAX));
            }
        }
    }

    #[test]
    fn decimals_and_days_order_as_their_values() {
        let decimal = |text: &str| Value::Decimal(text.parse().unwrap());
        let numbers = ["-99.99", "-1.01", "-1", "-0.01", "0", "0.01", "0.99", "1", "24.00", "99.99"];
        let shape = field(code::NEWDECIMAL, 4 << 8 | 2, false);
        for stored in numbers {
            for constant in numbers {
                check(shape, &decimal(stored), &decimal(constant));
            }
            check(shape, &decimal(stored), &Value::Int(24));
        }
        assert_eq!(form(&decimal("0.001"), &shape), None, "it is no number of the column's");
        assert_eq!(form(&Value::Int(100), &shape), None);
        let zero = form(&Value::Int(0), &shape).unwrap();
        assert_eq!(order(&[0x7f, 0xff], &zero), Ordering::Equal, "a zero with a sign");
        assert_eq!(order(&[0x7f, 0xfe], &zero), Ordering::Less);
        let day = |year, month, day| Value::Date(Date::from_ymd(year, month, day).unwrap());
        let days = [day(0, 0, 0), day(1994, 1, 1), day(1994, 1, 2), day(1994, 12, 31), day(9999, 12, 31)];
        for stored in &days {
            for constant in &days {
                check(field(code::DATE, 0, false), stored, constant);
            }
        }
    }
}
