//! Backups on disk, and how one becomes a data directory again.
//!
//! A backup is a data directory that a crash could have left: engine files, the log files from there on, and the
//! server's own small files. `omnibus serve` opens one as it is. Two files tell it from others: while it is being
//! made, `omnibus.backup.incomplete` is in it, and a server refuses it; when all is durable, `omnibus.backup` says what
//! belongs to it, the format marker of data directories is written, and that file goes last.
//!
//! Not here: how it is taken from a running server (`coordination::backup`).

use crate::datadir::{INCOMPLETE, MARKER, write_whole};
use omnibus_engine::interruptible::{self, GoOn};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The description file of a whole one.
const INFO: &str = "omnibus.backup";
const HEADER: &str = "omnibus-backup 2";
/// Of earlier versions: sizes only.
const HEADER_1: &str = "omnibus-backup 1";
/// The last line: the checksum of those before it.
const END: &str = "end";

/// The description file of a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupInfo {
    /// The log file that it ends in.
    pub file: String,
    /// Where in it.
    pub position: u64,
    /// `gtid_executed` of there.
    pub gtid_executed: String,
    /// Sizes of its files by their paths below the backup.
    pub files: BTreeMap<String, u64>,
    /// The CRC-32 of each. An earlier version's backup has none.
    pub checksums: BTreeMap<String, u32>,
}

/// Why a backup was not restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// It was never finished.
    #[error("{0} is not a whole backup: it was not finished")]
    Incomplete(PathBuf),
    /// It has no description, or one that this version does not understand.
    #[error("{0} is not a backup that this version understands")]
    NotABackup(PathBuf),
    /// A file is not as it was.
    #[error("{path}: {found}, but the backup was made with {expected} bytes")]
    Changed {
        /// The file's path.
        path: PathBuf,
        /// Its state, in words.
        found: String,
        /// Its size when the backup was made.
        expected: u64,
    },
    /// A file's bytes are not as they were.
    #[error(
        "{path}: its checksum is {found:08x}, but the backup was made with {expected:08x}: the file is damaged; restore another backup"
    )]
    Damaged {
        /// The file's path.
        path: PathBuf,
        /// Its checksum.
        found: u32,
        /// Its checksum when the backup was made.
        expected: u32,
    },
    /// The target is in use.
    #[error("{0} exists and is not empty")]
    Occupied(PathBuf),
    /// The operating system said no.
    #[error("{path}: {source}")]
    Io {
        /// The file's path.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

impl BackupInfo {
    /// Bytes of all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.values().sum()
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{HEADER}\nfile {}\nposition {}\ngtid_executed {}\n",
            self.file,
            self.position,
            self.gtid_executed.replace('\n', "")
        );
        for (path, size) in &self.files {
            text.push_str(&format!("size {size} {path}\n"));
        }
        for (path, checksum) in &self.checksums {
            text.push_str(&format!("crc32 {checksum:08x} {path}\n"));
        }
        text.push_str(&format!("{END} {:08x}\n", crc32fast::hash(text.as_bytes())));
        text
    }

    fn parse(text: &str) -> Option<BackupInfo> {
        let rest = match text.strip_prefix(HEADER) {
            Some(rest) => {
                let (body, end) = text.trim_end().rsplit_once('\n')?;
                let own = crc32fast::hash(&text.as_bytes()[..=body.len()]);
                (end == format!("{END} {own:08x}")).then_some(rest)?
            }
            None => text.strip_prefix(HEADER_1)?,
        };
        let mut info = BackupInfo::default();
        for line in rest.lines().filter(|line| !line.is_empty()) {
            let (word, value) = line.split_once(' ')?;
            match word {
                "file" => info.file = value.to_owned(),
                "position" => info.position = value.parse().ok()?,
                "gtid_executed" => info.gtid_executed = value.to_owned(),
                "size" => {
                    let (size, path) = value.split_once(' ')?;
                    info.files.insert(path.to_owned(), size.parse().ok()?);
                }
                "crc32" => {
                    let (checksum, path) = value.split_once(' ')?;
                    info.checksums.insert(path.to_owned(), u32::from_str_radix(checksum, 16).ok()?);
                }
                END => {}
                _ => return None,
            }
        }
        Some(info)
    }
}

/// Makes an empty folder that says it is no backup yet. It may exist, and must be empty then.
///
/// A new one gets its name once it says so: a server takes an empty folder for a place to begin in.
pub(crate) fn begin(root: &Path) -> io::Result<()> {
    if root.exists() {
        return if is_empty_folder(root)? { mark(root) } else { Err(io::ErrorKind::AlreadyExists.into()) };
    }
    let Some(name) = root.file_name() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let mut unnamed = name.to_owned();
    unnamed.push(".incomplete");
    let unnamed = root.with_file_name(unnamed);
    match fs::create_dir(&unnamed) {
        // One that the end of a server left has nothing but the mark in it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && has_only_the_mark(&unnamed)? => {}
        done => done?,
    }
    mark(&unnamed)?;
    if let Err(error) = fs::rename(&unnamed, root) {
        // Somebody made it meanwhile.
        let _ = fs::remove_file(unnamed.join(INCOMPLETE)).and_then(|()| fs::remove_dir(&unnamed));
        return Err(error);
    }
    let above = root.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sync_folder(above)
}

fn mark(folder: &Path) -> io::Result<()> {
    File::create(folder.join(INCOMPLETE))?.sync_all()?;
    sync_folder(folder)
}

fn unmark(folder: &Path) -> io::Result<()> {
    fs::remove_file(folder.join(INCOMPLETE))?;
    sync_folder(folder)
}

fn has_only_the_mark(folder: &Path) -> io::Result<bool> {
    let names: Result<Vec<_>, _> =
        fs::read_dir(folder)?.map(|entry| Ok::<_, io::Error>(entry?.file_name())).collect();
    Ok(names?.iter().all(|name| name == INCOMPLETE))
}

fn is_empty_folder(path: &Path) -> io::Result<bool> {
    Ok(path.is_dir() && fs::read_dir(path)?.next().is_none())
}

/// The folder that BACKUP TO makes, by way of the one above it held open: whatever names come to mean while a backup is made, it
/// stays where it was allowed.
#[derive(Debug)]
pub struct BackupTarget {
    above: HeldFolder,
    /// As the statement has it.
    name: PathBuf,
}

/// A folder by its descriptor.
#[derive(Debug)]
pub(crate) struct HeldFolder {
    path: PathBuf,
    _open: File,
}

impl HeldFolder {
    /// With more flags of open(2) than those for a folder of which only the place matters.
    pub(crate) fn open(folder: &Path, flags: i32) -> io::Result<HeldFolder> {
        let flags = flags | libc::O_DIRECTORY | libc::O_PATH;
        let open = OpenOptions::new().read(true).custom_flags(flags).open(folder)?;
        Ok(HeldFolder { path: PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd())), _open: open })
    }

    /// Good while this lives.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where it is now, without links.
    pub(crate) fn place(&self) -> io::Result<PathBuf> {
        fs::read_link(&self.path)
    }
}

impl BackupTarget {
    /// Holds what is above `folder`.
    ///
    /// # Errors
    /// The path is not absolute or has no name, or there is no such folder above it.
    pub fn at(folder: &Path) -> io::Result<BackupTarget> {
        let (Some(_), Some(above), true) = (folder.file_name(), folder.parent(), folder.is_absolute()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not an absolute path of a folder"));
        };
        Ok(BackupTarget { above: HeldFolder::open(above, 0)?, name: folder.to_owned() })
    }

    /// As the statement has it.
    #[must_use]
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Where the folder above is, without links.
    ///
    /// # Errors
    /// The operating system said no.
    pub fn parent(&self) -> io::Result<PathBuf> {
        self.above.place()
    }

    fn path(&self) -> PathBuf {
        self.above.path().join(self.name.file_name().unwrap_or_default())
    }

    /// Makes the folder, or takes one that is empty; a link to one is none. See [`begin`].
    pub(crate) fn begin(&self) -> io::Result<HeldFolder> {
        let hold = || HeldFolder::open(&self.path(), libc::O_NOFOLLOW);
        if fs::symlink_metadata(self.path()).is_err() {
            begin(&self.path())?;
            return hold();
        }
        let held = hold().map_err(|_| io::Error::from(io::ErrorKind::AlreadyExists))?;
        begin(held.path())?;
        Ok(held)
    }

    /// Makes the folder's name durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        sync_folder(self.above.path())
    }

    /// Removes it with all that is in it, as far as that works.
    pub(crate) fn remove(&self) {
        let _ = fs::remove_dir_all(self.path());
    }
}

/// The copies are all there and durable: makes the folder a data directory. The marker's text is `format`.
pub(crate) fn finish(
    root: &Path,
    mut info: BackupInfo,
    format: &str,
    go_on: GoOn<'_>,
) -> io::Result<BackupInfo> {
    info.files.clear();
    list(root, root, &mut info.files)?;
    info.files.remove(INCOMPLETE);
    for path in info.files.keys() {
        info.checksums.insert(path.clone(), checksum(&root.join(path), go_on)?);
    }
    // Written last, because it is what makes a data directory of the folder.
    info.files.insert(MARKER.to_owned(), format.len() as u64);
    info.checksums.insert(MARKER.to_owned(), crc32fast::hash(format.as_bytes()));
    write(root, INFO, &info.text())?;
    write(root, MARKER, format)?;
    unmark(root)?;
    Ok(info)
}

fn write(root: &Path, name: &str, text: &str) -> io::Result<()> {
    write_whole(root, name, text).map_err(|error| io::Error::other(error.to_string()))
}

fn list(root: &Path, folder: &Path, files: &mut BTreeMap<String, u64>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            list(root, &entry.path(), files)?;
        } else if let Ok(path) = entry.path().strip_prefix(root) {
            files.insert(path.to_string_lossy().into_owned(), entry.metadata()?.len());
        }
    }
    Ok(())
}

/// Makes the entries of a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    // Where folders can't be opened there is nothing to sync.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Copies a file, or its first bytes, durably. Who may read it may read the copy, and nobody else.
pub(crate) fn copy_file(from: &Path, to: &Path, bytes: Option<u64>, go_on: GoOn<'_>) -> io::Result<()> {
    let (source, target) = (File::open(from)?, File::create_new(to)?);
    target.set_permissions(source.metadata()?.permissions())?;
    let copied = interruptible::copy(&source, &target, bytes.unwrap_or(u64::MAX), go_on)?;
    if bytes.is_some_and(|bytes| copied < bytes) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

/// A data directory that is being made of a backup. Until [`Restoration::finish`] no server opens it.
#[derive(Debug)]
pub struct Restoration {
    folder: PathBuf,
}

impl Restoration {
    /// Begins with a folder that does not exist, or is empty.
    ///
    /// # Errors
    /// It is in use, or the operating system said no.
    pub fn begin(folder: &Path) -> Result<Restoration, RestoreError> {
        match begin(folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(RestoreError::Occupied(folder.to_owned()))
            }
            Err(source) => Err(RestoreError::Io { path: folder.to_owned(), source }),
            Ok(()) => Ok(Restoration { folder: folder.to_owned() }),
        }
    }

    /// Whether a file of a backup is the mark that [`Restoration::finish`] is given.
    #[must_use]
    pub fn is_mark(path: &str) -> bool {
        path == MARKER
    }

    /// Where a file of the backup belongs; its folder is made.
    ///
    /// # Errors
    /// The path leads elsewhere, or the operating system said no.
    pub fn place(&self, path: &str) -> Result<PathBuf, RestoreError> {
        let inside = Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let target = self.folder.join(path);
        if !inside || path.is_empty() {
            return Err(RestoreError::NotABackup(target));
        }
        if let Some(folder) = target.parent() {
            let failed = |source| RestoreError::Io { path: folder.to_owned(), source };
            fs::create_dir_all(folder).map_err(failed)?;
        }
        Ok(target)
    }

    /// Makes the folder, with these files in it, durable and a data directory; `format` is what the mark says.
    ///
    /// # Errors
    /// The operating system said no.
    pub fn finish<'p>(
        self,
        paths: impl IntoIterator<Item = &'p str>,
        format: &str,
    ) -> Result<(), RestoreError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| RestoreError::Io { path, source }
        };
        for folder in paths.into_iter().filter_map(|path| Path::new(path).parent()) {
            let folder = self.folder.join(folder);
            sync_folder(&folder).map_err(failed(&folder))?;
        }
        write(&self.folder, MARKER, format).map_err(failed(&self.folder))?;
        unmark(&self.folder).map_err(failed(&self.folder))
    }
}

/// Checks a backup and copies it to a new data directory. Changes nothing in it.
///
/// # Errors
/// See [`RestoreError`]. A target that was begun has no format marker, and no server opens it.
pub fn restore(from: &Path, to: &Path) -> Result<BackupInfo, RestoreError> {
    let info = verify(from)?;
    let format =
        fs::read_to_string(from.join(MARKER)).map_err(|_| RestoreError::NotABackup(from.to_owned()))?;
    let target = Restoration::begin(to)?;
    for path in info.files.keys().filter(|path| *path != MARKER) {
        let place = target.place(path)?;
        copy_file(&from.join(path), &place, None, &|| Ok(()))
            .map_err(|source| RestoreError::Io { path: place, source })?;
    }
    target.finish(info.files.keys().map(String::as_str), &format)?;
    Ok(info)
}

/// Of a file's bytes.
fn checksum(path: &Path, go_on: GoOn<'_>) -> io::Result<u32> {
    use std::io::Read;
    let (mut file, mut piece, mut hasher) = (File::open(path)?, vec![0; 1 << 20], crc32fast::Hasher::new());
    loop {
        go_on()?;
        match file.read(&mut piece)? {
            0 => return Ok(hasher.finalize()),
            len => hasher.update(&piece[..len]),
        }
    }
}

/// Whether the folder is a backup, and not yet a server's.
#[must_use]
pub fn is_one(folder: &Path) -> bool {
    folder.join(INFO).exists() && !folder.join("omnibus.lock").exists()
}

/// Reads a backup as a whole: it has all files, with the bytes that it was made with. Changes nothing.
///
/// # Errors
/// See [`RestoreError`].
pub fn verify(from: &Path) -> Result<BackupInfo, RestoreError> {
    if from.join(INCOMPLETE).exists() {
        return Err(RestoreError::Incomplete(from.to_owned()));
    }
    let not_one = || RestoreError::NotABackup(from.to_owned());
    let text = fs::read_to_string(from.join(INFO)).map_err(|_| not_one())?;
    let info = BackupInfo::parse(&text).ok_or_else(not_one)?;
    for (path, expected) in &info.files {
        check_size(&from.join(path), *expected)?;
    }
    for (path, &expected) in &info.checksums {
        let path = from.join(path);
        let found =
            checksum(&path, &|| Ok(())).map_err(|source| RestoreError::Io { path: path.clone(), source })?;
        if found != expected {
            return Err(RestoreError::Damaged { path, found, expected });
        }
    }
    Ok(info)
}

fn check_size(path: &Path, expected: u64) -> Result<(), RestoreError> {
    let found = match fs::metadata(path) {
        Ok(meta) if meta.len() == expected => return Ok(()),
        Ok(meta) => format!("has {} bytes", meta.len()),
        Err(error) => error.to_string(),
    };
    Err(RestoreError::Changed { path: path.to_owned(), found, expected })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_target_stays_where_it_was_allowed() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::create_dir(path("files")).unwrap();
        fs::create_dir(path("other")).unwrap();
        let target = BackupTarget::at(&path("files/b")).unwrap();
        fs::rename(path("files"), path("moved")).unwrap();
        std::os::unix::fs::symlink(path("other"), path("files")).unwrap();
        let held = target.begin().unwrap();
        assert_eq!(target.parent().unwrap(), path("moved").canonicalize().unwrap());
        fs::rename(path("moved/b"), path("moved/c")).unwrap();
        std::os::unix::fs::symlink(path("other"), path("moved/b")).unwrap();
        fs::write(held.path().join("f"), "x").unwrap();
        assert!(path("moved/c/f").exists() && !path("other/f").exists(), "names do not matter any more");
        target.remove();
        assert!(path("other").exists() && !path("moved/b").exists(), "links are not followed");
        let link = BackupTarget::at(&path("files/l")).unwrap();
        std::os::unix::fs::symlink(path("moved"), path("other/l")).unwrap();
        assert_eq!(link.begin().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(BackupTarget::at(Path::new("b")).is_err() && BackupTarget::at(Path::new("/")).is_err());
    }

    #[test]
    fn a_backup_is_whole_or_refused() {
        let place = tempfile::tempdir().unwrap();
        let (root, target) = (place.path().join("b"), place.path().join("t"));
        begin(&root).unwrap();
        fs::create_dir(root.join("lsm")).unwrap();
        fs::write(root.join("lsm/table"), "rows").unwrap();
        assert!(matches!(restore(&root, &target), Err(RestoreError::Incomplete(_))));
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "its name is the only one");
        let refused = crate::datadir::DataDir::open(&root, None).unwrap_err().to_string();
        assert!(refused.contains("not finished"), "{refused}");
        let info = BackupInfo {
            file: "binlog.000003".into(),
            position: 77,
            gtid_executed: "a:1-5,\nb:1".into(),
            ..BackupInfo::default()
        };
        let info = finish(&root, info, "1\n", &|| Ok(())).unwrap();
        assert_eq!((info.bytes(), info.files.len()), (6, 2));
        let restored = restore(&root, &target).unwrap();
        assert_eq!((restored.gtid_executed.as_str(), restored.position), ("a:1-5,b:1", 77));
        assert_eq!(fs::read(target.join("lsm/table")).unwrap(), b"rows");
        drop(crate::datadir::DataDir::open(&target, None).unwrap());
        assert!(matches!(restore(&root, &target), Err(RestoreError::Occupied(_))));
        // The dialect is in the marker: without its second line another server would be made.
        fs::write(root.join(MARKER), "0\n").unwrap();
        let refused = restore(&root, &place.path().join("u")).unwrap_err();
        assert!(
            matches!(&refused, RestoreError::Damaged { path, .. } if path.ends_with(MARKER)),
            "{refused}"
        );
        fs::write(root.join(MARKER), "1\n").unwrap();
        // A bit of a file, of the list, and a list of an earlier version, which has sizes only.
        fs::write(root.join("lsm/table"), "rowt").unwrap();
        let refused = restore(&root, &place.path().join("u")).unwrap_err();
        assert!(
            matches!(&refused, RestoreError::Damaged { path, .. } if path.ends_with("table")),
            "{refused}"
        );
        let list = fs::read_to_string(root.join(INFO)).unwrap();
        fs::write(root.join(INFO), list.replace("position 77", "position 76")).unwrap();
        assert!(matches!(restore(&root, &place.path().join("u")), Err(RestoreError::NotABackup(_))));
        let sizes: Vec<_> =
            list.lines().filter(|line| !line.starts_with("crc32") && !line.starts_with(END)).collect();
        fs::write(root.join(INFO), sizes.join("\n").replace(HEADER, HEADER_1)).unwrap();
        assert_eq!(verify(&root).unwrap().checksums.len(), 0);
        fs::write(root.join(INFO), list).unwrap();
        fs::write(root.join("lsm/table"), "row").unwrap();
        assert!(matches!(restore(&root, &place.path().join("u")), Err(RestoreError::Changed { .. })));
        assert!(matches!(restore(place.path(), &target), Err(RestoreError::NotABackup(_))));
        assert_eq!(begin(&root).unwrap_err().kind(), io::ErrorKind::AlreadyExists, "not empty");
    }

    #[test]
    fn what_an_interrupted_one_left_is_taken_over_and_what_others_left_is_not() {
        let place = tempfile::tempdir().unwrap();
        let (root, left) = (place.path().join("b"), place.path().join("b.incomplete"));
        fs::create_dir(&left).unwrap();
        fs::write(left.join("rows"), "1").unwrap();
        assert_eq!(begin(&root).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(left.join("rows").exists() && !root.exists());
        fs::remove_file(left.join("rows")).unwrap();
        begin(&root).unwrap();
        assert!(root.join(INCOMPLETE).exists() && !left.exists());
    }
}
