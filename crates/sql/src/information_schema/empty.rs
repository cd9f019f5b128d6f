//! Tables of MySQL about things that are not here, or that nobody counts: clients and exporters ask, and get no rows.
//!
//! They are in `empty.txt`, one a line. A table that answers in code goes before its line, so whoever builds the thing
//! adds a definition and leaves the list alone. The server has rows for some of them: see `hosted`.

use super::computed::{Def, Reader, Ty, answering};
use super::hosted;
use crate::error::ExecResult;
use omnibus_value::Value;
use std::sync::LazyLock;

static TABLES: LazyLock<Vec<Def>> =
    LazyLock::new(|| include_str!("empty.txt").lines().filter_map(table).collect());

/// Those that nothing answers for.
pub(super) fn tables() -> impl Iterator<Item = &'static Def> {
    TABLES.iter()
}

fn none(_: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    Ok(Vec::new())
}

/// A line: `schema.table: column type, ..`.
fn table(line: &'static str) -> Option<Def> {
    let (name, columns) = line.split_once(": ")?;
    let (schema, name) = name.split_once('.')?;
    if line.starts_with('#') || answering().any(|def| def.schema == schema && def.name == name) {
        return None;
    }
    let columns: Vec<_> = columns.split(", ").filter_map(column).collect();
    // Once for the life of the process.
    let hosted = hosted::TABLES.iter().find(|(hosted, _)| name == *hosted);
    Some(Def { schema, name, columns: columns.leak(), rows: hosted.map_or(none, |(_, rows)| *rows) })
}

fn column(text: &'static str) -> Option<(&'static str, Ty)> {
    let (name, ty) = text.split_once(' ')?;
    let (base, length) = ty.split_once('(').unwrap_or((ty, ""));
    let length = length.trim_end_matches(')').parse().unwrap_or(0);
    let ty = match base {
        "varchar" if length <= 16_383 => Ty::Text(length),
        "char" => Ty::Char(length),
        "bigint" => Ty::Int,
        "bigint unsigned" => Ty::UInt,
        "int" => Ty::Int4,
        "int unsigned" => Ty::UInt4,
        "timestamp" => Ty::Stamp,
        "datetime" => Ty::Time,
        "json" => Ty::Json,
        "double" => Ty::Seconds,
        _ => Ty::Long,
    };
    Some((name, ty))
}
