//! A binlog file with every kind of event we write, and the tool that reads it.
#![allow(clippy::unwrap_used, dead_code)]

pub mod server;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
use omnibus_format::events::{FormatDescription, Gtid, GtidTimes, PreviousGtids, Rotate, StatusVars};
use omnibus_format::header::{FLAG_IGNORABLE, MAGIC};
use omnibus_format::writer::{finish_cached, finished_len, write_final};
use omnibus_format::{Checksum, EventContext, EventType, GtidSet, HEADER_LEN, ServerUuid, private};
use omnibus_replication::generate::{self, QueryContext, RowsBuilder, RowsOptions, TableDef, VecSink};
use omnibus_value::{ColumnKind, ColumnType, Value, temporal};

pub const CONTEXT: EventContext = EventContext { timestamp: 1_700_000_000, server_id: 1 };
pub const UUID: ServerUuid = ServerUuid([0x3e; 16]);

/// A file under construction.
pub struct File {
    pub bytes: Vec<u8>,
    pub checksum: Checksum,
    next: u64,
}

impl File {
    pub fn new(checksum: Checksum) -> Self {
        let mut file = Self { bytes: MAGIC.to_vec(), checksum, next: 1 };
        let format = FormatDescription::new("8.4.0-omnibus", CONTEXT.timestamp, checksum);
        file.event(EventType::FORMAT_DESCRIPTION, 0, |out| format.encode(out));
        let previous = PreviousGtids { set: GtidSet::new() };
        file.event(EventType::PREVIOUS_GTIDS, 0, |out| previous.encode(out));
        file
    }

    pub fn event(&mut self, event_type: EventType, flags: u16, body: impl FnOnce(&mut Vec<u8>)) {
        let position = self.bytes.len() as u64;
        write_final(&mut self.bytes, CONTEXT, event_type, flags, position, self.checksum, body);
    }

    /// A GTID event and the cached events behind it.
    pub fn transaction(&mut self, cached: &[u8]) {
        let (others, _) = finished_len(cached, self.checksum).unwrap();
        let mut gtid = Gtid {
            uuid: UUID,
            gno: self.next,
            row_format_only: true,
            last_committed: self.next - 1,
            sequence_number: self.next,
            times: Some(GtidTimes {
                immediate_commit_us: 1_700_000_000_000_000,
                original_commit_us: 1_700_000_000_000_000,
                immediate_version: 80400,
                original_version: 80400,
            }),
            transaction_length: 0,
            ..Gtid::default()
        };
        gtid.set_transaction_length(others as u64, (HEADER_LEN + self.checksum.len()) as u64);
        let start = self.bytes.len();
        self.event(EventType::GTID, 0, |out| gtid.encode(out));
        let position = self.bytes.len() as u64;
        finish_cached(&mut self.bytes, cached, position, self.checksum).unwrap();
        assert_eq!(gtid.transaction_length, (self.bytes.len() - start) as u64);
        self.next += 1;
    }

    pub fn rotate(&mut self) {
        self.event(EventType::ROTATE, 0, |out| {
            Rotate { position: 4, file: b"binlog.000002" }.encode(out);
        });
    }
}

pub fn context() -> QueryContext {
    let vars = StatusVars {
        flags2: Some(0),
        sql_mode: Some(0x4020_0000),
        charset: Some([45, 45, 255]),
        charset_database: Some(255),
        microseconds: Some(123_456),
        explicit_defaults_for_timestamp: Some(true),
        default_collation_for_utf8mb4: Some(255),
        sql_require_primary_key: Some(0),
        ..StatusVars::default()
    };
    QueryContext::new(9, &vars)
}

fn ty(kind: ColumnKind, length: u32, decimals: u8, collation: u16) -> ColumnType {
    ColumnType { kind, unsigned: false, zerofill: false, length, decimals, collation, labels: Arc::new([]) }
}

fn unsigned(kind: ColumnKind) -> ColumnType {
    ColumnType { unsigned: true, ..ty(kind, 0, 0, 63) }
}

fn labelled(kind: ColumnKind, labels: &[&str]) -> ColumnType {
    let labels = labels.iter().map(|l| Bytes::copy_from_slice(l.as_bytes())).collect();
    ColumnType { labels, ..ty(kind, 0, 0, 255) }
}

/// Column definition as SQL, its type, and a value.
pub fn columns() -> Vec<(&'static str, ColumnType, Value)> {
    use ColumnKind::*;
    let text = |s: &str| Value::Bytes(Bytes::copy_from_slice(s.as_bytes()));
    let date = temporal::Date::from_ymd(2024, 2, 29).unwrap();
    let datetime = |fsp| {
        temporal::parse_datetime(b"2024-02-29 23:59:58.123456", fsp, temporal::DateMode::STRICT)
            .unwrap()
            .value
    };
    let time = temporal::parse_time(b"-838:59:58.5", 1).unwrap().value;
    let decimal = omnibus_value::decimal::Decimal::parse(b"-12345678901.250").value;
    vec![
        ("id INT PRIMARY KEY", ty(Int, 11, 0, 63), Value::Int(7)),
        ("t TINYINT", ty(TinyInt, 4, 0, 63), Value::Int(-128)),
        ("s SMALLINT UNSIGNED", unsigned(SmallInt), Value::UInt(65535)),
        ("m MEDIUMINT", ty(MediumInt, 9, 0, 63), Value::Int(-8_388_608)),
        ("b BIGINT UNSIGNED", unsigned(BigInt), Value::UInt(u64::MAX)),
        ("f FLOAT", ty(Float, 0, 31, 63), Value::Float(1.5)),
        ("d DOUBLE", ty(Double, 0, 31, 63), Value::Double(-2.25)),
        ("n DECIMAL(20,3)", ty(Decimal, 20, 3, 63), Value::Decimal(decimal)),
        ("bi BIT(13)", ty(Bit, 13, 0, 63), Value::Bit(0x1abc)),
        ("y YEAR", ty(Year, 4, 0, 63), Value::Year(2024)),
        ("da DATE", ty(Date, 0, 0, 63), Value::Date(date)),
        ("ti TIME(1)", ty(Time, 0, 1, 63), Value::Time(time)),
        ("dt DATETIME(6)", ty(DateTime, 0, 6, 63), Value::DateTime(datetime(6))),
        ("ts TIMESTAMP(3) NULL", ty(Timestamp, 0, 3, 63), Value::DateTime(datetime(3))),
        ("c CHAR(255) CHARACTER SET utf8mb4", ty(Char, 255, 0, 45), text("chär")),
        ("v VARCHAR(10) CHARACTER SET latin1", ty(VarChar, 10, 0, 8), text("v'q\\")),
        ("bn BINARY(4)", ty(Binary, 4, 0, 63), text("ab")),
        ("vb VARBINARY(300)", ty(VarBinary, 300, 0, 63), text("vb")),
        ("tt TINYTEXT", ty(TinyText, 0, 0, 45), text("tiny")),
        ("tx MEDIUMTEXT", ty(MediumText, 0, 0, 45), text("medium")),
        ("bl LONGBLOB", ty(LongBlob, 0, 0, 63), text("blob")),
        ("e ENUM('x','y')", labelled(Enum, &["x", "y"]), Value::Enum(2)),
        ("st SET('a','b','c')", labelled(Set, &["a", "b", "c"]), Value::Set(5)),
        ("nu INT", ty(Int, 11, 0, 63), Value::Null),
    ]
}

pub fn table_def(id: u64) -> Arc<TableDef> {
    let mut builder = TableDef::builder(id, b"db", b"all_types");
    for (sql, column, _) in columns() {
        let name = sql.split(' ').next().unwrap();
        builder = builder.column(name.as_bytes(), &column, name != "id");
    }
    Arc::new(builder.primary_key([(0, 0)]).build())
}

pub const CREATE_DATABASE: &str = "CREATE DATABASE IF NOT EXISTS db";

pub fn create_table() -> String {
    let columns: Vec<&str> = columns().iter().map(|(sql, _, _)| *sql).collect();
    format!("CREATE TABLE db.all_types ({})", columns.join(", "))
}

/// DDL with its write set, inserts, an update and a delete, private events of every kind.
pub fn sample_file_with(checksum: Checksum, options: RowsOptions) -> Vec<u8> {
    let mut file = File::new(checksum);
    let mut context = context();
    for (n, sql) in [CREATE_DATABASE.to_owned(), create_table()].iter().enumerate() {
        let mut sink = VecSink::new(CONTEXT.timestamp, 1);
        private_event(&mut sink, |out| {
            private::encode_write_set(out, [(b"key".as_slice(), Some(b"value".as_slice())), (b"gone", None)]);
        });
        generate::ddl(&mut context, &mut sink, b"", sql.as_bytes(), n as u64 + 1, 45).unwrap();
        file.transaction(&sink.bytes);
    }
    let table = table_def(77);
    let values: Vec<Value> = columns().into_iter().map(|(_, _, v)| v).collect();
    let row = |id: i64| {
        let mut values = values.clone();
        values[0] = Value::Int(id);
        table.shape().encode_row(&values).unwrap()
    };
    let mut changed = values.clone();
    changed[1] = Value::Null;
    changed[23] = Value::Int(5);
    let changed = table.shape().encode_row(&changed).unwrap();
    let mut sink = VecSink::new(CONTEXT.timestamp, 1);
    generate::begin(&mut context, &mut sink, b"db").unwrap();
    private_event(&mut sink, |out| private::encode_build_index(out, 7, 8));
    private_event(&mut sink, |out| private::encode_drop_spaces(out, &[1, 2, 3]));
    private_event(&mut sink, |out| omnibus_format::LogPrivate::Filler(4994).encode(out));
    let mut rows = RowsBuilder::new(options);
    rows.begin_statement(b"INSERT INTO all_types ...");
    for id in [7, 8, 9] {
        rows.write(&mut sink, &table, &row(id), Some(id as u64)).unwrap();
    }
    rows.end_statement(&mut sink).unwrap();
    rows.begin_statement(b"UPDATE all_types ...");
    rows.update(&mut sink, &table, &row(7), &changed, None).unwrap();
    rows.end_statement(&mut sink).unwrap();
    rows.begin_statement(b"DELETE FROM all_types ...");
    rows.delete(&mut sink, &table, &row(8), None).unwrap();
    rows.end_statement(&mut sink).unwrap();
    generate::xid(&mut sink, 3).unwrap();
    file.transaction(&sink.bytes);
    file.rotate();
    file.bytes
}

pub fn sample_file() -> Vec<u8> {
    sample_file_with(Checksum::Crc32, RowsOptions { rows_query: true, ..RowsOptions::default() })
}

fn private_event(sink: &mut VecSink, body: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = Vec::new();
    body(&mut bytes);
    generate::EventSink::event(sink, EventType::IGNORABLE.0, FLAG_IGNORABLE, &bytes).unwrap();
}

/// Runs MariaDB's tool: success, output, errors.
pub fn mariadb_binlog(args: &[&str], file: &Path) -> (bool, String, String) {
    let output = Command::new("mariadb-binlog").arg("--no-defaults").args(args).arg(file).output();
    let output = output.expect("mariadb-binlog must be installed (Debian package mariadb-client)");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}
