//! One SQL value. Its type is not part of it: the column or expression type accompanies it.

pub mod convert;

use bytes::Bytes;

/// A value as it is stored, computed, sent and binlogged.
///
/// `Bytes` holds CHAR, VARCHAR, TEXT, BINARY, VARBINARY, BLOB and GEOMETRY in the column's own
/// character set; the collation is in the type, not here. Temporal values are MySQL's packed
/// form with microseconds (`crate::temporal`): fields may be zero, as MySQL allows.
///
/// `==` is equality of the representation, for tests and caches; SQL's `=` is
/// [`crate::compare::compare`].
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// SQL NULL.
    #[default]
    Null,
    /// Signed integers, TINYINT to BIGINT.
    Int(i64),
    /// Unsigned integers.
    UInt(u64),
    /// FLOAT. Arithmetic happens in `Double`.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// DECIMAL, up to 65 digits.
    Decimal(crate::decimal::Decimal),
    /// Any string or binary value.
    Bytes(Bytes),
    /// DATE.
    Date(crate::temporal::Date),
    /// DATETIME as written; TIMESTAMP as UTC (the session's zone is applied at the edges).
    DateTime(crate::temporal::DateTime),
    /// TIME, -838:59:59.999999 to 838:59:59.999999.
    Time(crate::temporal::Time),
    /// YEAR, 0 or 1901-2155.
    Year(u16),
    /// BIT(n), n <= 64.
    Bit(u64),
    /// ENUM by index, 1-based; 0 is the empty error value.
    Enum(u16),
    /// SET as a bit mask, member 1 is bit 0.
    Set(u64),
    /// UUID, INET4, INET6.
    Fixed(crate::fixed::Fixed),
    /// JSON in MySQL's binary form (`crate::json`).
    Json(Bytes),
}
