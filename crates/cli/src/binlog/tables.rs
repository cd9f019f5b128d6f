//! The tables that TABLE_MAP events announced, by number.

use std::collections::HashMap;

use omnibus_format::events::{Rows, TableMap};
use omnibus_format::row::{Images, RowShape};
use omnibus_format::{DecodeError, RawEvent};

/// A table and how to read its rows.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) map: TableMap,
    pub(super) shape: RowShape,
}

/// Tables by number; the latest TABLE_MAP wins.
#[derive(Debug, Default)]
pub(super) struct Tables {
    by_id: HashMap<u64, Table>,
}

impl Tables {
    pub(super) fn insert(&mut self, map: TableMap) {
        let shape = RowShape::of_table_map(&map);
        self.by_id.insert(map.table_id, Table { map, shape });
    }

    pub(super) fn get(&self, id: u64) -> Option<&Table> {
        self.by_id.get(&id)
    }

    /// The rows of a rows event and its table; `None` when its TABLE_MAP was not seen.
    pub(super) fn rows<'a>(
        &'a self,
        event: &RawEvent<'a>,
    ) -> Result<Option<(&'a Table, Images<'a>)>, DecodeError> {
        let rows = Rows::decode(event.header.event_type, event.body)?;
        let Some(table) = self.get(rows.table_id) else { return Ok(None) };
        Ok(Some((table, Images::new(rows, &table.shape)?)))
    }
}
