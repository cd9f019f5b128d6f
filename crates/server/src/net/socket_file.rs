//! The unix socket's file and the lock file beside it: only what a server of before left behind is replaced.
//!
//! The lock file holds the process id, as MySQL's does, and the operating system's lock for as long as the server runs; so two
//! servers never take one name, whatever each finds there. Neither name is followed if it is a link, and nothing that is
//! not a socket, or not a lock file, is ever changed or removed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use tokio::net::UnixListener;

/// The longest name of a Unix socket on Linux.
const SOCKET_PATH_MAX: usize = 107;

/// How often the lock file may go away under us, because its owner ends.
const LOCK_TRIES: usize = 10;

/// A socket's files; they go with it.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    lock: LockFile,
    bound: bool,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.bound {
            let _ = std::fs::remove_file(&self.path);
        }
        // While the lock is held: nobody else takes the file for theirs.
        let _ = std::fs::remove_file(&self.lock.path);
    }
}

#[derive(Debug)]
struct LockFile {
    path: PathBuf,
    file: File,
}

fn refused(path: &Path, kind: io::ErrorKind, why: impl std::fmt::Display) -> io::Error {
    let what = path.display();
    io::Error::new(
        kind,
        format!("can't listen on unix socket {what}: {why}; choose another one with --socket=PATH"),
    )
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> io::Error + '_ {
    move |error| {
        io::Error::new(error.kind(), format!("can't listen on unix socket {}: {error}", path.display()))
    }
}

/// Whether there is a socket at `path` that nobody listens on.
///
/// # Errors
/// Something else is there, or somebody listens, or the name is too long. Nothing was changed.
pub(super) fn is_left_behind(path: &Path) -> io::Result<bool> {
    let len = path.as_os_str().len();
    if len > SOCKET_PATH_MAX {
        let why = format!("its name has {len} bytes, at most {SOCKET_PATH_MAX} are possible");
        return Err(refused(path, io::ErrorKind::InvalidInput, why));
    }
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed(path)(error)),
        Ok(there) if !there.file_type().is_socket() => {
            return Err(refused(path, io::ErrorKind::AlreadyExists, "a file that is not a socket is there"));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(refused(path, io::ErrorKind::AddrInUse, "another server is listening there")),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(true),
        Err(error) => Err(failed(path)(error)),
    }
}

/// Listens on `path`, in the place of what was left behind there.
pub(super) fn listen(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let stale = is_left_behind(path)?;
    let lock = take_lock(path)?;
    // From here on a failure removes the lock file.
    let mut file = SocketFile { path: path.to_owned(), lock, bound: false };
    if stale {
        std::fs::remove_file(path).map_err(failed(path))?;
    }
    let listener = UnixListener::bind(path).map_err(failed(path))?;
    file.bound = true;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).map_err(failed(path))?;
    // Clients and package scripts look for the process id there.
    file.lock.file.set_len(0).map_err(failed(path))?;
    let pid = format!("{}\n", std::process::id());
    file.lock.file.write_all_at(pid.as_bytes(), 0).map_err(failed(path))?;
    Ok((listener, file))
}

fn take_lock(socket: &Path) -> io::Result<LockFile> {
    let mut name = socket.as_os_str().to_owned();
    name.push(".lock");
    let path = PathBuf::from(name);
    for _ in 0..LOCK_TRIES {
        let opened = open_lock(&path).map_err(failed(&path))?;
        if !is_lock_file(&opened).map_err(failed(&path))? {
            return Err(refused(
                &path,
                io::ErrorKind::AlreadyExists,
                "a file that is not a lock file is there",
            ));
        }
        match opened.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(refused(socket, io::ErrorKind::AddrInUse, "another server has its lock file"));
            }
            Err(TryLockError::Error(error)) => return Err(failed(&path)(error)),
        }
        // Its owner may have removed it between the opening and the lock.
        let named = path.symlink_metadata().map(|named| named.ino());
        if named.is_ok_and(|named| opened.metadata().is_ok_and(|own| own.ino() == named)) {
            return Ok(LockFile { path, file: opened });
        }
    }
    Err(refused(socket, io::ErrorKind::AddrInUse, "its lock file comes and goes"))
}

fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o644)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
}

/// A file of one name, with a process id in it or nothing.
fn is_lock_file(file: &File) -> io::Result<bool> {
    let about = file.metadata()?;
    if !about.is_file() || about.nlink() > 1 || about.len() > 20 {
        return Ok(false);
    }
    let mut text = String::new();
    let mut file = file;
    Ok(file.read_to_string(&mut text).is_ok() && text.trim().bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn only_a_socket_that_nobody_listens_on_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let precious = dir.path().join("precious");
        std::fs::write(&precious, "1").unwrap();
        let refuses = |path: &Path| {
            let before = names(dir.path());
            let refused = listen(path).is_err();
            assert_eq!(names(dir.path()), before, "a refusal leaves nothing behind");
            assert_eq!(std::fs::read(&precious).unwrap(), b"1");
            refused
        };
        assert!(refuses(&precious), "a file");
        std::os::unix::fs::symlink(&precious, &path).unwrap();
        assert!(refuses(&path), "a link to a file");
        std::fs::remove_file(&path).unwrap();
        let lock = dir.path().join("s.lock");
        std::os::unix::fs::symlink(&precious, &lock).unwrap();
        assert!(refuses(&path), "a lock file that is a link");
        std::fs::remove_file(&lock).unwrap();
        std::fs::hard_link(&precious, &lock).unwrap();
        assert!(refuses(&path), "a lock file that has another name");
        std::fs::remove_file(&lock).unwrap();
        std::fs::write(&lock, "words").unwrap();
        assert!(refuses(&path), "a lock file that is none");
        std::fs::remove_file(&lock).unwrap();

        let first = listen(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&lock).unwrap(), format!("{}\n", std::process::id()));
        assert!(refuses(&path), "another server's");
        let (listener, file) = first;
        // As a crash leaves it.
        std::mem::forget(file);
        drop(listener);
        assert!(is_left_behind(&path).unwrap());
    }

    #[tokio::test]
    async fn what_a_crash_left_is_taken_over_and_goes_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let lock = dir.path().join("s.lock");
        std::fs::write(&lock, "4711\n").unwrap();
        let (listener, file) = listen(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&lock).unwrap(), format!("{}\n", std::process::id()));
        drop((listener, file));
        assert_eq!(names(dir.path()), Vec::<String>::new());
    }
}
