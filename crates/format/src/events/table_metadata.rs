//! The optional metadata at the end of TABLE_MAP: a list of type, length, value.
//!
//! Unknown types are skipped, as MySQL's readers do. Bitmaps here run from the high bit down,
//! unlike every other bitmap in the binlog.

use super::table_map::{OptionalMetadata, PrimaryKeyPart, TableMap};
use crate::cursor::{Reader, put_lenenc, put_lenenc_bytes};
use crate::error::DecodeError;
use crate::field::{FieldType, code};

const SIGNEDNESS: u8 = 1;
const DEFAULT_CHARSET: u8 = 2;
const COLUMN_CHARSET: u8 = 3;
const COLUMN_NAME: u8 = 4;
const SET_STR_VALUE: u8 = 5;
const ENUM_STR_VALUE: u8 = 6;
const GEOMETRY_TYPE: u8 = 7;
const SIMPLE_PRIMARY_KEY: u8 = 8;
const PRIMARY_KEY_WITH_PREFIX: u8 = 9;
const ENUM_AND_SET_DEFAULT_CHARSET: u8 = 10;
const ENUM_AND_SET_COLUMN_CHARSET: u8 = 11;
const COLUMN_VISIBILITY: u8 = 12;

fn is_enum_or_set(field: FieldType) -> bool {
    matches!(field.code, code::ENUM | code::SET)
}

/// Column numbers for which `wanted` holds.
fn select(map: &TableMap, wanted: impl Fn(FieldType) -> bool) -> Vec<usize> {
    (0..map.columns.len()).filter(|&i| wanted(map.columns[i])).collect()
}

fn put_field(out: &mut Vec<u8>, kind: u8, value: &[u8]) {
    if !value.is_empty() {
        out.push(kind);
        put_lenenc_bytes(out, value);
    }
}

fn bitmap(bits: impl ExactSizeIterator<Item = bool>) -> Vec<u8> {
    let mut map = vec![0u8; bits.len().div_ceil(8)];
    for (i, _) in bits.enumerate().filter(|(_, bit)| *bit) {
        map[i / 8] |= 0x80 >> (i % 8);
    }
    map
}

/// Appends the metadata of `level` that `map` has.
pub(super) fn encode(map: &TableMap, level: OptionalMetadata, out: &mut Vec<u8>) {
    if level == OptionalMetadata::None || map.metadata.len() != map.columns.len() {
        return;
    }
    let meta = |i: &usize| &map.metadata[*i];
    let numeric = select(map, FieldType::is_numeric);
    let signs = bitmap(numeric.iter().map(|i| meta(i).unsigned == Some(true)));
    put_field(out, SIGNEDNESS, &signs);
    let characters = select(map, FieldType::is_character);
    put_charsets(map, &characters, DEFAULT_CHARSET, COLUMN_CHARSET, out);
    let mut value = Vec::new();
    for i in select(map, |f| f.code == code::GEOMETRY) {
        put_lenenc(&mut value, u64::from(meta(&i).geometry_type.unwrap_or(0)));
    }
    put_field(out, GEOMETRY_TYPE, &value);
    if level == OptionalMetadata::Full {
        encode_full(map, out);
    }
    if map.metadata.iter().any(|m| m.visible == Some(false)) {
        let visible = map.metadata.iter().map(|m| m.visible != Some(false));
        put_field(out, COLUMN_VISIBILITY, &bitmap(visible));
    }
}

fn encode_full(map: &TableMap, out: &mut Vec<u8>) {
    if map.metadata.iter().all(|m| m.name.is_some()) {
        let mut value = Vec::new();
        for name in map.metadata.iter().filter_map(|m| m.name.as_ref()) {
            put_lenenc_bytes(&mut value, name);
        }
        put_field(out, COLUMN_NAME, &value);
    }
    for (kind, field_code) in [(SET_STR_VALUE, code::SET), (ENUM_STR_VALUE, code::ENUM)] {
        let mut value = Vec::new();
        for i in select(map, |f| f.code == field_code) {
            put_lenenc(&mut value, map.metadata[i].labels.len() as u64);
            for label in &map.metadata[i].labels {
                put_lenenc_bytes(&mut value, label);
            }
        }
        put_field(out, kind, &value);
    }
    let prefixed = map.primary_key.iter().any(|part| part.prefix != 0);
    let mut value = Vec::new();
    for part in &map.primary_key {
        put_lenenc(&mut value, u64::from(part.column));
        if prefixed {
            put_lenenc(&mut value, u64::from(part.prefix));
        }
    }
    put_field(out, if prefixed { PRIMARY_KEY_WITH_PREFIX } else { SIMPLE_PRIMARY_KEY }, &value);
    let labelled = select(map, is_enum_or_set);
    put_charsets(map, &labelled, ENUM_AND_SET_DEFAULT_CHARSET, ENUM_AND_SET_COLUMN_CHARSET, out);
}

/// Appends one default and its exceptions if that is shorter, otherwise one collation per column.
fn put_charsets(map: &TableMap, columns: &[usize], default_kind: u8, kind: u8, out: &mut Vec<u8>) {
    let ids: Vec<u16> = columns.iter().filter_map(|&i| map.metadata[i].collation).collect();
    if ids.is_empty() || ids.len() != columns.len() {
        return;
    }
    let count = |id: u16| ids.iter().filter(|&&other| other == id).count();
    let default = ids.iter().copied().max_by_key(|&id| count(id)).unwrap_or(ids[0]);
    let exceptions = ids.len() - count(default);
    let mut value = Vec::new();
    if 1 + 2 * exceptions < ids.len() || exceptions == 0 {
        put_lenenc(&mut value, u64::from(default));
        for (n, &id) in ids.iter().enumerate().filter(|(_, id)| **id != default) {
            put_lenenc(&mut value, n as u64);
            put_lenenc(&mut value, u64::from(id));
        }
        put_field(out, default_kind, &value);
    } else {
        for &id in &ids {
            put_lenenc(&mut value, u64::from(id));
        }
        put_field(out, kind, &value);
    }
}

/// Reads everything up to the event's end into `map`.
pub(super) fn decode(map: &mut TableMap, mariadb: bool, r: &mut Reader<'_>) -> Result<(), DecodeError> {
    while !r.is_empty() {
        let kind = r.u8("optional metadata")?;
        let at = r.position();
        let value = r.lenenc_bytes("optional metadata")?;
        let mut v = Reader::new(value);
        decode_field(map, mariadb, kind, value, &mut v)
            .map_err(|e| DecodeError::new(at + e.offset, e.what))?;
    }
    Ok(())
}

fn decode_field(
    map: &mut TableMap,
    mariadb: bool,
    kind: u8,
    value: &[u8],
    v: &mut Reader<'_>,
) -> Result<(), DecodeError> {
    let is_character = |f: FieldType| f.is_character() || mariadb && f.code == code::GEOMETRY;
    match kind {
        SIGNEDNESS => {
            let numeric = select(map, FieldType::is_numeric);
            for (n, i) in numeric.into_iter().enumerate() {
                map.metadata[i].unsigned = Some(high_bit(value, n));
            }
        }
        DEFAULT_CHARSET => {
            let columns = select(map, is_character);
            decode_default_charset(map, &columns, v)?;
        }
        ENUM_AND_SET_DEFAULT_CHARSET => {
            let columns = select(map, is_enum_or_set);
            decode_default_charset(map, &columns, v)?;
        }
        COLUMN_CHARSET | ENUM_AND_SET_COLUMN_CHARSET => {
            let columns = match kind {
                COLUMN_CHARSET => select(map, is_character),
                _ => select(map, is_enum_or_set),
            };
            for i in columns {
                map.metadata[i].collation = Some(v.lenenc("collation")? as u16);
            }
        }
        COLUMN_NAME => {
            for column in &mut map.metadata {
                column.name = Some(v.lenenc_bytes("column name")?.to_vec());
            }
        }
        SET_STR_VALUE => decode_labels(map, code::SET, v)?,
        ENUM_STR_VALUE => decode_labels(map, code::ENUM, v)?,
        GEOMETRY_TYPE => {
            for i in select(map, |f| f.code == code::GEOMETRY) {
                map.metadata[i].geometry_type = Some(v.lenenc("geometry type")? as u8);
            }
        }
        SIMPLE_PRIMARY_KEY | PRIMARY_KEY_WITH_PREFIX => {
            map.primary_key.clear();
            while !v.is_empty() {
                let column = v.lenenc("primary key column")? as u32;
                if column as usize >= map.columns.len() {
                    return Err(v.error("primary key column"));
                }
                let prefix = match kind {
                    PRIMARY_KEY_WITH_PREFIX => v.lenenc("primary key prefix")? as u32,
                    _ => 0,
                };
                map.primary_key.push(PrimaryKeyPart { column, prefix });
            }
        }
        COLUMN_VISIBILITY => {
            for (i, column) in map.metadata.iter_mut().enumerate() {
                column.visible = Some(high_bit(value, i));
            }
        }
        _ => {}
    }
    Ok(())
}

fn high_bit(bits: &[u8], n: usize) -> bool {
    bits.get(n / 8).is_some_and(|byte| byte & (0x80 >> (n % 8)) != 0)
}

fn decode_default_charset(
    map: &mut TableMap,
    columns: &[usize],
    v: &mut Reader<'_>,
) -> Result<(), DecodeError> {
    let default = v.lenenc("default collation")? as u16;
    for &i in columns {
        map.metadata[i].collation = Some(default);
    }
    while !v.is_empty() {
        let n = v.lenenc_len("character column")?;
        let collation = v.lenenc("collation")? as u16;
        let &i = columns.get(n).ok_or_else(|| v.error("character column"))?;
        map.metadata[i].collation = Some(collation);
    }
    Ok(())
}

fn decode_labels(map: &mut TableMap, kind: u8, v: &mut Reader<'_>) -> Result<(), DecodeError> {
    for i in select(map, |f| f.code == kind) {
        let count = v.lenenc_len("label count")?;
        if count > v.remaining() {
            return Err(v.error("label count"));
        }
        let labels = (0..count).map(|_| v.lenenc_bytes("label").map(<[u8]>::to_vec));
        map.metadata[i].labels = labels.collect::<Result<_, _>>()?;
    }
    Ok(())
}
