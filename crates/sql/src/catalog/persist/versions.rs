//! The earlier forms of a table's rows, in its row of the catalog.
//!
//! The bit that no row of the first form has set u16, count u8; each form: its columns as the text of a CREATE TABLE, a u16 for
//! each column of today (where its value is, or `ADDED`), and a row of today's form with the values of those that were added
//! (texts and rows with a u32 length).

use super::{ParseDefinition, damaged, take_text};
use crate::catalog::codec::{Earlier, Origin, RowCodec, RowVersions};
use crate::catalog::{Column, TableDef, show_create_table};
use crate::error::SqlResult;
use bytes::{Buf, Bytes};
use omnibus_value::Value;
use omnibus_value::temporal::UTC;

/// Stands for a column that was added after the form was stored.
const ADDED: u16 = u16::MAX;

/// Reads and writes rows of today's form.
fn codec(def: &TableDef) -> RowCodec {
    RowCodec::new(&def.columns, &RowVersions::default())
}

pub(super) fn put(def: &TableDef, out: &mut Vec<u8>) {
    let part = |bytes: &[u8], out: &mut Vec<u8>| {
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(bytes);
    };
    out.extend_from_slice(&(def.versions.mark as u16).to_le_bytes());
    out.push(def.versions.earlier.len() as u8);
    let codec = codec(def);
    for form in &def.versions.earlier {
        part(show_create_table(&of_types(def, form), 0, UTC).as_bytes(), out);
        let mut added = Vec::with_capacity(form.origins.len());
        for origin in &form.origins {
            let (at, value) = match origin {
                Origin::Stored(at) => (*at as u16, Value::Null),
                Origin::Value(value) => (ADDED, value.clone()),
            };
            out.extend_from_slice(&at.to_le_bytes());
            added.push(value);
        }
        // Values were made for these columns.
        part(&codec.encode(&added).unwrap_or_default(), out);
    }
}

/// A definition that has a form's columns and nothing else.
fn of_types(def: &TableDef, form: &Earlier) -> TableDef {
    let column = |(at, ty): (usize, &omnibus_value::ColumnType)| Column::free(&format!("c{at}"), ty.clone());
    TableDef {
        columns: form.types.iter().enumerate().map(column).collect(),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        comment: "".into(),
        options: Vec::new(),
        ..def.of_new_rows()
    }
}

pub(super) fn take(value: &mut &[u8], def: &TableDef, parse: ParseDefinition) -> SqlResult<RowVersions> {
    let bad = || damaged("versions of rows");
    let mark = usize::from(value.try_get_u16_le().map_err(|_| bad())?);
    let count = value.try_get_u8().map_err(|_| bad())?;
    let codec = codec(def);
    let mut earlier = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        let text = take_text(value)?;
        let types: Vec<_> = parse(&def.db, &text, 0)?.columns.into_iter().map(|column| column.ty).collect();
        let mut places = Vec::with_capacity(def.columns.len());
        for _ in &def.columns {
            places.push(value.try_get_u16_le().map_err(|_| bad())?);
        }
        let length = value.try_get_u32_le().map_err(|_| bad())? as usize;
        if length > value.len() {
            return Err(bad());
        }
        let row = Bytes::copy_from_slice(&value[..length]);
        value.advance(length);
        let mut origins = Vec::with_capacity(places.len());
        for (place, added) in places.into_iter().zip(codec.decode(&row)?) {
            origins.push(match usize::from(place) {
                _ if place == ADDED => Origin::Value(added),
                at if at < types.len() => Origin::Stored(at),
                _ => return Err(bad()),
            });
        }
        earlier.push(Earlier { types, origins });
    }
    Ok(RowVersions { mark, earlier })
}
