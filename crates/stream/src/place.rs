//! The position of a stream in a server's log: kept at the target, or chosen for a new stream.

use serde_json::{Value, json};
use std::str::FromStr;

/// The topic or subject of positions, behind the stream's name.
pub(crate) const POSITIONS: &str = "positions";

/// A position between transactions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamPosition {
    /// `server_uuid` of the server whose file it is.
    pub server: String,
    /// The file.
    pub file: String,
    /// The offset of the next transaction.
    pub position: u64,
}

impl StreamPosition {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        json!({"version": 1, "server_uuid": self.server, "file": self.file, "position": self.position})
            .to_string()
            .into_bytes()
    }

    pub(crate) fn of(bytes: &[u8]) -> Option<StreamPosition> {
        let document: Value = serde_json::from_slice(bytes).ok()?;
        (document["version"].as_u64()? == 1).then_some(())?;
        Some(StreamPosition {
            server: document["server_uuid"].as_str()?.to_owned(),
            file: document["file"].as_str()?.to_owned(),
            position: document["position"].as_u64()?,
        })
    }
}

/// The start of a stream that has no position yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// The log's end.
    #[default]
    Newest,
    /// The oldest transaction that the server still has.
    Oldest,
    /// The beginning of a transaction: file and offset.
    Position(String, u64),
}

impl FromStr for Start {
    type Err = String;

    fn from_str(text: &str) -> Result<Start, String> {
        match text {
            "newest" => return Ok(Start::Newest),
            "oldest" => return Ok(Start::Oldest),
            _ => {}
        }
        let parts = text.rsplit_once(':').and_then(|(file, at)| Some((file, at.parse().ok()?)));
        let (file, at) =
            parts.ok_or_else(|| format!("'{text}' is neither newest, oldest, nor FILE:POSITION"))?;
        Ok(Start::Position(file.to_owned(), at))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_place_comes_back_and_others_are_none() {
        let place =
            StreamPosition { server: "u".into(), file: "binlog.000007".into(), position: 5_000_000_000 };
        assert_eq!(StreamPosition::of(&place.bytes()).unwrap(), place);
        for text in ["", "{}", r#"{"version":2,"server_uuid":"u","file":"f","position":4}"#] {
            assert!(StreamPosition::of(text.as_bytes()).is_none(), "{text}");
        }
        assert_eq!("binlog.000007:4".parse::<Start>().unwrap(), Start::Position("binlog.000007".into(), 4));
        assert!("binlog.000007".parse::<Start>().is_err());
    }
}
