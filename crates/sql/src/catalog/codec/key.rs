//! Index keys.
//!
//! Column encodings (`omnibus_value::key`) are prefix-free and compare as the column's collation
//! does, so keys can be joined and cut apart without knowing the columns behind.

use super::RowCodec;
use crate::catalog::{IndexKind, Table, TableDef, quote_string};
use crate::error::{SqlError, SqlResult};
use bytes::Bytes;
use omnibus_value::{ColumnType, Value, shared};
use std::cell::RefCell;

/// An index entry of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Full key.
    pub key: Bytes,
    /// Stored value.
    pub value: Bytes,
    /// Whether a second row must not have this key.
    pub unique: bool,
}

#[derive(Clone, Debug)]
struct Part {
    column: usize,
    ty: ColumnType,
    descending: bool,
    prefix: Option<u32>,
}

/// How keys of one index are made.
#[derive(Clone, Debug)]
pub struct KeyCodec {
    space: [u8; 4],
    parts: Vec<Part>,
    clustered: bool,
    unique: bool,
    /// Bit n % 64 is set if column n is a part.
    columns: u64,
}

/// A key, to be shared: every key that is written has its lock, and its place in the write set.
fn build(fill: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    thread_local! {
        static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    SCRATCH.with_borrow_mut(|key| {
        key.clear();
        fill(key);
        shared(key)
    })
}

/// The clustered key follows in the value.
const IN_VALUE: u8 = 1;
/// The clustered key is the end of the key; its length follows, 2 bytes little-endian.
const IN_KEY: u8 = 0;

impl KeyCodec {
    /// For index `at` of a definition.
    #[must_use]
    pub fn new(def: &TableDef, at: usize) -> KeyCodec {
        let index = &def.indexes[at];
        let parts: Vec<Part> = index
            .parts
            .iter()
            .map(|part| Part {
                column: part.column,
                ty: def.columns[part.column].ty.clone(),
                descending: part.descending,
                prefix: part.prefix,
            })
            .collect();
        KeyCodec {
            space: index.space.prefix(),
            columns: parts.iter().fold(0, |bits, part| bits | 1 << (part.column % 64)),
            parts,
            clustered: index.clustered,
            unique: index.kind != IndexKind::Plain,
        }
    }

    /// Whether a change of these columns (bit n % 64) may change keys.
    #[must_use]
    pub fn reads(&self, changed: u64) -> bool {
        self.columns & changed != 0
    }

    /// The space and the encoding of the leading values.
    #[must_use]
    pub fn prefix(&self, values: &[Value]) -> Bytes {
        build(|out| self.put_prefix(values, out))
    }

    /// As `prefix`, of so many values that are given one by one; `None` if there is none for a part.
    pub fn prefix_by(&self, parts: usize, value: &mut dyn FnMut(usize) -> Option<Value>) -> Option<Bytes> {
        let mut all = true;
        let key = build(|out| {
            out.extend_from_slice(&self.space);
            for (at, part) in self.parts.iter().take(parts).enumerate() {
                match value(at) {
                    Some(value) => part.encode(&value, out),
                    None => all = false,
                }
            }
        });
        all.then_some(key)
    }

    fn put_prefix(&self, values: &[Value], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.space);
        for (part, value) in self.parts.iter().zip(values) {
            part.encode(value, out);
        }
    }

    /// A clustered key with a hidden row id.
    #[must_use]
    pub fn hidden(&self, id: u64) -> Bytes {
        build(|out| {
            out.extend_from_slice(&self.space);
            out.extend_from_slice(&id.to_be_bytes());
        })
    }

    /// The entry of a row, given all its values and its full clustered key (unused for the
    /// clustered index itself).
    #[must_use]
    pub fn entry(&self, values: &[Value], clustered: &[u8]) -> Entry {
        let suffix = clustered.get(4..).unwrap_or_default();
        let null = self.parts.iter().any(|part| matches!(values[part.column], Value::Null));
        let alone = self.clustered || self.unique && !null;
        let key = build(|out| {
            out.extend_from_slice(&self.space);
            for part in &self.parts {
                part.encode(&values[part.column], out);
            }
            if !alone {
                out.extend_from_slice(suffix);
            }
        });
        if self.clustered {
            return Entry { key, value: Bytes::new(), unique: true };
        }
        if alone {
            let mut value = Vec::with_capacity(1 + suffix.len());
            value.push(IN_VALUE);
            value.extend_from_slice(suffix);
            return Entry { key, value: value.into(), unique: true };
        }
        let length = (suffix.len() as u16).to_le_bytes();
        // Most clustered keys are a BIGINT, an INT or the hidden id: no allocation for those.
        let value = match suffix.len() {
            5 => Bytes::from_static(&[IN_KEY, 5, 0]),
            8 => Bytes::from_static(&[IN_KEY, 8, 0]),
            9 => Bytes::from_static(&[IN_KEY, 9, 0]),
            _ => Bytes::copy_from_slice(&[IN_KEY, length[0], length[1]]),
        };
        Entry { key, value, unique: false }
    }

    /// The key of a stored row in this, the clustered index.
    ///
    /// # Errors
    /// The row is damaged.
    pub fn clustered(&self, rows: &RowCodec, row: &Bytes) -> SqlResult<Bytes> {
        let mut out = Vec::with_capacity(4 + 12 * self.parts.len());
        out.extend_from_slice(&self.space);
        for part in &self.parts {
            part.encode(&rows.decode_column(row, part.column)?, &mut out);
        }
        Ok(out.into())
    }
}

fn no_row_key() -> SqlError {
    SqlError::new(1034, b"HY000", "Incorrect index entry: no row key")
}

impl KeyCodec {
    /// The clustered key without its space that an entry of this index leads to.
    fn suffix<'a>(key: &'a [u8], value: &'a [u8]) -> Option<&'a [u8]> {
        match value {
            [IN_VALUE, suffix @ ..] => Some(suffix),
            [IN_KEY, low, high] => {
                let length = usize::from(u16::from_le_bytes([*low, *high]));
                key.get(key.len().checked_sub(length)?..)
            }
            _ => None,
        }
    }

    /// The full clustered key that an entry of this index leads to; `space` is the clustered one's.
    ///
    /// # Errors
    /// The entry is damaged.
    pub fn clustered_of_entry(&self, space: [u8; 4], key: &[u8], value: &[u8]) -> SqlResult<Bytes> {
        let suffix = KeyCodec::suffix(key, value).ok_or_else(no_row_key)?;
        Ok(build(|out| {
            out.extend_from_slice(&space);
            out.extend_from_slice(suffix);
        }))
    }

    /// As `clustered_of_entry`, behind what `out` has.
    ///
    /// # Errors
    /// The entry is damaged; `out` is then unchanged.
    pub fn append_clustered_of_entry(
        &self,
        space: [u8; 4],
        key: &[u8],
        value: &[u8],
        out: &mut Vec<u8>,
    ) -> SqlResult<()> {
        let suffix = KeyCodec::suffix(key, value).ok_or_else(no_row_key)?;
        out.extend_from_slice(&space);
        out.extend_from_slice(suffix);
        Ok(())
    }
}

impl KeyCodec {
    /// Whether a column's values can be had back from the keys.
    #[must_use]
    pub fn decodes(&self, column: usize) -> bool {
        let decodable = |part: &Part| part.prefix.is_none() && omnibus_value::key::is_decodable(&part.ty);
        self.parts.iter().any(|part| part.column == column && decodable(part))
    }

    /// Puts those values of an entry's row into `out`, by column, that its key and `clustered`'s have.
    ///
    /// # Errors
    /// The entry is damaged.
    pub fn values_of_entry(
        &self,
        clustered: &KeyCodec,
        key: &[u8],
        value: &[u8],
        out: &mut [Value],
    ) -> SqlResult<()> {
        let suffix = KeyCodec::suffix(key, value);
        let decoded = suffix.and_then(|suffix| {
            self.put_values(key.get(4..)?, out)?;
            clustered.put_values(suffix, out)
        });
        decoded.ok_or_else(|| SqlError::new(1034, b"HY000", "Incorrect index entry: no values"))
    }

    /// The columns of a key of this index as text, and behind them those of the row's key: what cannot be read out of it is `?`.
    fn put_text(&self, mut key: &[u8], out: &mut Vec<String>) -> Option<usize> {
        let whole = key.len();
        for part in &self.parts {
            let width = if part.prefix.is_none() && omnibus_value::key::is_decodable(&part.ty) {
                let (value, width) = omnibus_value::key::decode(key, &part.ty, part.descending)?;
                out.push(value_text(&value, &part.ty));
                width
            } else {
                out.push("?".to_owned());
                omnibus_value::key::skip(key, &part.ty, part.descending)?
            };
            key = key.get(width..)?;
        }
        Some(whole - key.len())
    }

    fn put_values(&self, mut key: &[u8], out: &mut [Value]) -> Option<()> {
        for part in &self.parts {
            let width = if self.decodes(part.column) {
                let (value, width) = omnibus_value::key::decode(key, &part.ty, part.descending)?;
                *out.get_mut(part.column)? = value;
                width
            } else {
                omnibus_value::key::skip(key, &part.ty, part.descending)?
            };
            key = key.get(width..)?;
        }
        Some(())
    }
}

impl Part {
    fn encode(&self, value: &Value, out: &mut Vec<u8>) {
        omnibus_value::key::encode(value, &self.ty, self.prefix, self.descending, out);
    }
}

fn value_text(value: &Value, ty: &ColumnType) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Bytes(_) => quote_string(&super::text(value, ty)),
        _ => super::text(value, ty),
    }
}

/// The primary key of a row as text, as `data_locks` shows it; `None` where there is none, or the row is damaged.
#[must_use]
pub fn row_key_text(table: &Table, row: &Bytes) -> Option<String> {
    let values = table.decode(row).ok().filter(|_| !table.def.hidden_key)?;
    let parts = table.def.indexes.first()?.parts.iter();
    let text = |column: usize| Some(value_text(values.get(column)?, &table.def.columns.get(column)?.ty));
    let columns: Option<Vec<String>> = parts.map(|part| text(part.column)).collect();
    Some(columns?.join(", "))
}

/// A key of a table's index as text: its columns, and those of the row's key where it has them, as `data_locks` shows it.
#[must_use]
pub fn key_text(table: &Table, index: usize, key: &[u8]) -> Option<String> {
    let hidden = |rest: &[u8]| {
        let hex = rest.iter().map(|byte| format!("{byte:02x}"));
        format!("0x{}", hex.collect::<String>())
    };
    let (mut rest, mut columns) = (key.get(4..)?, Vec::new());
    let own = table.keys.get(index)?;
    if index > 0 || !table.def.hidden_key {
        rest = rest.get(own.put_text(rest, &mut columns)?..)?;
    }
    match rest {
        [] => {}
        rest if table.def.hidden_key => columns.push(hidden(rest)),
        rest => {
            table.keys[0].put_text(rest, &mut columns)?;
        }
    }
    Some(columns.join(", "))
}

/// The first key that does not start with `prefix`; `None` if there is no such key.
#[must_use]
pub fn successor(prefix: &[u8]) -> Option<Bytes> {
    let kept = prefix.iter().rposition(|b| *b != 0xff)?;
    Some(build(|out| {
        out.extend_from_slice(&prefix[..=kept]);
        out[kept] += 1;
    }))
}
