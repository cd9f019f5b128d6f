//! Events of servers before 5.0, put together byte by byte from their documented layout.

use crate::describe::summary;
use crate::events::*;
use crate::{EventHeader, EventIter, EventType, RawEvent, ScanRules};

fn event(out: &mut Vec<u8>, kind: EventType, body: &[u8]) {
    let at = out.len() as u32;
    out.extend_from_slice(&1_000_000_000u32.to_le_bytes());
    out.push(kind.0);
    out.extend_from_slice(&7u32.to_le_bytes());
    out.extend_from_slice(&(19 + body.len() as u32).to_le_bytes());
    // Where the event begins, in version 3.
    out.extend_from_slice(&at.to_le_bytes());
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(body);
}

fn load_body(create: Option<u32>) -> Vec<u8> {
    let mut body = Vec::new();
    for n in [5u32, 2, 1] {
        body.extend_from_slice(&n.to_le_bytes());
    }
    body.extend_from_slice(&[1, 4]); // lengths of `t` and `shop`
    body.extend_from_slice(&2u32.to_le_bytes());
    if let Some(id) = create {
        body.extend_from_slice(&id.to_le_bytes());
    }
    if create.is_some() {
        body.extend_from_slice(b"\x01,\x01\"\x01\n\x00\x01\\");
        body.push(2 | 4);
    } else {
        body.extend_from_slice(b",\"\nx\\");
        body.extend_from_slice(&[8, 8]); // IGNORE; STARTING BY is empty
    }
    body.extend_from_slice(&[1, 2]);
    body.extend_from_slice(b"a\0b`\0t\0shop\0/tmp/f\0");
    if create.is_some() {
        body.extend_from_slice(b"1,2\n");
    }
    body
}

/// A file of version 3.
fn file() -> Vec<u8> {
    let mut out = crate::MAGIC.to_vec();
    let mut start = 3u16.to_le_bytes().to_vec();
    let mut version = [0; 50];
    version[..6].copy_from_slice(b"4.0.30");
    start.extend_from_slice(&version);
    start.extend_from_slice(&[0; 4]);
    event(&mut out, EventType::START_V3, &start);
    let mut query = Vec::new();
    query.extend_from_slice(&9u32.to_le_bytes());
    query.extend_from_slice(&0u32.to_le_bytes());
    query.push(4);
    query.extend_from_slice(&[0, 0]);
    query.extend_from_slice(b"shop\0DELETE FROM t");
    event(&mut out, EventType::QUERY, &query);
    event(&mut out, EventType::CREATE_FILE, &load_body(Some(3)));
    event(&mut out, EventType::APPEND_BLOCK, b"\x03\0\0\x003,4\n");
    event(&mut out, EventType::EXEC_LOAD, &3u32.to_le_bytes());
    event(&mut out, EventType::LOAD, &load_body(None));
    event(&mut out, EventType::SLAVE, b"\x04\0\0\0\0\0\0\0\xea\x0ahost\0log.001\0");
    event(&mut out, EventType::ROTATE, b"\x04\0\0\0\0\0\0\0log.002");
    out
}

#[test]
fn a_file_of_version_3_is_read_and_described() {
    let file = file();
    let mut modern = Modern::default();
    let mut lines = Vec::new();
    for event in EventIter::of_file(&file, ScanRules::default()).unwrap() {
        let event = event.unwrap();
        let body = modern.body(&event.header, event.body);
        lines.push(summary(&RawEvent { body: &body, ..event }).unwrap());
    }
    assert_eq!(
        lines,
        [
            "server 4.0.30, binlog v3, checksums none",
            "use `shop`; DELETE FROM t",
            "file 3, 4 bytes: use `shop`; LOAD DATA INFILE '/tmp/f' REPLACE INTO TABLE `t` FIELDS TERMINATED BY ',' \
             OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '\\\\' LINES TERMINATED BY '\\n' IGNORE 1 LINES (`a`, `b```)",
            "file 3, 4 bytes",
            "file 3",
            "use `shop`; LOAD DATA INFILE '/tmp/f' IGNORE INTO TABLE `t` FIELDS TERMINATED BY ',' ENCLOSED BY '\"' \
             ESCAPED BY '\\\\' LINES TERMINATED BY '\\n' IGNORE 1 LINES (`a`, `b```)",
            "source host:2794, log.001 at 4",
            "to log.002 at 4",
        ]
    );
    let body = load_body(Some(3));
    let load = OldLoad::decode(EventType::CREATE_FILE, &body).unwrap();
    let (sql, (from, to)) = load.statement();
    assert_eq!(&sql[from as usize..to as usize], b"INFILE '/tmp/f' REPLACE INTO");
    assert_eq!((load.data, load.duplicate_handling()), (&b"1,2\n"[..], 2));
}

#[test]
fn cut_events_are_errors() {
    for (kind, body) in [(EventType::CREATE_FILE, load_body(Some(3))), (EventType::LOAD, load_body(None))] {
        let names = body.len() - if kind == EventType::LOAD { 7 } else { 11 };
        for len in 0..names {
            assert!(OldLoad::decode(kind, &body[..len]).is_err(), "{len}");
        }
    }
    // A length that no event can hold.
    let mut body = load_body(None);
    body[14..18].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(OldLoad::decode(EventType::LOAD, &body).is_err());
    assert!(StartV3::decode(&[3, 0]).is_err());
    assert!(SlaveStart::decode(&[0; 10]).is_err());
    let short = EventHeader::decode(&file()[4..]).unwrap();
    assert_eq!(&*Modern::default().body(&short, b"x"), b"x");
}

#[test]
fn rows_before_version_1_have_one_bitmap() {
    let mut body = 4u64.to_le_bytes()[..6].to_vec();
    body.extend_from_slice(&[1, 0, 2, 0b11]);
    body.extend_from_slice(b"before and after");
    let rows = Rows::decode(EventType::PRE_GA_UPDATE_ROWS, &body).unwrap();
    assert_eq!((rows.kind, rows.before, rows.after), (RowsKind::Update, &[3u8][..], &[3u8][..]));
    assert_eq!((rows.table_id, rows.rows), (4, &b"before and after"[..]));
    assert!(EventType::PRE_GA_WRITE_ROWS.is_rows());
}
