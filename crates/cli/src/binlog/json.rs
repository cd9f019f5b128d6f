//! One JSON object per event.

use omnibus_format::events::{
    ColumnMetadata, Gtid, MariadbGtid, MariadbGtidEvent, Query, Rows, RowsQuery, Xid,
};
use omnibus_format::row::RowImage;
use omnibus_format::{DecodeError, EventType, RawEvent};
use serde_json::{Map, Value as Json, json};

use super::literal;
use super::tables::{Table, Tables};

/// The object of an event: the fields every event has, `info`, and what its type adds.
pub(super) fn object(event: &RawEvent<'_>, info: &str, tables: &Tables) -> Result<Json, DecodeError> {
    let mut object = Map::new();
    let header = &event.header;
    object.insert("position".into(), json!(event.offset));
    object.insert("end".into(), json!(event.end()));
    object.insert("timestamp".into(), json!(header.timestamp));
    object.insert("type".into(), json!(header.event_type.name()));
    object.insert("type_code".into(), json!(header.event_type.0));
    object.insert("server_id".into(), json!(header.server_id));
    object.insert("flags".into(), json!(header.flags));
    object.insert("info".into(), json!(info));
    add_details(event, tables, &mut object)?;
    Ok(Json::Object(object))
}

fn add_details(
    event: &RawEvent<'_>,
    tables: &Tables,
    object: &mut Map<String, Json>,
) -> Result<(), DecodeError> {
    let body = event.body;
    let text = |bytes: &[u8]| json!(String::from_utf8_lossy(bytes));
    match event.header.event_type {
        EventType::GTID => {
            let gtid = Gtid::decode(body)?;
            object.insert("gtid".into(), json!(format!("{}:{}", gtid.uuid, gtid.gno)));
            object.insert("last_committed".into(), json!(gtid.last_committed));
            object.insert("sequence_number".into(), json!(gtid.sequence_number));
            object.insert("transaction_length".into(), json!(gtid.transaction_length));
            if let Some(times) = gtid.times {
                object.insert("commit_us".into(), json!(times.immediate_commit_us));
                object.insert("original_commit_us".into(), json!(times.original_commit_us));
            }
        }
        EventType::MARIADB_GTID => {
            let gtid = MariadbGtidEvent::decode(body)?;
            let server = event.header.server_id;
            let id = MariadbGtid { domain: gtid.domain, server, sequence: gtid.sequence };
            object.insert("gtid".into(), json!(id.to_string()));
        }
        EventType::QUERY => {
            let query = Query::decode(body)?;
            object.insert("database".into(), text(query.database));
            object.insert("sql".into(), text(query.sql));
            object.insert("thread_id".into(), json!(query.thread_id));
            object.insert("error_code".into(), json!(query.error_code));
        }
        EventType::ROWS_QUERY => drop(object.insert("sql".into(), text(RowsQuery::decode(body)?.0))),
        EventType::MARIADB_ANNOTATE_ROWS => drop(object.insert("sql".into(), text(body))),
        EventType::XID => drop(object.insert("xid".into(), json!(Xid::decode(body)?.0))),
        t if t.is_rows() => add_rows(event, tables, object)?,
        _ => {}
    }
    Ok(())
}

fn add_rows(
    event: &RawEvent<'_>,
    tables: &Tables,
    object: &mut Map<String, Json>,
) -> Result<(), DecodeError> {
    object.insert("table_id".into(), json!(Rows::decode(event.header.event_type, event.body)?.table_id));
    let Some((table, images)) = tables.rows(event)? else { return Ok(()) };
    object.insert("database".into(), json!(String::from_utf8_lossy(&table.map.database)));
    object.insert("table".into(), json!(String::from_utf8_lossy(&table.map.table)));
    let mut rows = Vec::new();
    for change in images {
        let change = change?;
        let mut row = Map::new();
        for (name, image) in [("before", change.before), ("after", change.after)] {
            if let Some(image) = image {
                row.insert(name.into(), image_object(table, &image)?);
            }
        }
        rows.push(Json::Object(row));
    }
    object.insert("rows".into(), Json::Array(rows));
    Ok(())
}

/// The present columns by name, or by `@number` where the log has no names.
fn image_object(table: &Table, image: &RowImage<'_>) -> Result<Json, DecodeError> {
    let nothing = ColumnMetadata::default();
    let mut object = Map::new();
    for (i, value) in image.decode(&table.shape)?.iter().enumerate() {
        let Some(value) = value else { continue };
        let metadata = table.map.metadata.get(i).unwrap_or(&nothing);
        let name = match &metadata.name {
            Some(name) => String::from_utf8_lossy(name).into_owned(),
            None => format!("@{}", i + 1),
        };
        let field = table.shape.columns()[i].field;
        object.insert(name, literal::json_value(value, field, metadata));
    }
    Ok(Json::Object(object))
}
