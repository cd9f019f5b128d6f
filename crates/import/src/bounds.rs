//! Ranges of a primary key as conditions that both servers use the key for.
//!
//! A comparison of rows, `(a, b) > (1, 2)`, reads the whole key in MySQL, so that a range is spelled out column by column.

use crate::quote;

/// The form of a key column's values in a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyKind {
    /// Digits as they come.
    Number,
    /// Dates and times.
    Quoted,
    /// Bytes.
    Bytes,
    /// Text, in the character set of the column.
    Text(String),
}

/// A column of a primary key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyColumn {
    pub name: String,
    pub kind: KeyKind,
}

/// The values of a key.
pub(crate) type KeyValue = Vec<Vec<u8>>;

/// The rows whose key is greater than `after` and at most `to`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    pub after: Option<KeyValue>,
    pub to: Option<KeyValue>,
}

impl KeyKind {
    fn literal(&self, value: &[u8]) -> String {
        match self {
            KeyKind::Number => String::from_utf8_lossy(value).into_owned(),
            KeyKind::Quoted => quote::text(&String::from_utf8_lossy(value)),
            KeyKind::Bytes => quote::hex(value),
            KeyKind::Text(charset) => format!("_{charset} {}", quote::hex(value)),
        }
    }
}

/// Returns a condition for keys beyond `value` in the direction of `than`, `>` or `<`, with `value` itself if `or_equal`.
fn beyond(key: &[KeyColumn], value: &[Vec<u8>], than: char, or_equal: bool) -> String {
    let (Some((column, columns)), Some((first, rest))) = (key.split_first(), value.split_first()) else {
        return "FALSE".into();
    };
    let (name, literal) = (quote::name(&column.name), column.kind.literal(first));
    if columns.is_empty() {
        let equal = if or_equal { "=" } else { "" };
        return format!("{name} {than}{equal} {literal}");
    }
    let inner = beyond(columns, rest, than, or_equal);
    // The first part says what the second implies, for planners that look at one column.
    format!("({name} {than}= {literal} AND ({name} {than} {literal} OR ({name} = {literal} AND {inner})))")
}

impl Range {
    /// Returns the condition, with WHERE in front; empty for all rows.
    pub(crate) fn condition(&self, key: &[KeyColumn]) -> String {
        let mut parts = Vec::new();
        if let Some(after) = &self.after {
            parts.push(beyond(key, after, '>', false));
        }
        if let Some(to) = &self.to {
            parts.push(beyond(key, to, '<', true));
        }
        if parts.is_empty() { String::new() } else { format!(" WHERE {}", parts.join(" AND ")) }
    }

    /// The range for people.
    pub(crate) fn shown(&self, key: &[KeyColumn]) -> String {
        if key.is_empty() {
            return "the whole table".into();
        }
        let names: Vec<&str> = key.iter().map(|column| &*column.name).collect();
        let side =
            |value: &Option<KeyValue>, none: &str| value.as_ref().map_or(none.into(), |v| shown(key, v));
        format!(
            "({}) after {} up to {}",
            names.join(", "),
            side(&self.after, "the start"),
            side(&self.to, "the end")
        )
    }
}

/// The values of a key for people.
pub(crate) fn shown(key: &[KeyColumn], value: &[Vec<u8>]) -> String {
    let one = |(column, bytes): (&KeyColumn, &Vec<u8>)| match (&column.kind, std::str::from_utf8(bytes)) {
        (KeyKind::Bytes, _) | (_, Err(_)) => quote::hex(bytes),
        (KeyKind::Number, Ok(text)) => text.to_owned(),
        (_, Ok(text)) => quote::text(text),
    };
    format!("({})", key.iter().zip(value).map(one).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kinds: &[KeyKind]) -> Vec<KeyColumn> {
        let named = |(kind, name): (&KeyKind, &str)| KeyColumn { name: name.into(), kind: kind.clone() };
        kinds.iter().zip(["a", "b", "c"]).map(named).collect()
    }

    #[test]
    fn ranges_are_spelled_out() {
        let one = key(&[KeyKind::Number]);
        let all = Range::default();
        assert_eq!(all.condition(&one), "");
        let some = Range { after: Some(vec![b"5".to_vec()]), to: Some(vec![b"9".to_vec()]) };
        assert_eq!(some.condition(&one), " WHERE `a` > 5 AND `a` <= 9");
        let two = key(&[KeyKind::Text("latin1".into()), KeyKind::Bytes]);
        let rest = Range { after: Some(vec![vec![0xE9], vec![1, 2]]), to: None };
        assert_eq!(
            rest.condition(&two),
            " WHERE (`a` >= _latin1 x'e9' AND (`a` > _latin1 x'e9' OR (`a` = _latin1 x'e9' AND `b` > x'0102')))"
        );
        assert_eq!(rest.shown(&two), "(a, b) after (x'e9', x'0102') up to the end");
        let start =
            Range { after: None, to: Some(vec![b"2020-01-01".to_vec(), b"1".to_vec(), b"2".to_vec()]) };
        let three = key(&[KeyKind::Quoted, KeyKind::Number, KeyKind::Number]);
        assert_eq!(
            start.condition(&three),
            " WHERE (`a` <= '2020-01-01' AND (`a` < '2020-01-01' OR (`a` = '2020-01-01' AND \
             (`b` <= 1 AND (`b` < 1 OR (`b` = 1 AND `c` <= 2))))))"
        );
    }
}
