//! Finding the rows that before images mean: by the primary key, else by a unique key, else by the index that is said
//! to tell rows apart best, else by reading the table once for all rows of the event.
//!
//! Rows are read under exclusive locks, in their newest version.

use super::mapping::Mapping;
use crate::catalog::codec::successor;
use crate::catalog::{IndexKind, Table};
use crate::error::ExecResult;
use crate::storage::{LockMode, WaitPolicy};
use crate::store::{KeyRange, RowAt, Trx};
use bytes::Bytes;
use omnibus_value::Value;
use std::ops::Bound;
use std::sync::Arc;

/// Rows read at a time.
pub(super) const BATCH: usize = 256;
const LOCK: (LockMode, WaitPolicy) = (LockMode::Exclusive, WaitPolicy::Wait);

/// A way to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// The clustered index.
    Clustered,
    /// A unique index: at most one row, if no part is NULL.
    Unique(usize),
    /// An index, with this many of its leading parts.
    Index(usize, usize),
    /// Every row.
    Scan,
}

/// A before image as values of our columns; `None`: not known.
pub(super) type Image = [Option<Value>];

impl Mapping {
    /// The best way to rows of which the columns in `bits` are known.
    pub(super) fn lookup(&mut self, bits: &[u8]) -> Lookup {
        if let Some((known, lookup)) = &self.lookup
            && known == bits
        {
            return *lookup;
        }
        let columns = self.columns(bits);
        let lookup = choose(&self.table, &columns);
        self.lookup = Some((bits.to_vec(), lookup));
        lookup
    }
}

fn choose(table: &Table, columns: &[usize]) -> Lookup {
    let known = |at: usize| {
        let parts = &table.def.indexes[at].parts;
        parts.iter().take_while(|part| columns.contains(&part.column)).count()
    };
    let whole = |at: usize| known(at) == table.def.indexes[at].parts.len();
    if !table.def.hidden_key && whole(0) {
        return Lookup::Clustered;
    }
    let others = || (1..table.def.indexes.len()).chain((!table.def.hidden_key).then_some(0));
    let never_null =
        |at: usize| table.def.indexes[at].parts.iter().all(|part| !table.def.columns[part.column].nullable);
    let unique = |at: &usize| *at != 0 && table.def.indexes[*at].kind == IndexKind::Unique && whole(*at);
    if let Some(at) = others().find(|at| unique(at) && never_null(*at)) {
        return Lookup::Unique(at);
    }
    let best = others().filter(|at| known(*at) > 0).min_by_key(|at| rows_per_key(table, *at, known(*at)));
    match best {
        Some(at) => Lookup::Index(at, known(at)),
        None => Lookup::Scan,
    }
}

/// About how many rows share one key, a thousandth of a row being 1. Without statistics an index on more columns is
/// taken to be the better one, and a unique one better still.
fn rows_per_key(table: &Table, at: usize, parts: usize) -> u64 {
    let index = &table.def.indexes[at];
    let rows = table.rows_estimate().max(1);
    match table.cardinality(at, parts) {
        Some(distinct) => rows.saturating_mul(1000) / distinct.max(1),
        None if index.kind != IndexKind::Plain && parts == index.parts.len() => 1000,
        None => rows.saturating_mul(1000) / (10u64.saturating_pow(parts.min(18) as u32)).max(1) + 1000,
    }
}

/// Whether a stored row is one that the image means.
pub(super) fn matches(image: &Image, values: &[Value]) -> bool {
    image.iter().zip(values).all(|(want, have)| want.as_ref().is_none_or(|want| same(want, have)))
}

/// Equal as stored. NaN is not a value that columns hold; -0 and 0 are two images of one value.
fn same(a: &Value, b: &Value) -> bool {
    a == b
}

/// The row of an image, by a key.
pub(super) fn by_key(
    trx: &mut Trx,
    table: &Arc<Table>,
    lookup: Lookup,
    image: &Image,
) -> ExecResult<Option<RowAt>> {
    let values = || image.iter().map(|value| value.clone().unwrap_or_default()).collect::<Vec<_>>();
    match lookup {
        Lookup::Clustered => by_clustered_key(trx, table, table.keys[0].entry(&values(), &[]).key),
        Lookup::Unique(at) => {
            let key = table.keys[at].entry(&values(), &[]).key;
            trx.get_unique(table, at, &key, LOCK.0, LOCK.1)
        }
        Lookup::Index(at, parts) => by_range(trx, table, at, parts, image),
        Lookup::Scan => Ok(None),
    }
}

/// The row with a clustered key.
pub(super) fn by_clustered_key(trx: &mut Trx, table: &Arc<Table>, key: Bytes) -> ExecResult<Option<RowAt>> {
    let row = trx.get_row(table, &key, LOCK.0, LOCK.1)?;
    Ok(row.map(|row| RowAt { key, row }))
}

fn by_range(
    trx: &mut Trx,
    table: &Arc<Table>,
    at: usize,
    parts: usize,
    image: &Image,
) -> ExecResult<Option<RowAt>> {
    let index = &table.def.indexes[at];
    let leading: Vec<Value> = index.parts[..parts]
        .iter()
        .map(|part| image.get(part.column).cloned().flatten().unwrap_or_default())
        .collect();
    let prefix = table.key_prefix(at, &leading);
    let mut range = KeyRange {
        to: successor(&prefix).map_or(Bound::Unbounded, Bound::Excluded),
        from: Bound::Included(prefix),
        reverse: false,
    };
    trx.begin_scan(table, &range, LOCK.0)?;
    let mut values = Vec::new();
    loop {
        let mut found = Vec::new();
        let done = trx.scan(table, at, &mut range, LOCK.0, LOCK.1, BATCH, &mut found)?;
        for row in found {
            table.decode_into(&row.row, &mut values)?;
            if matches(image, &values) {
                return Ok(Some(row));
            }
        }
        if done {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::catalog::{IndexStatistics, Statistics, TableState};
    use crate::ddl::parse_definition;

    fn table(columns: &str) -> Table {
        let mut def = parse_definition("d", &format!("CREATE TABLE t ({columns})"), 0).unwrap();
        for (at, index) in def.indexes.iter_mut().enumerate() {
            index.space = omnibus_engine::SpaceId(100 + at as u32);
        }
        Table::new(def, Arc::new(TableState::default()))
    }

    fn name(table: &Table, lookup: Lookup) -> String {
        match lookup {
            Lookup::Clustered => "clustered".into(),
            Lookup::Unique(at) => format!("unique {}", table.def.indexes[at].name),
            Lookup::Index(at, parts) => format!("{} of {parts}", table.def.indexes[at].name),
            Lookup::Scan => "scan".into(),
        }
    }

    #[test]
    fn the_best_key_is_the_primary_then_a_unique_one_then_the_most_selective() {
        let all = [0, 1, 2];
        let chosen = |columns: &str, known: &[usize]| {
            let table = table(columns);
            name(&table, choose(&table, known))
        };
        assert_eq!(chosen("a int primary key, b int, c int, key (b)", &all), "clustered");
        assert_eq!(chosen("a int primary key, b int, c int, key (b)", &[1]), "b of 1");
        assert_eq!(chosen("a int, b int, c int", &all), "scan");
        assert_eq!(
            chosen("a int primary key, b int not null, c int, unique (b), key (c)", &[1, 2]),
            "unique b"
        );
        assert_eq!(chosen("a int, b int, c int, key ab (a, b), unique bc (b, c)", &all), "bc of 2");
        assert_eq!(chosen("a int, b int, c int, key x (a), key y (b, c)", &all), "y of 2");
    }

    #[test]
    fn what_analyze_counted_decides() {
        let table = table("a int, b int, c int, key x (a), key y (b, c)");
        let index = |distinct| IndexStatistics { distinct, samples: Vec::new() };
        let indexes = [(100, index(vec![])), (101, index(vec![900])), (102, index(vec![2, 3]))].into();
        table.state.set_statistics(Statistics { rows: 1000, indexes });
        assert_eq!(name(&table, choose(&table, &[0, 1, 2])), "x of 1");
        assert_eq!(name(&table, choose(&table, &[1])), "y of 1");
    }
}
