//! JSON text, binary form, paths and changes.
#![allow(clippy::unwrap_used)]
use super::*;
use crate::decimal::Decimal;
use proptest::prelude::*;
use std::cmp::Ordering;

fn text(json: &Json) -> String {
    let mut out = Vec::new();
    json.write_text(&mut out);
    String::from_utf8(out).unwrap()
}

fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap()
}

#[test]
fn large_documents_are_written_once_however_deep_they_are() {
    let deep = |inner: &str| format!("{}{inner}{}", r#"[7,{"k":"#.repeat(49), "}]".repeat(49));
    for length in
        [10, 60_000, 64_000, 64_500, 64_800, 65_000, 65_200, 65_400, 65_535, 65_536, 70_000, 200_000]
    {
        for inner in [format!("\"{}\"", "x".repeat(length)), format!("[{}1]", "100000,".repeat(length / 7))] {
            let document = json(&deep(&inner));
            let binary = document.encode().unwrap();
            assert_eq!(Json::decode(&binary).unwrap(), document, "{length}");
        }
    }
    // The last one whose offsets fit two bytes.
    let of_length = |length: usize| Json::Array(vec![Json::String("x".repeat(length))]).encode().unwrap();
    let small = |binary: &Bytes| binary[0] == 2;
    let most = (60_000..66_000).rev().find(|length| small(&of_length(*length))).unwrap();
    assert_eq!(of_length(most).len(), 1 + usize::from(u16::MAX));
    assert!(!small(&of_length(most + 1)));
}

/// Returns the bytes that were really allocated for a document with room for a number of items per list.
fn taken(json: &Json) -> usize {
    match json {
        Json::Array(items) => items.capacity() * size_of::<Json>() + items.iter().map(taken).sum::<usize>(),
        Json::Object(members) => {
            let member = |(name, value): &(String, Json)| name.capacity() + taken(value);
            members.capacity() * size_of::<(String, Json)>() + members.iter().map(member).sum::<usize>()
        }
        Json::String(text) => text.capacity(),
        _ => 0,
    }
}

#[test]
fn what_a_document_takes_is_known_before_it_is_read() {
    let many = |item: &str, count: usize| format!("[{}{item}]", format!("{item},").repeat(count));
    for (text, most) in [
        ("[]".to_owned(), 400),
        (many("1", 1000), 200),
        (many("[1]", 1000), 140),
        (many("{}", 1000), 200),
        (many(r#"{"a":1}"#, 1000), 100),
        (many(r#""""#, 1000), 100),
        (many(r#""\n""#, 1000), 80),
        (format!("\"{}\"", "x".repeat(10_000)), 3),
        (format!("{}1{}", "[".repeat(99), "]".repeat(99)), 400),
    ] {
        let document = json(&text);
        let asked = memory_of_text(text.as_bytes());
        assert!(asked >= taken(&document), "{asked} for {} of {text:.40}", taken(&document));
        assert!(asked <= most * text.len(), "{asked} for {} bytes of {text:.40}", text.len());
        let binary = document.encode().unwrap();
        let (asked, read) = (memory_of_binary(&binary), Json::decode(&binary).unwrap());
        assert!(asked >= taken(&read), "{asked} for {} of {text:.40} in binary", taken(&read));
        assert!(document.memory() >= binary.len(), "{text:.40}");
        assert!(read.memory() >= taken(&read), "{text:.40}");
    }
}

proptest! {
    #[test]
    fn damaged_documents_are_weighed_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let asked = memory_of_binary(&bytes);
        prop_assert!(asked <= 1000 + 100 * bytes.len());
    }
}

#[test]
fn text_and_binary_round_trip_in_mysql_order() {
    for (input, expected) in [
        (r#"{"bb":1,"a":[1.5,1e20,-0.0],"a":2}"#, r#"{"a": 2, "bb": 1}"#),
        (r#"[1,18446744073709551615,1.0,"x\u00e9\n\/"]"#, r#"[1, 18446744073709551615, 1.0, "xé\n/"]"#),
        ("null", "null"),
        (r#"{"":{}, "k":[]}"#, r#"{"": {}, "k": []}"#),
        (r#""\ud83d\ude00\u0001\"""#, r#""😀\u0001\"""#),
        ("[true,false,-32769,65536,-2147483649]", "[true, false, -32769, 65536, -2147483649]"),
        ("1e400", ""),
        ("123456789012345678901234567890", "1.2345678901234568e29"),
    ] {
        let Ok(json) = Json::parse(input.as_bytes()) else {
            assert_eq!(expected, "", "{input}");
            continue;
        };
        assert_eq!(text(&json), expected);
        assert_eq!(Json::decode(&json.encode().unwrap()).unwrap(), json);
    }
}

#[test]
fn what_is_no_json_is_refused() {
    for bad in [
        "",
        " ",
        "{",
        "[1,]",
        "{\"a\":}",
        "{a:1}",
        "01",
        "1.",
        ".5",
        "+1",
        "nul",
        "'a'",
        "\"\\x\"",
        "[1] 2",
        "\"\\ud800\"",
        "\"a",
        "\"\u{1}\"",
        "{\"a\" 1}",
        "[1 2]",
        "NaN",
        "1e",
        "\"\\u12\"",
    ] {
        assert_eq!(is_valid_text(bad.as_bytes()), Ok(false), "{bad}");
    }
    assert_eq!(is_valid_text(b"\"\xff\""), Ok(false));
    let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
    assert!(text_to_binary(deep(100).as_bytes()).is_ok());
    assert_eq!(text_to_binary(deep(101).as_bytes()), Err(JsonError::TooDeep));
    assert_eq!(is_valid_text("[".repeat(100_000).as_bytes()), Err(JsonError::TooDeep), "no stack overflow");
}

#[test]
fn binary_bytes_are_the_documented_ones() {
    let bytes = |s: &str| json(s).encode().unwrap().to_vec();
    let object = [0, 1, 0, 12, 0, 11, 0, 1, 0, 5, 1, 0, b'a'];
    assert_eq!(bytes(r#"{"a":1}"#), object);
    assert_eq!(bytes("null"), [4, 0]);
    assert_eq!(bytes("-1"), [5, 0xff, 0xff]);
    assert_eq!(bytes(r#""ab""#), [12, 2, b'a', b'b']);
    assert_eq!(bytes("[65536]"), [2, 1, 0, 11, 0, 7, 7, 0, 0, 0, 1, 0]);
}

#[test]
fn large_documents_use_wide_offsets() {
    let long = "x".repeat(70_000);
    let doc = Json::object([
        ("k".to_owned(), Json::String(long)),
        ("n".to_owned(), Json::Int(100_000)),
        ("inner".to_owned(), Json::Array(vec![Json::Int(1)])),
    ]);
    let binary = doc.encode().unwrap();
    assert_eq!(binary[0], 1, "large object");
    assert_eq!(Json::decode(&binary).unwrap(), doc);
}

#[test]
fn values_of_other_types_survive_as_opaque() {
    let decimal: crate::decimal::Decimal = "-12.50".parse().unwrap();
    let date = crate::temporal::Date::from_ymd(2020, 1, 2).unwrap();
    let doc = Json::Array(vec![
        Json::Decimal(decimal),
        Json::Date(date),
        Json::DateTime(crate::temporal::DateTime::from(date)),
        Json::Time(crate::temporal::Time::new(true, 1, 2, 3, 4).unwrap()),
        Json::Opaque(252, bytes::Bytes::from_static(b"\x00\x01")),
    ]);
    let back = Json::decode(&doc.encode().unwrap()).unwrap();
    assert_eq!(back, doc);
    assert_eq!(
        text(&back),
        r#"[-12.50, "2020-01-02", "2020-01-02 00:00:00.000000", "-01:02:03.000004", "base64:type252:AAE="]"#
    );
}

#[test]
fn paths_find_what_they_name() {
    let doc = json(r#"{"a":[1,{"b":2},[3,4]],"c d":{"b":5},"x":6}"#);
    for (path, want) in [
        ("$", r#"[{"a": [1, {"b": 2}, [3, 4]], "x": 6, "c d": {"b": 5}}]"#),
        ("$.a[0]", "[1]"),
        ("$.a[1].b", "[2]"),
        ("$.a[last]", "[[3, 4]]"),
        ("$.a[last-2]", "[1]"),
        ("$.a[2][*]", "[3, 4]"),
        ("$.a[0 to 1]", r#"[1, {"b": 2}]"#),
        ("$.\"c d\".b", "[5]"),
        ("$**.b", "[2, 5]"),
        ("$.*.b", "[5]"),
        ("$.x[0]", "[6]"),
        ("$.x[1]", "[]"),
        ("$.nope.b", "[]"),
        (" $ . a [ 0 ] ", "[1]"),
    ] {
        let path = Path::parse(path.as_bytes()).unwrap();
        let found = Json::Array(path.find(&doc, &mut |_| true).into_iter().cloned().collect());
        assert_eq!(text(&found), want, "{path:?}");
    }
    for bad in ["", "a", "$.", "$[", "$[a]", "$**", "$.a.**", "$.1a", "$[1 to]", "$.a..b", "$\"a\""] {
        assert!(Path::parse(bad.as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn documents_change_like_mysql_documents() {
    let changed = |path: &str, mode| {
        let mut doc = json(r#"{"a":[1,2],"b":3}"#);
        doc.set(&Path::parse(path.as_bytes()).unwrap(), Json::Int(9), mode);
        text(&doc)
    };
    assert_eq!(changed("$.a[1]", SetMode::Set), r#"{"a": [1, 9], "b": 3}"#);
    assert_eq!(changed("$.a[7]", SetMode::Set), r#"{"a": [1, 2, 9], "b": 3}"#);
    assert_eq!(changed("$.c", SetMode::Insert), r#"{"a": [1, 2], "b": 3, "c": 9}"#);
    assert_eq!(changed("$.b", SetMode::Insert), r#"{"a": [1, 2], "b": 3}"#);
    assert_eq!(changed("$.c", SetMode::Replace), r#"{"a": [1, 2], "b": 3}"#);
    assert_eq!(changed("$.b[1]", SetMode::Set), r#"{"a": [1, 2], "b": [3, 9]}"#);
    assert_eq!(changed("$", SetMode::Set), "9");
    let mut doc = json(r#"{"a":[1,2]}"#);
    assert!(doc.remove(&Path::parse(b"$.a[0]").unwrap()));
    assert!(!doc.remove(&Path::parse(b"$.x").unwrap()));
    assert_eq!(text(&doc), r#"{"a": [2]}"#);
    let merged = json(r#"{"a":1,"b":2}"#).merge_patch(json(r#"{"a":null,"c":{"d":null}}"#));
    assert_eq!(text(&merged), r#"{"b": 2, "c": {}}"#);
    let merged = json(r#"{"a":1}"#).merge_preserve(json(r#"{"a":[2],"b":3}"#));
    assert_eq!(text(&merged), r#"{"a": [1, 2], "b": 3}"#);
    assert!(json("[1,[2,3],4]").contains(&json("[4,1]"), &mut |_| true));
    assert!(json("[1,[2,3],4]").contains(&json("2"), &mut |_| true));
    assert!(json(r#"{"a":1,"b":[2]}"#).contains(&json(r#"{"b":2}"#), &mut |_| true));
}

#[test]
fn comparison_ranks_types_first() {
    let ascending =
        ["null", "-1", "1", "1.5", "2", r#""a""#, r#""b""#, "{}", "[1]", "[1, 0]", "false", "true"];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            assert_eq!(json(a).compare(&json(b)), i.cmp(&j), "{a} {b}");
        }
    }
    assert_eq!(json("1").compare(&json("1.0")), Ordering::Equal);
    assert_eq!(Json::UInt(u64::MAX).compare(&json("18446744073709551614")), Ordering::Greater);
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        any::<i64>().prop_map(Json::Int),
        any::<i16>().prop_map(|n| Json::Int(n.into())),
        (i64::MAX as u64 + 1..).prop_map(Json::UInt),
        (-1e300f64..1e300).prop_map(Json::Double),
        ".{0,9}".prop_map(Json::String),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::Array),
            prop::collection::vec((".{0,5}", inner), 0..6).prop_map(Json::object),
        ]
    })
}

/// Numbers that are often equal, of all kinds.
fn near_number() -> impl Strategy<Value = Json> {
    let whole = prop_oneof![-3i64..4, Just(i64::MAX), Just(i64::MIN), Just(1 << 53), Just((1 << 53) + 1)];
    let text = prop_oneof![
        Just("0.1"),
        Just("0.10"),
        Just("1.50"),
        Just("1e-50"),
        Just("1e19"),
        Just("1e40"),
        Just("0"),
        Just("-0.0")
    ];
    prop_oneof![
        whole.clone().prop_map(Json::Int),
        whole.clone().prop_map(|n| Json::UInt(n as u64)),
        whole.clone().prop_map(|n| Json::Double(n as f64)),
        whole.prop_map(|n| Json::Decimal(Decimal::from_i128(n.into(), 0).rescale(2))),
        text.clone().prop_map(|n| Json::Double(n.parse().unwrap())),
        text.prop_map(|n| Json::Decimal(Decimal::parse(n.as_bytes()).value)),
    ]
}

fn key(json: &Json) -> Vec<u8> {
    let mut out = Vec::new();
    json.write_hash_key(&mut out);
    out
}

proptest! {
    #[test]
    fn equal_documents_have_one_key_and_others_another(a in near_number(), b in near_number(), deep in any::<bool>()) {
        let wrap = |n: Json| if deep { Json::object([("k".to_owned(), Json::Array(vec![n]))]) } else { n };
        let (a, b) = (wrap(a), wrap(b));
        prop_assert_eq!(a.compare(&b).is_eq(), key(&a) == key(&b), "{:?} {:?}", a, b);
        prop_assert_eq!(a.compare(&b), b.compare(&a).reverse());
    }

    #[test]
    fn numbers_have_one_order(a in near_number(), b in near_number(), c in near_number()) {
        if a.compare(&b).is_le() && b.compare(&c).is_le() {
            prop_assert!(a.compare(&c).is_le(), "{:?} {:?} {:?}", a, b, c);
        }
    }

    #[test]
    fn any_document_round_trips(doc in any_json()) {
        prop_assert_eq!(&Json::decode(&doc.encode().unwrap()).unwrap(), &doc);
        let back = json(&text(&doc));
        prop_assert_eq!(back.compare(&doc), Ordering::Equal);
    }

    #[test]
    fn damaged_binary_never_panics(doc in any_json(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let mut binary = doc.encode().unwrap().to_vec();
        let place = at.index(binary.len());
        binary[place] = byte;
        let _ = Json::decode(&binary);
        binary.truncate(cut.index(binary.len()));
        let _ = Json::decode(&binary);
    }

    #[test]
    fn any_text_is_read_or_refused(bytes in "[\\[\\]{}\",:0-9a-z\\\\ .+-]{0,30}", path in "[$.*\\[\\]a-z0-9\" -]{0,20}") {
        let _ = Json::parse(bytes.as_bytes());
        let _ = Path::parse(path.as_bytes());
    }
}

/// Merging moved all members behind each new one once: hours for documents that a packet holds.
#[test]
fn objects_of_many_members_are_merged_in_linear_time() {
    let object = |odd: u32| Json::object((0..100_000).map(|n| (format!("{:07}", 2 * n + odd), Json::Int(1))));
    let begun = std::time::Instant::now();
    let (even, odd) = (object(0), object(1));
    let both = even.clone().merge_preserve(odd.clone());
    assert_eq!(both, even.clone().merge_patch(odd));
    assert_eq!(
        (both.length(), both.get("0000003"), both.get("0200000")),
        (200_000, Some(&Json::Int(1)), None)
    );
    let nulls = Json::object((0..100_000).map(|n| (format!("{:07}", 2 * n), Json::Null)));
    assert_eq!(both.merge_patch(nulls).length(), 100_000);
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

#[test]
fn members_that_both_objects_have_are_merged_where_they_are() {
    let (one, other) =
        (json(r#"{"a":1,"b":{"x":1},"cc":[1]}"#), json(r#"{"b":{"y":null},"a":null,"d":{"n":null}}"#));
    let preserved = r#"{"a": [1, null], "b": {"x": 1, "y": null}, "d": {"n": null}, "cc": [1]}"#;
    assert_eq!(text(&one.clone().merge_preserve(other.clone())), preserved);
    assert_eq!(text(&one.merge_patch(other)), r#"{"b": {"x": 1}, "d": {}, "cc": [1]}"#);
}

#[test]
fn a_path_has_no_more_steps_than_a_document_levels() {
    let path = |steps: usize, last: &str| Path::parse(format!("${}{last}", ".a".repeat(steps)).as_bytes());
    assert_eq!(path(100, "").unwrap().legs.len(), 100);
    let refused = |text: &str| Path::parse(text.as_bytes()).unwrap_err();
    for text in [format!("${}", ".a".repeat(101)), format!("${}", "[1]".repeat(1_000_000))] {
        assert_eq!(refused(&text), JsonError::Path { offset: text.len() });
    }
    assert_eq!(path(200, ".-").unwrap_err(), JsonError::Path { offset: 1 + 400 + 2 });
    for text in ["$.a**", "$**", "$****.a", "$.a ** ** .b"] {
        assert_eq!(refused(text), JsonError::Path { offset: text.len() }, "{text}");
    }
}
