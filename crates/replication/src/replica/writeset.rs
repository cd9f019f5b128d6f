//! What a transaction writes, as hashes of the keys of its rows: two transactions without a common one may run at once.
//!
//! From row events, by the keys that the table has here: the primary key and every unique key, before and after. A
//! hash that two keys share by accident only costs parallelism.

use super::group::Received;
use crate::apply::EventTable;
use crate::model::TableView;
use omnibus_format::events::{Query, Rows, RowsKind, TableMap};
use omnibus_format::row::{Images, RowImage};
use omnibus_format::{DecodeError, EventType};
use omnibus_value::{ColumnType, Value};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The keys of a table here.
#[derive(Clone, Debug, Default)]
pub struct TableKeys {
    /// Tells the table from others; names it in no other way.
    pub id: u64,
    /// Types of its columns.
    pub types: Vec<ColumnType>,
    /// Columns of each unique key with their prefix lengths, the primary key first.
    pub unique: Vec<Vec<(usize, Option<u32>)>>,
    /// Whether the first of them is a primary key.
    pub has_primary: bool,
}

/// Knows tables.
pub trait KeySource {
    /// The keys of a table, by its name at the source. `None` if it is not known: nothing runs beside such a change.
    fn keys(&self, database: &[u8], table: &[u8]) -> Option<Arc<TableKeys>>;
}

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteSet {
    /// Only rows, with these keys.
    Keys(Vec<u64>),
    /// What it writes is not known.
    Unknown,
    /// It changes definitions, or is otherwise to be alone.
    Alone,
}

impl WriteSet {
    /// Of a whole transaction.
    #[must_use]
    pub fn of(received: &Received, source: &dyn KeySource) -> WriteSet {
        Self::collect(received, source).unwrap_or(WriteSet::Unknown)
    }

    fn collect(received: &Received, source: &dyn KeySource) -> Result<WriteSet, DecodeError> {
        let mariadb = received.format.is_mariadb();
        let mut tables: HashMap<u64, (EventTable, Option<Arc<TableKeys>>)> = HashMap::new();
        let mut hashes = Vec::new();
        let (mut known, mut ends_well) = (true, false);
        for event in received.events.iter() {
            let (header, body) = event?;
            match header.event_type {
                EventType::TABLE_MAP => {
                    let map = TableMap::decode_dialect(body, mariadb)?;
                    let keys = source.keys(&map.database, &map.table);
                    known &= keys.is_some();
                    tables.insert(map.table_id, (EventTable::new(map), keys));
                }
                EventType::QUERY => match kind_of(body)? {
                    Text::Begin => {}
                    Text::End => ends_well = true,
                    Text::Other => known = false,
                },
                EventType::XID => ends_well = true,
                EventType::XA_PREPARE => return Ok(WriteSet::Alone),
                EventType::GTID
                | EventType::ANONYMOUS_GTID
                | EventType::GTID_TAGGED
                | EventType::MARIADB_GTID
                | EventType::ROWS_QUERY
                | EventType::MARIADB_ANNOTATE_ROWS => {}
                event_type => match RowsKind::of(event_type) {
                    Some(_) if known => {
                        let rows = Rows::decode(event_type, body)?;
                        match tables.get(&rows.table_id) {
                            Some((table, Some(keys))) => put_rows(rows, table, keys, &mut hashes)?,
                            _ => known = rows.rows.is_empty(),
                        }
                    }
                    Some(_) => {}
                    None => known = false,
                },
            }
        }
        if !ends_well {
            return Ok(WriteSet::Alone);
        }
        if !known {
            return Ok(WriteSet::Unknown);
        }
        hashes.sort_unstable();
        hashes.dedup();
        Ok(WriteSet::Keys(hashes))
    }
}

enum Text {
    Begin,
    End,
    Other,
}

fn kind_of(body: &[u8]) -> Result<Text, DecodeError> {
    let sql = Query::decode(body)?.sql;
    let is = |word: &[u8]| sql.eq_ignore_ascii_case(word);
    Ok(if is(b"BEGIN") {
        Text::Begin
    } else if is(b"COMMIT") {
        Text::End
    } else {
        Text::Other
    })
}

fn put_rows(
    rows: Rows<'_>,
    table: &EventTable,
    keys: &TableKeys,
    hashes: &mut Vec<u64>,
) -> Result<(), DecodeError> {
    if !keys.has_primary {
        // Rows that no key names: the table is one thing.
        hashes.push(hash_of(keys.id, usize::MAX, &[]));
        return Ok(());
    }
    let shape = table.shape();
    let decode = |image: Option<RowImage<'_>>| image.map(|image| image.decode(shape)).transpose();
    for change in Images::new(rows, shape)? {
        let change = change?;
        let before = decode(change.before)?;
        let after = decode(change.after)?;
        for (number, key) in keys.unique.iter().enumerate() {
            if let Some(before) = &before {
                put_key(keys, number, key, |column| before.get(column)?.as_ref(), hashes);
            }
            if let Some(after) = &after {
                // What an after image leaves out did not change.
                let value = |column: usize| {
                    let own = after.get(column)?.as_ref();
                    own.or_else(|| before.as_ref()?.get(column)?.as_ref())
                };
                put_key(keys, number, key, value, hashes);
            }
        }
    }
    Ok(())
}

/// NULL in a unique key is equal to nothing; a column that the images do not have cannot be in the way of another
/// transaction that they do not name either: the primary key is always there.
fn put_key<'a>(
    keys: &TableKeys,
    number: usize,
    columns: &[(usize, Option<u32>)],
    value: impl Fn(usize) -> Option<&'a Value>,
    hashes: &mut Vec<u64>,
) {
    let mut bytes = Vec::with_capacity(32);
    for &(column, prefix) in columns {
        let (Some(value), Some(ty)) = (value(column), keys.types.get(column)) else {
            // Of the primary key nothing may be missing: stand for the whole table then.
            if number == 0 {
                hashes.push(hash_of(keys.id, usize::MAX, &[]));
            }
            return;
        };
        if matches!(value, Value::Null) {
            return;
        }
        omnibus_value::key::encode(value, ty, prefix, false, &mut bytes);
    }
    hashes.push(hash_of(keys.id, number, &bytes));
}

fn hash_of(table: u64, key: usize, bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (table, key, bytes).hash(&mut hasher);
    hasher.finish()
}
