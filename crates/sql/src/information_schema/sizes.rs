//! Estimated sizes of tables: for TABLES, and for InnoDB's own tables, by whose names managers and dashboards ask for them.
//!
//! Engines keep many tables in the same files, so nobody knows what one takes there. It is estimated: the number of entries
//! of each index times the bytes of an average one, which the sampled rows and keys tell. So it is without what
//! compression spares and old versions cost. As in InnoDB an index takes no less than a page.

use super::computed::{Def, Reader, Ty, text};
use crate::catalog::Table;
use crate::error::ExecResult;
use omnibus_value::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// InnoDB's.
const PAGE: u64 = 16 << 10;
/// For how long a statement counts tables that nobody has counted yet. The others have their sizes when they are asked for again.
const COUNTS_FOR: Duration = Duration::from_millis(200);

pub(super) const DEFS: &[Def] = &[
    Def {
        schema: "information_schema",
        name: "INNODB_TABLES",
        columns: &[
            ("TABLE_ID", Ty::UInt),
            ("NAME", Ty::Text(655)),
            ("FLAG", Ty::Int4),
            ("N_COLS", Ty::Int4),
            ("SPACE", Ty::Int),
            ("ROW_FORMAT", Ty::Text(12)),
            ("ZIP_PAGE_SIZE", Ty::UInt4),
            ("SPACE_TYPE", Ty::Text(10)),
            ("INSTANT_COLS", Ty::Int4),
            ("TOTAL_ROW_VERSIONS", Ty::Int4),
        ],
        rows: tables,
    },
    Def {
        schema: "information_schema",
        name: "INNODB_TABLESPACES",
        columns: &[
            ("SPACE", Ty::UInt4),
            ("NAME", Ty::Text(655)),
            ("FLAG", Ty::UInt4),
            ("ROW_FORMAT", Ty::Text(22)),
            ("PAGE_SIZE", Ty::UInt4),
            ("ZIP_PAGE_SIZE", Ty::UInt4),
            ("SPACE_TYPE", Ty::Text(10)),
            ("FS_BLOCK_SIZE", Ty::UInt4),
            ("FILE_SIZE", Ty::UInt),
            ("ALLOCATED_SIZE", Ty::UInt),
            ("AUTOEXTEND_SIZE", Ty::UInt),
            ("SERVER_VERSION", Ty::Text(10)),
            ("SPACE_VERSION", Ty::UInt4),
            ("ENCRYPTION", Ty::Text(1)),
            ("STATE", Ty::Text(10)),
        ],
        rows: tablespaces,
    },
];

/// The size of a table, in bytes.
pub(super) struct Size {
    pub rows: u64,
    pub row: u64,
    pub data: u64,
    pub indexes: u64,
}

/// The tables that the account may know of, with their sizes.
pub(super) fn tables_and_sizes(reader: &mut Reader<'_, '_>) -> Vec<(Arc<Table>, Size)> {
    let all = reader.tables();
    let begun = Instant::now();
    let sized = |table: Arc<Table>| {
        if begun.elapsed() < COUNTS_FOR {
            reader.cx.storage.estimate_rows(&table);
        }
        let size = size_of(&table);
        (table, size)
    };
    all.into_iter().map(sized).collect()
}

fn size_of(table: &Table) -> Size {
    // Of a table that was empty when it was counted the estimate is one too many, since none means that nobody has counted.
    let was_empty = table.statistics().is_some_and(|counted| counted.rows == 0);
    let rows = table.rows_estimate().saturating_sub(u64::from(was_empty));
    let takes = |index: usize| rows.saturating_mul(table.entry_bytes(index)).max(PAGE);
    Size {
        rows,
        row: if rows == 0 { 0 } else { table.entry_bytes(0) },
        data: takes(0),
        indexes: (1..table.indexes().len()).map(takes).sum(),
    }
}

fn tablespaces(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    let encrypted =
        if crate::api::tables_are_encrypted(&*reader.cx.session.connection.host) { "Y" } else { "N" };
    let row = |(table, size): (Arc<Table>, Size)| {
        let bytes = Value::UInt(size.data + size.indexes);
        vec![
            space(&table),
            name(&table),
            Value::UInt(16_417),
            text("Dynamic"),
            Value::UInt(PAGE),
            Value::UInt(0),
            text("Single"),
            Value::UInt(4096),
            bytes.clone(),
            bytes,
            Value::UInt(0),
            text(""),
            Value::UInt(1),
            text(encrypted),
            text("normal"),
        ]
    };
    Ok(tables_and_sizes(reader).into_iter().map(row).collect())
}

fn tables(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    let row = |table: &Arc<Table>| {
        // InnoDB counts three of its own.
        let columns = i64::try_from(table.columns().len()).unwrap_or(i64::MAX).saturating_add(3);
        vec![
            space(table),
            name(table),
            Value::Int(33),
            Value::Int(columns),
            space(table),
            text("Dynamic"),
            Value::UInt(0),
            text("Single"),
            Value::Int(0),
            Value::Int(0),
        ]
    };
    Ok(reader.tables().iter().map(row).collect())
}

fn space(table: &Table) -> Value {
    Value::UInt(u64::from(table.def.indexes[0].space.0))
}

fn name(table: &Table) -> Value {
    text(format!("{}/{}", table.def.db, table.def.name))
}
