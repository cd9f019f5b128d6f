//! TABLE_MAP: gives a table a number and describes its columns for the row events that follow.

use super::table_metadata as metadata;
use crate::cursor::{Reader, put_lenenc, put_lenenc_bytes};
use crate::error::DecodeError;
use crate::field::FieldType;

/// Flag: BIT lengths in the metadata are exact (5.1.4 and later).
const FLAG_BIT_LEN_EXACT: u16 = 1;

/// The amount of optional metadata to write (`binlog_row_metadata`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OptionalMetadata {
    /// None at all, as before MySQL 8.0.1.
    None,
    /// Signedness, character sets, geometry types, invisible columns.
    #[default]
    Minimal,
    /// Also names, ENUM and SET labels, primary key.
    Full,
}

/// The optional metadata of one column; `None` or empty where it has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnMetadata {
    /// UNSIGNED, for numeric columns.
    pub unsigned: Option<bool>,
    /// Collation id, for CHAR/VARCHAR/TEXT (63 for BINARY/VARBINARY/BLOB), ENUM and SET.
    pub collation: Option<u16>,
    /// Column name.
    pub name: Option<Vec<u8>>,
    /// Labels of ENUM and SET.
    pub labels: Vec<Vec<u8>>,
    /// Subtype of GEOMETRY.
    pub geometry_type: Option<u8>,
    /// False for INVISIBLE columns.
    pub visible: Option<bool>,
}

/// One column of the primary key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrimaryKeyPart {
    /// Zero-based column number.
    pub column: u32,
    /// Characters of a prefix key; 0 for the whole column.
    pub prefix: u32,
}

/// The decoded event, owned: it outlives the event it came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableMap {
    /// The number by which row events refer to the table.
    pub table_id: u64,
    /// Flags as stored.
    pub flags: u16,
    /// Database name.
    pub database: Vec<u8>,
    /// Table name.
    pub table: Vec<u8>,
    /// Column types.
    pub columns: Vec<FieldType>,
    /// For each column, whether it may be NULL.
    pub nullable: Vec<bool>,
    /// Per column; as long as `columns`.
    pub metadata: Vec<ColumnMetadata>,
    /// Columns of the primary key in key order; empty when unknown or none.
    pub primary_key: Vec<PrimaryKeyPart>,
}

impl TableMap {
    /// Appends the body.
    pub fn encode(&self, level: OptionalMetadata, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.table_id.to_le_bytes()[..6]);
        out.extend_from_slice(&(self.flags | FLAG_BIT_LEN_EXACT).to_le_bytes());
        for name in [&self.database, &self.table] {
            let name = &name[..name.len().min(255)];
            out.push(name.len() as u8);
            out.extend_from_slice(name);
            out.push(0);
        }
        put_lenenc(out, self.columns.len() as u64);
        out.extend(self.columns.iter().map(|c| c.table_map_code()));
        let mut block = Vec::with_capacity(2 * self.columns.len());
        for column in &self.columns {
            column.put_metadata(&mut block);
        }
        put_lenenc_bytes(out, &block);
        let mut nulls = vec![0u8; self.columns.len().div_ceil(8)];
        for (i, _) in self.nullable.iter().enumerate().filter(|(_, nullable)| **nullable) {
            nulls[i / 8] |= 1 << (i % 8);
        }
        out.extend_from_slice(&nulls);
        metadata::encode(self, level, out);
    }

    /// Decodes the body as MySQL and we write it.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        Self::decode_dialect(body, false)
    }

    /// Decodes the body. `mariadb` is true if a MariaDB server wrote the file (`FormatDescription::is_mariadb`): it
    /// counts GEOMETRY among the character columns.
    ///
    /// # Errors
    /// The body is truncated or malformed.
    pub fn decode_dialect(body: &[u8], mariadb: bool) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let table_id = r.uint(6, "table id")?;
        let flags = r.u16("table map flags")?;
        let database = r.short_bytes("database")?.to_vec();
        r.u8("database end")?;
        let table = r.short_bytes("table")?.to_vec();
        r.u8("table end")?;
        let count = r.lenenc_len("column count")?;
        let codes = r.take(count, "column types")?;
        let block_at = r.position();
        let mut block = Reader::new(r.lenenc_bytes("column metadata")?);
        let columns = codes.iter().map(|&code| FieldType::read(code, &mut block));
        let columns = columns.collect::<Result<Vec<_>, _>>();
        let columns = columns.map_err(|e| DecodeError::new(block_at + e.offset, e.what))?;
        let nulls = r.take(count.div_ceil(8), "null bitmap")?;
        let nullable = (0..count).map(|i| nulls[i / 8] & (1 << (i % 8)) != 0).collect();
        let mut map = Self {
            table_id,
            flags,
            database,
            table,
            metadata: vec![ColumnMetadata::default(); count],
            columns,
            nullable,
            primary_key: Vec::new(),
        };
        metadata::decode(&mut map, mariadb, &mut r)?;
        Ok(map)
    }
}
