//! Describes an event in one line: the format crate's words, and for row events their table and number of rows.

use omnibus_format::describe::{identifier, statement_end, summary};
use omnibus_format::events::Rows;
use omnibus_format::{DecodeError, RawEvent};

use super::tables::Tables;

/// The summary of an event. `tables` names the tables of row events.
pub(super) fn of(event: &RawEvent<'_>, tables: &Tables) -> Result<String, DecodeError> {
    if event.header.event_type.is_rows() { rows(event, tables) } else { summary(event) }
}

fn rows(event: &RawEvent<'_>, tables: &Tables) -> Result<String, DecodeError> {
    let header = Rows::decode(event.header.event_type, event.body)?;
    let end = statement_end(&header);
    let Some((table, images)) = tables.rows(event)? else {
        return Ok(format!("table {} (its Table_map was not seen){end}", header.table_id));
    };
    let mut count = 0;
    for change in images {
        change?;
        count += 1;
    }
    let plural = if count == 1 { "" } else { "s" };
    let (database, name) = (identifier(&table.map.database), identifier(&table.map.table));
    Ok(format!("{database}.{name}, {count} row{plural}{end}"))
}
