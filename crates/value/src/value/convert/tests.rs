//! Storing into columns, against tables made with a real server.
#![allow(clippy::unwrap_used)]
use bytes::Bytes;

use super::tables::*;
use super::*;
use crate::collation::Charset;
use crate::column::ColumnKind::*;
use crate::temporal::DateMode;
use crate::{ColumnKind, ColumnType, Value};

fn labelled(kind: ColumnKind, labels: &[&'static str]) -> ColumnType {
    let labels = labels.iter().map(|l| Bytes::from_static(l.as_bytes())).collect();
    ColumnType::labelled(kind, labels, 45)
}

/// A SQL literal as the parser would give it, and its character set.
fn literal(text: &'static str) -> (Value, Charset) {
    let bytes = |v: &[u8]| Value::Bytes(Bytes::copy_from_slice(v));
    if let Some(bits) = text.strip_prefix("b'") {
        let n = u8::from_str_radix(bits.trim_end_matches('\''), 2).unwrap();
        return (bytes(&[n]), Charset::Binary);
    }
    if let Some(hex) = text.strip_prefix("x'") {
        let n = u8::from_str_radix(hex.trim_end_matches('\''), 16).unwrap();
        return (bytes(&[n]), Charset::Binary);
    }
    let value = match text.strip_prefix('\'') {
        Some(quoted) => bytes(quoted.strip_suffix('\'').unwrap().as_bytes()),
        None if text.contains('e') => Value::Double(text.parse().unwrap()),
        None => match (text.parse::<i64>(), text.parse::<u64>()) {
            (Ok(n), _) => Value::Int(n),
            (_, Ok(n)) => Value::UInt(n),
            _ => Value::Decimal(text.parse().unwrap()),
        },
    };
    (value, Charset::Utf8mb4)
}

/// As the tables write values.
fn shown(value: &Value, ty: &ColumnType) -> String {
    if let Value::Bit(n) = value {
        return format!("0x{n:X}");
    }
    let text = value.to_bytes(ty);
    if text.iter().all(|c| (32..127).contains(c)) {
        return String::from_utf8(text.to_vec()).unwrap();
    }
    text.iter().fold("0x".to_owned(), |hex, b| hex + &format!("{b:02X}"))
}

#[test]
fn columns_hold_what_a_server_holds() {
    let today = crate::temporal::Date::from_ymd(1971, 1, 1).unwrap();
    let types = [
        (ColumnType::of(TinyInt), T0),
        (ColumnType::of(TinyInt).unsigned(), T1),
        (ColumnType::of(Int), T2),
        (ColumnType::of(BigInt), T3),
        (ColumnType::of(BigInt).unsigned(), T4),
        (ColumnType::decimal(5, 2), T5),
        (ColumnType::decimal(10, 0).unsigned(), T6),
        (ColumnType::of(Double), T7),
        (ColumnType::of(Float), T8),
        (ColumnType { length: 6, decimals: 2, ..ColumnType::of(Double) }, T9),
        (ColumnType::string(Char, 3, 45), T10),
        (ColumnType::string(VarChar, 3, 45), T11),
        (ColumnType::string(VarChar, 3, 8), T12),
        (ColumnType::string(VarBinary, 3, 63), T13),
        (ColumnType::string(Binary, 3, 63), T14),
        (ColumnType::of(Date), T15),
        (ColumnType::temporal(DateTime, 0), T16),
        (ColumnType::temporal(DateTime, 3), T17),
        (ColumnType::temporal(Time, 0), T18),
        (ColumnType::temporal(Timestamp, 0), T19),
        (ColumnType::of(Year), T20),
        (labelled(Enum, &["a", "b"]), T21),
        (labelled(Set, &["a", "b", "c"]), T22),
        (ColumnType { length: 8, ..ColumnType::of(Bit) }, T23),
    ];
    let mut wrong = Vec::new();
    for (ty, rows) in types {
        for &(text, want, warning, error) in rows {
            let (value, charset) = literal(text);
            let loose = StoreContext {
                strict: false,
                dates: DateMode::RELAXED,
                charset,
                today,
                ..StoreContext::default()
            };
            let stored = value.cast_for_column(&ty, &loose).unwrap();
            let shown = shown(&stored.value, &ty);
            let strict = StoreContext { strict: true, dates: DateMode::STRICT, ..loose };
            let refused = value.cast_for_column(&ty, &strict).err().map_or(0, |e| e.0.code());
            let code = stored.problem.map_or(0, Problem::code);
            let got = (shown, code, refused);
            if (got.0.as_str(), got.1, got.2) != (want, warning, error) {
                wrong.push(format!("{:?} {text}: {got:?} not {:?}", ty.kind, (want, warning, error)));
            }
        }
    }
    assert!(wrong.is_empty(), "{} {wrong:#?}", wrong.len());
}

#[test]
fn a_displacement_moves_into_the_session_zone() {
    let zone = crate::temporal::Zone::Offset(3600);
    let ctx = StoreContext { zone, ..StoreContext::default() };
    let text = Value::Bytes(Bytes::from_static(b"2020-01-01 12:00:00+02:00"));
    let stored = |kind| {
        let ty = ColumnType::temporal(kind, 0);
        shown(&text.cast_for_column(&ty, &ctx).unwrap().value, &ty)
    };
    assert_eq!(stored(DateTime), "2020-01-01 11:00:00");
    assert_eq!(stored(Timestamp), "2020-01-01 10:00:00", "UTC");
}

#[test]
fn strings_must_be_text_of_their_character_set() {
    let ctx = StoreContext::default();
    let utf8 = ColumnType::string(VarChar, 10, 45);
    let latin1 = ColumnType::string(VarChar, 10, 8);
    let bad = Value::Bytes(Bytes::from_static(b"ab\xffcd"));
    assert_eq!(bad.cast_for_column(&utf8, &ctx).unwrap_err().0.code(), 1366);
    let loose = StoreContext { strict: false, ..ctx };
    let stored = bad.cast_for_column(&utf8, &loose).unwrap();
    assert_eq!(stored.value, Value::Bytes(Bytes::from_static(b"ab")));
    let euro = Value::Bytes(Bytes::from_static("€日".as_bytes()));
    assert_eq!(euro.cast_for_column(&latin1, &ctx).unwrap_err().0, Problem::IncorrectString);
    let message = Problem::IncorrectString.message("c", 1, b"ab\xffcd");
    assert_eq!(message, "Incorrect string value: '\\xFFcd' for column 'c' at row 1");
    let narrow = ColumnType::string(VarChar, 10, 33);
    let wide = Value::Bytes(Bytes::from_static("😀".as_bytes()));
    assert_eq!(wide.cast_for_column(&narrow, &ctx).unwrap_err().0, Problem::IncorrectString);
}

#[test]
fn json_columns_take_text_and_documents() {
    let ctx = StoreContext::default();
    let ty = ColumnType::of(Json);
    let store = |v: Value| v.cast_for_column(&ty, &ctx).map(|s| shown(&s.value, &ty));
    let text = |s: &'static str| Value::Bytes(Bytes::from_static(s.as_bytes()));
    assert_eq!(store(text("{\"b\":1,\"a\":[true]}")).unwrap(), r#"{"a": [true], "b": 1}"#);
    assert_eq!(store(Value::Int(5)).unwrap_err().0.code(), 3140, "a number may need CAST");
    assert_eq!(store(text("{")).unwrap_err().0.code(), 3140);
    let binary = StoreContext { charset: Charset::Binary, ..ctx };
    let refused = text("1").cast_for_column(&ty, &binary).unwrap_err();
    assert_eq!(refused.0.code(), 3144);
}

#[test]
fn values_print_by_their_type() {
    let show = |v: Value, ty: ColumnType| shown(&v, &ty);
    let zerofill = ColumnType { zerofill: true, length: 5, ..ColumnType::of(Int).unsigned() };
    assert_eq!(show(Value::UInt(42), zerofill), "00042");
    assert_eq!(show(Value::Double(1e20), ColumnType::of(Double)), "1e20");
    assert_eq!(show(Value::Set(5), labelled(Set, &["a", "b", "c"])), "a,c");
    assert_eq!(show(Value::Enum(0), labelled(Enum, &["a"])), "");
    assert_eq!(show(Value::Year(0), ColumnType::of(Year)), "0000");
    let bit = ColumnType { length: 12, ..ColumnType::of(Bit) };
    assert_eq!(Value::Bit(0x123).to_bytes(&bit)[..], [1, 0x23]);
    let fixed = ColumnType { length: 7, decimals: 3, ..ColumnType::of(Float) };
    assert_eq!(show(Value::Float(1.5), fixed), "1.500");
}

#[test]
fn uuids_and_addresses_are_text_or_bytes_and_nothing_else() {
    use crate::fixed::FixedKind;
    let ty = ColumnType::of(ColumnKind::Inet6);
    let store = |value: &Value, charset| {
        let context = StoreContext { charset, ..StoreContext::default() };
        value.cast_for_column(&ty, &context).map(|stored| stored.value).map_err(|error| error.0)
    };
    let bytes = |b: &[u8]| Value::Bytes(Bytes::copy_from_slice(b));
    let one = Value::Fixed(FixedKind::Inet6.parse(b"::1").unwrap());
    assert_eq!(store(&bytes(b"0:0::1"), Charset::Utf8mb4), Ok(one.clone()));
    assert_eq!(store(&bytes(&[0; 16]), Charset::Binary), Ok(Value::Fixed(FixedKind::Inet6.zero())));
    assert_eq!(store(&bytes(b"0:0::1"), Charset::Binary), Err(Problem::IncorrectFixed("inet6")));
    assert_eq!(store(&bytes(b"1.2.3.4"), Charset::Utf8mb4), Err(Problem::IncorrectFixed("inet6")));
    let refused = Err(Problem::CannotCast { from: "int", to: "inet6" });
    assert_eq!(store(&Value::Int(1), Charset::Utf8mb4), refused);
    let into_int = one.cast_for_column(&ColumnType::of(ColumnKind::Int), &StoreContext::default());
    assert_eq!(into_int.unwrap_err().0, Problem::CannotCast { from: "inet6", to: "int" });
    let text = ColumnType::string(ColumnKind::VarChar, 40, 45);
    let stored = one.cast_for_column(&text, &StoreContext::default()).unwrap();
    assert_eq!(stored.value, bytes(b"::1"));
}

#[test]
fn documents_are_numbers_and_times_in_one_way() {
    let json = |text: &str| crate::json::Json::parse(text.as_bytes()).unwrap();
    assert_eq!(document::to_int(&json("true")).value, 1);
    assert_eq!(document::to_f64(&json("false")).value, 0.0);
    assert_eq!(document::to_int(&json("2.5")).value, 2, "doubles round to even");
    assert_eq!(document::to_int(&json("1e30")).problem.map(|p| p.code()), Some(3155));
    for (what, code) in [("\"7x\"", 3156), ("null", 3156), ("[1]", 3156), ("{}", 3156)] {
        assert_eq!(document::to_int(&json(what)).problem.map(|p| p.code()), Some(code), "{what}");
        assert_eq!(document::to_decimal(&json(what)).problem.map(|p| p.code()), Some(code), "{what}");
    }
    assert!(document::to_datetime(&json("\"2020-01-02\""), DateMode::RELAXED, "DATE").value.is_some());
    assert!(document::to_datetime(&json("20200102"), DateMode::RELAXED, "DATE").value.is_none());
    assert!(
        document::to_time(&json("\"01:02:03\"")).value.is_some()
            && document::to_time(&json("\"7\"")).value.is_none()
    );
    assert!(
        json("false").is_true() && json("null").is_true() && !json("0.0").is_true(),
        "WHERE compares with 0"
    );
}
