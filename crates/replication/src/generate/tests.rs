//! Row events made here, read back by the decoder of `omnibus_format`.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use bytes::Bytes;
use omnibus_format::events::{ROWS_FLAG_STMT_END, Rows, TableMap};
use omnibus_format::header::HEADER_LEN;
use omnibus_format::row::Images;
use omnibus_format::{EventType, Private, RowShape, ScanRules, parse_event};
use omnibus_value::{ColumnKind, ColumnType, Value};

use super::*;

fn column(kind: ColumnKind, length: u32) -> ColumnType {
    ColumnType {
        kind,
        unsigned: false,
        zerofill: false,
        length,
        decimals: 0,
        collation: 45,
        labels: Arc::new([]),
    }
}

/// id INT primary key, name VARCHAR(100), note TEXT.
fn table(id: u64) -> Arc<TableDef> {
    let builder = TableDef::builder(id, b"db", format!("t{id}").as_bytes())
        .column(b"id", &column(ColumnKind::Int, 11), false)
        .column(b"name", &column(ColumnKind::VarChar, 100), true)
        .column(b"note", &column(ColumnKind::Text, 0), true);
    Arc::new(builder.primary_key([(0, 0)]).build())
}

fn row(table: &TableDef, id: i64, name: &str, note: Option<&str>) -> Vec<u8> {
    let text = |s: &str| Value::Bytes(Bytes::copy_from_slice(s.as_bytes()));
    table.shape().encode_row(&[Value::Int(id), text(name), note.map_or(Value::Null, text)]).unwrap()
}

/// Type, flags and body of each cached event.
fn events(mut bytes: &[u8]) -> Vec<(EventType, u16, Vec<u8>)> {
    let rules = ScanRules {
        checksum: omnibus_format::Checksum::None,
        verify_position: false,
        ..ScanRules::default()
    };
    let mut events = Vec::new();
    while let Some(event) = parse_event(bytes, 0, &rules).unwrap() {
        events.push((event.header.event_type, event.header.flags, event.body.to_vec()));
        bytes = &bytes[event.bytes.len()..];
    }
    events
}

fn types(events: &[(EventType, u16, Vec<u8>)]) -> Vec<&'static str> {
    events.iter().map(|(t, _, _)| t.name()).collect()
}

type Decoded = (Option<Vec<Option<Value>>>, Option<Vec<Option<Value>>>);

fn changes(body: &[u8], event_type: EventType, shape: &RowShape) -> Vec<Decoded> {
    let rows = Rows::decode(event_type, body).unwrap();
    Images::new(rows, shape)
        .unwrap()
        .map(|change| {
            let change = change.unwrap();
            let decode = |image: omnibus_format::row::RowImage<'_>| image.decode(shape).unwrap();
            (change.before.map(decode), change.after.map(decode))
        })
        .collect()
}

fn is_last(event: &(EventType, u16, Vec<u8>)) -> bool {
    Rows::decode(event.0, &event.2).unwrap().flags & ROWS_FLAG_STMT_END != 0
}

#[test]
fn a_statement_is_query_map_and_rows_with_the_end_flag_on_the_last() {
    let t = table(1);
    let mut builder = RowsBuilder::new(RowsOptions { rows_query: true, ..RowsOptions::default() });
    let mut sink = VecSink::new(1, 2);
    builder.begin_statement(b"update t1 ...");
    for id in 0..400 {
        let (old, new) = (row(&t, id, "old", Some("n")), row(&t, id, "new", Some("n")));
        builder.update(&mut sink, &t, &old, &new, None).unwrap();
    }
    builder.end_statement(&mut sink).unwrap();
    let events = events(&sink.bytes);
    assert_eq!(types(&events)[..3], ["Rows_query", "Table_map", "Update_rows"]);
    assert_eq!(TableMap::decode(&events[1].2).unwrap().table, b"t1");
    let last = events.len() - 1;
    assert!(events.len() > 3);
    let mut count = 0;
    for (i, event) in events.iter().enumerate().skip(2) {
        assert_eq!(is_last(event), i == last);
        assert!(event.2.len() + HEADER_LEN < 8192 + 64);
        count += changes(&event.2, event.0, t.shape()).len();
    }
    assert_eq!(count, 400);
}

#[test]
fn full_images_are_byte_copies_of_the_rows() {
    let t = table(1);
    let mut builder = RowsBuilder::default();
    let mut sink = VecSink::new(1, 2);
    builder.begin_statement(b"");
    let (old, new) = (row(&t, 1, "a", None), row(&t, 1, "b", Some("x")));
    builder.set_options(RowsOptions::default());
    builder.update(&mut sink, &t, &old, &new, None).unwrap();
    builder.end_statement(&mut sink).unwrap();
    let events = events(&sink.bytes);
    let rows = Rows::decode(events[1].0, &events[1].2).unwrap();
    assert_eq!(rows.rows, [old, new].concat());
}

#[test]
fn minimal_images_hold_the_key_and_the_changed_columns() {
    let t = table(1);
    let options = RowsOptions { image: RowImageMode::Minimal, ..RowsOptions::default() };
    let mut builder = RowsBuilder::new(options);
    let mut sink = VecSink::new(1, 2);
    builder.begin_statement(b"");
    let old = row(&t, 1, "a", Some("n"));
    builder.update(&mut sink, &t, &old, &row(&t, 1, "b", Some("n")), None).unwrap();
    builder.update(&mut sink, &t, &old, &row(&t, 1, "a", None), None).unwrap();
    builder.delete(&mut sink, &t, &old, None).unwrap();
    builder.end_statement(&mut sink).unwrap();
    let events = events(&sink.bytes);
    // Another set of changed columns needs another event.
    assert_eq!(types(&events), ["Table_map", "Update_rows", "Update_rows", "Delete_rows"]);
    let shown: Vec<String> = events[1..]
        .iter()
        .map(|e| format!("{:?}", changes(&e.2, e.0, t.shape()).remove(0)).replace("Some", ""))
        .collect();
    assert_eq!(shown[0], "(([(Int(1)), None, None]), ([None, (Bytes(b\"b\")), None]))");
    assert_eq!(shown[1], "(([(Int(1)), None, None]), ([None, None, (Null)]))");
    assert_eq!(shown[2], "(([(Int(1)), None, None]), None)");
}

#[test]
fn noblob_images_leave_out_unchanged_blobs() {
    let t = table(1);
    let options = RowsOptions { image: RowImageMode::NoBlob, ..RowsOptions::default() };
    let mut builder = RowsBuilder::new(options);
    let mut sink = VecSink::new(1, 2);
    builder.begin_statement(b"");
    let old = row(&t, 1, "a", Some("n"));
    builder.update(&mut sink, &t, &old, &row(&t, 1, "b", Some("n")), None).unwrap();
    builder.update(&mut sink, &t, &old, &row(&t, 1, "b", Some("m")), None).unwrap();
    builder.end_statement(&mut sink).unwrap();
    let events = events(&sink.bytes);
    let present = |e: &(EventType, u16, Vec<u8>)| {
        let rows = Rows::decode(e.0, &e.2).unwrap();
        (rows.before[0] & 7, rows.after[0] & 7)
    };
    assert_eq!((present(&events[1]), present(&events[2])), ((3, 3), (3, 7)));
}

#[test]
fn tables_and_kinds_alternate_in_closed_groups() {
    let (a, b) = (table(1), table(2));
    let mut builder = RowsBuilder::default();
    builder.set_options(RowsOptions::default());
    let mut sink = VecSink::new(1, 2);
    builder.begin_statement(b"");
    builder.write(&mut sink, &a, &row(&a, 1, "x", None), None).unwrap();
    builder.delete(&mut sink, &a, &row(&a, 2, "x", None), None).unwrap();
    builder.write(&mut sink, &b, &row(&b, 1, "x", None), None).unwrap();
    builder.end_statement(&mut sink).unwrap();
    let events = events(&sink.bytes);
    assert_eq!(types(&events), ["Table_map", "Write_rows", "Delete_rows", "Table_map", "Write_rows"]);
    assert_eq!([1, 2, 4].map(|i| is_last(&events[i])), [false, true, true]);
}

#[test]
fn hidden_row_ids_travel_ahead_of_their_rows() {
    let t = table(1);
    let mut builder = RowsBuilder::default();
    builder.set_options(RowsOptions::default());
    let mut sink = VecSink::new(1, 2);
    builder.begin_statement(b"");
    for id in [7, 8, 3] {
        builder.write(&mut sink, &t, &row(&t, 1, "x", None), Some(id)).unwrap();
    }
    builder.end_statement(&mut sink).unwrap();
    let events = events(&sink.bytes);
    assert_eq!(types(&events), ["Table_map", "Ignorable", "Write_rows"]);
    let Some(Private::RowIds(ids)) = Private::decode(&events[1].2).unwrap() else { panic!() };
    assert_eq!(ids.iter().collect::<Vec<_>>(), [7, 8, 3]);
}

#[test]
fn a_discarded_statement_leaves_nothing_for_the_next() {
    let t = table(1);
    let mut builder = RowsBuilder::new(RowsOptions { rows_query: true, ..RowsOptions::default() });
    let mut sink = VecSink::new(1, 2);
    builder.begin_statement(b"first");
    builder.write(&mut sink, &t, &row(&t, 1, "x", None), None).unwrap();
    builder.discard();
    sink.bytes.clear();
    builder.end_statement(&mut sink).unwrap();
    assert!(sink.bytes.is_empty());
    builder.begin_statement(b"second");
    builder.write(&mut sink, &t, &row(&t, 2, "x", None), None).unwrap();
    builder.end_statement(&mut sink).unwrap();
    let events = events(&sink.bytes);
    assert_eq!(events[0].2, b"\x06second");
    assert_eq!(changes(&events[2].2, events[2].0, t.shape()).len(), 1);
}

#[test]
fn damaged_images_are_refused() {
    let t = table(1);
    let options = RowsOptions { image: RowImageMode::Minimal, ..RowsOptions::default() };
    let mut builder = RowsBuilder::new(options);
    let mut sink = VecSink::new(1, 2);
    builder.begin_statement(b"");
    let good = row(&t, 1, "x", None);
    for cut in 0..good.len() {
        let result = builder.update(&mut sink, &t, &good[..cut], &good, None);
        assert!(matches!(result, Err(GenerateError::BadImage(_))), "cut {cut}");
    }
}
