//! The bytes of a keyring's file: those of MySQL's `component_keyring_file`, and the lines that came before them, which are read only.
//!
//! The component's file is one JSON object, `{"version":"1.0","elements":[..]}`, whose elements have `user`, `data_id`, `data_type`, `data` (bytes in
//! hexadecimal) and `extension`, an empty array. In an element that is written here that array holds a checksum of the rest, which the component
//! passes over; one without a checksum is taken as it is. Elements that are no master key (other types, accounts or lengths) are kept as they are.
//!
//! Of the lines each is a key, `name=hexadecimal`, and the last one is a checksum.

use crate::key::{MasterKey, from_hex, to_hex};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const VERSION: &str = "1.0";
/// The type of a master key.
const AES: &str = "AES";
/// How names of logs' master keys begin.
pub(crate) const LOG_KEYS: &str = "MySQLReplicationKey_";
/// How names of tables' master keys begin.
pub(crate) const TABLE_KEYS: &str = "INNODBKey-";
const CHECKSUM: &str = "crc32=";
const LINES_CHECKSUM: &str = "# crc32=";

/// The contents of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    /// Master keys by name.
    pub(crate) keys: BTreeMap<String, MasterKey>,
    /// Other elements.
    others: Vec<Value>,
}

impl Contents {
    /// Reads a file; `None` if it is damaged, or no keyring.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Contents> {
        let text = std::str::from_utf8(bytes).ok()?;
        if text.trim_start().starts_with('{') { parse_elements(text) } else { parse_lines(text) }
    }

    /// The file that holds this, in the component's form.
    pub(crate) fn render(&self) -> String {
        let keys = self.keys.iter().map(|(name, key)| {
            let hex = to_hex(&key.0).to_uppercase();
            let sum = format!("{CHECKSUM}{}", checksum(name, &hex));
            json!({"user": "", "data_id": name, "data_type": AES, "data": hex, "extension": [sum]})
        });
        let elements: Vec<Value> = self.others.iter().cloned().chain(keys).collect();
        json!({"version": VERSION, "elements": elements}).to_string()
    }
}

fn checksum(name: &str, hex: &str) -> String {
    format!("{:08x}", crc32fast::hash(format!("{name}={hex}").as_bytes()))
}

fn parse_lines(text: &str) -> Option<Contents> {
    let (content, checksum) = text.rsplit_once(LINES_CHECKSUM)?;
    if checksum != format!("{:08x}\n", crc32fast::hash(content.as_bytes())) {
        return None;
    }
    let lines = content.lines().filter(|line| !line.starts_with('#'));
    // No other keys were ever written, and the component's form has a checksum for these only.
    let keys = lines.map(|line| {
        let (name, key) = line.split_once('=').filter(|(name, _)| name.starts_with(LOG_KEYS))?;
        Some((name.to_owned(), MasterKey(from_hex(key)?)))
    });
    Some(Contents { keys: keys.collect::<Option<_>>()?, others: Vec::new() })
}

fn parse_elements(text: &str) -> Option<Contents> {
    let file: Value = serde_json::from_str(text).ok()?;
    let file = file.as_object()?;
    if file.len() != 2 || file.get("version")?.as_str()? != VERSION {
        return None;
    }
    let mut found = Contents::default();
    for element in file.get("elements")?.as_array()? {
        match master_key(element)? {
            Some((name, key)) => {
                if found.keys.insert(name, key).is_some() {
                    return None;
                }
            }
            None => found.others.push(element.clone()),
        }
    }
    Some(found)
}

/// The master key that an element is, if it is one; `None` if it is damaged.
fn master_key(element: &Value) -> Option<Option<(String, MasterKey)>> {
    let fields = element.as_object()?;
    let text = |name: &str| fields.get(name)?.as_str();
    let (user, name, kind, data) = (text("user")?, text("data_id")?, text("data_type")?, text("data")?);
    let may_be =
        user.is_empty() && kind == AES && (name.starts_with(LOG_KEYS) || name.starts_with(TABLE_KEYS));
    let sums = fields.get("extension")?.as_array()?;
    let is_whole = match &sums[..] {
        [] => true,
        [sum] => may_be && sum.as_str()?.strip_prefix(CHECKSUM) == Some(&*checksum(name, data)),
        _ => false,
    };
    if fields.len() != 5 || !is_whole {
        return None;
    }
    Some(from_hex(data).filter(|_| may_be).map(|key| (name.to_owned(), MasterKey(key))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ID: &str = "MySQLReplicationKey_6b5c8f8e-0000-11ef-9000-000000000001_1";

    fn element(id: &str, kind: &str, data: &str) -> String {
        format!(
            "{{ \"user\" : \"\", \"data_id\":\"{id}\",\n\"data_type\":\"{kind}\", \"data\":\"{data}\", \"extension\":[] }}"
        )
    }

    fn file(elements: &[String]) -> String {
        format!("{{\"version\": \"1.0\", \"elements\": [{}]}}\n", elements.join(", "))
    }

    #[test]
    fn what_the_component_writes_is_read_and_what_is_no_master_key_is_kept() {
        let others = [element("app \\\"key\\\" \\u00e9", AES, "00FF"), element("password", "SECRET", "7365")];
        let key = element(ID, AES, &"0aF0".repeat(16));
        let contents =
            Contents::parse(file(&[others[0].clone(), key, others[1].clone()]).as_bytes()).unwrap();
        assert_eq!(contents.keys[ID].0[..2], [0x0a, 0xf0]);
        assert_eq!(contents.others, others.map(|text| serde_json::from_str::<Value>(&text).unwrap()));
        let again = Contents::parse(contents.render().as_bytes()).unwrap();
        assert_eq!((again.keys, again.others), (contents.keys, contents.others));
        assert!(Contents::parse(file(&[]).as_bytes()).unwrap().keys.is_empty());
    }

    #[test]
    fn the_lines_of_before_are_read() {
        let text = format!("# Keys.\n{ID}={}\n", "0a".repeat(32));
        let whole = format!("{text}{LINES_CHECKSUM}{:08x}\n", crc32fast::hash(text.as_bytes()));
        assert_eq!(Contents::parse(whole.as_bytes()).unwrap().keys[ID].0, [10; 32]);
        for at in 0..whole.len() {
            let mut bytes = whole.clone().into_bytes();
            bytes[at] ^= 1;
            assert!(Contents::parse(&bytes).is_none(), "byte {at}");
        }
    }

    #[test]
    fn what_is_no_keyring_is_none() {
        let key = element(ID, AES, &"0a".repeat(32));
        let wrong = [
            String::new(),
            "{}".into(),
            "{\"version\":\"1.0\"}".into(),
            file(&[key.clone(), key.clone()]),
            file(&[]).replace("1.0", "2.0"),
            file(&[key.replace("data_id", "id")]),
            file(&[key.replace("[]", "[\"crc32=00000000\"]")]),
            file(&[key.replace("[]", &"[".repeat(100_000))]),
            format!("{}x", file(&[key])),
        ];
        for text in wrong {
            assert!(Contents::parse(text.as_bytes()).is_none(), "{}", &text[..text.len().min(200)]);
        }
    }
}
