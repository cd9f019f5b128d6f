//! Types of expressions: a column type, whether it can be NULL, and how strongly its collation
//! holds. Evaluation looks at the values' own tags; these types decide result metadata, the target
//! of implicit conversions and collations. Pure, used when a statement is bound.

use super::charset;
pub(crate) use crate::catalog::NOT_FIXED;
use crate::error::{SqlError, SqlResult};
use crate::state::SessionState;
use bytes::Bytes;
use omnibus_value::{ColumnKind, ColumnType, FixedKind};
use std::sync::{Arc, OnceLock};

/// Collation id of `binary`.
pub const BINARY: u16 = 63;

/// How strongly an expression's collation holds; smaller wins (MySQL's coercibility numbers).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Coercibility {
    /// A COLLATE clause.
    Explicit = 0,
    /// Two sides that do not agree.
    None = 1,
    /// A column.
    Implicit = 2,
    /// USER(), VERSION(), DATABASE().
    SystemConstant = 3,
    /// A literal or parameter.
    Literal = 4,
    /// A number or temporal value made a string.
    Numeric = 5,
    /// NULL.
    Ignorable = 6,
}

/// The type of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprType {
    /// The type of the values, and of the result column.
    pub column: ColumnType,
    /// Whether NULL is possible.
    pub nullable: bool,
    /// Strength of `column.collation`.
    pub coercibility: Coercibility,
}

/// Families within which types are alike for the purposes of unification and comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Integers, BIT and YEAR.
    Integer,
    /// DECIMAL.
    Decimal,
    /// FLOAT and DOUBLE.
    Real,
    /// DATE.
    Date,
    /// DATETIME and TIMESTAMP.
    DateTime,
    /// TIME.
    Time,
    /// Characters and bytes, ENUM and SET too.
    String,
    /// UUID, INET4 and INET6.
    Fixed,
    /// JSON.
    Json,
}

/// The label list of a type that has none, shared so that types are cheap to make.
fn no_labels() -> Arc<[Bytes]> {
    static NONE: OnceLock<Arc<[Bytes]>> = OnceLock::new();
    NONE.get_or_init(|| Arc::from(Vec::new())).clone()
}

/// A column type with everything spelled out but labels.
#[must_use]
pub fn column_type(
    kind: ColumnKind,
    unsigned: bool,
    length: u32,
    decimals: u8,
    collation: u16,
) -> ColumnType {
    ColumnType { kind, unsigned, zerofill: false, length, decimals, collation, labels: no_labels() }
}

/// The family of a column kind.
#[must_use]
pub fn family(kind: ColumnKind) -> Family {
    use ColumnKind as K;
    match kind {
        K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt | K::Bit | K::Year => Family::Integer,
        K::Float | K::Double => Family::Real,
        K::Decimal => Family::Decimal,
        K::Date => Family::Date,
        K::Time => Family::Time,
        K::DateTime | K::Timestamp => Family::DateTime,
        K::Json => Family::Json,
        K::Uuid | K::Inet4 | K::Inet6 => Family::Fixed,
        _ => Family::String,
    }
}

/// Decimal digits that an integer kind can have.
#[must_use]
pub fn integer_digits(kind: ColumnKind, unsigned: bool) -> u32 {
    match kind {
        ColumnKind::TinyInt => 3,
        ColumnKind::SmallInt => 5,
        ColumnKind::MediumInt => 8,
        ColumnKind::Int => 10,
        ColumnKind::Year => 4,
        _ => 19 + u32::from(unsigned),
    }
}

impl ExprType {
    fn number(kind: ColumnKind, unsigned: bool, length: u32, decimals: u8) -> ExprType {
        ExprType {
            column: column_type(kind, unsigned, length, decimals, BINARY),
            nullable: false,
            coercibility: Coercibility::Numeric,
        }
    }

    /// BIGINT.
    #[must_use]
    pub fn bigint() -> ExprType {
        ExprType::number(ColumnKind::BigInt, false, 20, 0)
    }

    /// BIGINT UNSIGNED.
    #[must_use]
    pub fn ubigint() -> ExprType {
        ExprType::number(ColumnKind::BigInt, true, 20, 0)
    }

    /// The type of comparisons and small integer functions: INT with a display width.
    #[must_use]
    pub fn int(width: u32) -> ExprType {
        ExprType::number(if width > 10 { ColumnKind::BigInt } else { ColumnKind::Int }, false, width, 0)
    }

    /// A truth value.
    #[must_use]
    pub fn boolean() -> ExprType {
        ExprType::number(ColumnKind::Int, false, 1, 0)
    }

    /// DOUBLE.
    #[must_use]
    pub fn double() -> ExprType {
        ExprType::number(ColumnKind::Double, false, 23, NOT_FIXED)
    }

    /// DECIMAL(precision, scale), clamped to what the type can hold.
    #[must_use]
    pub fn decimal(precision: u32, scale: u8) -> ExprType {
        let scale = scale.min(30);
        let precision = precision.max(u32::from(scale)).clamp(1, 65);
        ExprType::number(ColumnKind::Decimal, false, precision, scale)
    }

    /// DATE.
    #[must_use]
    pub fn date() -> ExprType {
        ExprType::number(ColumnKind::Date, false, 10, 0)
    }

    /// YEAR.
    #[must_use]
    pub fn year() -> ExprType {
        ExprType::number(ColumnKind::Year, true, 4, 0)
    }

    /// DATETIME(decimals).
    #[must_use]
    pub fn datetime(decimals: u8) -> ExprType {
        ExprType::number(ColumnKind::DateTime, false, 19 + fraction_width(decimals), decimals)
    }

    /// TIME(decimals).
    #[must_use]
    pub fn time(decimals: u8) -> ExprType {
        ExprType::number(ColumnKind::Time, false, 10 + fraction_width(decimals), decimals)
    }

    /// UUID, INET4 or INET6.
    #[must_use]
    pub fn fixed(kind: FixedKind) -> ExprType {
        ExprType::number(kind.column(), false, 0, 0)
    }

    /// JSON.
    #[must_use]
    pub fn json() -> ExprType {
        ExprType {
            column: column_type(ColumnKind::Json, false, 0, 0, 46),
            nullable: false,
            coercibility: Coercibility::Implicit,
        }
    }

    /// A string of at most `length` characters (bytes for the binary collation) whose collation
    /// is that of a literal.
    #[must_use]
    pub fn varchar(length: u32, collation: u16) -> ExprType {
        ExprType {
            column: string_column(length, collation),
            nullable: false,
            coercibility: Coercibility::Literal,
        }
    }

    /// The type of a bare NULL.
    #[must_use]
    pub fn null() -> ExprType {
        ExprType {
            column: column_type(ColumnKind::VarBinary, false, 0, 0, BINARY),
            nullable: true,
            coercibility: Coercibility::Ignorable,
        }
    }

    /// The same type, nullable or not.
    #[must_use]
    pub fn nullable(mut self, nullable: bool) -> ExprType {
        self.nullable = nullable;
        self
    }

    /// The same type with so many decimals; a DOUBLE that has them fixed is as wide as they need.
    #[must_use]
    pub fn decimals(mut self, decimals: u8) -> ExprType {
        self.column.decimals = decimals;
        if self.column.kind == ColumnKind::Double {
            self.column.length = if decimals < NOT_FIXED { 17 + u32::from(decimals) } else { 23 };
        }
        self
    }

    /// The same type with another coercibility.
    #[must_use]
    pub fn coercible(mut self, coercibility: Coercibility) -> ExprType {
        self.coercibility = coercibility;
        self
    }

    /// The family.
    #[must_use]
    pub fn family(&self) -> Family {
        family(self.column.kind)
    }

    /// Whether this is the type of a bare NULL.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.coercibility == Coercibility::Ignorable
    }

    /// Whether this is the type of `x'0A'`: a number where one is wanted.
    #[must_use]
    pub fn is_binary_literal(&self) -> bool {
        self.column.kind == ColumnKind::Binary && self.coercibility == Coercibility::Literal
    }

    /// Whether it is an integer without a sign: bits and years are.
    #[must_use]
    pub fn is_unsigned(&self) -> bool {
        self.column.unsigned || matches!(self.column.kind, ColumnKind::Bit | ColumnKind::Year)
    }

    pub(super) fn has_labels(&self) -> bool {
        matches!(self.column.kind, ColumnKind::Enum | ColumnKind::Set)
    }

    /// The type of what CASE and its kin choose: an ENUM or SET is its text.
    #[must_use]
    pub fn as_chosen(mut self) -> ExprType {
        if self.has_labels() {
            self.column = string_column(self.display_length(), self.column.collation);
        }
        self
    }

    /// Whether it is a date, a time or both.
    #[must_use]
    pub fn is_temporal(&self) -> bool {
        matches!(self.family(), Family::Date | Family::DateTime | Family::Time)
    }

    /// Characters that the value prints to at most.
    #[must_use]
    pub fn display_length(&self) -> u32 {
        let column = &self.column;
        match column.kind {
            ColumnKind::Decimal => {
                // A zero stands before the point where no other digit does.
                let whole = u32::from(column.decimals > 0 && column.length == u32::from(column.decimals));
                column.length + whole + u32::from(column.decimals > 0) + u32::from(!column.unsigned)
            }
            ColumnKind::Enum => label_lengths(column).max().unwrap_or(0),
            // All members, with commas between them.
            ColumnKind::Set => label_lengths(column).map(|length| length + 1).sum::<u32>().saturating_sub(1),
            ColumnKind::TinyText | ColumnKind::TinyBlob => 255,
            ColumnKind::Text | ColumnKind::Blob => 65_535,
            ColumnKind::MediumText | ColumnKind::MediumBlob => 16_777_215,
            ColumnKind::LongText | ColumnKind::LongBlob | ColumnKind::Json | ColumnKind::Geometry => u32::MAX,
            ColumnKind::Uuid | ColumnKind::Inet4 | ColumnKind::Inet6 => {
                FixedKind::of(column.kind).map_or(0, FixedKind::text_width)
            }
            ColumnKind::Date => 10,
            ColumnKind::Year => 4,
            ColumnKind::Time => 10 + fraction_width(column.decimals),
            ColumnKind::DateTime | ColumnKind::Timestamp => 19 + fraction_width(column.decimals),
            ColumnKind::Double => 22,
            ColumnKind::Float if column.decimals < NOT_FIXED => column.length,
            ColumnKind::Float => 12,
            ColumnKind::Bit => column.length,
            // MySQL's display width.
            ColumnKind::MediumInt if !column.unsigned => 9,
            kind if family(kind) == Family::Integer => {
                integer_digits(kind, column.unsigned) + u32::from(!column.unsigned)
            }
            _ => column.length,
        }
    }

    /// Digits behind the decimal point that a value is printed with; `NOT_FIXED` if that depends on it.
    #[must_use]
    pub fn fixed_decimals(&self) -> u8 {
        match self.family() {
            Family::Real => self.column.decimals,
            _ => self.scale(),
        }
    }

    /// Digits before the decimal point that a DECIMAL of this type needs.
    #[must_use]
    pub fn integer_part(&self) -> u32 {
        match self.family() {
            Family::Decimal => self.column.length.saturating_sub(u32::from(self.column.decimals)),
            Family::Integer => integer_digits(self.column.kind, self.column.unsigned),
            Family::Date => 8,
            Family::Time => 7,
            Family::DateTime => 14,
            _ => 22,
        }
    }

    /// Digits behind the decimal point that arithmetic gives it; `NOT_FIXED` for reals.
    #[must_use]
    pub fn scale(&self) -> u8 {
        match self.family() {
            Family::Decimal | Family::Time | Family::DateTime => self.column.decimals,
            Family::Integer | Family::Date => 0,
            _ => NOT_FIXED,
        }
    }
}

/// How many characters each member of an ENUM or SET has.
fn label_lengths(column: &ColumnType) -> impl Iterator<Item = u32> {
    column.labels.iter().map(|label| charset::char_count(label, column.collation) as u32)
}

/// Bytes that the text of a value takes at most.
#[must_use]
pub fn bytes(ty: &ExprType) -> u32 {
    use ColumnKind as K;
    let chars = ty.display_length();
    match ty.column.kind {
        K::Char | K::VarChar | K::Enum | K::Set => {
            chars.saturating_mul(crate::expr::charset::max_width(ty.column.collation))
        }
        _ => chars,
    }
}

/// The string column type that holds `length` characters of a collation.
#[must_use]
pub fn string_column(length: u32, collation: u16) -> ColumnType {
    let binary = collation == BINARY;
    let kind = match (length, binary) {
        (0..=16_383, false) => ColumnKind::VarChar,
        // A row holds no more, with the length in front.
        (0..=65_532, true) => ColumnKind::VarBinary,
        (0..=4_194_303, false) => ColumnKind::MediumText,
        (0..=16_777_215, true) => ColumnKind::MediumBlob,
        (_, false) => ColumnKind::LongText,
        (_, true) => ColumnKind::LongBlob,
    };
    column_type(kind, false, length, 0, collation)
}

/// Width of a fraction of `decimals` digits with its point.
#[must_use]
pub fn fraction_width(decimals: u8) -> u32 {
    if decimals == 0 { 0 } else { u32::from(decimals) + 1 }
}

/// Error 4078: what MariaDB says of a UUID or an address beside what is none.
pub fn illegal_types(a: &ExprType, b: &ExprType, operation: &str) -> SqlError {
    let (a, b) = (type_word(a), type_word(b));
    let message = format!("Illegal parameter data types {a} and {b} for operation '{operation}'");
    SqlError::new(4078, b"HY000", message)
}

/// Refuses UUIDs and addresses where numbers or times are wanted: error 4079.
pub fn refuse_fixed(ty: &ExprType, operation: &str) -> SqlResult<()> {
    if ty.family() != Family::Fixed {
        return Ok(());
    }
    let message = format!("Illegal parameter data type {} for operation '{operation}'", type_word(ty));
    Err(SqlError::new(4079, b"HY000", message))
}

/// How MariaDB calls a type in an error.
fn type_word(ty: &ExprType) -> &'static str {
    use ColumnKind as K;
    match ty.column.kind {
        K::TinyInt => "tinyint",
        K::SmallInt => "smallint",
        K::MediumInt => "mediumint",
        K::BigInt if ty.column.unsigned => "bigint unsigned",
        // The type of a literal of few digits.
        K::BigInt if ty.column.length > 11 => "bigint",
        K::Int | K::BigInt => "int",
        K::Float => "float",
        K::Double => "double",
        K::Decimal => "decimal",
        K::Bit => "bit",
        K::Year => "year",
        K::Date => "date",
        K::Time => "time",
        K::DateTime => "datetime",
        K::Timestamp => "timestamp",
        K::Json => "json",
        K::Char | K::Enum | K::Set => "char",
        K::TinyText => "tinytext",
        K::Text => "text",
        K::MediumText => "mediumtext",
        K::LongText => "longtext",
        K::Binary => "binary",
        K::VarBinary => "varbinary",
        K::TinyBlob => "tinyblob",
        K::Blob => "blob",
        K::MediumBlob => "mediumblob",
        K::LongBlob => "longblob",
        K::Geometry => "geometry",
        K::VarChar => "varchar",
        K::Uuid => "uuid",
        K::Inet4 => "inet4",
        K::Inet6 => "inet6",
    }
}

/// The context that a result type may depend on beside the arguments.
#[derive(Clone, Copy)]
pub struct BindContext<'a> {
    /// The session.
    pub session: &'a SessionState,
    /// The collation of literals.
    pub collation: u16,
}
