//! Names of objects, and the small documents among them. No requests.

use crate::error::ArchiveError;
use omnibus_server::backup::BackupInfo;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The version of the layout.
const VERSION: u64 = 1;
/// The name of the document with the server's identity.
pub(crate) const IDENTITY: &str = "archive.json";
/// Folder of the log's files.
pub(crate) const LOG: &str = "log";
/// Folder of base backups.
pub(crate) const BACKUPS: &str = "backups";
/// The suffix of documents' names.
const JSON: &str = ".json";

/// The folder of a log file's pieces.
pub(crate) fn log_folder(file: &str) -> String {
    format!("{LOG}/{file}")
}

/// Returns the name of the document that records a log file's end.
pub(crate) fn log_end(file: &str) -> String {
    format!("{LOG}/{file}{JSON}")
}

/// The folder of a base backup's files.
pub(crate) fn backup_folder(id: &str) -> String {
    format!("{BACKUPS}/{id}")
}

/// Its list.
pub(crate) fn backup_list(id: &str) -> String {
    format!("{BACKUPS}/{id}{JSON}")
}

/// The name in front of `.json`.
pub(crate) fn document(name: &str) -> Option<&str> {
    name.strip_suffix(JSON)
}

/// A document's bytes.
pub(crate) fn bytes(document: &Value) -> Vec<u8> {
    let mut text = format!("{document:#}").into_bytes();
    text.push(b'\n');
    text
}

/// Reads a document of this version.
pub(crate) fn parse(name: &str, bytes: &[u8]) -> Result<Value, ArchiveError> {
    let damaged = |what: String| ArchiveError::Damaged { name: name.to_owned(), what };
    let document: Value = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
    match document["version"].as_u64() {
        Some(VERSION) => Ok(document),
        Some(other) => Err(damaged(format!("version {other} is of a later program"))),
        None => Err(damaged("it has no version".into())),
    }
}

/// The identity of the server whose log an archive has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// `server_uuid`.
    pub server: String,
}

impl Identity {
    pub fn document(&self) -> Value {
        json!({"version": VERSION, "server_uuid": self.server})
    }

    pub fn of(document: &Value) -> Option<Identity> {
        Some(Identity { server: document["server_uuid"].as_str()?.to_owned() })
    }
}

/// The end of a log file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogEnd {
    /// Its length.
    pub bytes: u64,
    /// CRC-32 of all of it.
    pub crc: u32,
    /// The time of its last commit, in microseconds since 1970; 0 if it has none.
    pub last_us: u64,
}

impl LogEnd {
    pub fn document(&self) -> Value {
        json!({"version": VERSION, "bytes": self.bytes, "crc32": format!("{:08x}", self.crc), "last_commit_us": self.last_us})
    }

    pub fn of(document: &Value) -> Option<LogEnd> {
        Some(LogEnd {
            bytes: document["bytes"].as_u64()?,
            crc: u32::from_str_radix(document["crc32"].as_str()?, 16).ok()?,
            last_us: document["last_commit_us"].as_u64()?,
        })
    }
}

/// A base backup that is whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaseBackup {
    /// Its name: when it was taken.
    pub id: String,
    /// The time of its completion by the server's clock, in microseconds since 1970.
    pub taken_us: u64,
    /// Its files and the position of the log that it is of.
    pub info: BackupInfo,
}

impl BaseBackup {
    pub(crate) fn document(&self) -> Value {
        let files: Vec<Value> = (self.info.files.iter())
            .map(|(path, size)| {
                let crc = self.info.checksums.get(path).copied().unwrap_or_default();
                json!({"path": path, "bytes": size, "crc32": format!("{crc:08x}")})
            })
            .collect();
        json!({
            "version": VERSION,
            "taken_us": self.taken_us,
            "file": self.info.file,
            "position": self.info.position,
            "gtid_executed": self.info.gtid_executed,
            "files": files,
        })
    }

    pub(crate) fn of(id: &str, document: &Value) -> Option<BaseBackup> {
        let (mut files, mut checksums) = (BTreeMap::new(), BTreeMap::new());
        for file in document["files"].as_array()? {
            let path = file["path"].as_str()?;
            files.insert(path.to_owned(), file["bytes"].as_u64()?);
            checksums.insert(path.to_owned(), u32::from_str_radix(file["crc32"].as_str()?, 16).ok()?);
        }
        let info = BackupInfo {
            file: document["file"].as_str()?.to_owned(),
            position: document["position"].as_u64()?,
            gtid_executed: document["gtid_executed"].as_str()?.to_owned(),
            files,
            checksums,
        };
        Some(BaseBackup { id: id.to_owned(), taken_us: document["taken_us"].as_u64()?, info })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn documents_come_back_as_they_were_and_others_are_refused() {
        let mut info = BackupInfo { file: "binlog.000003".into(), position: 77, ..BackupInfo::default() };
        info.files.insert("lsm/1".into(), 5);
        info.checksums.insert("lsm/1".into(), 0xAB);
        let backup = BaseBackup { id: "x".into(), taken_us: 9, info };
        let read = parse("x", &bytes(&backup.document())).unwrap();
        assert_eq!(BaseBackup::of("x", &read).unwrap(), backup);
        let end = LogEnd { bytes: 5, crc: 0xDEAD_BEEF, last_us: 3 };
        assert_eq!(LogEnd::of(&parse("e", &bytes(&end.document())).unwrap()).unwrap(), end);
        let identity = Identity { server: "uuid".into() };
        assert_eq!(Identity::of(&parse("i", &bytes(&identity.document())).unwrap()).unwrap(), identity);
        for text in ["", "{", "{}", r#"{"version": 2}"#] {
            assert!(matches!(parse("i", text.as_bytes()), Err(ArchiveError::Damaged { .. })), "{text}");
        }
        assert_eq!(document("binlog.000001.json"), Some("binlog.000001"));
    }
}
