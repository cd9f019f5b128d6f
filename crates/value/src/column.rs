//! The type of a column or expression: what MySQL's catalog, TABLE_MAP and result metadata need.

/// A column's storage type, one per MySQL type family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnKind {
    TinyInt,
    SmallInt,
    MediumInt,
    Int,
    BigInt,
    Float,
    Double,
    Decimal,
    Bit,
    Year,
    Date,
    Time,
    DateTime,
    Timestamp,
    Char,
    VarChar,
    Binary,
    VarBinary,
    TinyText,
    Text,
    MediumText,
    LongText,
    TinyBlob,
    Blob,
    MediumBlob,
    LongBlob,
    Enum,
    Set,
    Json,
    Geometry,
}

/// A column's full type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnType {
    /// The family.
    pub kind: ColumnKind,
    /// UNSIGNED, for numbers.
    pub unsigned: bool,
    /// ZEROFILL, for display.
    pub zerofill: bool,
    /// Display width of integers, characters of CHAR/VARCHAR, bytes of BINARY/VARBINARY, bits of
    /// BIT, total digits of DECIMAL/FLOAT(p,s); 0 where the kind has none.
    pub length: u32,
    /// Scale of DECIMAL/FLOAT/DOUBLE (31 = not fixed, for FLOAT and DOUBLE), fractional second
    /// digits of temporal types.
    pub decimals: u8,
    /// MySQL collation id: 63 is `binary`; meaningful for strings, ENUM, SET and JSON.
    pub collation: u16,
    /// Labels of ENUM and SET, in the column's character set.
    pub labels: std::sync::Arc<[bytes::Bytes]>,
}
