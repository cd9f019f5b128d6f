//! The data directory before anything is opened in it: created, locked, of a format that this version
//! can read, and with the server's uuid.
//!
//! `omnibus.format` is written once, before anything else, and holds the format's number, and the dialect of the log if it
//! is not MySQL's. A directory
//! that holds files but not that one is not ours and is left alone. It and `auto.cnf` have checksums ([`sealed`]).

use crate::sealed;
use omnibus_format::{Dialect, ServerUuid};
use omnibus_log::DirLock;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The format of data directories that this version writes, and the newest that it reads.
pub const FORMAT: u32 = 1;
/// In a backup that is not whole.
pub(crate) const INCOMPLETE: &str = "omnibus.backup.incomplete";
pub(crate) const MARKER: &str = "omnibus.format";
pub(crate) const AUTO: &str = "auto.cnf";
/// Allows the start to make the first account. Only a directory that is made has it, and no copy or backup does: what had
/// accounts once never gains one.
const FIRST_START: &str = "omnibus.first-start";

/// Why the directory can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataDirError {
    /// Another server runs on it, or it can't be created.
    #[error(transparent)]
    Lock(#[from] omnibus_log::LockError),
    /// The operating system said no.
    #[error("data directory: {path}: {source}")]
    Io {
        /// The file's path.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The folder above it is not there.
    #[error(
        "data directory {path}: there is no folder {parent}. A file system that is not mounted, or a mistyped name? Only the data \
         directory itself is made; make {parent} if it is to be there"
    )]
    NoParent {
        /// The directory.
        path: PathBuf,
        /// The folder above it.
        parent: PathBuf,
    },
    /// Another user's.
    #[error(
        "data directory {path}{owner}: the server runs as {user}, who is not let in ({source}); start it as the directory's owner, or give it \
         to {user}"
    )]
    NotOurs {
        /// The directory.
        path: PathBuf,
        /// The user who runs the server.
        user: String,
        /// The owner, if that is known.
        owner: String,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// A newer version wrote it.
    #[error(
        "data directory {path} has format {found}, which a newer version wrote ({MARKER} says so); this version reads formats up to {FORMAT}"
    )]
    Newer {
        /// The directory.
        path: PathBuf,
        /// Its format.
        found: String,
    },
    /// The marker is damaged.
    #[error(
        "{path}: there is no format in it; the file is damaged: restore it from a backup, or write the line '{FORMAT}' into it, and for a directory of MariaDB's dialect the line 'dialect=mariadb'"
    )]
    Marker {
        /// The file.
        path: PathBuf,
    },
    /// It was made for the other dialect.
    #[error(
        "data directory {path} was made with --dialect={found}, which can't be changed to {wanted}: its log and its GTIDs are of that dialect; start without the option, or with another data directory"
    )]
    Dialect {
        /// The directory.
        path: PathBuf,
        /// The dialect it was made for.
        found: &'static str,
        /// The dialect that was asked for.
        wanted: &'static str,
    },
    /// Something else is in it.
    #[error(
        "data directory {path} is not empty and was not made by Omnibus ({found} is in it, and no {MARKER}); give an empty or new directory"
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// One of the files there.
        found: String,
    },
    /// A backup, or the copy of one, that was not finished.
    #[error("{path} is a backup that was not finished; take another one")]
    Incomplete {
        /// The directory.
        path: PathBuf,
    },
    /// A small file is damaged.
    #[error(transparent)]
    Broken(#[from] sealed::Broken),
    /// `auto.cnf` is damaged.
    #[error("{path}: no valid server-uuid; restore the file, or remove it to get a new identity")]
    Uuid {
        /// The file.
        path: PathBuf,
    },
}

/// A directory that this process owns.
#[derive(Debug)]
pub struct DataDir {
    /// Where it is.
    pub path: PathBuf,
    /// Its `server_uuid`.
    pub uuid: ServerUuid,
    /// The server family whose log and GTIDs it has, chosen when it was made.
    pub dialect: Dialect,
    /// It was made just now.
    pub created: bool,
    _lock: DirLock,
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> DataDirError + '_ {
    move |source| DataDirError::Io { path: path.to_owned(), source }
}

/// Writes a small file so that it is either wholly there after a crash, or not at all.
pub(crate) fn write_whole(folder: &Path, name: &str, text: &str) -> Result<(), DataDirError> {
    let (path, temporary) = (folder.join(name), folder.join(format!("{name}.tmp")));
    let mut file = std::fs::File::create(&temporary).map_err(io(&temporary))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(io(&temporary))?;
    std::fs::rename(&temporary, &path).map_err(io(&path))?;
    std::fs::File::open(folder).and_then(|d| d.sync_all()).map_err(io(folder))
}

impl DataDir {
    /// Whether the first start is not over yet.
    pub(crate) fn is_first_start(&self) -> bool {
        self.path.join(FIRST_START).exists()
    }

    /// The first start is over: what it made is durable.
    pub(crate) fn end_first_start(&self) -> Result<(), DataDirError> {
        let path = self.path.join(FIRST_START);
        std::fs::remove_file(&path).map_err(io(&path))?;
        std::fs::File::open(&self.path).and_then(|folder| folder.sync_all()).map_err(io(&self.path))
    }

    /// Takes the directory, making it if there is none: for `wanted`, or MySQL's dialect.
    pub fn open(path: &Path, wanted: Option<Dialect>) -> Result<DataDir, DataDirError> {
        make_folder(path)?;
        std::fs::read_dir(path).map_err(|error| refused(path, error))?;
        if path.join(INCOMPLETE).exists() {
            return Err(DataDirError::Incomplete { path: path.to_owned() });
        }
        let marker = path.join(MARKER);
        let created = !marker.exists();
        if created {
            refuse_foreign(path)?;
        } else {
            // Before the lock makes a file.
            check_dialect(path, &marker, wanted)?;
        }
        let lock = DirLock::acquire(path)?;
        // Asserts RECOVER-3: a kill may have come before the name of what is read here was durable.
        std::fs::File::open(path).and_then(|folder| folder.sync_all()).map_err(io(path))?;
        if created {
            let dialect = wanted.unwrap_or_default();
            let line = if dialect == Dialect::Mysql { "" } else { "dialect=mariadb" };
            write_whole(path, FIRST_START, "1\n")?;
            write_whole(path, MARKER, &sealed::seal(&format!("{FORMAT}\n{line}\n")))?;
        }
        let dialect = check_dialect(path, &marker, wanted)?;
        let uuid = server_uuid(path)?;
        Ok(DataDir { path: path.to_owned(), uuid, dialect, created, _lock: lock })
    }
}

/// Makes the data directory, but none above it: where those are missing a file system is not mounted, or a name is mistyped, and an
/// empty server in its place would let everybody in. Its name is durable on return.
fn make_folder(path: &Path) -> Result<(), DataDirError> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => return Ok(()),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(refused(path, error)),
        _ => {}
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Also in a program that lets others read what it makes.
    match std::fs::DirBuilder::new().mode(0o750).create(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(DataDirError::NoParent { path: path.to_owned(), parent: parent.to_owned() });
        }
        Err(error) => return Err(refused(path, error)),
        Ok(()) => {}
    }
    std::fs::File::open(parent).and_then(|parent| parent.sync_all()).map_err(io(parent))
}

/// The error of a directory that cannot be read, with its owner where the system lets only that one in.
pub(crate) fn refused(path: &Path, source: std::io::Error) -> DataDirError {
    if source.kind() != ErrorKind::PermissionDenied {
        return io(path)(source);
    }
    // SAFETY: it has no arguments and never fails.
    let user = unsafe { libc::geteuid() };
    let owner = std::fs::metadata(path).ok().map(|found| user_name(found.uid()));
    let owner = owner.map_or_else(String::new, |owner| format!(", which is {owner}'s"));
    DataDirError::NotOurs { path: path.to_owned(), user: user_name(user), owner, source }
}

/// A user's name, or its number where it has none.
fn user_name(number: u32) -> String {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let is_it = |line: &&str| line.split(':').nth(2).is_some_and(|found| found.parse() == Ok(number));
    let name = users.lines().find(is_it).and_then(|line| line.split(':').next());
    name.map_or_else(|| format!("user {number}"), str::to_owned)
}

/// Prepared log files may be there before the first start: `omnibus alloc` makes them.
fn refuse_foreign(path: &Path) -> Result<(), DataDirError> {
    let ours = ["pre-allocated-binlog", "lost+found", "omnibus.lock", FIRST_START];
    for entry in std::fs::read_dir(path).map_err(io(path))? {
        let name = entry.map_err(io(path))?.file_name().to_string_lossy().into_owned();
        if !ours.contains(&name.as_str()) && !name.starts_with('.') && !name.ends_with(".tmp") {
            return Err(DataDirError::Foreign { path: path.to_owned(), found: name });
        }
    }
    Ok(())
}

/// Checks the format and that the dialect is the wanted one, if one is wanted; gives the dialect.
fn check_dialect(path: &Path, marker: &Path, wanted: Option<Dialect>) -> Result<Dialect, DataDirError> {
    let dialect = check_format(path, marker)?;
    match wanted.filter(|wanted| *wanted != dialect) {
        None => Ok(dialect),
        Some(wanted) => {
            let (found, wanted) = (dialect.name(), wanted.name());
            Err(DataDirError::Dialect { path: path.to_owned(), found, wanted })
        }
    }
}

/// Checks the format, and gives the dialect: the marker's second line, if there is one.
fn check_format(path: &Path, marker: &Path) -> Result<Dialect, DataDirError> {
    let text = std::fs::read_to_string(marker).map_err(io(marker))?;
    let (text, _) = sealed::open(&text, marker)?;
    let newer = || DataDirError::Newer { path: path.to_owned(), found: text.trim().to_owned() };
    let mut lines = text.lines();
    match lines.next().and_then(|line| line.trim().parse::<u32>().ok()) {
        Some(1..=FORMAT) => {}
        Some(0) | None => return Err(DataDirError::Marker { path: marker.to_owned() }),
        Some(_) => return Err(newer()),
    }
    match lines.next().map(str::trim).filter(|line| !line.is_empty()) {
        None => Ok(Dialect::Mysql),
        Some(line) => line.strip_prefix("dialect=").and_then(Dialect::from_name).ok_or_else(newer),
    }
}

/// Checks the files that say what a directory is. Changes nothing.
pub(crate) fn check(path: &Path) -> Vec<DataDirError> {
    let (format, uuid) = (check_format(path, &path.join(MARKER)), read_uuid(&path.join(AUTO)));
    format.err().into_iter().chain(uuid.err()).collect()
}

/// Reads the uuid, in MySQL's file and form, or makes one. From then on it has a checksum.
fn server_uuid(path: &Path) -> Result<ServerUuid, DataDirError> {
    match read_uuid(&path.join(AUTO))? {
        Some(Identity { uuid, to_be_sealed }) => {
            if let Some(text) = to_be_sealed {
                write_whole(path, AUTO, &sealed::seal(&text))?;
            }
            Ok(uuid)
        }
        None => {
            let uuid = ServerUuid(*uuid::Uuid::new_v4().as_bytes());
            write_whole(path, AUTO, &sealed::seal(&format!("[auto]\nserver-uuid={uuid}\n")))?;
            Ok(uuid)
        }
    }
}

/// The content of `auto.cnf`, and its text if that has no checksum.
struct Identity {
    uuid: ServerUuid,
    to_be_sealed: Option<String>,
}

fn read_uuid(file: &Path) -> Result<Option<Identity>, DataDirError> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(file)(error)),
    };
    let (text, is_sealed) = sealed::open(&text, file)?;
    let value = text
        .lines()
        .filter_map(|l| l.split_once('='))
        .find(|(k, _)| k.trim().replace('_', "-") == "server-uuid");
    let uuid = value.and_then(|(_, v)| v.trim().parse().ok());
    let uuid = uuid.ok_or_else(|| DataDirError::Uuid { path: file.to_owned() })?;
    let to_be_sealed = (!is_sealed).then(|| format!("{}\n", text.trim_end()));
    Ok(Some(Identity { uuid, to_be_sealed }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_directory_is_made_once_and_owned_by_one() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("data");
        let first = DataDir::open(&path, None).unwrap();
        assert!(first.created);
        assert!(matches!(DataDir::open(&path, None), Err(DataDirError::Lock(_))));
        let uuid = first.uuid;
        drop(first);
        let again = DataDir::open(&path, None).unwrap();
        assert!(!again.created && again.uuid == uuid);
    }

    #[test]
    fn only_the_last_folder_is_made() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("volume/data");
        let error = DataDir::open(&path, None).unwrap_err().to_string();
        assert!(error.contains("there is no folder") && error.contains("volume"), "{error}");
        assert!(!parent.path().join("volume").exists());
        std::fs::create_dir(parent.path().join("volume")).unwrap();
        assert!(DataDir::open(&path, None).unwrap().created);
    }

    #[test]
    fn what_is_not_ours_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ibdata1"), "x").unwrap();
        let error = DataDir::open(folder.path(), None).unwrap_err().to_string();
        assert!(error.contains("ibdata1"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was added");
        let prepared = tempfile::tempdir().unwrap();
        std::fs::create_dir(prepared.path().join("pre-allocated-binlog")).unwrap();
        assert!(DataDir::open(prepared.path(), None).unwrap().created);
    }

    #[test]
    fn the_dialect_is_chosen_once() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("data");
        assert_eq!(DataDir::open(&path, Some(Dialect::Mariadb)).unwrap().dialect, Dialect::Mariadb);
        assert_eq!(DataDir::open(&path, None).unwrap().dialect, Dialect::Mariadb);
        let error = DataDir::open(&path, Some(Dialect::Mysql)).unwrap_err().to_string();
        assert!(error.contains("--dialect=mariadb"), "{error}");
        let other = parent.path().join("other");
        assert_eq!(DataDir::open(&other, None).unwrap().dialect, Dialect::Mysql);
        std::fs::remove_file(other.join("omnibus.lock")).unwrap();
        assert!(DataDir::open(&other, Some(Dialect::Mariadb)).is_err());
        assert!(!other.join("omnibus.lock").exists(), "a refused start leaves nothing behind");
    }

    #[test]
    fn another_bit_is_no_other_server() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(AUTO);
        let by_hand = "# mine\n[auto]\nserver_uuid=00000000-0000-0000-0000-00000000000a";
        std::fs::write(folder.path().join(FIRST_START), "1\n").unwrap();
        drop(DataDir::open(folder.path(), Some(Dialect::Mariadb)).unwrap());
        std::fs::write(&path, by_hand).unwrap();
        let uuid = DataDir::open(folder.path(), None).unwrap().uuid;
        assert_eq!(uuid.0[15], 10, "what people write is taken as it is, and has a checksum from then on");
        for (path, one, other) in [
            (&path, "a\n", "b\n"),
            (&path, "server_uuid", "server-uuid"),
            (&folder.path().join(MARKER), "dialect=mariadb\n", "\n"),
        ] {
            let whole = std::fs::read_to_string(path).unwrap();
            std::fs::write(path, whole.replacen(one, other, 1)).unwrap();
            let error = DataDir::open(folder.path(), None).unwrap_err();
            assert!(matches!(error, DataDirError::Broken(_)), "{one:?}: {error}");
            assert!(error.to_string().contains(&*path.to_string_lossy()), "{error}");
            std::fs::write(path, whole).unwrap();
        }
        assert_eq!(DataDir::open(folder.path(), None).unwrap().uuid, uuid);
    }

    #[test]
    fn newer_formats_and_damage_are_named() {
        let folder = tempfile::tempdir().unwrap();
        drop(DataDir::open(folder.path(), None).unwrap());
        std::fs::write(folder.path().join(AUTO), "[auto]\nserver-uuid=nonsense\n").unwrap();
        assert!(matches!(DataDir::open(folder.path(), None), Err(DataDirError::Uuid { .. })));
        std::fs::write(folder.path().join(MARKER), "2\n").unwrap();
        let error = DataDir::open(folder.path(), None).unwrap_err().to_string();
        std::fs::remove_file(folder.path().join("omnibus.lock")).unwrap();
        assert!(DataDir::open(folder.path(), None).is_err());
        assert!(!folder.path().join("omnibus.lock").exists(), "a refused start leaves nothing behind");
        assert!(error.contains("format 2") && error.contains("newer version"), "{error}");
    }
}
