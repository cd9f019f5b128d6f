//! Documents as text and in binary form, partial updates of one, and JSON lines of changes.

use crate::sink::Sink;
use omnibus_format::row::{JsonDiffs, put_json_diff};
use omnibus_replication::changes::JsonReplay;
use omnibus_value::json::{Json, Path, binary_to_text, is_valid_text, text_to_binary};

fn printed(json: &Json) -> Vec<u8> {
    let mut text = Vec::new();
    json.write_text(&mut text);
    text
}

/// Text, binary and back.
pub(super) fn text(input: &[u8]) {
    let parsed = Json::parse(input);
    assert_eq!(is_valid_text(input).unwrap_or(false), parsed.is_ok());
    if let Ok(path) = Path::parse(input) {
        let _ = path.has_wildcard();
    }
    let Ok(json) = parsed else { return };
    let first = printed(&json);
    let again = Json::parse(&first).unwrap_or_else(|e| panic!("{}: {e:?}", String::from_utf8_lossy(&first)));
    assert_eq!(String::from_utf8_lossy(&printed(&again)), String::from_utf8_lossy(&first));
    assert!(again.compare(&json).is_eq());
    if let Ok(binary) = json.encode() {
        let back = Json::decode(&binary).expect("what was encoded");
        assert_eq!(String::from_utf8_lossy(&printed(&back)), String::from_utf8_lossy(&first));
        assert_eq!(text_to_binary(&first).ok().as_ref(), Some(&binary));
    }
}

/// Bytes of a column or a row event.
pub(super) fn binary(input: &[u8]) {
    let Ok(json) = Json::decode(input) else { return };
    let mut text = Vec::new();
    binary_to_text(input, &mut text).expect("what was decoded");
    assert_eq!(printed(&json), text);
    let Ok(binary) = json.encode() else { return };
    let again = Json::decode(&binary).expect("what was encoded");
    assert_eq!(format!("{again:?}"), format!("{json:?}"));
}

/// A document as text behind its length, then the changes.
pub(super) fn diff(input: &[u8]) {
    let [low, high, rest @ ..] = input else { return };
    let len = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
    let (document, changes) = rest.split_at(len);
    let mut bytes = Vec::new();
    let mut all = true;
    for change in JsonDiffs(changes).iter() {
        match change {
            Ok(change) => put_json_diff(&mut bytes, &change),
            Err(_) => all = false,
        }
    }
    if all {
        let (first, again) = (JsonDiffs(changes).iter(), JsonDiffs(&bytes).iter());
        assert!(first.eq(again), "what was encoded again");
    }
    let Ok(document) = text_to_binary(document) else { return };
    if let Ok(changed) = JsonDiffs(changes).apply(&document) {
        assert!(Json::decode(&changed).is_ok());
    }
}

/// Lines of `omnibus binlog --json` on their way back.
pub(super) fn lines(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (mut replay, mut target) = (JsonReplay::default(), Sink);
    for line in text.lines() {
        if replay.line(line, &mut target, None).is_err() {
            assert!(!replay.in_transaction(), "an error ends the transaction");
        }
    }
}
