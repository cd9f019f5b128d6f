//! Storing a value into a column: MySQL's assignment conversion.

use bytes::Bytes;

use super::{Problem, round_half_even, store_string, store_temporal};
use crate::Value;
use crate::collation::Charset;
use crate::column::{ColumnKind, ColumnType, NOT_FIXED};
use crate::decimal::Decimal;
use crate::fixed::{Fixed, FixedKind};
use crate::json::{Json, JsonError};
use crate::temporal::{Date, DateMode, UTC, Zone};

/// The session's settings for storing values.
#[derive(Clone, Copy)]
pub struct StoreContext {
    /// STRICT_TRANS_TABLES or STRICT_ALL_TABLES without IGNORE: problems are errors.
    pub strict: bool,
    /// The permitted dates.
    pub dates: DateMode,
    /// The character set of string values.
    pub charset: Charset,
    /// The session's zone: date and time values are in it, TIMESTAMP columns get UTC.
    pub zone: Zone,
    /// The session's date, for a TIME stored into a DATE or DATETIME.
    pub today: Date,
}

impl Default for StoreContext {
    fn default() -> Self {
        StoreContext {
            strict: true,
            dates: DateMode::STRICT,
            charset: Charset::Utf8mb4,
            zone: UTC,
            today: Date::ZERO,
        }
    }
}

/// A stored value; the problem is a warning or a note.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The value that the column now has.
    pub value: Value,
    /// A warning to report.
    pub problem: Option<Problem>,
}

/// A value that strict mode refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConvertError(pub Problem);

/// Value and problem, before strictness is applied.
pub(super) type Raw = (Value, Option<Problem>);

impl Value {
    /// Converts for storing into a column of type `ty`. In strict mode losses are errors, except
    /// those that MySQL only notes; otherwise the nearest value is stored with a warning. NULL stays
    /// NULL: whether it is allowed is not the type's business.
    pub fn cast_for_column(&self, ty: &ColumnType, ctx: &StoreContext) -> Result<Stored, ConvertError> {
        let (value, problem) = match self {
            Value::Null => (Value::Null, None),
            _ => store(self, ty, ctx),
        };
        match problem {
            Some(p) if !p.is_note() && (ctx.strict || always_fails(p)) => Err(ConvertError(p)),
            _ => Ok(Stored { value, problem: problem.map(Problem::as_warning) }),
        }
    }
}

/// JSON and GEOMETRY have no nearest value.
fn always_fails(problem: Problem) -> bool {
    matches!(
        problem,
        Problem::InvalidJson
            | Problem::DeepJson
            | Problem::LongJsonKey
            | Problem::NoJsonText
            | Problem::BinaryJson
            | Problem::InvalidGeometry
    )
}

fn store(value: &Value, ty: &ColumnType, ctx: &StoreContext) -> Raw {
    use ColumnKind::*;
    if let (Value::Fixed(fixed), Some(to)) = (value, number_or_time(ty)) {
        let text = Value::Bytes(value.to_bytes(ty));
        return (store(&text, ty, ctx).0, Some(Problem::CannotCast { from: fixed.kind().name(), to }));
    }
    // Bytes are kept as bytes, as MariaDB does with those of a column.
    if let (Value::Fixed(fixed), Binary | VarBinary | TinyBlob | Blob | MediumBlob | LongBlob) =
        (value, ty.kind)
    {
        let bytes = Value::Bytes(Bytes::copy_from_slice(fixed.bytes()));
        return store_string::store(&bytes, ty, &StoreContext { charset: Charset::Binary, ..*ctx });
    }
    match ty.kind {
        TinyInt | SmallInt | MediumInt | Int | BigInt => store_integer(value, ty, ctx),
        Float | Double => store_real(value, ty),
        Decimal => store_decimal(value, ty),
        Bit => store_bit(value, ty),
        Year => store_temporal::year(value, ctx),
        Date | Time | DateTime | Timestamp => store_temporal::store(value, ty, ctx),
        Enum => store_string::store_enum(value, ty, ctx),
        Set => store_string::store_set(value, ty, ctx),
        Json => store_json(value, ctx),
        Geometry => match value {
            // SRID, byte order and type precede every geometry.
            Value::Bytes(b) if b.len() >= 9 => (value.clone(), None),
            _ => (Value::Null, Some(Problem::InvalidGeometry)),
        },
        kind => match FixedKind::of(kind) {
            Some(kind) => store_fixed(value, kind, ctx),
            None => store_string::store(value, ty, ctx),
        },
    }
}

/// Stores a UUID or address. A value that is not one becomes NULL, which a NOT NULL column turns into zero.
fn store_fixed(value: &Value, kind: FixedKind, ctx: &StoreContext) -> Raw {
    match fixed(value, kind, ctx.charset) {
        Some(Ok(value)) => (Value::Fixed(value), None),
        Some(Err(())) => (Value::Null, Some(Problem::IncorrectFixed(kind.name()))),
        None => (Value::Null, Some(Problem::CannotCast { from: type_name(value), to: kind.name() })),
    }
}

/// A UUID or an address as one of a type, text by what it says and bytes as they are; `Some(Err)` if it is none, and nothing at
/// all if values of its type never are.
pub fn fixed(value: &Value, kind: FixedKind, charset: Charset) -> Option<Result<Fixed, ()>> {
    Some(match value {
        Value::Fixed(value) if value.kind() == kind => Ok(*value),
        Value::Bytes(bytes) if charset == Charset::Binary => kind.from_bytes(bytes).ok_or(()),
        Value::Bytes(text) => {
            let mut utf8 = Vec::new();
            charset.convert(Charset::Utf8mb4, text, &mut utf8);
            kind.parse(&utf8).ok_or(())
        }
        _ => return None,
    })
}

/// MariaDB's name of a numeric or temporal type.
fn number_or_time(ty: &ColumnType) -> Option<&'static str> {
    use ColumnKind::*;
    Some(match ty.kind {
        TinyInt => "tinyint",
        SmallInt => "smallint",
        MediumInt => "mediumint",
        Int => "int",
        BigInt => "bigint",
        Float => "float",
        Double => "double",
        Decimal => "decimal",
        Bit => "bit",
        Year => "year",
        Date => "date",
        Time => "time",
        DateTime => "datetime",
        Timestamp => "timestamp",
        _ => return None,
    })
}

/// MariaDB's name of a value's type.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Int(n) if i32::try_from(*n).is_ok() => "int",
        Value::Int(_) => "bigint",
        Value::UInt(_) => "bigint unsigned",
        Value::Float(_) => "float",
        Value::Double(_) => "double",
        Value::Decimal(_) => "decimal",
        Value::Date(_) => "date",
        Value::DateTime(_) => "datetime",
        Value::Time(_) => "time",
        Value::Year(_) => "year",
        Value::Bit(_) => "bit",
        Value::Enum(_) => "enum",
        Value::Set(_) => "set",
        Value::Json(_) => "json",
        Value::Fixed(value) => value.kind().name(),
        Value::Null | Value::Bytes(_) => "varchar",
    }
}

/// Smallest and largest value of an integer kind.
fn integer_range(ty: &ColumnType) -> (i128, i128) {
    let bits = 8 * ty.kind.integer_bytes() as u32;
    if ty.unsigned { (0, (1 << bits) - 1) } else { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) }
}

fn integer(n: i128, ty: &ColumnType) -> Raw {
    let (low, high) = integer_range(ty);
    let clipped = n.clamp(low, high);
    let value = if ty.unsigned { Value::UInt(clipped as u64) } else { Value::Int(clipped as i64) };
    (value, (clipped != n).then_some(Problem::OutOfRange))
}

fn store_integer(value: &Value, ty: &ColumnType, ctx: &StoreContext) -> Raw {
    match value {
        Value::Int(n) => integer(i128::from(*n), ty),
        Value::UInt(n) | Value::Bit(n) | Value::Set(n) => integer(i128::from(*n), ty),
        Value::Year(n) | Value::Enum(n) => integer(i128::from(*n), ty),
        Value::Float(_) | Value::Double(_) => {
            // Doubles beyond i128 saturate, which is still out of every range.
            integer(round_half_even(value.to_f64().value) as i128, ty)
        }
        Value::Bytes(text) => {
            let parsed = Decimal::parse(text);
            if parsed.empty {
                return (integer(0, ty).0, Some(Problem::IncorrectNumber("integer")));
            }
            let (stored, range) = integer(rounded(&parsed.value), ty);
            (stored, range.or(parsed.truncated.then_some(Problem::Truncated)))
        }
        Value::Json(binary) => {
            let n = super::document::to_int(&super::number::document(binary));
            let (stored, range) = integer(n.value, ty);
            (stored, n.problem.or(range))
        }
        other => {
            let n = other.in_seconds(ctx.dates).to_decimal().value;
            // Nothing below zero is unsigned, even if it rounds to zero.
            let below = ty.unsigned && n.is_negative() && !n.is_zero();
            let (stored, range) = integer(rounded(&n), ty);
            (stored, range.or(below.then_some(Problem::OutOfRange)))
        }
    }
}

/// Half away from zero; beyond 127 bits saturated.
pub(super) fn rounded(n: &Decimal) -> i128 {
    match n.to_i64() {
        Ok(n) => i128::from(n),
        Err(_) => {
            let limit = if n.is_negative() { i128::MIN / 2 } else { i128::MAX / 2 };
            n.to_u64().map_or(limit, i128::from)
        }
    }
}

fn store_real(value: &Value, ty: &ColumnType) -> Raw {
    let (mut n, mut problem) = match value {
        Value::Bytes(text) => {
            let (n, whole) = super::parse_f64_prefix(text);
            (n, (!whole).then_some(Problem::Truncated))
        }
        other => {
            let c = other.to_f64();
            let json = matches!(c.problem, Some(Problem::JsonCast(_)));
            (c.value, if json { c.problem } else { c.problem.map(|_| Problem::Truncated) })
        }
    };
    if ty.decimals < NOT_FIXED {
        // A zero of so many decimals has no sign.
        n = round_places(n, ty.decimals) + 0.0;
        let limit =
            10f64.powi(ty.length as i32 - i32::from(ty.decimals)) - 10f64.powi(-i32::from(ty.decimals));
        problem = clip(&mut n, limit, problem);
    }
    if ty.kind == ColumnKind::Float {
        problem = clip(&mut n, f64::from(f32::MAX), problem);
    }
    if ty.unsigned && n < 0.0 {
        n = 0.0;
        problem = Some(Problem::OutOfRange);
    }
    let stored = if ty.kind == ColumnKind::Float { Value::Float(n as f32) } else { Value::Double(n) };
    (stored, problem)
}

fn clip(n: &mut f64, limit: f64, problem: Option<Problem>) -> Option<Problem> {
    if n.abs() <= limit {
        return problem;
    }
    *n = limit.copysign(*n);
    Some(Problem::OutOfRange)
}

/// DOUBLE(m,d) rounds like ROUND(x, d): half to even on the scaled value.
/// Rounds the part behind the whole number by itself, as MySQL and MariaDB do: 999.985 is 999.99, and -999.985 is -999.99.
fn round_places(n: f64, places: u8) -> f64 {
    let scale = 10f64.powi(i32::from(places));
    let whole = n.floor();
    if n.is_finite() { whole + round_half_even((n - whole) * scale) / scale } else { n }
}

fn store_decimal(value: &Value, ty: &ColumnType) -> Raw {
    let (n, mut problem) = match value {
        Value::Bytes(text) => {
            let parsed = Decimal::parse(text);
            let problem = match (parsed.empty, parsed.overflow, parsed.truncated) {
                (true, ..) => Some(Problem::IncorrectNumber("decimal")),
                (_, true, _) => Some(Problem::OutOfRange),
                (.., true) => Some(Problem::Truncated),
                _ => None,
            };
            (parsed.value, problem)
        }
        other => {
            let c = other.to_decimal();
            (c.value, c.problem)
        }
    };
    if ty.unsigned && n.is_negative() {
        return (Value::Decimal(Decimal::ZERO.rescale(ty.decimals)), Some(Problem::OutOfRange));
    }
    let stored = match n.fit(ty.length.min(65) as u8, ty.decimals) {
        Ok((fitted, lost)) => {
            problem = problem.or(lost.then_some(Problem::Rounded));
            fitted
        }
        Err(clipped) => {
            problem = Some(Problem::OutOfRange);
            clipped
        }
    };
    (Value::Decimal(stored), problem)
}

fn store_bit(value: &Value, ty: &ColumnType) -> Raw {
    let width = ty.length.clamp(1, 64);
    let max = u64::MAX >> (64 - width);
    let bits = match value {
        Value::Bytes(raw) => {
            let start = raw.iter().position(|&b| b != 0).unwrap_or(raw.len());
            let raw = &raw[start..];
            let bits = raw.iter().fold(0u64, |n, &b| n << 8 | u64::from(b));
            if raw.len() <= 8 { Some(bits) } else { None }
        }
        Value::Int(n) => Some(*n as u64),
        // Its text, as MySQL stores it.
        Value::Json(_) => {
            let text = value.to_bytes(&ColumnType::of(ColumnKind::LongText));
            return store_bit(&Value::Bytes(text), ty);
        }
        Value::Time(_) => Some(value.to_i64().value as u64),
        Value::Decimal(n) if n.is_negative() && !n.is_zero() => {
            return (Value::Bit(0), Some(Problem::OutOfRange));
        }
        other => Some(other.to_u64().value),
    };
    match bits.filter(|&b| b <= max) {
        Some(bits) => (Value::Bit(bits), None),
        None => (Value::Bit(max), Some(Problem::TooManyBits)),
    }
}

fn store_json(value: &Value, ctx: &StoreContext) -> Raw {
    let made = match value {
        Value::Json(binary) => return (Value::Json(binary.clone()), None),
        Value::Bytes(_) if ctx.charset == Charset::Binary => {
            return (Value::Null, Some(Problem::BinaryJson));
        }
        Value::Bytes(text) => {
            let mut utf8 = Vec::new();
            ctx.charset.convert(Charset::Utf8mb4, text, &mut utf8);
            Json::parse(&utf8).and_then(|json| json.encode())
        }
        _ => return (Value::Null, Some(Problem::NoJsonText)),
    };
    match made {
        Ok(binary) => (Value::Json(binary), None),
        Err(JsonError::TooDeep) => (Value::Null, Some(Problem::DeepJson)),
        Err(JsonError::LongKey) => (Value::Null, Some(Problem::LongJsonKey)),
        Err(_) => (Value::Null, Some(Problem::InvalidJson)),
    }
}

/// CAST of a scalar that is no string AS JSON.
pub(crate) fn scalar_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Int(n) => Json::Int(*n),
        Value::UInt(n) => Json::UInt(*n),
        Value::Float(n) => Json::Double(f64::from(*n)),
        Value::Double(n) => Json::Double(*n),
        Value::Decimal(n) => Json::Decimal(*n),
        Value::Date(v) => Json::Date(*v),
        Value::DateTime(v) => Json::DateTime(*v),
        Value::Time(v) => Json::Time(*v),
        Value::Year(n) => Json::UInt(u64::from(*n)),
        Value::Enum(n) => Json::UInt(u64::from(*n)),
        Value::Set(n) => Json::UInt(*n),
        Value::Bit(n) => Json::Opaque(16, Bytes::copy_from_slice(&n.to_be_bytes())),
        Value::Bytes(b) => Json::String(String::from_utf8_lossy(b).into_owned()),
        Value::Fixed(_) => {
            let text = value.to_bytes(&ColumnType::of(ColumnKind::VarChar));
            Json::String(String::from_utf8_lossy(&text).into_owned())
        }
        Value::Json(b) => Json::decode(b).unwrap_or(Json::Null),
    }
}
