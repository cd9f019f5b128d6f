//! The type of a column or expression: what MySQL's catalog, TABLE_MAP and result metadata need.

/// A column's storage type, one per MySQL type family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
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
    Uuid,
    Inet4,
    Inet6,
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

use ColumnKind::*;

/// `decimals` of a FLOAT or DOUBLE without fixed places.
pub const NOT_FIXED: u8 = 31;

/// Shared, so that making a type does not allocate.
static NO_LABELS: std::sync::LazyLock<std::sync::Arc<[bytes::Bytes]>> =
    std::sync::LazyLock::new(|| std::sync::Arc::from([]));

impl ColumnKind {
    /// TINYINT to BIGINT.
    pub const fn is_integer(self) -> bool {
        matches!(self, TinyInt | SmallInt | MediumInt | Int | BigInt)
    }
    /// Compared and computed as a number.
    pub const fn is_numeric(self) -> bool {
        self.is_integer() || matches!(self, Float | Double | Decimal | Bit | Year)
    }
    /// DATE, TIME, DATETIME, TIMESTAMP.
    pub const fn is_temporal(self) -> bool {
        matches!(self, Date | Time | DateTime | Timestamp)
    }
    /// TINYTEXT to LONGTEXT, TINYBLOB to LONGBLOB.
    pub const fn is_lob(self) -> bool {
        matches!(self, TinyText | Text | MediumText | LongText | TinyBlob | Blob | MediumBlob | LongBlob)
    }
    /// Bytes of the number as stored; 0 for kinds that are not fixed.
    pub const fn integer_bytes(self) -> usize {
        match self {
            TinyInt => 1,
            SmallInt => 2,
            MediumInt => 3,
            Int => 4,
            BigInt => 8,
            _ => 0,
        }
    }
    /// Most bytes of a TEXT or BLOB kind.
    pub const fn lob_limit(self) -> usize {
        match self {
            TinyText | TinyBlob => 255,
            Text | Blob => 65_535,
            MediumText | MediumBlob => 16_777_215,
            _ => u32::MAX as usize,
        }
    }
}

impl ColumnType {
    fn plain(kind: ColumnKind, length: u32, decimals: u8, collation: u16) -> ColumnType {
        ColumnType {
            kind,
            unsigned: false,
            zerofill: false,
            length,
            decimals,
            collation,
            labels: NO_LABELS.clone(),
        }
    }
    /// A signed integer kind with its default display width, or any kind without parameters.
    pub fn of(kind: ColumnKind) -> ColumnType {
        let (length, decimals) = match kind {
            TinyInt => (4, 0),
            SmallInt => (6, 0),
            MediumInt => (9, 0),
            Int => (11, 0),
            BigInt => (20, 0),
            Float => (12, NOT_FIXED),
            Double => (22, NOT_FIXED),
            Decimal => (10, 0),
            Bit => (1, 0),
            Year => (4, 0),
            _ => (0, 0),
        };
        ColumnType::plain(kind, length, decimals, crate::collation::BINARY_ID)
    }
    /// The same, UNSIGNED.
    pub fn unsigned(mut self) -> ColumnType {
        self.unsigned = true;
        self
    }
    /// DECIMAL(precision, scale).
    pub fn decimal(precision: u8, scale: u8) -> ColumnType {
        ColumnType { length: precision.into(), decimals: scale, ..ColumnType::of(Decimal) }
    }
    /// TIME, DATETIME or TIMESTAMP with fractional digits.
    pub fn temporal(kind: ColumnKind, fsp: u8) -> ColumnType {
        ColumnType { decimals: fsp, ..ColumnType::of(kind) }
    }
    /// CHAR, VARCHAR, TEXT and so on: `length` characters in a collation.
    pub fn string(kind: ColumnKind, length: u32, collation: u16) -> ColumnType {
        ColumnType::plain(kind, length, 0, collation)
    }
    /// ENUM or SET.
    pub fn labelled(kind: ColumnKind, labels: Vec<bytes::Bytes>, collation: u16) -> ColumnType {
        ColumnType { labels: labels.into(), ..ColumnType::plain(kind, 0, 0, collation) }
    }
    /// Its collation; `binary` for numbers and for unknown ids. JSON is `utf8mb4_bin`.
    pub fn collation(&self) -> &'static crate::collation::Collation {
        let id = if self.kind == Json { 46 } else { self.collation };
        crate::collation::by_id_or_binary(id)
    }
    /// Its character set.
    pub fn charset(&self) -> crate::collation::Charset {
        self.collation().charset
    }
    /// Fractional digits of a temporal type, at most 6.
    pub fn fsp(&self) -> u8 {
        if self.kind.is_temporal() { self.decimals.min(6) } else { 0 }
    }
    /// The label of an ENUM index; empty for 0 and for indexes that do not exist.
    pub fn enum_label(&self, index: u16) -> &[u8] {
        let at = usize::from(index).checked_sub(1);
        at.and_then(|at| self.labels.get(at)).map_or(b"", |label| label)
    }
    /// Appends the labels of a SET's members, comma-separated.
    pub fn write_set(&self, mask: u64, out: &mut Vec<u8>) {
        let start = out.len();
        for (bit, label) in self.labels.iter().enumerate().take(64) {
            if mask >> bit & 1 == 1 {
                if out.len() > start {
                    out.push(b',');
                }
                out.extend_from_slice(label);
            }
        }
    }
}
