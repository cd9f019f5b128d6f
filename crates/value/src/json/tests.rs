//! JSON text, binary form and paths.
#![allow(clippy::unwrap_used)]
use super::*;

fn text(json: &Json) -> String {
    let mut out = Vec::new();
    json.write_text(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn text_and_binary_round_trip_in_mysql_order() {
    for (input, expected) in [
        (r#"{"bb":1,"a":[1.5,1e20,-0.0],"a":2}"#, r#"{"a": 2, "bb": 1}"#),
        (r#"[1,18446744073709551615,1.0,"x\u00e9\n\/"]"#, r#"[1, 18446744073709551615, 1.0, "xé\n/"]"#),
        ("null", "null"),
        (r#"{"":{}, "k":[]}"#, r#"{"": {}, "k": []}"#),
    ] {
        let json = Json::parse(input.as_bytes()).unwrap();
        assert_eq!(text(&json), expected);
        assert_eq!(Json::decode(&json.encode().unwrap()).unwrap(), json);
    }
}
