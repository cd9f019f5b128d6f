//! Fields and rows: golden bytes, round trips of every type, and hostile input.

use bytes::Bytes;
use omnibus_value::decimal::Decimal;
use omnibus_value::{ColumnKind, ColumnType, Value, temporal};
use proptest::prelude::*;

use crate::cursor::Reader;
use crate::event_type::EventType;
use crate::events::{Rows, put_rows_header};
use crate::field::{FieldType, code, encode_field};
use crate::row::{Bitmap, Images, RowShape, project};

fn column(kind: ColumnKind, length: u32, decimals: u8, collation: u16) -> ColumnType {
    ColumnType {
        kind,
        unsigned: false,
        zerofill: false,
        length,
        decimals,
        collation,
        labels: std::sync::Arc::new([]),
    }
}

fn text(s: &str) -> Value {
    Value::Bytes(Bytes::copy_from_slice(s.as_bytes()))
}

/// Field bytes of a value in a column.
fn field(kind: ColumnKind, length: u32, decimals: u8, collation: u16, value: Value) -> Vec<u8> {
    let shape = RowShape::new([&column(kind, length, decimals, collation)]);
    shape.encode_row(&[value]).unwrap()[1..].to_vec()
}

#[test]
fn fields_have_mysqls_bytes() {
    use ColumnKind::*;
    assert_eq!(field(MediumInt, 0, 0, 63, Value::Int(-2)), [0xfe, 0xff, 0xff]);
    assert_eq!(field(Bit, 10, 0, 63, Value::Bit(0x2a5)), [0x02, 0xa5]);
    assert_eq!(field(Year, 4, 0, 63, Value::Year(2155)), [255]);
    assert_eq!(field(VarChar, 63, 0, 45, text("a")), [1, b'a']);
    assert_eq!(field(VarChar, 64, 0, 45, text("a")), [1, 0, b'a']);
    assert_eq!(field(Char, 255, 0, 45, text("a")), [1, 0, b'a']);
    assert_eq!(field(Char, 255, 0, 8, text("a")), [1, b'a']);
    assert_eq!(field(MediumBlob, 0, 0, 63, text("a")), [1, 0, 0, b'a']);
    // The example of MySQL's own documentation: 1234567890.1234 in DECIMAL(14,4).
    let decimal = Value::Decimal(omnibus_value::decimal::Decimal::parse(b"1234567890.1234").value);
    assert_eq!(field(Decimal, 14, 4, 63, decimal), [0x81, 0x0d, 0xfb, 0x38, 0xd2, 0x04, 0xd2]);
    let date = Value::Date(temporal::Date::from_ymd(2024, 2, 29).unwrap());
    assert_eq!(field(Date, 0, 0, 63, date), [0x5d, 0xd0, 0x0f]);
}

#[test]
fn binary_columns_lose_trailing_zeros_in_storage_only() {
    let shape = RowShape::new([&column(ColumnKind::Binary, 4, 0, 63)]);
    let row = shape.encode_row(&[Value::Bytes(Bytes::from_static(b"a\0b\0"))]).unwrap();
    assert_eq!(row, [0, 3, b'a', 0, b'b']);
    let Value::Bytes(back) = shape.column(&row.into(), 0).unwrap() else { panic!() };
    assert_eq!(back, &b"a\0b\0"[..]);
}

#[test]
fn values_that_do_not_fit_are_errors_and_leave_no_bytes() {
    let shape = RowShape::new([
        &column(ColumnKind::Int, 0, 0, 63),
        &column(ColumnKind::VarChar, 3, 0, 8),
        &column(ColumnKind::TinyBlob, 0, 0, 63),
        &column(ColumnKind::Bit, 3, 0, 63),
    ]);
    let good = [Value::Int(1), text("abc"), text("x"), Value::Bit(7)];
    let mut out = vec![9];
    for (i, bad) in [Value::Int(1 << 31), text("abcd"), Value::Bytes(vec![0; 256].into()), Value::Bit(8)]
        .into_iter()
        .enumerate()
    {
        let mut row = good.clone();
        row[i] = bad;
        assert_eq!(shape.encode_row_into(&row, &mut out).unwrap_err().column, i);
        assert_eq!(out, [9]);
    }
    assert!(shape.encode_row_into(&good[..3], &mut out).is_err());
    shape.encode_row_into(&good, &mut out).unwrap();
}

/// A column of every kind with any value that fits it.
fn any_column() -> impl Strategy<Value = (FieldType, bool, Value)> {
    let ints =
        [(code::TINY, 8), (code::SHORT, 16), (code::INT24, 24), (code::LONG, 32), (code::LONGLONG, 64)];
    let int = (prop::sample::select(ints.to_vec()), any::<bool>(), any::<u64>()).prop_map(
        |((code, bits), unsigned, v)| {
            let value = match unsigned {
                true => Value::UInt(v >> (64 - bits)),
                false => Value::Int((v as i64) >> (64 - bits)),
            };
            (FieldType { code, meta: 0 }, unsigned, value)
        },
    );
    let string = (
        prop::sample::select(vec![
            (code::VARCHAR, 300u16),
            (code::VARCHAR, 200),
            (code::STRING, 255),
            (code::STRING, 1020),
            (code::BLOB, 1),
            (code::BLOB, 2),
            (code::BLOB, 3),
            (code::BLOB, 4),
            (code::GEOMETRY, 4),
        ]),
        prop::collection::vec(any::<u8>(), 0..200),
    )
        .prop_map(|((code, meta), v)| (FieldType { code, meta }, false, Value::Bytes(v.into())));
    let json = prop::collection::vec(any::<u8>(), 0..50)
        .prop_map(|v| (FieldType { code: code::JSON, meta: 4 }, false, Value::Json(v.into())));
    let bits = (1u16..=64, any::<u64>())
        .prop_map(|(n, v)| (FieldType { code: code::BIT, meta: n }, false, Value::Bit(v >> (64 - n))));
    let labels = prop_oneof![
        any::<u8>().prop_map(|v| (FieldType { code: code::ENUM, meta: 1 }, false, Value::Enum(v.into()))),
        any::<u16>().prop_map(|v| (FieldType { code: code::ENUM, meta: 2 }, false, Value::Enum(v))),
        (prop::sample::select(vec![1u16, 2, 3, 4, 8]), any::<u64>()).prop_map(|(n, v)| {
            (FieldType { code: code::SET, meta: n }, false, Value::Set(v >> (64 - 8 * n)))
        }),
    ];
    let float =
        any::<f64>().prop_map(|v| (FieldType { code: code::DOUBLE, meta: 8 }, false, Value::Double(v)));
    let single =
        any::<f32>().prop_map(|v| (FieldType { code: code::FLOAT, meta: 4 }, false, Value::Float(v)));
    let decimal = (0u8..=30, any::<i64>()).prop_map(|(scale, v)| {
        let meta = 65 << 8 | u16::from(scale);
        (
            FieldType { code: code::NEWDECIMAL, meta },
            false,
            Value::Decimal(Decimal::from_i128(v.into(), scale)),
        )
    });
    let datetime = (1970u32..2038, 1u32..13, 1u32..29, 0u32..24, 0u32..60, 0u32..60, any::<bool>()).prop_map(
        |(y, m, d, h, i, s, stamp)| {
            let text = format!("{y}-{m}-{d} {h}:{i}:{s}.5");
            let mode = temporal::DateMode::STRICT;
            let value = temporal::parse_datetime(text.as_bytes(), 6, mode).unwrap().value;
            let code = if stamp { code::TIMESTAMP2 } else { code::DATETIME2 };
            (FieldType { code, meta: 6 }, false, Value::DateTime(value))
        },
    );
    let time = (-838i32..=838, 0u32..60, 0u32..60, 0u32..10).prop_map(|(h, m, s, tenth)| {
        let text = format!("{h:03}:{m:02}:{s:02}.{tenth}");
        let value = temporal::parse_time(text.as_bytes(), 1).unwrap().value;
        (FieldType { code: code::TIME2, meta: 1 }, false, Value::Time(value))
    });
    prop_oneof![int, string, json, bits, labels, float, single, decimal, datetime, time]
}

/// `Value` has no total equality of its own: compare what it is stored as.
fn same(field: FieldType, unsigned: bool, a: &Value, b: &Value) -> bool {
    let bytes = |v: &Value| {
        let mut out = Vec::new();
        encode_field(field, unsigned, v, &mut out).map(|()| out)
    };
    match (a, b) {
        (Value::Null, Value::Null) => true,
        _ => {
            std::mem::discriminant(a) == std::mem::discriminant(b)
                && format!("{a:?}") == format!("{b:?}")
                && bytes(a) == bytes(b)
        }
    }
}

proptest! {
    #[test]
    fn rows_round_trip_whole_by_column_and_projected(
        columns in prop::collection::vec((any_column(), any::<bool>()), 1..20),
        chosen in prop::collection::vec(any::<bool>(), 20),
    ) {
        let shape = RowShape::of_fields(columns.iter().map(|((f, u, _), _)| (*f, *u)));
        let values: Vec<Value> = columns
            .iter()
            .map(|((_, _, v), null)| if *null { Value::Null } else { v.clone() })
            .collect();
        let row = Bytes::from(shape.encode_row(&values).unwrap());
        let check = |i: usize, v: &Value| {
            let (field, unsigned, _) = columns[i].0;
            prop_assert!(same(field, unsigned, v, &values[i]), "{v:?} {:?}", values[i]);
            Ok(())
        };
        for (i, v) in shape.decode_row(&row).unwrap().iter().enumerate() {
            check(i, v)?;
            check(i, &shape.column(&row, i).unwrap())?;
        }
        let wanted: Vec<usize> = (0..columns.len()).filter(|&i| chosen[i]).collect();
        let mut some = Vec::new();
        shape.columns_into(&row, &wanted, &mut some).unwrap();
        for (&i, v) in wanted.iter().zip(&some) {
            check(i, v)?;
        }
        // The chosen columns as an image in a rows event.
        prop_assume!(!wanted.is_empty());
        let bits = Bitmap::of(columns.len(), wanted.iter().copied());
        let mut body = Vec::new();
        put_rows_header(&mut body, 5, 1, columns.len(), &[bits.as_bytes()]);
        project(&shape, &row, bits.as_bytes(), &mut body).unwrap();
        project(&shape, &row, bits.as_bytes(), &mut body).unwrap();
        let rows = Rows::decode(EventType::WRITE_ROWS, &body).unwrap();
        let images: Vec<_> = Images::new(rows, &shape).unwrap().map(|c| c.unwrap()).collect();
        prop_assert_eq!(images.len(), 2);
        let image = images[1].after.unwrap().decode(&shape).unwrap();
        for (i, v) in image.iter().enumerate() {
            prop_assert_eq!(v.is_some(), chosen[i]);
            if let Some(v) = v {
                check(i, v)?;
            }
        }
        // Cut short anywhere, it is an error or fewer rows, never a panic.
        for cut in 0..row.len() {
            prop_assert!(shape.decode_row(&row.slice(..cut)).is_err());
        }
        for cut in 0..body.len() {
            if let Ok(rows) = Rows::decode(EventType::WRITE_ROWS, &body[..cut]) {
                prop_assert!(Images::new(rows, &shape).unwrap().filter(Result::is_ok).count() < 2);
            }
        }
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        use crate::events::*;
        let _ = crate::scan::parse_event(&bytes, 4, &crate::ScanRules { verify_checksum: false,
            verify_position: false, ..Default::default() });
        let _ = FormatDescription::decode(&bytes);
        let _ = FormatDescription::checksum_of_event(&bytes);
        let _ = Gtid::decode(&bytes);
        let _ = PreviousGtids::decode(&bytes);
        let _ = Query::decode(&bytes).map(|q| q.status_vars());
        let _ = StatusVars::decode(&bytes);
        let _ = UserVar::decode(&bytes);
        let _ = Heartbeat::decode_v2(&bytes);
        let _ = XaPrepare::decode(&bytes);
        let _ = Incident::decode(&bytes);
        let _ = ExecuteLoadQuery::decode(&bytes);
        let _ = MariadbGtidList::decode(&bytes);
        let mut private = b"OMNI".to_vec();
        private.extend_from_slice(&bytes);
        let _ = crate::Private::decode(&private);
        if let Ok(map) = TableMap::decode(&bytes) {
            let shape = RowShape::of_table_map(&map);
            let _ = shape.decode_row(&Bytes::from(bytes.clone()));
        }
        for t in [
            EventType::WRITE_ROWS,
            EventType::UPDATE_ROWS,
            EventType::PARTIAL_UPDATE_ROWS,
            EventType::DELETE_ROWS_V1,
        ] {
            let _ = Rows::decode(t, &bytes);
        }
    }

    #[test]
    fn hostile_table_maps_and_rows_do_not_panic(
        codes in prop::collection::vec(any::<u8>(), 0..10),
        rest in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut body = vec![1, 0, 0, 0, 0, 0, 0, 0, 1, b'd', 0, 1, b't', 0, codes.len() as u8];
        body.extend_from_slice(&codes);
        body.push(2 * codes.len() as u8);
        body.extend_from_slice(&rest);
        if let Ok(map) = crate::events::TableMap::decode(&body) {
            let shape = RowShape::of_table_map(&map);
            let row = Bytes::from(rest.clone());
            let _ = shape.decode_row(&row);
            for i in 0..shape.len() {
                let _ = shape.column(&row, i);
            }
            let mut event = Vec::new();
            put_rows_header(&mut event, 1, 0, shape.len(), &[&[0xff; 2][..shape.len().div_ceil(8)]]);
            event.extend_from_slice(&rest);
            let rows = Rows::decode(EventType::WRITE_ROWS, &event).unwrap();
            for rows in [rows, Rows { partial: true, ..rows }] {
                for change in Images::new(rows, &shape).unwrap().flatten() {
                    let _ = change.after.unwrap().decode(&shape);
                    for (_, diffs) in change.after.unwrap().json_diffs(&shape).unwrap_or_default() {
                        let _ = diffs.apply(&rest);
                    }
                }
            }
        }
    }
}

/// A size that no server stores is damage; otherwise values would be read without some of their bytes.
#[test]
fn sizes_that_no_column_has_are_damage() {
    let read = |code, metadata: [u8; 2]| FieldType::read(code, &mut Reader::new(&metadata)).is_ok();
    for len in 0..=255 {
        assert_eq!(read(code::STRING, [code::ENUM, len]), matches!(len, 1 | 2), "ENUM of {len} bytes");
        assert_eq!(read(code::STRING, [code::SET, len]), matches!(len, 1..=4 | 8), "SET of {len} bytes");
    }
    for (bits, bytes, is_one) in [(0, 8, true), (1, 8, false), (7, 7, true), (8, 1, false), (0, 9, false)] {
        assert_eq!(read(code::BIT, [bits, bytes]), is_one, "BIT of {bytes} bytes and {bits} bits");
    }
}
