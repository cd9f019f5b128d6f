//! Binlogs written by a real MariaDB server (`testdata/binlog/make-mariadb.sh`), decoded, checked
//! for their contents, and encoded again byte for byte.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use omnibus_format::events::*;
use omnibus_format::row::{Images, RowShape};
use omnibus_format::{Checksum, EventIter, EventType, RawEvent, ScanRules};
use omnibus_value::Value;

fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/../../testdata/binlog/{name}", std::env::var("CARGO_MANIFEST_DIR").unwrap());
    std::fs::read(path).unwrap()
}

fn events(bytes: &[u8]) -> Vec<RawEvent<'_>> {
    EventIter::of_file(bytes, ScanRules::default()).unwrap().map(|event| event.unwrap()).collect()
}

/// Decodes and encodes again; `None` for types that are not encoded here.
fn again(event: &RawEvent<'_>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let body = event.body;
    match event.header.event_type {
        EventType::FORMAT_DESCRIPTION => FormatDescription::decode(body).unwrap().encode(&mut out),
        EventType::QUERY => {
            let query = Query::decode(body).unwrap();
            let vars = query.status_vars().unwrap();
            assert!(vars.unknown.is_empty() || vars.unknown[0] >= 128, "{:?}", vars.unknown);
            query.encode(&mut out);
        }
        EventType::XID => Xid::decode(body).unwrap().encode(&mut out),
        EventType::ROTATE => Rotate::decode(body).unwrap().encode(&mut out),
        EventType::INTVAR => IntVar::decode(body).unwrap().encode(&mut out),
        EventType::RAND => Rand::decode(body).unwrap().encode(&mut out),
        EventType::USER_VAR => UserVar::decode(body).unwrap().encode(&mut out),
        EventType::MARIADB_GTID => MariadbGtidEvent::decode(body).unwrap().encode(&mut out),
        EventType::MARIADB_GTID_LIST => MariadbGtidList::decode(body).unwrap().encode(&mut out),
        _ => return None,
    }
    Some(out)
}

#[test]
fn every_event_decodes_and_encodes_to_the_same_bytes() {
    for (name, checksum) in
        [("mariadb-crc32.binlog", Checksum::Crc32), ("mariadb-none.binlog", Checksum::None)]
    {
        let bytes = fixture(name);
        let mut iter = EventIter::of_file(&bytes, ScanRules::default()).unwrap();
        let mut same = 0;
        for event in iter.by_ref() {
            let event = event.unwrap();
            if let Some(encoded) = again(&event) {
                assert_eq!(encoded, event.body, "{name} {:?}", event.header);
                same += 1;
            }
        }
        assert_eq!((iter.offset(), iter.checksum()), (bytes.len() as u64, checksum));
        assert!(same >= 6, "{name}: {same}");
    }
}

#[test]
fn table_metadata_is_what_the_table_was_created_with() {
    let bytes = fixture("mariadb-crc32.binlog");
    let event = events(&bytes).into_iter().find(|e| e.header.event_type == EventType::TABLE_MAP).unwrap();
    let map = TableMap::decode_dialect(event.body, true).unwrap();
    assert_eq!((map.database.as_slice(), map.table.as_slice()), (&b"shop"[..], &b"kinds"[..]));
    assert_eq!(map.primary_key, [PrimaryKeyPart { column: 0, prefix: 0 }]);
    let by_name: BTreeMap<&[u8], &ColumnMetadata> =
        map.metadata.iter().map(|m| (m.name.as_deref().unwrap(), m)).collect();
    let unsigned: Vec<_> =
        by_name.iter().filter(|(_, m)| m.unsigned == Some(true)).map(|(n, _)| *n).collect();
    // MariaDB says that YEAR is unsigned; MySQL that it is not.
    assert_eq!(unsigned, [&b"b"[..], b"id", b"s", b"y"]);
    assert_eq!(by_name[&b"v"[..]].collation, Some(8));
    assert_eq!(by_name[&b"bn"[..]].collation, Some(63));
    assert_eq!(by_name[&b"c"[..]].collation, by_name[&b"e"[..]].collation);
    assert_eq!(by_name[&b"st"[..]].labels, [b"a", b"b", b"c"]);
    assert_eq!(by_name[&b"g"[..]].geometry_type, Some(1));
    assert_eq!(map.nullable.iter().filter(|n| !**n).count(), 1);
}

/// `before` and `after` of every row, as text, in the order of the log.
fn changes(bytes: &[u8]) -> Vec<(RowsKind, String, String)> {
    let mut shape = RowShape::default();
    let mut found = Vec::new();
    for event in events(bytes) {
        if event.header.event_type == EventType::TABLE_MAP {
            shape = RowShape::of_table_map(&TableMap::decode_dialect(event.body, true).unwrap());
        }
        if !event.header.event_type.is_rows() {
            continue;
        }
        let rows = Rows::decode(event.header.event_type, event.body).unwrap();
        for change in Images::new(rows, &shape).unwrap() {
            let change = change.unwrap();
            let text = |image: Option<omnibus_format::row::RowImage<'_>>| {
                let Some(image) = image else { return String::new() };
                let values = image.decode(&shape).unwrap();
                if image.is_full(&shape) {
                    let full: Vec<Value> = values.iter().map(|v| v.clone().unwrap()).collect();
                    // MariaDB sets the unused bits of the null bitmap, MySQL 8 and we do not.
                    let mut bytes = image.bytes.to_vec();
                    bytes[shape.null_bytes() - 1] &= (1 << (shape.len() % 8)) - 1;
                    assert_eq!(shape.encode_row(&full).unwrap(), bytes);
                }
                let show = |v: &Option<Value>| v.as_ref().map_or("-".to_owned(), |v| format!("{v:?}"));
                values.iter().map(show).collect::<Vec<_>>().join(" ")
            };
            found.push((rows.kind, text(change.before), text(change.after)));
        }
    }
    found
}

#[test]
fn row_images_decode_to_the_values_inserted_and_encode_to_the_same_bytes() {
    let found = changes(&fixture("mariadb-crc32.binlog"));
    let kinds: Vec<_> = found.iter().map(|(kind, _, _)| *kind).collect();
    assert_eq!(
        kinds,
        [RowsKind::Write, RowsKind::Write, RowsKind::Update, RowsKind::Delete, RowsKind::Update]
    );
    let first = &found[0].2;
    let start =
        "UInt(1) Int(-128) UInt(65535) Int(-8388608) UInt(18446744073709551615) Float(1.5) Double(-2.25)";
    assert!(first.starts_with(start), "{first}");
    for part in
        ["Bit(6844)", "Year(2024)", "Bytes(b\"ch\\xc3\\xa4r\")", "Bytes(b\"ab\\0\\0\")", "Enum(2) Set(5)"]
    {
        assert!(first.contains(part), "{part} in {first}");
    }
    assert!(found[2].2.contains("Bytes(b\"\\xe9\")"), "latin1 stays latin1: {}", found[2].2);
    // binlog_row_image = MINIMAL.
    assert_eq!(found[4].1.matches('-').count(), 24);
    assert!(found[4].2.ends_with("- Int(9)"), "{}", found[4].2);
}

#[test]
fn files_of_newer_servers_are_whole_though_positions_are_left_out() {
    for name in 1..=4 {
        let bytes = fixture(&format!("mariadb-11.8/bin.00000{name}"));
        let found = events(&bytes);
        assert!(found.iter().any(|event| event.header.log_pos == 0), "{name}");
        let last = found.last().unwrap();
        assert_eq!((last.header.event_type, last.end()), (EventType::ROTATE, bytes.len() as u64), "{name}");
    }
}

#[test]
fn a_position_that_is_left_out_is_damage_in_a_file_of_this_server() {
    let mut bytes = fixture("mariadb-11.8/bin.000004");
    let at = bytes.windows(6).position(|window| window == b"11.8.6").unwrap();
    bytes[at..at + 50].fill(0);
    bytes[at..at + 22].copy_from_slice(b"11.4.5-MariaDB-omnibus");
    let size = u32::from_le_bytes(bytes[13..17].try_into().unwrap()) as usize;
    let crc = crc32fast::hash(&bytes[4..size]);
    bytes[size..size + 4].copy_from_slice(&crc.to_le_bytes());
    let damage = EventIter::of_file(&bytes, ScanRules::default()).unwrap().find_map(Result::err).unwrap();
    assert!(damage.to_string().contains("end position 0"), "{damage}");
}

#[test]
fn phases_of_an_alter() {
    let bytes = fixture("mariadb-11.8/bin.000002");
    let phases: Vec<_> = events(&bytes)
        .iter()
        .filter(|event| event.header.event_type == EventType::MARIADB_GTID)
        .filter_map(|event| MariadbGtidEvent::alter_phase(event.body).unwrap())
        .collect();
    let commit = |start| AlterPhase::Commit { start };
    assert_eq!(phases, [AlterPhase::Start, commit(38), AlterPhase::Start, commit(40)]);
}
