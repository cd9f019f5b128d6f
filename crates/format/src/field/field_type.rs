//! `FieldType`: type code and metadata of one column, and the length of its field bytes.

use omnibus_value::{ColumnKind, ColumnType};

use super::charset::charset_max_len;
use crate::cursor::{Reader, le_uint};
use crate::error::DecodeError;

/// Type codes of the binlog (MySQL's column type numbers).
#[allow(missing_docs)] // Names are MySQL's.
pub mod code {
    pub const DECIMAL: u8 = 0;
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const NULL: u8 = 6;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    pub const NEWDATE: u8 = 14;
    pub const VARCHAR: u8 = 15;
    pub const BIT: u8 = 16;
    pub const TIMESTAMP2: u8 = 17;
    pub const DATETIME2: u8 = 18;
    pub const TIME2: u8 = 19;
    pub const MARIADB_BLOB_COMPRESSED: u8 = 140;
    pub const MARIADB_VARCHAR_COMPRESSED: u8 = 141;
    pub const VECTOR: u8 = 242;
    pub const JSON: u8 = 245;
    pub const NEWDECIMAL: u8 = 246;
    pub const ENUM: u8 = 247;
    pub const SET: u8 = 248;
    pub const TINY_BLOB: u8 = 249;
    pub const MEDIUM_BLOB: u8 = 250;
    pub const LONG_BLOB: u8 = 251;
    pub const BLOB: u8 = 252;
    pub const VAR_STRING: u8 = 253;
    pub const STRING: u8 = 254;
    pub const GEOMETRY: u8 = 255;
}

/// A column's type as a row event needs it. ENUM, SET and CHAR are distinguished here; in TABLE_MAP they all have the
/// code STRING and the real code in the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldType {
    /// One of `code`; the real type for ENUM and SET.
    pub code: u8,
    /// CHAR/VARCHAR: maximum bytes. ENUM/SET: bytes stored. BLOB family, JSON, GEOMETRY: length bytes. BIT: bits.
    /// NEWDECIMAL: precision << 8 | scale. Temporal: fractional digits. FLOAT/DOUBLE: bytes.
    pub meta: u16,
}

impl FieldType {
    /// Returns the type of one of this server's columns.
    pub fn of_column(column: &ColumnType) -> Self {
        let field = |code, meta| Self { code, meta };
        let chars = column.length * charset_max_len(column.collation);
        let bytes = |n: u32| n.min(u32::from(u16::MAX)) as u16;
        match column.kind {
            ColumnKind::TinyInt => field(code::TINY, 0),
            ColumnKind::SmallInt => field(code::SHORT, 0),
            ColumnKind::MediumInt => field(code::INT24, 0),
            ColumnKind::Int => field(code::LONG, 0),
            ColumnKind::BigInt => field(code::LONGLONG, 0),
            ColumnKind::Float => field(code::FLOAT, 4),
            ColumnKind::Double => field(code::DOUBLE, 8),
            ColumnKind::Decimal => {
                field(code::NEWDECIMAL, (bytes(column.length) << 8) | u16::from(column.decimals))
            }
            ColumnKind::Bit => field(code::BIT, bytes(column.length.clamp(1, 64))),
            ColumnKind::Year => field(code::YEAR, 0),
            ColumnKind::Date => field(code::DATE, 0),
            ColumnKind::Time => field(code::TIME2, u16::from(column.decimals)),
            ColumnKind::DateTime => field(code::DATETIME2, u16::from(column.decimals)),
            ColumnKind::Timestamp => field(code::TIMESTAMP2, u16::from(column.decimals)),
            ColumnKind::Char => field(code::STRING, bytes(chars)),
            ColumnKind::Binary => field(code::STRING, bytes(column.length)),
            ColumnKind::VarChar => field(code::VARCHAR, bytes(chars)),
            ColumnKind::VarBinary => field(code::VARCHAR, bytes(column.length)),
            ColumnKind::TinyText | ColumnKind::TinyBlob => field(code::BLOB, 1),
            ColumnKind::Text | ColumnKind::Blob => field(code::BLOB, 2),
            ColumnKind::MediumText | ColumnKind::MediumBlob => field(code::BLOB, 3),
            ColumnKind::LongText | ColumnKind::LongBlob => field(code::BLOB, 4),
            ColumnKind::Enum => field(code::ENUM, if column.labels.len() < 256 { 1 } else { 2 }),
            ColumnKind::Set => field(code::SET, set_bytes(column.labels.len())),
            ColumnKind::Json => field(code::JSON, 4),
            ColumnKind::Geometry => field(code::GEOMETRY, 4),
            // As MariaDB writes them: BINARY(16) and BINARY(4).
            ColumnKind::Uuid | ColumnKind::Inet6 => field(code::STRING, 16),
            ColumnKind::Inet4 => field(code::STRING, 4),
        }
    }

    /// The code byte in TABLE_MAP's type list.
    pub fn table_map_code(self) -> u8 {
        match self.code {
            code::ENUM | code::SET => code::STRING,
            other => other,
        }
    }

    /// Appends the metadata bytes.
    pub fn put_metadata(self, out: &mut Vec<u8>) {
        let [low, high] = self.meta.to_le_bytes();
        match self.code {
            code::ENUM | code::SET => out.extend_from_slice(&[self.code, low]),
            // Bits 8 and 9 of the length hide in the type byte, inverted.
            code::STRING | code::VAR_STRING => {
                out.extend_from_slice(&[self.code ^ ((high & 3) << 4), low]);
            }
            code::NEWDECIMAL => out.extend_from_slice(&[high, low]),
            code::VARCHAR | code::MARIADB_VARCHAR_COMPRESSED => out.extend_from_slice(&[low, high]),
            code::BIT => out.extend_from_slice(&[low % 8, low / 8]),
            _ if one_byte_metadata(self.code) => out.push(low),
            _ => {}
        }
    }

    /// Reads the metadata of a column with TABLE_MAP code `code`.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn read(map_code: u8, r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let field = |code, meta| Ok(Self { code, meta });
        match map_code {
            code::STRING | code::VAR_STRING | code::ENUM | code::SET => {
                let [kind, len] = r.array("column metadata")?;
                let len = u16::from(len);
                match kind {
                    code::ENUM if matches!(len, 1 | 2) => return field(kind, len),
                    code::SET if matches!(len, 1..=4 | 8) => return field(kind, len),
                    code::ENUM | code::SET => return Err(r.error("size of an ENUM or SET")),
                    _ => {}
                }
                // Two bits of a long CHAR's length are in its type, inverted; with them put back there is no other type.
                let kind_said = kind | 0x30;
                if !matches!(kind_said, code::STRING | code::VAR_STRING) {
                    return Err(r.error("type of a string column"));
                }
                field(kind_said, (u16::from(kind & 0x30) ^ 0x30) << 4 | len)
            }
            code::NEWDECIMAL => field(map_code, u16::from_be_bytes(r.array("column metadata")?)),
            code::VARCHAR | code::MARIADB_VARCHAR_COMPRESSED => field(map_code, r.u16("column metadata")?),
            code::BIT => {
                let [bits, bytes] = r.array("column metadata")?;
                if bits > 7 || bytes > 8 || (bytes == 8 && bits > 0) {
                    return Err(r.error("BIT metadata"));
                }
                field(map_code, u16::from(bytes) * 8 + u16::from(bits))
            }
            _ if one_byte_metadata(map_code) => field(map_code, u16::from(r.u8("column metadata")?)),
            _ => field(map_code, 0),
        }
    }

    /// Bytes of the length prefix of a variable-length type; 0 for the others.
    #[inline]
    pub fn prefix_len(self) -> usize {
        match self.code {
            code::VARCHAR | code::STRING | code::VAR_STRING | code::MARIADB_VARCHAR_COMPRESSED => {
                if self.meta < 256 { 1 } else { 2 }
            }
            code::BLOB
            | code::JSON
            | code::GEOMETRY
            | code::VECTOR
            | code::TINY_BLOB
            | code::MEDIUM_BLOB
            | code::LONG_BLOB
            | code::MARIADB_BLOB_COMPRESSED => usize::from(self.meta.clamp(1, 4)),
            _ => 0,
        }
    }

    /// Bytes of a fixed-length type; `None` for those with a length prefix and unknown codes.
    #[inline]
    pub fn fixed_len(self) -> Option<usize> {
        Some(match self.code {
            code::TINY | code::YEAR => 1,
            code::SHORT => 2,
            code::INT24 | code::DATE | code::NEWDATE | code::TIME => 3,
            code::LONG | code::FLOAT | code::TIMESTAMP => 4,
            code::LONGLONG | code::DOUBLE | code::DATETIME => 8,
            code::NULL => 0,
            code::TIMESTAMP2 => 4 + fraction_len(self.meta),
            code::DATETIME2 => 5 + fraction_len(self.meta),
            code::TIME2 => 3 + fraction_len(self.meta),
            code::NEWDECIMAL => decimal_len(self.meta)?,
            code::BIT => usize::from(self.meta).div_ceil(8),
            code::ENUM => usize::from(self.meta),
            code::SET => usize::from(self.meta),
            _ => return None,
        })
    }

    /// Bytes of the field at the start of `bytes`, prefix included; `None` when `bytes` is
    /// shorter than the field or the type is unknown.
    #[inline]
    pub fn len(self, bytes: &[u8]) -> Option<usize> {
        let len = match self.fixed_len() {
            Some(len) => len,
            None => {
                let prefix = self.prefix_len();
                if prefix == 0 {
                    return None;
                }
                prefix + le_uint(bytes.get(..prefix)?) as usize
            }
        };
        (len <= bytes.len()).then_some(len)
    }

    /// Returns whether optional metadata counts the column among the numeric ones (signedness bitmap). Both servers'
    /// writers count YEAR, although neither one's reader does.
    pub fn is_numeric(self) -> bool {
        matches!(
            self.code,
            code::TINY
                | code::SHORT
                | code::INT24
                | code::LONG
                | code::LONGLONG
                | code::FLOAT
                | code::DOUBLE
                | code::NEWDECIMAL
                | code::DECIMAL
                | code::YEAR
        )
    }

    /// Returns whether optional metadata counts the column among the character ones: CHAR, VARCHAR, TEXT and their
    /// binary counterparts.
    pub fn is_character(self) -> bool {
        matches!(
            self.code,
            code::STRING
                | code::VAR_STRING
                | code::VARCHAR
                | code::BLOB
                | code::MARIADB_VARCHAR_COMPRESSED
                | code::MARIADB_BLOB_COMPRESSED
        )
    }

    /// Returns whether the type is BLOB, TEXT, JSON or GEOMETRY, which `binlog_row_image=NOBLOB` leaves out.
    pub fn is_blob(self) -> bool {
        matches!(
            self.code,
            code::BLOB | code::JSON | code::GEOMETRY | code::VECTOR | code::MARIADB_BLOB_COMPRESSED
        )
    }
}

fn one_byte_metadata(code: u8) -> bool {
    matches!(
        code,
        code::FLOAT
            | code::DOUBLE
            | code::BLOB
            | code::TINY_BLOB
            | code::MEDIUM_BLOB
            | code::LONG_BLOB
            | code::GEOMETRY
            | code::JSON
            | code::VECTOR
            | code::TIME2
            | code::DATETIME2
            | code::TIMESTAMP2
            | code::MARIADB_BLOB_COMPRESSED
    )
}

/// SET stores 1, 2, 3, 4 or 8 bytes.
fn set_bytes(labels: usize) -> u16 {
    match labels.div_ceil(8) {
        0 => 1,
        n @ 1..=4 => n as u16,
        _ => 8,
    }
}

/// Bytes of `digits` fractional second digits.
#[inline]
fn fraction_len(digits: u16) -> usize {
    usize::from(digits.min(6)).div_ceil(2)
}

/// Bytes of DECIMAL(precision, scale): nine digits in four bytes, the rest in as few as fit.
#[inline]
fn decimal_len(meta: u16) -> Option<usize> {
    const LEFTOVER: [usize; 9] = [0, 1, 1, 2, 2, 3, 3, 4, 4];
    let (precision, scale) = (usize::from(meta >> 8), usize::from(meta & 0xff));
    let whole = precision.checked_sub(scale)?;
    let part = |digits: usize| digits / 9 * 4 + LEFTOVER[digits % 9];
    Some(part(whole) + part(scale))
}
