//! The write set of a transaction, as hashes of the keys of its rows: two transactions without a common hash may run in
//! parallel.
//!
//! The hashes are computed from row events, by the keys that the table has here: the primary key and every unique key,
//! before and after the change. A collision of two keys only costs parallelism.

use super::group::Received;
use crate::changes::Tables;
use crate::model::TableView;
use omnibus_format::events::{Query, Rows, RowsKind, TableMap};
use omnibus_format::row::Images;
use omnibus_format::{DecodeError, EventType};
use omnibus_value::{ColumnType, Value};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The keys of a table here.
#[derive(Clone, Debug, Default)]
pub struct TableKeys {
    /// A number that distinguishes the table from others.
    pub id: u64,
    /// The types of its columns.
    pub types: Vec<ColumnType>,
    /// Columns of each unique key with their prefix lengths, the primary key first.
    pub unique: Vec<Vec<(usize, Option<u32>)>>,
    /// Whether the first of them is a primary key.
    pub has_primary: bool,
}

/// Looks up the keys of tables.
pub trait KeySource {
    /// Returns the keys of a table, by its name at the source. `None` if it is unknown: such a change runs alone.
    fn keys(&self, database: &[u8], table: &[u8]) -> Option<Arc<TableKeys>>;
}

/// The keys that a transaction writes; see the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteSet {
    /// It changes only rows, with these keys.
    Keys(Vec<u64>),
    /// Its keys are unknown.
    Unknown,
    /// It changes definitions, or must run alone for another reason.
    Alone,
}

/// A table that transactions write to.
#[derive(Default)]
struct Known {
    keys: Arc<TableKeys>,
    /// Columns of any of the keys.
    wanted: Vec<bool>,
}

impl Known {
    fn of(map: &TableMap, keys: Arc<TableKeys>) -> Known {
        let mut wanted = vec![false; map.columns.len()];
        for &(column, _) in keys.unique.iter().flatten() {
            if let Some(wanted) = wanted.get_mut(column) {
                *wanted = true;
            }
        }
        Known { keys, wanted }
    }
}

/// Computes write sets. Used by one thread.
#[derive(Default)]
pub struct WriteSets {
    tables: Tables<Known>,
    mariadb: bool,
    before: Vec<Option<Value>>,
    after: Vec<Option<Value>>,
    key: Vec<u8>,
}

impl WriteSets {
    /// Computes the write set of a whole transaction.
    #[must_use]
    pub fn of(&mut self, received: &Received, source: &dyn KeySource) -> WriteSet {
        let found = self.collect(received, source).unwrap_or(WriteSet::Unknown);
        if found == WriteSet::Alone {
            // It may be a definition.
            self.tables.forget();
        }
        found
    }

    fn collect(&mut self, received: &Received, source: &dyn KeySource) -> Result<WriteSet, DecodeError> {
        let mariadb = received.format.is_mariadb();
        if mariadb != self.mariadb {
            self.mariadb = mariadb;
            self.tables.forget();
        }
        self.tables.end();
        let mut hashes = Vec::new();
        let (mut known, mut ends_well) = (true, false);
        for event in received.events.iter() {
            let (header, body) = event?;
            match header.event_type {
                EventType::TABLE_MAP => {
                    known &= self.tables.say_with(body, mariadb, |map| {
                        let keys = source.keys(&map.database, &map.table)?;
                        Some(Known::of(map, keys))
                    })?;
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
                    Some(_) if known => known = self.rows(Rows::decode(event_type, body)?, &mut hashes)?,
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

    /// Adds the keys of an event's rows; returns false if its table is unknown.
    fn rows(&mut self, rows: Rows<'_>, hashes: &mut Vec<u64>) -> Result<bool, DecodeError> {
        let found = self.tables.get_with(rows.table_id);
        let Some((table, Known { keys, wanted })) = found else { return Ok(rows.rows.is_empty()) };
        if !keys.has_primary {
            // Rows that no key names: the table is one thing.
            hashes.push(hash_of(keys.id, usize::MAX, &[]));
            return Ok(true);
        }
        let shape = table.shape();
        let wanted = |column: usize| wanted.get(column).copied().unwrap_or(false);
        let (before, after, bytes) = (&mut self.before, &mut self.after, &mut self.key);
        for change in Images::new(rows, shape)? {
            let change = change?;
            before.clear();
            after.clear();
            if let Some(image) = change.before {
                image.decode_some(shape, wanted, before)?;
            }
            if let Some(image) = change.after {
                image.decode_some(shape, wanted, after)?;
            }
            for (number, key) in keys.unique.iter().enumerate() {
                if change.before.is_some() {
                    put_key(keys, number, key, |column| before.get(column)?.as_ref(), bytes, hashes);
                }
                if change.after.is_some() {
                    // What an after image leaves out did not change.
                    let value = |column: usize| {
                        let own = after.get(column)?.as_ref();
                        own.or_else(|| before.get(column)?.as_ref())
                    };
                    put_key(keys, number, key, value, bytes, hashes);
                }
            }
        }
        Ok(true)
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

/// Adds a key. A NULL in a unique key equals nothing. A unique key with a column that the images lack is skipped, because it
/// cannot conflict with another transaction that does not change it either. If the primary key lacks a column, one hash stands
/// for the whole table.
fn put_key<'a>(
    keys: &TableKeys,
    number: usize,
    columns: &[(usize, Option<u32>)],
    value: impl Fn(usize) -> Option<&'a Value>,
    bytes: &mut Vec<u8>,
    hashes: &mut Vec<u64>,
) {
    bytes.clear();
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
        omnibus_value::key::encode(value, ty, prefix, false, bytes);
    }
    hashes.push(hash_of(keys.id, number, bytes));
}

fn hash_of(table: u64, key: usize, bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (table, key, bytes).hash(&mut hasher);
    hasher.finish()
}
