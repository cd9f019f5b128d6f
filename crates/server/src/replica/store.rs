//! Channels' settings as rows of `mysql.replica_channel`, and their passwords in a file of their own.
//!
//! A replica must send its password, so it is kept as it is: in `replica_passwords` in the data directory, which only the
//! server's user may read. A row would be in the binary log's private events too, and no log gets a password (ACCOUNT-1).
//! The file is replaced as a whole, before the row is changed, and has a checksum ([`sealed`]). It is encrypted as tables are, and a start
//! gives it the form of new ones.

use super::Env;
use crate::sealed;
use bytes::Bytes;
use omnibus_disk::{Disk, File};
use omnibus_encryption::{REPLICA_PASSWORDS as FILE, TableEncryption};
use omnibus_replication::replica::ChannelConfig;
use omnibus_sql::{
    Database, ExecResult, Interrupt, KillFlag, Mode, SqlError, SqlResult, SqlSession, SystemTables,
};
use omnibus_value::{Value, hex};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

const TABLE: &str = "replica_channel";

fn text(row: &[Value], column: usize) -> String {
    match row.get(column) {
        Some(Value::Bytes(b)) => String::from_utf8_lossy(b).into_owned(),
        _ => String::new(),
    }
}

fn value(s: &str) -> Value {
    Value::Bytes(Bytes::copy_from_slice(s.as_bytes()))
}

/// All of them.
pub(super) fn load(env: &Env) -> SqlResult<Vec<(String, ChannelConfig)>> {
    let rows = env.database.system_rows(TABLE)?;
    let mut passwords = Passwords::read(&Disk::new(env.tables.clone()), &env.folder)?;
    passwords.renew(&env.tables, &env.folder)?;
    let channel = |row: &Vec<Value>| {
        let name = text(row, 0);
        let mut config = ChannelConfig::decode(&text(row, 1));
        config.password = passwords.0.remove(&name).unwrap_or_default();
        (name, config)
    };
    Ok(rows.iter().map(channel).collect())
}

/// Stores a channel's; durable when it returns. Blocks.
pub(super) fn put(env: &Env, name: &str, config: &ChannelConfig) -> SqlResult<()> {
    let mut passwords = Passwords::read(&Disk::new(env.tables.clone()), &env.folder)?;
    if passwords.0.get(name) != Some(&config.password) {
        passwords.0.insert(name.to_owned(), config.password.clone());
        passwords.write(&env.tables, &env.folder)?;
    }
    let row = [value(name), value(&config.encode())];
    change(&env.database, |tables| tables.put(TABLE, &row))
}

/// Forgets a channel's; durable when it returns. Blocks.
pub(super) fn delete(env: &Env, name: &str) -> SqlResult<()> {
    let row = [value(name), value("")];
    change(&env.database, |tables| tables.delete(TABLE, &row).map(drop))?;
    let mut passwords = Passwords::read(&Disk::new(env.tables.clone()), &env.folder)?;
    if passwords.0.remove(name).is_some() {
        passwords.write(&env.tables, &env.folder)?;
    }
    Ok(())
}

/// Whether the file of passwords can be read; `disk` reads encrypted tables.
pub(crate) fn check_passwords(disk: &Disk, folder: &Path) -> SqlResult<()> {
    Passwords::read(disk, folder).map(drop)
}

/// By channel. In the file: a line each, name and password in hexadecimal digits.
struct Passwords(BTreeMap<String, String>);

fn unhex(text: &str) -> Option<String> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    String::from_utf8(hex::parse(text.as_bytes())?).ok()
}

impl Passwords {
    fn read(disk: &Disk, folder: &Path) -> SqlResult<Passwords> {
        let path = folder.join(FILE);
        let damaged = |what: &dyn std::fmt::Display| SqlError::internal(what.to_string());
        let contents = match disk.read(&path) {
            Ok(contents) => String::from_utf8(contents).map_err(|_| damaged(&sealed::Broken::new(&path)))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(failed(&path, &error)),
        };
        let (lines, _) = sealed::open(&contents, &path).map_err(|broken| damaged(&broken))?;
        let pair = |line: &str| {
            let (name, secret) = line.split_once(' ')?;
            Some((unhex(name)?, unhex(secret)?))
        };
        let pairs = lines.lines().map(pair).collect::<Option<_>>();
        pairs.map(Passwords).ok_or_else(|| damaged(&sealed::Broken::new(&path)))
    }

    /// Gives the file the form of new ones, if it has another one.
    fn renew(&self, tables: &Arc<TableEncryption>, folder: &Path) -> SqlResult<()> {
        let (disk, path) = (Disk::new(tables.clone()), folder.join(FILE));
        let other = || Ok(disk.exists(&path)? && disk.has_other_form(&path)?);
        if other().map_err(|error| failed(&path, &error))? { self.write(tables, folder) } else { Ok(()) }
    }

    fn write(&self, tables: &Arc<TableEncryption>, folder: &Path) -> SqlResult<()> {
        let lines = self.0.iter().map(|(name, secret)| {
            format!("{} {}\n", hex::lower(name.as_bytes()), hex::lower(secret.as_bytes()))
        });
        let path = folder.join(FILE);
        let text: String = lines.collect();
        let text = sealed::seal(&text);
        let written = match tables.is_on() {
            true => write_encrypted(&Disk::new(tables.clone()), &path, &text),
            false => crate::net::write_private(&path, &text),
        };
        written.map_err(|error| failed(&path, &error))
    }
}

fn write_encrypted(disk: &Disk, path: &Path, text: &str) -> io::Result<()> {
    let temporary = path.with_added_extension("tmp");
    disk.remove_if_there(&temporary)?;
    let file = File::new(disk.create_in_order(&temporary)?);
    #[cfg(unix)]
    std::fs::set_permissions(&temporary, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    file.write_all_at(text.as_bytes(), 0)?;
    file.sync_all()?;
    disk.rename(&temporary, path)?;
    path.parent().map_or(Ok(()), |folder| disk.sync_dir(folder))
}

fn failed(path: &Path, error: &io::Error) -> SqlError {
    SqlError::internal(format!("{}: {error}", path.display()))
}

fn change(
    database: &Arc<Database>,
    change: impl FnOnce(&mut SystemTables<'_>) -> ExecResult<()>,
) -> SqlResult<()> {
    let mut session = SqlSession::new(database.clone(), 0, Arc::new(KillFlag::default()));
    session.state.settings.sql_log_bin = false;
    let done = session.change_system_tables(&Bytes::new(), Mode::Blocking, change);
    let outcome = done.map_err(|interrupt| match interrupt {
        Interrupt::Error(error) => error,
        _ => SqlError::internal("the settings of a replication channel could not be stored"),
    })?;
    match outcome.wait {
        Some(ticket) => ticket.wait().map(drop).map_err(SqlError::of_commit),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use omnibus_encryption::Keyring;

    #[test]
    fn no_password_becomes_another_one_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Passwords([("one".into(), "secret".into()), ("two".into(), "ä".into())].into());
        let plain = TableEncryption::open(Disk::default(), folder.path(), None, false).unwrap();
        kept.write(&plain, folder.path()).unwrap();
        let read = || Passwords::read(&Disk::default(), folder.path());
        assert_eq!(read().unwrap().0, kept.0);
        let path = folder.path().join(FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        for (at, digit) in [(0, "x"), (8, "0"), (text.len() - 3, "g")] {
            let mut damaged = text.clone();
            damaged.replace_range(at..=at, digit);
            std::fs::write(&path, damaged).unwrap();
            let error = read().map(|_| ()).unwrap_err();
            assert!(error.message.contains(FILE), "{at}: {error}");
        }
        std::fs::write(&path, format!("{} {}\n", hex::lower(b"one"), hex::lower(b"older"))).unwrap();
        assert_eq!(read().unwrap().0["one"], "older", "an earlier version's has no checksum");
    }

    #[test]
    fn passwords_are_encrypted_as_tables_are() {
        let (folder, keys) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let tables = |on| {
            let keyring = Keyring::open_for_tables(&keys.path().join("keyring"), "u").unwrap();
            TableEncryption::open(Disk::default(), folder.path(), Some(keyring), on).unwrap()
        };
        let shows = || {
            std::fs::read(folder.path().join(FILE)).unwrap().windows(12).any(|part| part == b"736563726574")
        };
        let kept = Passwords([("one".into(), "secret".into())].into());
        kept.write(&tables(false), folder.path()).unwrap();
        assert!(shows());
        for on in [true, false, true] {
            kept.renew(&tables(on), folder.path()).unwrap();
            assert_eq!(shows(), !on);
            assert_eq!(Passwords::read(&Disk::new(tables(on)), folder.path()).unwrap().0, kept.0);
        }
    }
}
