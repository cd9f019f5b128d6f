//! `TableDef`: the description of a table for row events, with its TABLE_MAP encoded once.

use omnibus_format::events::{ColumnMetadata, OptionalMetadata, PrimaryKeyPart, TableMap};
use omnibus_format::row::Bitmap;
use omnibus_format::{RowShape, field::FieldType};
use omnibus_value::{ColumnKind, ColumnType};

/// A table in the binary log. Immutable; made once per table definition and shared.
#[derive(Clone, Debug)]
pub struct TableDef {
    table_id: u64,
    shape: RowShape,
    map: TableMap,
    minimal: Vec<u8>,
    full: Vec<u8>,
    all: Bitmap,
    key: Bitmap,
    without_blobs: Bitmap,
    has_blobs: bool,
}

impl TableDef {
    /// Begins the definition of a table. `table_id` must be unique among the tables and versions
    /// of a server's life, below 2^48, and never 0x00ffffff (which means "no table").
    pub fn builder(table_id: u64, database: &[u8], table: &[u8]) -> TableDefBuilder {
        TableDefBuilder {
            map: TableMap {
                table_id,
                database: database.to_vec(),
                table: table.to_vec(),
                ..TableMap::default()
            },
            types: Vec::new(),
            row_key: Vec::new(),
        }
    }

    /// The table's number in row events.
    pub fn table_id(&self) -> u64 {
        self.table_id
    }

    /// The columns' encoding.
    pub fn shape(&self) -> &RowShape {
        &self.shape
    }

    /// Database, table and columns as in TABLE_MAP.
    pub fn map(&self) -> &TableMap {
        &self.map
    }

    /// TABLE_MAP's body.
    pub fn map_body(&self, metadata: OptionalMetadata) -> &[u8] {
        match metadata {
            OptionalMetadata::Full => &self.full,
            _ => &self.minimal,
        }
    }

    /// All columns.
    pub(super) fn all(&self) -> &Bitmap {
        &self.all
    }

    /// The columns that identify a row: the primary key, otherwise all.
    pub(super) fn key(&self) -> &Bitmap {
        &self.key
    }

    /// The columns other than BLOBs, and the key.
    pub(super) fn without_blobs(&self) -> &Bitmap {
        &self.without_blobs
    }

    /// Returns whether NOBLOB images differ from full ones.
    pub(super) fn has_blobs(&self) -> bool {
        self.has_blobs
    }
}

/// Collects columns in table order.
#[derive(Clone, Debug)]
pub struct TableDefBuilder {
    map: TableMap,
    types: Vec<ColumnType>,
    row_key: Vec<usize>,
}

impl TableDefBuilder {
    /// Adds the next column.
    pub fn column(self, name: &[u8], column: &ColumnType, nullable: bool) -> Self {
        self.column_with(name, column, nullable, true)
    }

    /// Adds the next column, INVISIBLE or not.
    pub fn column_with(mut self, name: &[u8], column: &ColumnType, nullable: bool, visible: bool) -> Self {
        let field = FieldType::of_column(column);
        let labelled = matches!(column.kind, ColumnKind::Enum | ColumnKind::Set);
        let labels =
            if labelled { column.labels.iter().map(|label| label.to_vec()).collect() } else { vec![] };
        self.map.columns.push(field);
        self.map.nullable.push(nullable);
        self.map.metadata.push(ColumnMetadata {
            unsigned: field.is_numeric().then_some(column.unsigned),
            collation: (field.is_character() || labelled).then_some(column.collation),
            name: Some(name.to_vec()),
            labels,
            geometry_type: (column.kind == ColumnKind::Geometry).then_some(0),
            visible: Some(visible),
        });
        self.types.push(column.clone());
        self
    }

    /// Sets the primary key's columns in key order, with the characters of prefix parts (0 = whole column).
    pub fn primary_key(mut self, parts: impl IntoIterator<Item = (usize, u32)>) -> Self {
        let part = |(column, prefix): (usize, u32)| PrimaryKeyPart { column: column as u32, prefix };
        self.map.primary_key = parts.into_iter().map(part).collect();
        self
    }

    /// Sets the columns that identify a row of a table without a primary key: those of a UNIQUE key of NOT NULL
    /// columns. Not needed otherwise; a table with neither sends whole rows.
    pub fn row_key(mut self, columns: impl IntoIterator<Item = usize>) -> Self {
        self.row_key = columns.into_iter().collect();
        self
    }

    /// Returns the definition.
    pub fn build(self) -> TableDef {
        let count = self.map.columns.len();
        let (mut minimal, mut full) = (Vec::new(), Vec::new());
        self.map.encode(OptionalMetadata::Minimal, &mut minimal);
        self.map.encode(OptionalMetadata::Full, &mut full);
        // Of a prefix part the whole column is sent, as MySQL does.
        let mut key_columns: Vec<usize> = self.map.primary_key.iter().map(|p| p.column as usize).collect();
        if key_columns.is_empty() {
            key_columns = self.row_key;
        }
        let keyed = !key_columns.is_empty();
        let key = if keyed { Bitmap::of(count, key_columns) } else { Bitmap::full(count) };
        let blob = |i: usize| self.map.columns[i].is_blob();
        let kept = (0..count).filter(|&i| !keyed || !blob(i) || key.contains(i));
        TableDef {
            table_id: self.map.table_id,
            shape: RowShape::new(&self.types),
            minimal,
            full,
            all: Bitmap::full(count),
            without_blobs: Bitmap::of(count, kept),
            has_blobs: (0..count).any(blob),
            key,
            map: self.map,
        }
    }
}
