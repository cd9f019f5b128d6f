//! From a type as written to a column type. Pure; errors are MySQL's for bad types.

use crate::catalog::{NOT_FIXED, charset};
use crate::error::{SqlError, SqlResult};
use bytes::Bytes;
use omnibus_parser::ast::{DataType, Ident, TypeName};
use omnibus_value::{ColumnKind, ColumnType};
use std::sync::Arc;

const BINARY: u16 = 63;
const MAX_VARCHAR_BYTES: u32 = 65_535;

/// The type, and whether a character set or collation was written for it.
///
/// # Errors
/// 1291 for two members of an ENUM or SET that are equal, and those of `written_type`.
pub(crate) fn column_type(
    name: &str,
    ty: &DataType,
    table_collation: u16,
    utf8mb4: u16,
) -> SqlResult<(ColumnType, bool)> {
    let (column, explicit) = written_type(name, ty, table_collation, utf8mb4)?;
    match doubled_label(name, &column) {
        Some(error) => Err(error),
        None => Ok((column, explicit)),
    }
}

/// The same, with members that are equal.
pub(crate) fn written_type(
    name: &str,
    ty: &DataType,
    table_collation: u16,
    utf8mb4: u16,
) -> SqlResult<(ColumnType, bool)> {
    let kind = kind(ty.name)?;
    let mut column = ColumnType {
        kind,
        unsigned: ty.unsigned || ty.zerofill || ty.name == TypeName::Serial,
        zerofill: ty.zerofill,
        length: 0,
        decimals: 0,
        collation: BINARY,
        labels: Arc::from(Vec::new()),
    };
    let mut explicit = false;
    if let (Some(collation), false) = (&ty.collation, is_character(kind)) {
        refuse_collation(collation, kind)?;
    }
    if is_character(kind) {
        (column.collation, explicit) = collation(ty, table_collation, utf8mb4)?;
        if column.collation == BINARY {
            column.kind = binary_kind(kind);
        }
    } else if kind == ColumnKind::Json {
        // JSON is utf8mb4 with a binary collation.
        column.collation = 46;
    }
    lengths(name, ty, &mut column)?;
    if matches!(kind, ColumnKind::Enum | ColumnKind::Set) {
        column.labels = labels(name, ty, &column)?;
    }
    Ok((column, explicit))
}

fn kind(name: TypeName) -> SqlResult<ColumnKind> {
    use ColumnKind as K;
    use TypeName as T;
    Ok(match name {
        T::TinyInt | T::Bool => K::TinyInt,
        T::SmallInt => K::SmallInt,
        T::MediumInt => K::MediumInt,
        T::Int => K::Int,
        T::BigInt | T::Serial => K::BigInt,
        T::Decimal => K::Decimal,
        T::Float => K::Float,
        T::Double => K::Double,
        T::Bit => K::Bit,
        T::Year => K::Year,
        T::Date => K::Date,
        T::Time => K::Time,
        T::DateTime => K::DateTime,
        T::Timestamp => K::Timestamp,
        T::Char => K::Char,
        T::VarChar => K::VarChar,
        T::Binary => K::Binary,
        T::VarBinary => K::VarBinary,
        T::TinyText => K::TinyText,
        T::Text => K::Text,
        T::MediumText => K::MediumText,
        T::LongText => K::LongText,
        T::TinyBlob => K::TinyBlob,
        T::Blob => K::Blob,
        T::MediumBlob => K::MediumBlob,
        T::LongBlob => K::LongBlob,
        T::Enum => K::Enum,
        T::Set => K::Set,
        T::Json => K::Json,
        T::Uuid => K::Uuid,
        T::Inet4 => K::Inet4,
        T::Inet6 => K::Inet6,
        T::Vector => return Err(SqlError::not_supported_yet("VECTOR columns")),
        _ => return Err(SqlError::not_supported_yet("spatial columns")),
    })
}

/// A collation of what is no text says nothing, if it is one; bytes have their own.
fn refuse_collation(name: &Ident, kind: ColumnKind) -> SqlResult<()> {
    use ColumnKind as K;
    let id = charset::collation_id(name).ok_or_else(|| SqlError::unknown_collation(name))?;
    let bytes =
        matches!(kind, K::Binary | K::VarBinary | K::TinyBlob | K::Blob | K::MediumBlob | K::LongBlob);
    if bytes && id != BINARY {
        let message = format!("COLLATION '{name}' is not valid for CHARACTER SET 'binary'");
        return Err(SqlError::new(1253, b"42000", message));
    }
    Ok(())
}

fn is_character(kind: ColumnKind) -> bool {
    use ColumnKind as K;
    matches!(
        kind,
        K::Char | K::VarChar | K::TinyText | K::Text | K::MediumText | K::LongText | K::Enum | K::Set
    )
}

/// The binary type that a character type becomes under CHARACTER SET binary.
fn binary_kind(kind: ColumnKind) -> ColumnKind {
    use ColumnKind as K;
    match kind {
        K::Char => K::Binary,
        K::VarChar => K::VarBinary,
        K::TinyText => K::TinyBlob,
        K::Text => K::Blob,
        K::MediumText => K::MediumBlob,
        K::LongText => K::LongBlob,
        other => other,
    }
}

fn collation(ty: &DataType, table_collation: u16, utf8mb4: u16) -> SqlResult<(u16, bool)> {
    let chosen = pick_collation(ty.charset.as_ref(), ty.collation.as_ref(), utf8mb4)?;
    let explicit = chosen.is_some();
    let collation = chosen.unwrap_or(table_collation);
    if ty.binary {
        return Ok((charset::bin_collation(collation), true));
    }
    Ok((collation, explicit && !ty.implied))
}

/// The collation of CHARACTER SET and COLLATE clauses, if any was written; `utf8mb4` is the session's
/// `default_collation_for_utf8mb4`.
pub(crate) fn pick_collation(
    charset_name: Option<&Ident>,
    collation: Option<&Ident>,
    utf8mb4: u16,
) -> SqlResult<Option<u16>> {
    let by_charset = match charset_name {
        Some(name) if name.is("utf8mb4") => Some(utf8mb4),
        Some(name) => {
            Some(charset::default_collation(name).ok_or_else(|| SqlError::unknown_character_set(name))?)
        }
        None => None,
    };
    let Some(name) = collation else { return Ok(by_charset) };
    let found = match by_charset {
        Some(default) => charset::collation_id_in(default, name),
        None => charset::collation_id(name),
    };
    let id = found.ok_or_else(|| SqlError::unknown_collation(name))?;
    if let Some(default) = by_charset
        && charset::charset_name(default) != charset::charset_name(id)
    {
        return Err(SqlError::collation_charset_mismatch(name, charset::charset_name(default)));
    }
    Ok(Some(id))
}

fn lengths(name: &str, ty: &DataType, column: &mut ColumnType) -> SqlResult<()> {
    use ColumnKind as K;
    match column.kind {
        K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt => {
            column.length = match ty.length {
                Some(width) if width > 255 => return Err(SqlError::too_big_displaywidth(name, 255)),
                Some(width) if width > 0 => width,
                _ if ty.name == TypeName::Bool => 1,
                _ => default_width(column.kind, column.unsigned),
            };
        }
        K::Decimal => decimal(name, ty, column)?,
        K::Float | K::Double => floating(name, ty, column)?,
        K::Bit => {
            column.length = ty.length.unwrap_or(1).max(1);
            if column.length > 64 {
                return Err(SqlError::too_big_displaywidth(name, 64));
            }
        }
        K::Time | K::DateTime | K::Timestamp => {
            let digits = ty.length.unwrap_or(0);
            if digits > 6 {
                return Err(SqlError::too_big_precision(digits, name, 6));
            }
            column.decimals = digits as u8;
        }
        K::Year => column.length = 4,
        K::Char | K::Binary => {
            column.length = ty.length.unwrap_or(1);
            if column.length > 255 {
                return Err(SqlError::too_big_fieldlength(name, 255));
            }
        }
        K::VarChar | K::VarBinary => {
            let length = ty.length.ok_or_else(|| SqlError::parse_error("VARCHAR needs a length"))?;
            let max = MAX_VARCHAR_BYTES / charset::max_len(column.collation);
            if length > max {
                return Err(SqlError::too_big_fieldlength(name, max));
            }
            column.length = length;
        }
        K::Text | K::Blob => {
            if let Some(length) = ty.length {
                column.kind = blob_for(column.kind == K::Text, length, charset::max_len(column.collation));
            }
        }
        _ => {}
    }
    Ok(())
}

/// Display widths that MySQL gives integers.
fn default_width(kind: ColumnKind, unsigned: bool) -> u32 {
    use ColumnKind as K;
    match (kind, unsigned) {
        (K::TinyInt, false) => 4,
        (K::TinyInt, true) => 3,
        (K::SmallInt, false) => 6,
        (K::SmallInt, true) => 5,
        (K::MediumInt, false) => 9,
        (K::MediumInt, true) => 8,
        (K::Int, false) => 11,
        (K::Int, true) => 10,
        _ => 20,
    }
}

fn decimal(name: &str, ty: &DataType, column: &mut ColumnType) -> SqlResult<()> {
    let precision = ty.length.filter(|&length| length > 0).unwrap_or(10);
    let scale = ty.scale.unwrap_or(0);
    if scale > 30 {
        return Err(SqlError::too_big_scale(scale, name, 30));
    }
    if precision > 65 {
        return Err(SqlError::too_big_precision(precision, name, 65));
    }
    if scale > ty.length.unwrap_or(precision) {
        return Err(SqlError::m_bigger_than_d(name));
    }
    column.length = precision;
    column.decimals = scale as u8;
    Ok(())
}

fn floating(name: &str, ty: &DataType, column: &mut ColumnType) -> SqlResult<()> {
    column.decimals = NOT_FIXED;
    match (ty.length, ty.scale) {
        (Some(length), Some(scale)) => {
            if scale > 30 {
                return Err(SqlError::too_big_scale(scale, name, 30));
            }
            if length > 255 {
                return Err(SqlError::too_big_displaywidth(name, 255));
            }
            if scale > length {
                return Err(SqlError::m_bigger_than_d(name));
            }
            column.length = length;
            column.decimals = scale as u8;
        }
        // FLOAT(p): p chooses between the two kinds and is then forgotten.
        (Some(bits), None) if column.kind == ColumnKind::Float => {
            if bits > 53 {
                return Err(SqlError::wrong_field_spec(name));
            }
            if bits > 24 {
                column.kind = ColumnKind::Double;
            }
        }
        _ => {}
    }
    Ok(())
}

/// TEXT(n) and BLOB(n): the smallest kind that holds n characters.
fn blob_for(text: bool, length: u32, max_len: u32) -> ColumnKind {
    use ColumnKind as K;
    let bytes = u64::from(length) * u64::from(max_len);
    let size = [255, 65_535, 16_777_215].iter().position(|&limit| bytes <= limit).unwrap_or(3);
    match text {
        true => [K::TinyText, K::Text, K::MediumText, K::LongText][size],
        false => [K::TinyBlob, K::Blob, K::MediumBlob, K::LongBlob][size],
    }
}

fn labels(name: &str, ty: &DataType, column: &ColumnType) -> SqlResult<Arc<[Bytes]>> {
    let (word, max) = if column.kind == ColumnKind::Set { ("SET", 64) } else { ("ENUM", 65_535) };
    if ty.labels.len() > max {
        return Err(SqlError::new(1097, b"HY000", format!("Too many strings for column {name} and SET")));
    }
    let mut labels: Vec<Bytes> = Vec::with_capacity(ty.labels.len());
    for label in &ty.labels {
        let end = label.iter().rposition(|&byte| byte != b' ').map_or(0, |at| at + 1);
        let label = charset::from_utf8mb4(&label.slice(..end), column.collation);
        if word == "SET" && label.contains(&b',') {
            return Err(SqlError::illegal_value_for_type("set", String::from_utf8_lossy(&label)));
        }
        labels.push(label);
    }
    Ok(labels.into())
}

/// Error 1291, if two members of an ENUM or SET are equal.
pub(crate) fn doubled_label(name: &str, column: &ColumnType) -> Option<SqlError> {
    let word = if column.kind == ColumnKind::Set { "SET" } else { "ENUM" };
    let label = double_label(&column.labels, column.collation)?;
    Some(SqlError::duplicated_value_in_type(name, String::from_utf8_lossy(label), word))
}

/// The first label that is equal to one before it.
fn double_label(labels: &[Bytes], collation: u16) -> Option<&Bytes> {
    use crate::expr::charset::compare;
    let mut places: Vec<usize> = (0..labels.len()).collect();
    // Stable: of equal ones the first comes first.
    places.sort_by(|a, b| compare(&labels[*a], &labels[*b], collation));
    let equal = |pair: &&[usize]| compare(&labels[pair[0]], &labels[pair[1]], collation).is_eq();
    let double = places.windows(2).filter(equal).map(|pair| pair[1]).min()?;
    labels.get(double)
}
