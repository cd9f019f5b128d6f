//! Rows as pseudo-SQL comment lines, in the manner of `mysqlbinlog -v`.

use std::io::{self, Write};

use omnibus_format::events::ColumnMetadata;
use omnibus_format::row::{Images, RowImage};

use super::literal;
use super::tables::Table;

/// Writes the rows of one event. Damage inside it is returned as text after the good rows.
pub(super) fn write(out: &mut impl Write, table: &Table, rows: Images<'_>) -> io::Result<Option<String>> {
    let name =
        format!("{}.{}", literal::identifier(&table.map.database), literal::identifier(&table.map.table));
    for change in rows {
        let change = match change {
            Ok(change) => change,
            Err(error) => return Ok(Some(error.to_string())),
        };
        let (verb, first) = match (&change.before, &change.after) {
            (Some(_), Some(_)) => ("UPDATE", "WHERE"),
            (Some(_), None) => ("DELETE FROM", "WHERE"),
            _ => ("INSERT INTO", "SET"),
        };
        writeln!(out, "### {verb} {name}")?;
        for (clause, image) in [(first, change.before), ("SET", change.after)] {
            let Some(image) = image else { continue };
            writeln!(out, "### {clause}")?;
            if let Some(damage) = write_image(out, table, &image)? {
                return Ok(Some(damage));
            }
        }
    }
    Ok(None)
}

fn write_image(out: &mut impl Write, table: &Table, image: &RowImage<'_>) -> io::Result<Option<String>> {
    let values = match image.decode(&table.shape) {
        Ok(values) => values,
        Err(error) => return Ok(Some(error.to_string())),
    };
    let nothing = ColumnMetadata::default();
    let mut line = String::new();
    let diffs = match image.json_diffs(&table.shape) {
        Ok(diffs) => diffs,
        Err(error) => return Ok(Some(error.to_string())),
    };
    for (i, value) in values.iter().enumerate() {
        let changes = diffs.iter().find(|(column, _)| *column == i).map(|(_, diffs)| diffs);
        if value.is_none() && changes.is_none() {
            continue;
        }
        let metadata = table.map.metadata.get(i).unwrap_or(&nothing);
        line.clear();
        match &metadata.name {
            Some(name) => line.push_str(&literal::identifier(name)),
            None => line.push_str(&format!("@{}", i + 1)),
        }
        match (value, changes) {
            (Some(value), _) => {
                line.push('=');
                literal::sql(value, table.shape.columns()[i].field, metadata, &mut line);
            }
            (None, Some(changes)) => match literal::json_calls(&line, changes) {
                Ok(calls) => {
                    line.push('=');
                    line.push_str(&calls);
                }
                Err(error) => return Ok(Some(error.to_string())),
            },
            (None, None) => {}
        }
        writeln!(out, "###   {line}")?;
    }
    Ok(None)
}
