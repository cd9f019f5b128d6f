//! Comparing values of different types, against a table made with a real server (MariaDB 10.11, where
//! it agrees with MySQL 8: not strings that are no dates, nor huge numbers, against dates).
#![allow(clippy::unwrap_used)]
use bytes::Bytes;
use omnibus_value::temporal::{DateMode, parse_date, parse_datetime, parse_time};
use omnibus_value::{ColumnKind, ColumnType, Value, collation, compare};

/// Literal, and how it compares with each literal in order; `.` is not compared.
#[rustfmt::skip]
const TABLE: &[(&str, &str)] = &[
    ("1", "=>>=<<<<<=<>>===>>>><<<<<<<<<<<<><"),
    ("-1", "<=<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<"),
    ("0", "<>=<<<<<<<<<<<<<====<<<<<<<<<<<<=<"),
    ("1.0", "=>>=<<<<<=<>>===>>>><<<<<<<<<<<<><"),
    ("1.5", ">>>>=<<<<>=>>>>>>>>><<<<<<<<<<<<><"),
    ("2", ">>>>>=<<<>>>>>>>>>>><=<<<<<<<<<<><"),
    ("10", ">>>>>>=<<>>>>>>>>>>>=><<<<<<<<=<>="),
    ("18446744073709551615", ">>>>>>>=>>>>>>>>>>>>>>>>...>>.>>>>"),
    ("9223372036854775807", ">>>>>>><=>>>>>>>>>>>>>>>...>>.>>>>"),
    ("1e0", "=>>=<<<<<=<>>===>>>><<<<<<<<<<<<><"),
    ("1.5e0", ">>>>=<<<<>=>>>>>>>>><<<<<<<<<<<<><"),
    ("0.1e0", "<>><<<<<<<<==<<<>>>><<<<<<<<<<<<><"),
    ("0.1", "<>><<<<<<<<==<<<>>>><<<<<<<<<<<<><"),
    ("'1'", "=>>=<<<<<=<>>=<<<<<><<<<<<<<<<<<><"),
    ("'1.0'", "=>>=<<<<<=<>>>=<<<<><<<<<<<<<<<<><"),
    ("'1abc'", "=>>=<<<<<=<>>>>=<<<>><<<...<<.><><"),
    ("'abc'", "<>=<<<<<<<<<<>>>===>>>>>...<<.><>>"),
    ("'ABC'", "<>=<<<<<<<<<<>>>===>>>>>...<<.><>>"),
    ("'ABC '", "<>=<<<<<<<<<<>>>===>>>>>...<<.><>>"),
    ("''", "<>=<<<<<<<<<<<<<<<<=<<<<<<<<<<<<<<"),
    ("'10'", ">>>>>>=<<>>>>>><<<<>=<<<<<<<<<<<><"),
    ("'2'", ">>>>>=<<<>>>>>>><<<>>=<<<<<<<<><>>"),
    ("'2020-01-01'", ">>>>>>><<>>>>>>><<<>>>=<==<<<<><>>"),
    ("'2020-1-1'", ">>>>>>><<>>>>>>><<<>>>>===<<<<><>>"),
    ("date'2020-01-01'", ">>>>>>>..>>>>>>....>>>====<=<<>>>>"),
    ("timestamp'2020-01-01 00:00:00'", ">>>>>>>..>>>>>>....>>>====<=<<>>>>"),
    ("timestamp'2020-01-01 00:00:01'", ">>>>>>>..>>>>>>....>>>>>>>=>=<>>>>"),
    ("20200101", ">>>>>>><<>>>>>>>>>>>>>>>==<=<.>>>>"),
    ("20200101000001", ">>>>>>><<>>>>>>>>>>>>>>>>>=>=.>>>>"),
    ("time'10:00:00'", ">>>>>>>..>>>>>>....>>>>>>>>..===>."),
    ("'10:00:00'", ">>>>>>=<<>>>>>><<<<>><<<<<<<<==<><"),
    ("100000", ">>>>>>><<>>>>>>>>>>>>>>><<<<<=>=>>"),
    ("'0'", "<>=<<<<<<<<<<<<<<<<><<<<<<<<<<<<=<"),
    ("'1e1'", ">>>>>>=<<>>>>>>><<<>><<<<<<<<.><>="),
];

fn literal(text: &str) -> (Value, ColumnType) {
    let quoted = text.split('\'').nth(1).map(str::as_bytes).unwrap_or_default();
    let mode = DateMode::RELAXED;
    let (value, kind) = match text.split('\'').next().unwrap() {
        "date" => (Value::Date(parse_date(quoted, mode).unwrap().value), ColumnKind::Date),
        "timestamp" => {
            let parsed = parse_datetime(quoted, 6, mode).unwrap();
            (Value::DateTime(parsed.value), ColumnKind::DateTime)
        }
        "time" => (Value::Time(parse_time(quoted, 6).unwrap().value), ColumnKind::Time),
        "" => (Value::Bytes(Bytes::copy_from_slice(quoted)), ColumnKind::VarChar),
        number => return (parse_number(number), ColumnType::of(ColumnKind::BigInt)),
    };
    (value, ColumnType::string(kind, 10, 45))
}

fn parse_number(text: &str) -> Value {
    match (text.parse::<i64>(), text.parse::<u64>()) {
        (Ok(n), _) => Value::Int(n),
        (_, Ok(n)) => Value::UInt(n),
        _ if text.contains('e') => Value::Double(text.parse().unwrap()),
        _ => Value::Decimal(text.parse().unwrap()),
    }
}

#[test]
fn mixed_types_compare_like_a_server_compares_them() {
    let collation = collation::by_id(45).unwrap();
    let mut wrong = Vec::new();
    for (a, row) in TABLE {
        for ((b, _), want) in TABLE.iter().zip(row.chars()) {
            let ((x, xt), (y, yt)) = (literal(a), literal(b));
            let order = compare::compare(&x, &xt, &y, &yt, collation);
            let got = order.map_or('?', |o| ['<', '=', '>'][(o as i8 + 1) as usize]);
            if want != '.' && got != want {
                wrong.push(format!("{a} {got} {b}, not {want}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn null_is_unknown_and_labels_are_strings_except_to_numbers() {
    let collation = collation::by_id(45).unwrap();
    let number = ColumnType::of(ColumnKind::BigInt);
    let labels = vec![Bytes::from_static(b"b"), Bytes::from_static(b"a")];
    let label = ColumnType::labelled(ColumnKind::Enum, labels, 45);
    let text = ColumnType::string(ColumnKind::VarChar, 10, 45);
    let compare = |a: &Value, at: &ColumnType, b: &Value, bt: &ColumnType| {
        compare::compare(a, at, b, bt, collation).map(|o| o as i8)
    };
    assert_eq!(compare(&Value::Null, &number, &Value::Int(1), &number), None);
    let a = Value::Bytes(Bytes::from_static(b"A"));
    assert_eq!(compare(&Value::Enum(2), &label, &a, &text), Some(0));
    assert_eq!(compare(&Value::Enum(2), &label, &Value::Int(2), &number), Some(0));
    assert_eq!(compare(&Value::Enum(1), &label, &Value::Enum(2), &label), Some(1));
    assert_eq!(compare::order(&Value::Enum(1), &Value::Enum(2), &label) as i8, -1);
}
