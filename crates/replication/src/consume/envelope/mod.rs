//! `Envelopes`: changes as the messages of Debezium's connector for MySQL.
//!
//! There is one message per row, with its key, its schema and a `source` block; BEGIN and END with counts surround a
//! transaction's messages; definitions are on a topic of their own. Values have the forms of
//! `decimal.handling.mode=string`, `bigint.unsigned.handling.mode=long`,
//! `time.precision.mode=adaptive_time_microseconds`, `binary.handling.mode=bytes`. A change whose message would be a
//! guess is an error: rows need all columns and their names (`binlog_format=ROW`, `binlog_row_image=FULL`,
//! `binlog_row_metadata=FULL`).
//!
//! The consumer collects a transaction's messages; its owner takes them after `end` and sends them.

mod kind;
mod schema;
mod value;

use super::json_value::Line;
use super::{Consumer, End, FilePosition};
use crate::model::{RowsView, StatementView, TableView, TrxHeader};
use omnibus_format::DecodeError;
use omnibus_format::row::{RowChange, RowImage};
use omnibus_value::Value;
use schema::{Columns, fields_of};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// The topic of a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// Rows of a table: database and table.
    Table(String, String),
    /// Definitions.
    Definitions,
    /// Beginnings and ends of transactions.
    Transactions,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The topic.
    pub topic: Topic,
    /// The key of the row, if its table has a primary key.
    pub key: Option<Vec<u8>>,
    /// `None` after a deletion, as a tombstone of the key.
    pub value: Option<Vec<u8>>,
}

/// The reason why a change cannot be put into a message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// An image is damaged.
    #[error(transparent)]
    Image(#[from] DecodeError),
    /// Columns have no names.
    #[error(
        "the log has no names of {0}'s columns: set binlog_row_metadata=FULL at the source, and begin behind older rows"
    )]
    NoNames(String),
    /// Columns are missing.
    #[error(
        "the log has only some columns of a row of {0}: set binlog_row_image=FULL at the source, and begin behind older rows"
    )]
    NotWhole(String),
    /// A change as a statement's text.
    #[error(
        "the log has a change as a statement ({0}): set binlog_format=ROW at the source, and begin behind it"
    )]
    Statement(String),
}

/// The `source` block of a message.
#[derive(Clone, Debug, Default)]
struct SourceBlock {
    server_id: u32,
    gtid: Option<String>,
    file: String,
    position: u64,
    ts_us: u64,
}

/// Collects messages; see the module.
#[derive(Debug)]
pub struct Envelopes {
    name: String,
    messages: Vec<Envelope>,
    source: SourceBlock,
    id: String,
    standalone: bool,
    rows: u64,
    of_tables: BTreeMap<String, u64>,
    line: Line,
}

/// Debezium's schema of `source`.
const SOURCE: &str = r#"{"type":"struct","fields":[{"type":"string","optional":false,"field":"version"},{"type":"string","optional":false,"field":"connector"},{"type":"string","optional":false,"field":"name"},{"type":"int64","optional":false,"field":"ts_ms"},{"type":"string","optional":true,"field":"snapshot"},{"type":"string","optional":false,"field":"db"},{"type":"string","optional":true,"field":"table"},{"type":"int64","optional":false,"field":"server_id"},{"type":"string","optional":true,"field":"gtid"},{"type":"string","optional":false,"field":"file"},{"type":"int64","optional":false,"field":"pos"},{"type":"int32","optional":false,"field":"row"},{"type":"string","optional":true,"field":"query"}],"optional":false,"name":"io.debezium.connector.mysql.Source","field":"source"}"#;
const BLOCK: &str = r#"{"type":"struct","fields":[{"type":"string","optional":false,"field":"id"},{"type":"int64","optional":false,"field":"total_order"},{"type":"int64","optional":false,"field":"data_collection_order"}],"optional":true,"name":"event.block","version":1,"field":"transaction"}"#;
const TRANSACTION: &str = r#"{"type":"struct","fields":[{"type":"string","optional":false,"field":"status"},{"type":"string","optional":false,"field":"id"},{"type":"int64","optional":true,"field":"event_count"},{"type":"array","items":{"type":"struct","fields":[{"type":"string","optional":false,"field":"data_collection"},{"type":"int64","optional":false,"field":"event_count"}],"optional":false,"name":"event.collection","version":1},"optional":true,"field":"data_collections"},{"type":"int64","optional":false,"field":"ts_ms"}],"optional":false,"name":"io.debezium.connector.common.TransactionMetadataValue","version":1}"#;
const TRANSACTION_KEY: &str = r#"{"type":"struct","fields":[{"type":"string","optional":false,"field":"id"}],"optional":false,"name":"io.debezium.connector.common.TransactionMetadataKey","version":1}"#;

impl Envelopes {
    /// Creates a consumer whose source is called `name`.
    #[must_use]
    pub fn new(name: &str) -> Envelopes {
        Envelopes {
            name: name.to_owned(),
            messages: Vec::new(),
            source: SourceBlock::default(),
            id: String::new(),
            standalone: false,
            rows: 0,
            of_tables: BTreeMap::new(),
            line: Line::default(),
        }
    }

    /// Takes the messages collected since the last call.
    pub fn take(&mut self) -> Vec<Envelope> {
        std::mem::take(&mut self.messages)
    }

    /// Builds the object of schema and payload.
    fn message(&mut self, schema: &str, payload: impl FnOnce(&mut Line)) -> Vec<u8> {
        let line = &mut self.line;
        line.begin_bare();
        line.key("schema").raw(schema);
        line.key("payload").open('{');
        payload(line);
        line.close('}');
        let mut bytes = line.finish().to_vec();
        bytes.pop();
        bytes
    }

    fn transaction(&mut self, status: &str) {
        let (id, ts_ms) = (self.id.clone(), self.source.ts_us / 1000);
        let counts = (status != "BEGIN").then(|| (self.rows, std::mem::take(&mut self.of_tables)));
        let value = self.message(TRANSACTION, |line| {
            line.key("status").text(status);
            line.key("id").text(&id);
            if let Some((rows, tables)) = counts {
                line.key("event_count").number(rows);
                line.key("data_collections").open('[');
                for (table, count) in tables {
                    line.element().open('{');
                    line.key("data_collection").text(&table);
                    line.key("event_count").number(count);
                    line.close('}');
                }
                line.close(']');
            } else {
                line.key("event_count").raw("null");
                line.key("data_collections").raw("null");
            }
            line.key("ts_ms").number(ts_ms);
        });
        let key = self.message(TRANSACTION_KEY, |line| line.key("id").text(&id));
        self.messages.push(Envelope { topic: Topic::Transactions, key: Some(key), value: Some(value) });
    }

    fn change(
        &mut self,
        table: &Columns<'_>,
        change: &RowChange<'_>,
        row: u64,
        query: Option<&str>,
    ) -> Result<(), EnvelopeError> {
        let whole = |image: &Option<RowImage<'_>>| -> Result<Option<Vec<Value>>, EnvelopeError> {
            let Some(image) = image else { return Ok(None) };
            let values: Option<Vec<Value>> = image.decode(table.view.shape())?.into_iter().collect();
            values.map(Some).ok_or_else(|| EnvelopeError::NotWhole(table.name()))
        };
        let (before, after) = (whole(&change.before)?, whole(&change.after)?);
        let key_of = |me: &mut Envelopes, values: &Option<Vec<Value>>| {
            let values = values.as_ref().filter(|_| !table.key.is_empty())?;
            let schema = table.key_schema.clone();
            Some(me.message(&schema, |line| table.put_key(line, values)))
        };
        let (old_key, new_key) = (key_of(self, &before), key_of(self, &after));
        match (&before, &after) {
            // A row that has another key is another row.
            (Some(_), Some(_)) if old_key != new_key => {
                self.row(table, "d", &before, &None, old_key.clone(), row, query);
                self.tombstone(table, old_key);
                self.row(table, "c", &None, &after, new_key, row, query);
            }
            (Some(_), Some(_)) => self.row(table, "u", &before, &after, new_key, row, query),
            (Some(_), None) => {
                self.row(table, "d", &before, &None, old_key.clone(), row, query);
                self.tombstone(table, old_key);
            }
            _ => self.row(table, "c", &None, &after, new_key, row, query),
        }
        Ok(())
    }

    fn tombstone(&mut self, table: &Columns<'_>, key: Option<Vec<u8>>) {
        if key.is_some() {
            self.messages.push(Envelope { topic: table.topic(), key, value: None });
        }
    }

    // One place that has all parts of an envelope.
    #[allow(clippy::too_many_arguments)]
    fn row(
        &mut self,
        table: &Columns<'_>,
        op: &str,
        before: &Option<Vec<Value>>,
        after: &Option<Vec<Value>>,
        key: Option<Vec<u8>>,
        row: u64,
        query: Option<&str>,
    ) {
        self.rows += 1;
        let of_table = self.of_tables.entry(table.name()).or_default();
        *of_table += 1;
        let (order, total) = (*of_table, self.rows);
        let (source, name, id) = (self.source.clone(), self.name.clone(), self.id.clone());
        let schema = table.envelope_schema.clone();
        let value = self.message(&schema, |line| {
            for (field, values) in [("before", before), ("after", after)] {
                match values {
                    Some(values) => {
                        line.key(field).open('{');
                        table.put(line, values);
                        line.close('}');
                    }
                    None => line.key(field).raw("null"),
                }
            }
            put_source(line, &source, &name, &table.database, Some(&table.table), row, query);
            line.key("transaction").open('{');
            line.key("id").text(&id);
            line.key("total_order").number(total);
            line.key("data_collection_order").number(order);
            line.close('}');
            line.key("op").text(op);
            line.key("ts_ms").number(source.ts_us / 1000);
        });
        self.messages.push(Envelope { topic: table.topic(), key, value: Some(value) });
    }
}

fn put_source(
    line: &mut Line,
    source: &SourceBlock,
    name: &str,
    database: &str,
    table: Option<&str>,
    row: u64,
    query: Option<&str>,
) {
    line.key("source").open('{');
    line.key("version").text(concat!("omnibus-", env!("CARGO_PKG_VERSION")));
    line.key("connector").text("mysql");
    line.key("name").text(name);
    line.key("ts_ms").number(source.ts_us / 1000);
    line.key("snapshot").text("false");
    line.key("db").text(database);
    optional(line, "table", table);
    line.key("server_id").number(source.server_id);
    optional(line, "gtid", source.gtid.as_deref());
    line.key("file").text(&source.file);
    line.key("pos").number(source.position);
    line.key("row").number(row);
    optional(line, "query", query);
    line.close('}');
}

fn optional(line: &mut Line, name: &str, text: Option<&str>) {
    match text {
        Some(text) => line.key(name).text(text),
        None => line.key(name).raw("null"),
    }
}

impl Consumer for Envelopes {
    type Error = EnvelopeError;

    fn begin(&mut self, trx: &TrxHeader, place: Option<FilePosition<'_>>) -> Result<(), EnvelopeError> {
        let (file, position) =
            place.map_or((String::new(), 0), |place| (place.file.to_owned(), place.offset));
        let us = [trx.immediate_commit_us, trx.original_commit_us].into_iter().find(|us| *us != 0);
        let gtid = trx.gtid.map(|gtid| gtid.to_string());
        self.id = gtid.clone().unwrap_or_else(|| format!("file={file},pos={position}"));
        self.source = SourceBlock {
            server_id: trx.server_id,
            gtid,
            file,
            position,
            ts_us: us.unwrap_or(u64::from(trx.timestamp) * 1_000_000),
        };
        (self.standalone, self.rows) = (trx.standalone, 0);
        self.of_tables.clear();
        self.transaction("BEGIN");
        Ok(())
    }

    fn statement(&mut self, statement: &dyn StatementView) -> Result<(), EnvelopeError> {
        let sql = String::from_utf8_lossy(statement.sql()).into_owned();
        let word =
            sql.split(|c: char| !c.is_ascii_alphabetic()).find(|word| !word.is_empty()).unwrap_or_default();
        let is = |words: &[&str]| words.iter().any(|known| word.eq_ignore_ascii_case(known));
        // Marks inside of a transaction; its rows say all that counts.
        if is(&["SAVEPOINT", "ROLLBACK", "RELEASE", "BEGIN", "COMMIT", "XA"]) {
            return Ok(());
        }
        if is(&["INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "CALL", "WITH", "DO", "SELECT"]) {
            return Err(EnvelopeError::Statement(sql.chars().take(60).collect()));
        }
        let database = String::from_utf8_lossy(statement.database()).into_owned();
        let (source, name) = (self.source.clone(), self.name.clone());
        let schema = format!(
            r#"{{"type":"struct","fields":[{SOURCE},{{"type":"int64","optional":false,"field":"ts_ms"}},{{"type":"string","optional":true,"field":"databaseName"}},{{"type":"string","optional":true,"field":"schemaName"}},{{"type":"string","optional":true,"field":"ddl"}}],"optional":false,"name":"io.debezium.connector.mysql.SchemaChangeValue","version":1}}"#
        );
        let value = self.message(&schema, |line| {
            put_source(line, &source, &name, &database, None, 0, None);
            line.key("ts_ms").number(source.ts_us / 1000);
            line.key("databaseName").text(&database);
            line.key("schemaName").raw("null");
            line.key("ddl").text(&sql);
        });
        let schema = r#"{"type":"struct","fields":[{"type":"string","optional":false,"field":"databaseName"}],"optional":false,"name":"io.debezium.connector.mysql.SchemaChangeKey","version":1}"#;
        let key = self.message(schema, |line| line.key("databaseName").text(&database));
        self.messages.push(Envelope { topic: Topic::Definitions, key: Some(key), value: Some(value) });
        Ok(())
    }

    fn rows(&mut self, rows: &dyn RowsView) -> Result<(), EnvelopeError> {
        let columns = fields_of(&self.name, rows.table())?;
        let query = rows.query().map(|query| String::from_utf8_lossy(query).into_owned());
        let (mut number, mut failed) = (0, None);
        rows.each(&mut |change| {
            let result = self.change(&columns, &change, number, query.as_deref());
            number += 1;
            match result {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        failed.map_or(Ok(()), Err)
    }

    fn end(&mut self, end: End<'_>, _: Option<FilePosition<'_>>) -> Result<(), EnvelopeError> {
        // Rows of an XA transaction come when it is prepared; what becomes of it is said later, as a statement.
        self.transaction(match end {
            End::Commit => "END",
            End::Prepare(_) => "PREPARED",
        });
        Ok(())
    }

    fn undo(&mut self) -> Result<(), EnvelopeError> {
        self.messages.clear();
        Ok(())
    }
}

/// The table's name with its database.
fn full_name(table: &dyn TableView) -> String {
    format!("{}.{}", String::from_utf8_lossy(table.database()), String::from_utf8_lossy(table.name()))
}
