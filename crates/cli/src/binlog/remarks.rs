//! Optional remarks about an event: its bytes, and the columns of a table.

use std::io::{self, Write};

use omnibus_format::RawEvent;
use omnibus_format::events::TableMap;

use super::literal;

/// Sixteen bytes a line, with their offsets in the file.
pub(super) fn hexdump(event: &RawEvent<'_>, out: &mut impl Write) -> io::Result<()> {
    for (n, line) in event.bytes.chunks(16).enumerate() {
        write!(out, "# {:8x} ", event.offset + n as u64 * 16)?;
        for at in 0..16 {
            let gap = if at == 8 { " " } else { "" };
            match line.get(at) {
                Some(byte) => write!(out, "{gap} {byte:02x}")?,
                None => write!(out, "{gap}   ")?,
            }
        }
        let shown = |byte: &u8| if (0x20..0x7f).contains(byte) { char::from(*byte) } else { '.' };
        writeln!(out, "  |{}|", line.iter().map(shown).collect::<String>())?;
    }
    Ok(())
}

/// A table's columns as far as the log knows them.
pub(super) fn columns(map: &TableMap, out: &mut impl Write) -> io::Result<()> {
    let (database, table) = (literal::identifier(&map.database), literal::identifier(&map.table));
    writeln!(out, "# Columns of {database}.{table}:")?;
    for (n, field) in map.columns.iter().enumerate() {
        let metadata = map.metadata.get(n);
        let name = metadata.and_then(|metadata| metadata.name.as_deref());
        let name = name.map_or_else(|| format!("@{}", n + 1), literal::identifier);
        let null = if map.nullable.get(n).copied().unwrap_or(true) { "" } else { " NOT NULL" };
        write!(out, "#   {name} type {} meta {}{null}", field.code, field.meta)?;
        if metadata.and_then(|metadata| metadata.unsigned) == Some(true) {
            write!(out, " UNSIGNED")?;
        }
        if let Some(collation) = metadata.and_then(|metadata| metadata.collation) {
            match omnibus_value::collation::by_id(collation) {
                Some(known) => write!(out, " COLLATE {}", known.name)?,
                None => write!(out, " collation {collation}")?,
            }
        }
        let labels = metadata.map_or(&[][..], |metadata| &metadata.labels);
        if !labels.is_empty() {
            let labels = labels
                .iter()
                .map(|label| format!("'{}'", String::from_utf8_lossy(label).replace('\n', "\\n")));
            write!(out, " labels {}", labels.collect::<Vec<_>>().join(","))?;
        }
        writeln!(out)?;
    }
    if !map.primary_key.is_empty() {
        let parts = map.primary_key.iter().map(|part| format!("@{}", part.column + 1));
        writeln!(out, "#   primary key {}", parts.collect::<Vec<_>>().join(","))?;
    }
    Ok(())
}
