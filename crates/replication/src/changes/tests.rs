//! Streams of each dialect, applied to a target that records its calls.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::model::{RowsView, StatementView, TrxHeader};
use omnibus_format::events::{
    Gtid, IntVar, MariadbGtidEvent, Query, Rand, StatusVars, TableMap, UserVar, UserVarValue, XaPrepare, Xid,
    put_rows_header,
};
use omnibus_format::field::{FieldType, code};
use omnibus_format::{EventHeader, EventType, MAX_EVENT_SIZE, ServerUuid};
use std::ops::ControlFlow;

#[derive(Default)]
struct Recorder {
    said: Vec<String>,
}

impl ApplyTarget for Recorder {
    type Ticket = u32;

    fn begin(&mut self, trx: &TrxHeader) -> Result<(), ApplyError> {
        let gtid = trx.gtid.map_or("-".to_owned(), |gtid| gtid.to_string());
        self.said.push(format!("begin {gtid}"));
        Ok(())
    }
    fn statement(&mut self, s: &dyn StatementView) -> Result<(), ApplyError> {
        let mut text = String::from_utf8_lossy(s.sql()).into_owned();
        if let Some(id) = s.insert_id() {
            text += &format!(" insert_id={id}");
        }
        if let Some(seeds) = s.rand_seeds() {
            text += &format!(" rand={seeds:?}");
        }
        s.user_variables(&mut |var| text += &format!(" @{}", String::from_utf8_lossy(var.name)));
        if let Some(file) = s.loaded_file() {
            let mut bytes = Vec::new();
            file.blocks(&mut |block| {
                bytes.extend_from_slice(block);
                Ok(())
            })
            .unwrap();
            text += &format!(" file={}", String::from_utf8_lossy(&bytes));
        }
        self.said.push(text);
        Ok(())
    }
    fn rows(&mut self, rows: &dyn RowsView) -> Result<(), ApplyError> {
        let mut count = 0;
        rows.each(&mut |_| {
            count += 1;
            ControlFlow::Continue(())
        })?;
        let name = String::from_utf8_lossy(rows.table().name()).into_owned();
        self.said.push(format!("{:?} {name} {count}", rows.kind()));
        Ok(())
    }
    fn commit(&mut self, position: Option<&Position>) -> Result<u32, ApplyError> {
        self.said.push(format!("commit {}", position.map_or("-", |at| &at.channel)));
        Ok(7)
    }
    fn prepare(&mut self, xid: &XaPrepare<'_>, _: Option<&Position>) -> Result<u32, ApplyError> {
        self.said.push(format!("prepare {}", String::from_utf8_lossy(xid.gtrid)));
        Ok(8)
    }
    fn rollback(&mut self) {
        self.said.push("rollback".into());
    }
}

type Event = (EventType, Vec<u8>);

fn encoded(event_type: EventType, encode: impl FnOnce(&mut Vec<u8>)) -> Event {
    let mut body = Vec::new();
    encode(&mut body);
    (event_type, body)
}

fn query(sql: &str) -> Event {
    let mut status = Vec::new();
    StatusVars { flags2: Some(0), ..StatusVars::default() }.encode(&mut status);
    let query = Query {
        thread_id: 5,
        exec_time: 0,
        error_code: 0,
        status: &status,
        database: b"d",
        sql: sql.as_bytes(),
    };
    encoded(EventType::QUERY, |out| query.encode(out))
}

fn gtid(gno: u64) -> Event {
    let event = Gtid { uuid: ServerUuid([0; 16]), gno, ..Gtid::default() };
    encoded(EventType::GTID, |out| event.encode(out))
}

fn mariadb_gtid(sequence: u64, flags: u8) -> Event {
    let event = MariadbGtidEvent { domain: 0, sequence, flags, commit_id: None };
    encoded(EventType::MARIADB_GTID, |out| event.encode(out))
}

fn xid() -> Event {
    encoded(EventType::XID, |out| Xid(1).encode(out))
}

fn table() -> Event {
    let map = TableMap {
        table_id: 9,
        database: b"d".to_vec(),
        table: b"t".to_vec(),
        columns: vec![FieldType { code: code::TINY, meta: 0 }],
        nullable: vec![true],
        ..TableMap::default()
    };
    encoded(EventType::TABLE_MAP, |out| map.encode(Default::default(), out))
}

fn write_rows(rows: &[u8]) -> Event {
    encoded(EventType::WRITE_ROWS, |out| {
        put_rows_header(out, 9, 1, 1, &[&[1]]);
        rows.iter().for_each(|value| out.extend_from_slice(&[0, *value]));
    })
}

fn header(event_type: EventType) -> EventHeader {
    EventHeader { timestamp: 100, event_type, server_id: 3, size: 0, log_pos: 0, flags: 0 }
}

fn run(decoder: &mut EventDecoder, events: &[Event]) -> Result<Vec<String>, ApplyError> {
    let mut target = Recorder::default();
    let position = Position { channel: "c".into(), state: Vec::new() };
    for (event_type, body) in events {
        decoder.apply(&header(*event_type), body, &mut target, Some(&position))?;
    }
    Ok(target.said)
}

fn classes(events: &[Event]) -> Vec<Class> {
    let mut borders = Borders::default();
    events.iter().map(|(kind, body)| borders.classify(&header(*kind), body).unwrap()).collect()
}

#[test]
fn mysql_transactions_and_definitions() {
    let events = [
        gtid(1),
        query("BEGIN"),
        table(),
        write_rows(&[1, 2]),
        xid(),
        gtid(2),
        query("CREATE TABLE x (a INT)"),
    ];
    let uuid = "00000000-0000-0000-0000-000000000000";
    assert_eq!(
        run(&mut EventDecoder::default(), &events).unwrap(),
        [
            format!("begin {uuid}:1"),
            "Write t 2".into(),
            "commit c".into(),
            format!("begin {uuid}:2"),
            "CREATE TABLE x (a INT)".into(),
            "commit c".into()
        ]
    );
    let classes = classes(&events);
    assert!(matches!(classes[0], Class::Begin(_)));
    assert_eq!(classes[1..5], [Class::Inside, Class::Inside, Class::Inside, Class::End]);
    assert!(matches!(classes[5..], [Class::Begin(_), Class::End]));
}

#[test]
fn mariadb_gtid_stands_for_begin() {
    let context = encoded(EventType::INTVAR, |out| IntVar { kind: 2, value: 40 }.encode(out));
    let events = [
        mariadb_gtid(1, 0),
        context,
        query("INSERT INTO t VALUES (NULL)"),
        query("SAVEPOINT a"),
        query("COMMIT"),
        mariadb_gtid(2, MariadbGtidEvent::FLAG_STANDALONE),
        query("DROP TABLE t"),
    ];
    assert_eq!(
        run(&mut EventDecoder::default(), &events).unwrap(),
        [
            "begin 0-3-1",
            "INSERT INTO t VALUES (NULL) insert_id=40",
            "SAVEPOINT a",
            "commit c",
            "begin 0-3-2",
            "DROP TABLE t",
            "commit c"
        ]
    );
}

#[test]
fn old_logs_have_no_gtid_events() {
    let seeds = encoded(EventType::RAND, |out| Rand(3, 4).encode(out));
    let name = UserVar { name: b"v", value: UserVarValue::Null, collation: 63 };
    let events = [
        query("BEGIN"),
        query("DELETE FROM t"),
        query("COMMIT"),
        query("CREATE TABLE y (a INT)"),
        seeds,
        encoded(EventType::USER_VAR, |out| name.encode(out)),
        query("INSERT INTO y VALUES (RAND(), @v)"),
    ];
    assert_eq!(
        run(&mut EventDecoder::default(), &events).unwrap(),
        [
            "begin -",
            "DELETE FROM t",
            "commit c",
            "begin -",
            "CREATE TABLE y (a INT)",
            "commit c",
            "begin -",
            "INSERT INTO y VALUES (RAND(), @v) rand=(3, 4) @v",
            "commit c"
        ]
    );
    let classes = classes(&events);
    assert!(matches!(classes[3], Class::Single(_)));
    assert!(matches!(classes[4..], [Class::Begin(_), Class::Inside, Class::End]));
}

#[test]
fn a_transaction_rolled_back_at_its_source_leaves_its_identity() {
    let events = [mariadb_gtid(1, 0), query("INSERT INTO t VALUES (1)"), query("ROLLBACK")];
    assert_eq!(
        run(&mut EventDecoder::default(), &events).unwrap(),
        ["begin 0-3-1", "INSERT INTO t VALUES (1)", "rollback", "begin 0-3-1", "commit c"]
    );
}

#[test]
fn a_transaction_whose_end_never_comes_is_undone() {
    let events = [gtid(1), query("BEGIN"), table(), write_rows(&[1]), gtid(2), query("BEGIN"), xid()];
    let said = run(&mut EventDecoder::default(), &events).unwrap();
    assert_eq!(said[1..3], ["Write t 1", "rollback"]);
    assert_eq!(said.last().map(String::as_str), Some("commit c"));
}

#[test]
fn xa_ends_with_its_prepare() {
    let prepare = XaPrepare { one_phase: false, format_id: 1, gtrid: b"g", bqual: b"" };
    let events = [
        gtid(1),
        query("XA START X'67',X'',1"),
        table(),
        write_rows(&[1]),
        query("XA END X'67',X'',1"),
        encoded(EventType::XA_PREPARE, |out| prepare.encode(out)),
        gtid(2),
        query("XA COMMIT X'67',X'',1"),
    ];
    let said = run(&mut EventDecoder::default(), &events).unwrap();
    assert_eq!(said[1], "XA START X'67',X'',1");
    assert_eq!(said[4], "prepare g");
    assert_eq!(said[6..], ["XA COMMIT X'67',X'',1", "commit c"]);
}

#[test]
fn load_data_brings_its_file() {
    let block = |id: u32, data: &[u8]| {
        let mut body = id.to_le_bytes().to_vec();
        body.extend_from_slice(data);
        body
    };
    let sql = b"LOAD DATA INFILE 'f' INTO TABLE t";
    let mut execute = Vec::new();
    execute.extend_from_slice(&[0; 8]);
    execute.push(1);
    execute.extend_from_slice(&[0; 4]);
    execute.extend_from_slice(&4u32.to_le_bytes());
    execute.extend_from_slice(&10u32.to_le_bytes());
    execute.extend_from_slice(&20u32.to_le_bytes());
    execute.extend_from_slice(&[0, b'd', 0]);
    execute.extend_from_slice(sql);
    let events = [
        query("BEGIN"),
        (EventType::BEGIN_LOAD_QUERY, block(4, b"1\n2\n")),
        (EventType::APPEND_BLOCK, block(4, b"3\n")),
        (EventType::EXECUTE_LOAD_QUERY, execute),
        query("COMMIT"),
    ];
    let said = run(&mut EventDecoder::default(), &events).unwrap();
    assert_eq!(said[1], "LOAD DATA INFILE 'f' INTO TABLE t file=1\n2\n3\n");
    let early = [query("BEGIN"), (EventType::APPEND_BLOCK, block(4, b""))];
    assert_eq!(run(&mut EventDecoder::default(), &early).unwrap_err().code, 1594);
}

#[test]
fn compressed_events_are_what_they_stand_for() {
    let block = |plain: &[u8]| {
        let mut block = vec![0x81, plain.len() as u8];
        block.extend_from_slice(&miniz_oxide::deflate::compress_to_vec_zlib(plain, 6));
        block
    };
    let (_, mut rows) = write_rows(&[]);
    rows.extend_from_slice(&block(&[0, 1, 0, 2]));
    let (_, mut statement) = query("");
    statement.extend_from_slice(&block(b"DELETE FROM t"));
    let events = [
        mariadb_gtid(1, 0),
        table(),
        (EventType::MARIADB_WRITE_ROWS_COMPRESSED, rows),
        (EventType::MARIADB_QUERY_COMPRESSED, statement),
        xid(),
    ];
    let said = run(&mut EventDecoder::default(), &events).unwrap();
    assert_eq!(said, ["begin 0-3-1", "Write t 2", "DELETE FROM t", "commit c"]);
    assert!(
        inflate(&[0x84, 0xff, 0xff, 0xff, 0xff, 1], MAX_EVENT_SIZE).is_err(),
        "a length past every limit"
    );
    let mut lying = block(b"abc");
    lying[1] = 200;
    assert!(inflate(&lying, MAX_EVENT_SIZE).is_err(), "a length that is not the contents'");
}

#[test]
fn a_payload_is_a_whole_transaction() {
    let mut inner = Vec::new();
    for (event_type, body) in [query("BEGIN"), table(), write_rows(&[1]), xid()] {
        let header = EventHeader { size: 19 + body.len() as u32, ..header(event_type) };
        inner.extend_from_slice(&header.encode());
        inner.extend_from_slice(&body);
    }
    let mut payload = vec![2, 3, 0xfc, 255, 0, 0];
    payload.extend_from_slice(&inner);
    let events = [gtid(1), (EventType::TRANSACTION_PAYLOAD, payload)];
    let said = run(&mut EventDecoder::default(), &events).unwrap();
    assert_eq!(said[1..], ["Write t 1", "commit c"]);
}

#[test]
fn a_payload_may_be_a_zstd_frame() {
    let mut inner = Vec::new();
    for (event_type, body) in [query("BEGIN"), query("DELETE FROM t"), xid()] {
        let header = EventHeader { size: 19 + body.len() as u32, ..header(event_type) };
        inner.extend_from_slice(&header.encode());
        inner.extend_from_slice(&body);
    }
    // A frame of one segment with a one-byte content size and one raw block, which is the last.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x20, inner.len() as u8];
    let block = (inner.len() as u32) << 3 | 1;
    frame.extend_from_slice(&block.to_le_bytes()[..3]);
    frame.extend_from_slice(&inner);
    let head = [2, 1, 0, 1, 1, frame.len() as u8, 0];
    let payload = [&head[..], &frame].concat();
    let said =
        run(&mut EventDecoder::default(), &[gtid(1), (EventType::TRANSACTION_PAYLOAD, payload)]).unwrap();
    assert_eq!(said[1..], ["DELETE FROM t", "commit c"]);
    // No block has this type.
    frame[6] |= 6;
    let damaged = [&head[..], &frame].concat();
    let result = run(&mut EventDecoder::default(), &[gtid(1), (EventType::TRANSACTION_PAYLOAD, damaged)]);
    assert!(result.is_err(), "{result:?}");
}

/// Bytes of a peer never panic: every body is cut at every length and flipped at every byte.
#[test]
fn damage_is_an_error_or_harmless() {
    let prepare = XaPrepare { one_phase: false, format_id: 1, gtrid: b"g", bqual: b"b" };
    let events = [
        gtid(1),
        mariadb_gtid(1, 66),
        query("BEGIN"),
        table(),
        write_rows(&[1]),
        encoded(EventType::XA_PREPARE, |out| prepare.encode(out)),
        (EventType::EXECUTE_LOAD_QUERY, vec![0; 40]),
        (EventType::TRANSACTION_PAYLOAD, vec![2, 1, 0, 0, 1, 2, 3]),
        (EventType::MARIADB_QUERY_COMPRESSED, vec![0; 20]),
        (EventType::INCIDENT, vec![1, 0, 3, b'a', b'b', b'c']),
    ];
    for (event_type, body) in &events {
        for cut in 0..body.len() {
            let mut flipped = body.clone();
            flipped[cut] ^= 0xff;
            for body in [&body[..cut], &flipped] {
                let mut decoder = EventDecoder::default();
                let _ = run(&mut decoder, &[gtid(1), query("BEGIN"), table()]);
                let _ = run(&mut decoder, &[(*event_type, body.to_vec())]);
            }
        }
    }
}

#[test]
fn an_alter_in_two_phases_is_applied_once_and_both_identities_are() {
    let path =
        std::env::var("CARGO_MANIFEST_DIR").unwrap() + "/../../testdata/binlog/mariadb-11.8/bin.000002";
    let bytes = std::fs::read(path).unwrap();
    let events = omnibus_format::EventIter::of_file(&bytes, Default::default()).unwrap();
    let mut target = Recorder::default();
    let mut decoder = EventDecoder::default();
    let position = Position { channel: "c".into(), state: Vec::new() };
    for event in events.map(Result::unwrap) {
        decoder.apply(&event.header, event.body, &mut target, Some(&position)).unwrap();
    }
    let altered = target.said.iter().filter(|said| said.contains("alter table nopk")).count();
    let begun = target.said.iter().filter(|said| said.starts_with("begin 0-1-")).count();
    assert_eq!((altered, begun), (2, 15), "{:#?}", target.said);
}
