//! Variables that SET PERSIST keeps over a restart: `mysqld-auto.cnf` in the data directory, in MySQL's form.
//!
//! Read at the start, behind option files and arguments, whose values it replaces; written as a whole, to a file beside it that takes
//! its name once it is safe. After a crash there is the file of before or that of after. A member of its own, which MySQL passes over, has a
//! checksum of what the others say; a file without it is taken as it is.

use super::def::{Change, VarDef};
use super::value::VarValue;
use crate::datadir::refused;
use crate::sealed;
use omnibus_sql::{SqlError, SqlResult};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Its name.
pub(crate) const FILE: &str = "mysqld-auto.cnf";
/// The version that MySQL 8 writes.
const VERSION: u64 = 2;
/// The member with the checksum.
const SEAL: &str = "omnibus_crc32";
/// MySQL's groups of variables: which of them it reads when is nothing to this server.
const GROUPS: [&str; 4] = [
    "mysql_dynamic_parse_early_variables",
    "mysql_dynamic_variables",
    "mysql_static_parse_early_variables",
    "mysql_static_variables",
];

/// Variables that say where the server is and what it is made of, or that are needed before the file can be read.
const NEVER: &[&str] = &[
    "basedir",
    "datadir",
    "dialect",
    "hostname",
    "innodb_version",
    "large_files_support",
    "large_page_size",
    "license",
    "log_bin_basename",
    "log_bin_index",
    "log_error",
    "lower_case_file_system",
    "lower_case_table_names",
    "persisted_globals_load",
    "pid_file",
    "plugin_dir",
    "protocol_version",
    "secure_file_priv",
    "server_uuid",
    "skip_grant_tables",
    "socket",
    "system_time_zone",
    "tmpdir",
];

/// One variable's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Its value, as an option would have it.
    pub value: String,
    /// The account that set it.
    pub user: String,
    /// From where.
    pub host: String,
    /// When, in microseconds since the epoch.
    pub at_us: i64,
}

/// The file and what is in it.
#[derive(Debug, Default)]
pub(crate) struct Persisted {
    kept: Mutex<BTreeMap<String, Kept>>,
}

/// Whether a variable may be kept: 1238 if not.
pub(crate) fn check(def: &VarDef) -> SqlResult<()> {
    let fixed = def.change == Change::Computed || def.name.starts_with("version");
    if fixed || NEVER.contains(&def.name) {
        let message = format!("Variable '{}' is a non persistent read only variable", def.name);
        return Err(SqlError { code: 1238, state: *b"HY000", message });
    }
    Ok(())
}

/// The text of a variable that has no value.
pub(crate) const NULL: &str = "NULL";

/// A value as an option has it.
fn option_text(value: &VarValue) -> String {
    match value {
        VarValue::Null => NULL.into(),
        value => value.text(),
    }
}

/// The variables in a data directory's file, none without one.
///
/// # Errors
/// A text that names the file and says what is wrong with it.
pub(crate) fn read(datadir: &Path) -> Result<BTreeMap<String, Kept>, String> {
    let path = datadir.join(FILE);
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) if std::fs::read_dir(datadir).is_err() => return Err(refused(datadir, error).to_string()),
        text => text.map_err(|error| format!("{}: {error}", path.display()))?,
    };
    let wrong = |what: &str| format!("{}: {what}; mend it or remove it", path.display());
    let mut parsed: Value = serde_json::from_str(&text).map_err(|error| wrong(&error.to_string()))?;
    let own = parsed.as_object_mut().and_then(|file| file.shift_remove(SEAL));
    if own.is_some_and(|own| own != sealed::checksum(&parsed.to_string())) {
        return Err(sealed::Broken::new(&path).to_string());
    }
    let Some(file) = parsed.as_object() else { return Err(wrong("it is no JSON object")) };
    let mut kept = BTreeMap::new();
    for group in GROUPS.iter().filter_map(|group| file.get(*group)?.as_object()) {
        for (name, about) in group {
            let value = about["Value"].as_str().ok_or_else(|| wrong(&format!("'{name}' has no Value")))?;
            let metadata = &about["Metadata"];
            let text = |name: &str| metadata[name].as_str().unwrap_or_default().to_owned();
            let at_us = metadata["Timestamp"].as_i64().unwrap_or(0);
            let one = Kept { value: value.to_owned(), user: text("User"), host: text("Host"), at_us };
            kept.insert(name.clone(), one);
        }
    }
    Ok(kept)
}

fn json(kept: &BTreeMap<String, Kept>) -> String {
    let mut groups: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for (name, one) in kept {
        let registry = super::Registry::get();
        let fixed = registry.find(name).is_some_and(|id| registry.def(id).change == Change::ReadOnly);
        let group = if fixed { GROUPS[3] } else { GROUPS[1] };
        let metadata = json!({ "Timestamp": one.at_us, "User": one.user, "Host": one.host });
        let about = json!({ "Value": one.value, "Metadata": metadata });
        groups.entry(group).or_default().insert(name.clone(), about);
    }
    let mut file = json!({ "Version": VERSION });
    for (name, group) in groups {
        file[name] = Value::Object(group);
    }
    file[SEAL] = sealed::checksum(&file.to_string()).into();
    file.to_string()
}

impl Persisted {
    /// With what the start has read.
    pub(crate) fn start(&self, kept: BTreeMap<String, Kept>) {
        *self.kept.lock() = kept;
    }

    /// Keeps a value. Blocks.
    ///
    /// # Errors
    /// The file can't be written: nothing is kept then.
    pub(crate) fn keep(
        &self,
        datadir: &Path,
        name: &str,
        value: &VarValue,
        who: (&str, &str),
    ) -> SqlResult<()> {
        let (user, host) = (who.0.to_owned(), who.1.to_owned());
        let one = Kept { value: option_text(value), user, host, at_us: crate::clock::now_us() };
        self.change(datadir, |kept| {
            kept.insert(name.to_owned(), one);
        })
    }

    /// RESET PERSIST: one variable, or all. Whether it was there. Blocks.
    ///
    /// # Errors
    /// As `keep`.
    pub(crate) fn forget(&self, datadir: &Path, name: Option<&str>) -> SqlResult<bool> {
        if name.is_some_and(|name| !self.kept.lock().contains_key(name)) {
            return Ok(false);
        }
        self.change(datadir, |kept| match name {
            Some(name) => {
                kept.remove(name);
            }
            None => kept.clear(),
        })?;
        Ok(true)
    }

    fn change(&self, datadir: &Path, change: impl FnOnce(&mut BTreeMap<String, Kept>)) -> SqlResult<()> {
        // Held over the write: two at once would each write without the other's.
        let mut kept = self.kept.lock();
        let mut new = kept.clone();
        change(&mut new);
        crate::net::write_private(&datadir.join(FILE), &json(&new))
            .map_err(|error| crate::errors::cannot_create(datadir.join(FILE).display(), &error))?;
        *kept = new;
        Ok(())
    }

    /// Names and values, for `performance_schema.persisted_variables`.
    pub(crate) fn all(&self) -> Vec<(String, Kept)> {
        self.kept.lock().iter().map(|(name, one)| (name.clone(), one.clone())).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again_and_a_damaged_file_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let persisted = Persisted::default();
        assert!(read(dir.path()).unwrap().is_empty());
        persisted.keep(dir.path(), "max_connections", &VarValue::UInt(7), ("root", "localhost")).unwrap();
        persisted.keep(dir.path(), "lsm_memtable_size", &VarValue::UInt(1 << 20), ("root", "")).unwrap();
        let found = read(dir.path()).unwrap();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), persisted.all());
        let text = std::fs::read_to_string(dir.path().join(FILE)).unwrap();
        let file: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(file["mysql_dynamic_variables"]["max_connections"]["Value"], "7");
        assert_eq!(file["mysql_static_variables"]["lsm_memtable_size"]["Metadata"]["User"], "root");
        assert!(persisted.forget(dir.path(), Some("max_connections")).unwrap());
        assert!(!persisted.forget(dir.path(), Some("max_connections")).unwrap());
        assert_eq!(read(dir.path()).unwrap().len(), 1);
        for (one, other) in [("max_connections", "max_connectionr"), ("\"7\"", "\"5\""), (":2,", ":3,")] {
            std::fs::write(dir.path().join(FILE), text.replacen(one, other, 1)).unwrap();
            let error = read(dir.path()).unwrap_err();
            assert!(error.contains(FILE) && error.contains("checksum"), "{one}: {error}");
        }
        let plain = r#"{"Version":2,"mysql_dynamic_variables":{"max_connections":{"Value":"9"}}}"#;
        std::fs::write(dir.path().join(FILE), plain).unwrap();
        assert_eq!(read(dir.path()).unwrap()["max_connections"].value, "9", "what MySQL wrote has none");
        std::fs::write(dir.path().join(FILE), &text[..40]).unwrap();
        assert!(read(dir.path()).unwrap_err().contains(FILE));
        let missing = dir.path().join("none");
        assert!(persisted.keep(&missing, "port", &VarValue::UInt(1), ("", "")).is_err());
        assert_eq!(persisted.all().len(), 1, "what is not written is not kept");
    }
}
