//! Column definitions (protocol 4.1) of result sets and prepared statements, both directions.

use crate::buf::{DecodeError, Reader, put_lenenc_bytes};
use crate::consts::{COLLATION_BINARY, ColumnFlag, FieldType};
use omnibus_value::{ColumnKind, ColumnType, FixedKind};
use std::borrow::Cow;

/// The description of a result's column for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDef<'a> {
    /// Database, empty for an expression.
    pub schema: Cow<'a, [u8]>,
    /// Table or alias.
    pub table: Cow<'a, [u8]>,
    /// Table.
    pub org_table: Cow<'a, [u8]>,
    /// Column or alias.
    pub name: Cow<'a, [u8]>,
    /// Column.
    pub org_name: Cow<'a, [u8]>,
    /// Collation id of the values as sent; 63 for numbers and binary strings.
    pub collation: u16,
    /// Display length in bytes.
    pub length: u32,
    /// Type.
    pub field_type: FieldType,
    /// Flags.
    pub flags: ColumnFlag,
    /// Digits after the point; 31 means "not fixed".
    pub decimals: u8,
}

impl ColumnDef<'_> {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_lenenc_bytes(out, b"def");
        for s in [&self.schema, &self.table, &self.org_table, &self.name, &self.org_name] {
            put_lenenc_bytes(out, s);
        }
        out.push(0x0C);
        out.extend_from_slice(&self.collation.to_le_bytes());
        out.extend_from_slice(&self.length.to_le_bytes());
        out.push(self.field_type as u8);
        out.extend_from_slice(&self.flags.0.to_le_bytes());
        out.push(self.decimals);
        out.extend_from_slice(&[0, 0]);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<ColumnDef<'_>, DecodeError> {
        let mut r = Reader::new(payload);
        r.lenenc_bytes("catalog")?;
        let mut next = |what| r.lenenc_bytes(what).map(Cow::Borrowed);
        let schema = next("database")?;
        let table = next("table")?;
        let org_table = next("original table")?;
        let name = next("column")?;
        let org_name = next("original column")?;
        r.lenenc("length of fixed fields")?;
        Ok(ColumnDef {
            schema,
            table,
            org_table,
            name,
            org_name,
            collation: r.u16("collation")?,
            length: r.u32("column length")?,
            field_type: FieldType::from_u8(r.u8("column type")?)
                .ok_or(DecodeError::Malformed("column type"))?,
            flags: ColumnFlag(r.u16("column flags")?),
            decimals: r.u8("decimals")?,
        })
    }
}

/// The type byte that a client sees for a column kind. ENUM and SET travel as strings.
#[must_use]
pub fn field_type(kind: ColumnKind) -> FieldType {
    use ColumnKind as K;
    match kind {
        K::TinyInt => FieldType::Tiny,
        K::SmallInt => FieldType::Short,
        K::MediumInt => FieldType::Int24,
        K::Int => FieldType::Long,
        K::BigInt => FieldType::LongLong,
        K::Float => FieldType::Float,
        K::Double => FieldType::Double,
        K::Decimal => FieldType::NewDecimal,
        K::Bit => FieldType::Bit,
        K::Year => FieldType::Year,
        K::Date => FieldType::Date,
        K::Time => FieldType::Time,
        K::DateTime => FieldType::DateTime,
        K::Timestamp => FieldType::Timestamp,
        K::Char | K::Binary | K::Enum | K::Set | K::Uuid | K::Inet4 | K::Inet6 => FieldType::String,
        K::VarChar | K::VarBinary => FieldType::VarString,
        K::TinyText | K::Text | K::MediumText | K::LongText => FieldType::Blob,
        K::TinyBlob | K::Blob | K::MediumBlob | K::LongBlob => FieldType::Blob,
        K::Json => FieldType::Json,
        K::Geometry => FieldType::Geometry,
    }
}

/// The column flags that follow from the type alone.
#[must_use]
pub fn type_flags(ty: &ColumnType) -> ColumnFlag {
    use ColumnKind as K;
    let mut flags = ColumnFlag::default();
    if ty.unsigned {
        flags = flags.with(ColumnFlag::UNSIGNED);
    }
    if ty.zerofill {
        flags = flags.with(ColumnFlag::ZEROFILL).with(ColumnFlag::UNSIGNED);
    }
    match ty.kind {
        K::TinyText | K::Text | K::MediumText | K::LongText => flags = flags.with(ColumnFlag::BLOB),
        K::TinyBlob | K::Blob | K::MediumBlob | K::LongBlob | K::Json | K::Geometry => {
            flags = flags.with(ColumnFlag::BLOB).with(ColumnFlag::BINARY);
        }
        K::Binary | K::VarBinary => flags = flags.with(ColumnFlag::BINARY),
        K::Enum => flags = flags.with(ColumnFlag::ENUM),
        K::Set => flags = flags.with(ColumnFlag::SET),
        K::Bit | K::Year => flags = flags.with(ColumnFlag::UNSIGNED),
        K::Timestamp => flags = flags.with(ColumnFlag::TIMESTAMP).with(ColumnFlag::BINARY),
        K::Date | K::Time | K::DateTime => flags = flags.with(ColumnFlag::BINARY),
        K::Uuid | K::Inet4 | K::Inet6 => flags = flags.with(ColumnFlag::UNSIGNED),
        _ => {}
    }
    flags
}

/// Returns whether values are character strings, whose collation and byte length depend on the session's result
/// character set.
#[must_use]
pub fn is_text(ty: &ColumnType) -> bool {
    use ColumnKind as K;
    match ty.kind {
        K::Char | K::VarChar | K::TinyText | K::Text | K::MediumText | K::LongText | K::Enum | K::Set => {
            ty.collation != COLLATION_BINARY
        }
        kind => FixedKind::of(kind).is_some(),
    }
}

/// Display length in bytes, where one character takes `char_bytes` bytes in the result.
#[must_use]
pub fn display_length(ty: &ColumnType, char_bytes: u32) -> u32 {
    use ColumnKind as K;
    let chars = |n: u32| n.saturating_mul(char_bytes);
    let fraction = if ty.decimals > 0 && ty.decimals <= 6 { u32::from(ty.decimals) + 1 } else { 0 };
    match ty.kind {
        K::TinyInt => or_default(ty.length, if ty.unsigned { 3 } else { 4 }),
        K::SmallInt => or_default(ty.length, if ty.unsigned { 5 } else { 6 }),
        K::MediumInt => or_default(ty.length, if ty.unsigned { 8 } else { 9 }),
        K::Int => or_default(ty.length, if ty.unsigned { 10 } else { 11 }),
        K::BigInt => or_default(ty.length, 20),
        K::Float => or_default(ty.length, 12),
        K::Double => or_default(ty.length, 22),
        K::Decimal => {
            let sign = u32::from(!ty.unsigned);
            // A zero stands before the point where no other digit does.
            let whole = u32::from(ty.decimals > 0 && ty.length == u32::from(ty.decimals));
            or_default(ty.length, 10) + whole + u32::from(ty.decimals > 0) + sign
        }
        K::Bit => or_default(ty.length, 1),
        K::Year => 4,
        K::Date => 10,
        K::Time => 10 + fraction,
        K::DateTime | K::Timestamp => 19 + fraction,
        K::Char | K::VarChar => chars(ty.length),
        K::Binary | K::VarBinary => ty.length,
        K::TinyText => chars(255),
        K::TinyBlob => 255,
        K::Text => chars(65_535),
        K::Blob => 65_535,
        K::MediumText => chars(16_777_215),
        K::MediumBlob => 16_777_215,
        K::LongText | K::LongBlob | K::Json | K::Geometry => u32::MAX,
        K::Enum => chars(ty.labels.iter().map(|l| l.len() as u32).max().unwrap_or(0)),
        K::Set => {
            let labels = ty.labels.iter().map(|l| l.len() as u32).sum::<u32>();
            chars(labels + (ty.labels.len() as u32).saturating_sub(1))
        }
        K::Uuid | K::Inet4 | K::Inet6 => chars(FixedKind::of(ty.kind).map_or(0, FixedKind::text_width)),
    }
}

fn or_default(n: u32, default: u32) -> u32 {
    if n == 0 { default } else { n }
}
