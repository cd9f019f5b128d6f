//! Changes inside a JSON document, which PARTIAL_UPDATE_ROWS has in place of the document
//! (`binlog_row_value_options=PARTIAL_JSON`): paths and operations. Pure; decodes lazily.

use crate::cursor::{Reader, put_lenenc};
use crate::error::DecodeError;
use bytes::Bytes;
use omnibus_value::json::{Index, Json, Leg, Path, SetMode};

/// The operation at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonDiffOp {
    /// Replaces the existing value.
    Replace,
    /// Adds a member to an object, or inserts an element into an array in front of the existing one.
    Insert,
    /// Removes the existing value.
    Remove,
}

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonDiff<'a> {
    /// The operation.
    pub op: JsonDiffOp,
    /// The path, such as `$.a[2]`.
    pub path: &'a str,
    /// The new value in MySQL's binary form; `None` for `Remove`.
    pub value: Option<&'a [u8]>,
}

/// The changes of one column, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonDiffs<'a>(pub &'a [u8]);

/// The changes could not be applied to a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonDiffError {
    /// The bytes of the changes or of the document are damaged.
    #[error(transparent)]
    Damaged(#[from] DecodeError),
    /// A path of the changes does not exist in the document, or exists already.
    #[error("the document has no place for a change at {0}")]
    Elsewhere(String),
}

impl<'a> JsonDiffs<'a> {
    /// Iterates over the changes; ends after the first damage.
    pub fn iter(&self) -> impl Iterator<Item = Result<JsonDiff<'a>, DecodeError>> + use<'a> {
        let mut r = Reader::new(self.0);
        let mut failed = false;
        std::iter::from_fn(move || {
            if failed || r.is_empty() {
                return None;
            }
            let next = next(&mut r);
            failed = next.is_err();
            Some(next)
        })
    }

    /// Returns a document, in binary form, with the changes applied.
    ///
    /// # Errors
    /// Damage, or a document that does not match the changes.
    pub fn apply(&self, document: &[u8]) -> Result<Bytes, JsonDiffError> {
        let bad = |_| DecodeError::new(0, "JSON document");
        let mut json = Json::decode(document).map_err(bad)?;
        self.apply_to(&mut json)?;
        Ok(json.encode().map_err(bad)?)
    }

    /// Applies the changes to a document.
    ///
    /// # Errors
    /// As `apply`; the document then has a part of the changes.
    pub fn apply_to(&self, document: &mut Json) -> Result<(), JsonDiffError> {
        for diff in self.iter() {
            let diff = diff?;
            let path = Path::parse(diff.path.as_bytes()).map_err(|_| DecodeError::new(0, "JSON path"))?;
            if path.has_wildcard() || !change(document, &path, &diff)? {
                return Err(JsonDiffError::Elsewhere(diff.path.to_owned()));
            }
        }
        Ok(())
    }
}

fn next<'a>(r: &mut Reader<'a>) -> Result<JsonDiff<'a>, DecodeError> {
    let op = match r.u8("JSON diff operation")? {
        0 => JsonDiffOp::Replace,
        1 => JsonDiffOp::Insert,
        2 => JsonDiffOp::Remove,
        _ => return Err(r.error("JSON diff operation")),
    };
    let len = r.lenenc_len("JSON path length")?;
    let path = std::str::from_utf8(r.take(len, "JSON path")?).map_err(|_| r.error("JSON path"))?;
    let value = if op == JsonDiffOp::Remove {
        None
    } else {
        let len = r.lenenc_len("JSON value length")?;
        Some(r.take(len, "JSON value")?)
    };
    Ok(JsonDiff { op, path, value })
}

/// Appends a change.
pub fn put_json_diff(out: &mut Vec<u8>, diff: &JsonDiff<'_>) {
    out.push(match diff.op {
        JsonDiffOp::Replace => 0,
        JsonDiffOp::Insert => 1,
        JsonDiffOp::Remove => 2,
    });
    put_lenenc(out, diff.path.len() as u64);
    out.extend_from_slice(diff.path.as_bytes());
    if let Some(value) = diff.value {
        put_lenenc(out, value.len() as u64);
        out.extend_from_slice(value);
    }
}

/// Applies one change. Returns false if its path does not match the document.
fn change(document: &mut Json, path: &Path, diff: &JsonDiff<'_>) -> Result<bool, DecodeError> {
    let value = diff.value.map(Json::decode).transpose().map_err(|_| DecodeError::new(0, "JSON value"))?;
    let is_there = !path.find(document, &mut |_| true).is_empty();
    match (diff.op, value) {
        (JsonDiffOp::Replace, Some(value)) if is_there => document.set(path, value, SetMode::Replace),
        (JsonDiffOp::Insert, Some(value)) => return Ok(insert(document, path, value)),
        (JsonDiffOp::Remove, None) if is_there => return Ok(document.remove(path)),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Inserts a value in place: copying the parent for every change would take quadratic time.
fn insert(document: &mut Json, path: &Path, value: Json) -> bool {
    let Some((last, parents)) = path.legs.split_last() else { return false };
    match (last, document.at_mut(parents)) {
        (Leg::Member(key), Some(parent @ Json::Object(_))) if parent.get(key).is_none() => {
            let path = Path { legs: vec![last.clone()] };
            parent.set(&path, value, SetMode::Insert);
        }
        (Leg::Cell(index), Some(Json::Array(items))) => {
            let at = match index {
                Index::Front(n) => *n,
                Index::Back(n) => items.len().saturating_sub(n + 1),
            };
            items.insert(at.min(items.len()), value);
        }
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use omnibus_value::json::{binary_to_text, text_to_binary};

    fn changed(document: &str, diffs: &[(JsonDiffOp, &str, Option<&str>)]) -> Result<String, JsonDiffError> {
        let mut bytes = Vec::new();
        for (op, path, value) in diffs {
            let value = value.map(|text| text_to_binary(text.as_bytes()).unwrap());
            put_json_diff(&mut bytes, &JsonDiff { op: *op, path, value: value.as_deref() });
        }
        let document = JsonDiffs(&bytes).apply(&text_to_binary(document.as_bytes()).unwrap())?;
        let mut text = Vec::new();
        binary_to_text(&document, &mut text).unwrap();
        Ok(String::from_utf8(text).unwrap())
    }

    #[test]
    fn changes_are_made_in_order() {
        use JsonDiffOp::{Insert, Remove, Replace};
        let diffs = [
            (Replace, "$.a", Some("[1, 2]")),
            (Insert, "$.a[1]", Some("\"between\"")),
            (Insert, "$.c", Some("null")),
            (Remove, "$.b.x", None),
        ];
        let text = changed(r#"{"a": 1, "b": {"x": 1, "y": 2}}"#, &diffs).unwrap();
        assert_eq!(text, r#"{"a": [1, "between", 2], "b": {"y": 2}, "c": null}"#);
        assert_eq!(changed("[1]", &[(Replace, "$", Some("7"))]).unwrap(), "7");
    }

    #[test]
    fn a_document_of_another_form_is_refused() {
        use JsonDiffOp::{Insert, Remove, Replace};
        for (op, path, value) in [
            (Replace, "$.gone", Some("1")),
            (Insert, "$.a", Some("1")),
            (Insert, "$.gone.x", Some("1")),
            (Remove, "$.gone", None),
            (Replace, "$.*", Some("1")),
        ] {
            assert!(
                matches!(changed(r#"{"a": 1}"#, &[(op, path, value)]), Err(JsonDiffError::Elsewhere(_))),
                "{path}"
            );
        }
        for bytes in [&b"\x03\x01$"[..], b"\x00\x05$", b"\x00\x01$\x05\x04", b"\x02\x01\xff"] {
            assert!(
                matches!(JsonDiffs(bytes).apply(b"\x04\x00"), Err(JsonDiffError::Damaged(_))),
                "{bytes:?}"
            );
        }
    }
}
