//! The server's files that statements may read and write: LOAD DATA INFILE, SELECT .. INTO OUTFILE.
//!
//! `secure_file_priv` says: NULL none (the default), a directory what is in it, empty everything. Nothing
//! in the data directory in any case, but for what is below its folder `files`, where relative names are. Paths are resolved first, so no link leads out of the directory. A
//! file that exists is never written. Blocks.

use crate::backup::{BackupTarget, HeldFolder};
use crate::errors;
use omnibus_sql::{SqlError, SqlResult};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// The folder in the data directory that relative names are in, where MySQL has them in the data directory itself: here that is the engines' alone.
const RELATIVE: &str = "files";

/// The rule.
#[derive(Clone, Debug)]
pub struct FileRule {
    /// `secure_file_priv`; `None` is NULL.
    pub secure: Option<PathBuf>,
    /// The data directory.
    pub datadir: PathBuf,
}

/// From now on what this process makes is nobody's business but its own and its group's: files 0640, folders 0750, and less
/// where the caller allows less.
pub fn keep_files_private() {
    // SAFETY: both calls only exchange a number of the process, and cannot fail.
    unsafe {
        let callers = libc::umask(0o027);
        libc::umask(callers | 0o027);
    }
}

fn refused() -> SqlError {
    SqlError::option_prevents_statement("--secure-file-priv")
}

/// Whether a file is made up by the system as it is read: processes' memory, environments, settings.
fn is_of_system(file: &File) -> bool {
    const KINDS: [u32; 6] = [0x9fa0, 0x6265_6572, 0x6462_6720, 0x7472_6163, 0x6367_7270, 0x7363_6673];
    // SAFETY: all zeros is a value of this plain structure.
    let mut about: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and the pointer is to a live, properly typed local.
    let failed = unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut about) } != 0;
    failed || KINDS.contains(&(about.f_type as u32))
}

/// Whether a file below a folder has this device and inode.
fn has_file(folder: &Path, wanted: (u64, u64)) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| match entry.metadata() {
        Ok(about) if about.is_dir() => has_file(&entry.path(), wanted),
        Ok(about) => (about.dev(), about.ino()) == wanted,
        Err(_) => false,
    })
}

impl FileRule {
    /// Whether a resolved path is one that statements may touch.
    fn allows(&self, path: &Path) -> bool {
        let Some(secure) = &self.secure else { return false };
        let inside = |dir: &Path| path.starts_with(dir.canonicalize().unwrap_or_else(|_| dir.to_owned()));
        let held = inside(&self.datadir) && !inside(&self.datadir.join(RELATIVE));
        !held && (secure.as_os_str().is_empty() || inside(secure))
    }

    /// Where a name is: a relative one below its own folder, unless it leads out of the data directory.
    fn place(&self, name: &[u8]) -> PathBuf {
        let given = Path::new(OsStr::from_bytes(name));
        let mut parts = given.components().filter(|part| *part != Component::CurDir);
        match parts.next() {
            Some(Component::Normal(_)) => self.datadir.join(RELATIVE).join(given),
            _ => self.datadir.join(given),
        }
    }

    /// Makes the folders that a new file with a relative name is in: that of all such files, and that of a database.
    fn make_folders(&self, path: &Path) {
        let root = self.datadir.join(RELATIVE);
        let Ok(below) = path.strip_prefix(&root) else { return };
        let Some(parent) = root.join(below).parent().map(Path::to_owned) else { return };
        let depth = parent.strip_prefix(&root).map_or(usize::MAX, |parts| parts.components().count());
        if self.allows(&root) && depth <= 1 && !below.components().any(|part| part == Component::ParentDir) {
            // A folder that can not be made is reported when the file in it can not be opened.
            for folder in [&root, &parent] {
                let _ = std::fs::create_dir(folder);
            }
        }
    }

    /// Where BACKUP TO makes `folder`: below the directory, if there is one. Without one BACKUP_ADMIN says enough.
    ///
    /// # Errors
    /// 1290 if the rule forbids it; 1105 for a path that is not absolute, or has no folder above it.
    pub fn backup_target(&self, folder: &Path) -> SqlResult<BackupTarget> {
        let restricted = self.secure.as_ref().is_some_and(|dir| !dir.as_os_str().is_empty());
        match BackupTarget::at(folder) {
            // One may not even ask what is outside.
            Err(_) if restricted => Err(refused()),
            Err(error) => Err(errors::no_backup(&format!("'{}': {error}", folder.display()))),
            Ok(target) if restricted && !target.parent().is_ok_and(|parent| self.allows(&parent)) => {
                Err(refused())
            }
            Ok(target) => Ok(target),
        }
    }

    /// Opens a file to be read, or makes a new one.
    ///
    /// # Errors
    /// 1290 if the rule forbids it; 13 and 29 for one that is not there or cannot be opened; 1085 for what is no file;
    /// 1086 for a new one that exists.
    pub fn open(&self, name: &[u8], create: bool) -> SqlResult<File> {
        let path = self.place(name);
        if self.secure.is_none() || name.contains(&0) {
            return Err(refused());
        }
        if create {
            self.make_folders(&path);
            return self.create(&path);
        }
        self.read(&path)
    }

    fn read(&self, path: &Path) -> SqlResult<File> {
        let resolved = match path.canonicalize() {
            Ok(resolved) => resolved,
            // One may not even ask what is outside.
            Err(error) => {
                return Err(match self.parent_allowed(path) {
                    true => errors::cannot_stat(path.display(), &error),
                    false => refused(),
                });
            }
        };
        if !self.allows(&resolved) {
            return Err(refused());
        }
        let kind =
            std::fs::metadata(&resolved).map_err(|error| errors::cannot_stat(path.display(), &error))?;
        if !kind.is_file() || kind.file_type().is_fifo() {
            return Err(errors::no_text_file(path.display()));
        }
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(&resolved);
        let file = opened.map_err(|error| errors::cannot_open(path.display(), &error))?;
        if self.may_be_read(&file) { Ok(file) } else { Err(refused()) }
    }

    /// Checks an opened file: it is where its name said, is no window into the system, and is no file of the data directory under another
    /// name.
    fn may_be_read(&self, file: &File) -> bool {
        let here = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let Ok(about) = file.metadata() else { return false };
        about.is_file()
            && here.is_ok_and(|here| self.allows(&here))
            && !is_of_system(file)
            && (about.nlink() == 1 || !has_file(&self.datadir, (about.dev(), about.ino())))
    }

    /// Removes a file that `open` has just made.
    pub fn remove(&self, name: &[u8]) {
        if let Ok((_held, path)) = self.held(&self.place(name)) {
            let _ = std::fs::remove_file(path);
        }
    }

    /// The file by way of its folder held open: whatever the folder's name comes to mean, the path stays where it was allowed.
    fn held(&self, path: &Path) -> SqlResult<(HeldFolder, PathBuf)> {
        let (Some(name), Some(parent)) = (path.file_name(), path.parent()) else { return Err(refused()) };
        let folder = HeldFolder::open(parent, 0).map_err(|_| refused())?;
        if !folder.place().is_ok_and(|here| self.allows(&here)) {
            return Err(refused());
        }
        let file = folder.path().join(name);
        Ok((folder, file))
    }

    fn parent_allowed(&self, path: &Path) -> bool {
        let root = self.datadir.join(RELATIVE);
        if path.starts_with(&root) && !path.components().any(|part| part == Component::ParentDir) {
            return self.allows(&root);
        }
        let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
        parent.is_some_and(|parent| self.allows(&parent))
    }

    fn create(&self, path: &Path) -> SqlResult<File> {
        let (_held, resolved) = self.held(path)?;
        let made = OpenOptions::new().write(true).create_new(true).mode(0o640).open(&resolved);
        made.map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => errors::file_exists(path.display()),
            _ => errors::cannot_create(path.display(), &error),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn code(result: SqlResult<File>) -> u16 {
        result.map_or_else(|error| error.code, |_| 0)
    }

    fn relative_names(rule: &dyn Fn(Option<&str>) -> FileRule) {
        let open = |name: &[u8], create| code(rule(Some("")).open(name, create));
        assert_eq!(open(b"f", false), 13, "that of the data directory is not meant");
        assert_eq!(open(b"base/new", true), 0);
        assert_eq!(open(b"base/new", true), 1086);
        assert_eq!(open(b"./base/new", false), 0);
        assert_eq!(open(b"base/none", false), 13);
        assert_eq!(open(b"new", true), 0);
        assert_eq!(open(b"../other/f", false), 0, "out of the data directory");
        assert_eq!(open(b"base/deep/new", true), 1290, "only a database's folder is made");
        for inside in ["./../data/f", "base/../../f", "../data/f"] {
            assert_eq!(open(inside.as_bytes(), false), 1290, "{inside}");
            assert_eq!(open(inside.as_bytes(), true), 1290, "{inside}");
        }
        assert_eq!(code(rule(Some("files")).open(b"base/new", false)), 1290, "not below secure_file_priv");
        assert_eq!(code(rule(None).open(b"base/new", false)), 1290);
        rule(Some("")).remove(b"base/new");
        assert_eq!(open(b"base/new", false), 13);
    }

    #[test]
    fn only_files_of_the_directory() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        for dir in ["data", "files", "other"] {
            std::fs::create_dir(path(dir)).unwrap();
            std::fs::write(path(dir).join("f"), "x").unwrap();
        }
        std::os::unix::fs::symlink(path("other").join("f"), path("files").join("link")).unwrap();
        std::os::unix::fs::symlink(path("other"), path("files").join("dirlink")).unwrap();
        let rule = |secure: Option<&str>| FileRule {
            secure: secure.map(|dir| if dir.is_empty() { PathBuf::new() } else { path(dir) }),
            datadir: path("data"),
        };
        let read = |secure: Option<&str>, name: &str| {
            code(rule(secure).open(path(name).as_os_str().as_bytes(), false))
        };
        assert_eq!(read(None, "files/f"), 1290);
        assert_eq!(read(Some("files"), "files/f"), 0);
        assert_eq!(read(Some("files"), "files/none"), 13);
        assert_eq!(read(Some("files"), "files"), 1085);
        for outside in ["other/f", "data/f", "files/link", "files/dirlink/f", "files/../other/f", "nowhere/f"]
        {
            assert_eq!(read(Some("files"), outside), 1290, "{outside}");
        }
        assert_eq!(read(Some(""), "other/f"), 0);
        assert_eq!(read(Some(""), "data/f"), 1290);
        relative_names(&rule);
        for name in ["other/hard", "files/hard"] {
            std::fs::hard_link(path("data").join("f"), path(name)).unwrap();
            assert_eq!(read(Some(""), name), 1290, "a file of the data directory under another name");
            assert_eq!(read(Some("files"), name), 1290);
        }
        std::fs::hard_link(path("other").join("f"), path("files/own")).unwrap();
        assert_eq!(read(Some("files"), "files/own"), 0, "other names do not matter");
        for name in [
            "/proc/self/environ",
            "/proc/self/status",
            "/proc/version",
            "/sys/kernel/mm/transparent_hugepage/enabled",
        ] {
            assert!(matches!(code(rule(Some("")).open(name.as_bytes(), false)), 1290 | 13), "{name}");
        }
        let write = |name: &str| code(rule(Some("files")).open(path(name).as_os_str().as_bytes(), true));
        assert_eq!(write("files/new"), 0);
        assert_eq!(write("files/new"), 1086);
        for outside in ["other/new", "files/dirlink/new", "data/new"] {
            assert_eq!(write(outside), 1290, "{outside}");
        }
        assert_eq!(write("files/link"), 1086);
    }
}
