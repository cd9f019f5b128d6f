//! One-line descriptions of events, made here and from the files of a real server.

use crate::describe::{info, summary};
use crate::events::*;
use crate::writer::write_final;
use crate::{Checksum, EventContext, EventIter, EventType, RawEvent, ScanRules, ServerUuid, parse_event};

fn with_event(kind: EventType, encode: impl FnOnce(&mut Vec<u8>), check: impl FnOnce(&RawEvent<'_>)) {
    let mut bytes = Vec::new();
    let context = EventContext { timestamp: 0, server_id: 1 };
    write_final(&mut bytes, context, kind, 0, 4, Checksum::Crc32, encode);
    let rules = ScanRules { checksum: Checksum::Crc32, ..ScanRules::default() };
    // A format description that makes no sense is no event at all.
    if let Ok(Some(event)) = parse_event(&bytes, 4, &rules) {
        check(&event);
    }
}

fn line(kind: EventType, encode: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut text = String::new();
    with_event(kind, encode, |event| text = info(event).unwrap());
    text
}

#[test]
fn info_is_worded_as_show_binlog_events_words_it() {
    let uuid = ServerUuid([9; 16]);
    let gtid = Gtid { uuid, gno: 7, ..Gtid::default() };
    let expected = format!("SET @@SESSION.GTID_NEXT= '{uuid}:7'");
    assert_eq!(line(EventType::GTID, |out| gtid.encode(out)), expected);
    let query =
        |database, sql| Query { thread_id: 1, exec_time: 0, error_code: 0, status: &[], database, sql };
    assert_eq!(
        line(EventType::QUERY, |out| query(b"a`b", b"DROP TABLE t").encode(out)),
        "use `a``b`; DROP TABLE t"
    );
    assert_eq!(line(EventType::QUERY, |out| query(b"d", b"BEGIN").encode(out)), "BEGIN");
    let long = "x".repeat(5000);
    assert_eq!(line(EventType::QUERY, |out| query(b"", long.as_bytes()).encode(out)), long, "never cut");
    let prepare = |one_phase| XaPrepare { one_phase, format_id: 7, gtrid: b"g\xff", bqual: b"" };
    assert_eq!(line(EventType::XA_PREPARE, |out| prepare(false).encode(out)), "XA PREPARE X'67ff',X'',7");
    assert_eq!(
        line(EventType::XA_PREPARE, |out| prepare(true).encode(out)),
        "XA COMMIT X'67ff',X'',7 ONE PHASE"
    );
    assert_eq!(line(EventType::XID, |out| Xid(12).encode(out)), "COMMIT /* xid=12 */");
    let rotate = Rotate { position: 4, file: b"binlog.000002" };
    assert_eq!(line(EventType::ROTATE, |out| rotate.encode(out)), "binlog.000002;pos=4");
    assert_eq!(line(EventType::ROWS_QUERY, |out| RowsQuery(b"UPDATE t").encode(out)), "# UPDATE t");
    assert_eq!(line(EventType::STOP, |_| {}), "");
    let format = FormatDescription::new("8.4.0-omnibus", 0, Checksum::Crc32);
    let text = line(EventType::FORMAT_DESCRIPTION, |out| format.encode(out));
    assert_eq!(text, "Server ver: 8.4.0-omnibus, Binlog ver: 4");
    let none = line(EventType::PREVIOUS_GTIDS, |out| PreviousGtids::default().encode(out));
    assert_eq!(none, "");
    assert_eq!(
        line(EventType::IGNORABLE, |out| out.extend(b"OMNI\xc9\x01\x05\0\0\0\0\0\0\0")),
        "file begins with commit 5"
    );
}

#[test]
fn every_event_of_a_real_server_has_both_lines() {
    let path = std::env::var("CARGO_MANIFEST_DIR").unwrap() + "/../../testdata/binlog/mariadb-crc32.binlog";
    let bytes = std::fs::read(path).unwrap();
    let mut lines = Vec::new();
    for event in EventIter::of_file(&bytes, ScanRules::default()).unwrap() {
        let event = event.unwrap();
        // MariaDB's map of a table with GEOMETRY reads only in its own dialect.
        if event.header.event_type == EventType::TABLE_MAP {
            continue;
        }
        lines.push((info(&event).unwrap(), summary(&event).unwrap()));
    }
    assert!(lines.len() > 20);
    for part in
        ["Server ver: 10.11", "COMMIT /* xid=", "flags: STMT_END_F", "@`word`=\"hello\"", "INSERT_ID=1"]
    {
        assert!(lines.iter().any(|(info, _)| info.contains(part)), "{part}");
    }
}

#[test]
fn a_body_cut_short_is_an_error_and_no_panic() {
    for kind in 0..=180 {
        for len in 0..40 {
            with_event(
                EventType(kind),
                |out| out.resize(out.len() + len, 0x3f),
                |event| {
                    let _ = (info(event), summary(event));
                },
            );
        }
    }
}
