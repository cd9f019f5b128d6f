//! The files of the logs: which paths may be one, opening, writing. A write that fails leaves no half entry behind.

use crate::errors;
use crate::sysvars::GlobalVars;
use omnibus_sql::{SqlError, SqlResult};
use parking_lot::Mutex;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The kind of log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogKind {
    General,
    Slow,
}

impl LogKind {
    pub(super) const ALL: [LogKind; 2] = [LogKind::General, LogKind::Slow];

    /// The variable that switches it.
    pub(super) fn switch(self) -> &'static str {
        ["general_log", "slow_query_log"][self as usize]
    }

    /// The variable that names its file.
    pub(super) fn file_variable(self) -> &'static str {
        ["general_log_file", "slow_query_log_file"][self as usize]
    }
}

/// The file's name where none is given, as in MySQL; `None` for another variable.
pub(crate) fn default_name(variable: &str, hostname: &str) -> Option<String> {
    match variable {
        "general_log_file" => Some(format!("{hostname}.log")),
        "slow_query_log_file" => Some(format!("{hostname}-slow.log")),
        "server_audit_file_path" => Some(super::audit::FILE_NAME.to_owned()),
        _ => None,
    }
}

/// The path, if a log may be there. Whoever may set it must not be able to have us append to what is not a log: in the data
/// directory a name that ends in `.log`, elsewhere no option file, and nothing that is there and no plain file.
pub(super) fn checked_path(variable: &str, datadir: &str, name: &str) -> SqlResult<PathBuf> {
    let path = Path::new(datadir).join(name);
    let wrong = || SqlError::wrong_value_for_var(variable, name);
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok()).ok_or_else(wrong)?;
    let file = path.file_name().ok_or_else(wrong)?;
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    let own = Path::new(datadir).canonicalize().is_ok_and(|own| folder.starts_with(own));
    let plain = path.symlink_metadata().map_or(true, |there| there.is_file());
    if !plain || matches!(&*extension, "cnf" | "ini") || own && extension != "log" {
        return Err(wrong());
    }
    Ok(folder.join(file))
}

/// An open log file.
#[derive(Debug)]
pub(super) struct LogFile {
    pub(super) path: PathBuf,
    file: File,
    /// The database of its last `use`.
    pub(super) database: Mutex<String>,
}

impl LogFile {
    /// Opens it at its end, and begins a part of it with what server writes it.
    pub(super) fn open(path: &Path, globals: &GlobalVars) -> SqlResult<LogFile> {
        let failed = |error: io::Error| errors::cannot_create(path.display(), &error);
        let file = OpenOptions::new().create(true).append(true).mode(0o640).open(path).map_err(failed)?;
        let log = LogFile { path: path.to_owned(), file, database: Mutex::default() };
        let program = std::env::current_exe().unwrap_or_default();
        let head = format!(
            "{}, Version: {} ({}). started with:\nTcp port: {}  Unix socket: {}\nTime                 Id Command    Argument\n",
            program.display(),
            globals.named("version").as_str(),
            globals.named("version_comment").as_str(),
            globals.named("port").as_u64(),
            globals.named("socket").as_str(),
        );
        log.write(head.as_bytes()).map_err(failed)?;
        Ok(log)
    }

    /// Writes all or nothing, as far as the file system lets it.
    pub(super) fn write(&self, text: &[u8]) -> io::Result<()> {
        let before = self.file.metadata()?.len();
        (&self.file).write_all(text).inspect_err(|_| {
            let _ = self.file.set_len(before);
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_a_log_is_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let datadir = dir.path().join("data");
        std::fs::create_dir(&datadir).unwrap();
        let datadir = datadir.to_str().unwrap();
        let check = |name: &str| checked_path("slow_query_log_file", datadir, name).map_err(|e| e.code);
        assert!(check("a-slow.log").is_ok() && check("../elsewhere").is_ok());
        for name in
            ["binlog.000001", "../data/binlog.000001", "mysqld-auto.cnf", "none/x.log", "", "../my.cnf", ".."]
        {
            assert_eq!(check(name), Err(1231), "{name}");
        }
        assert_eq!(check("/dev/null"), Err(1231), "no device");
    }

    #[test]
    fn a_disk_that_is_full_leaves_no_half_entry() {
        let dir = tempfile::tempdir().unwrap();
        let log = LogFile::open(&dir.path().join("x.log"), &GlobalVars::default()).unwrap();
        log.write(b"one\n").unwrap();
        assert!(std::fs::read_to_string(&log.path).unwrap().ends_with("Argument\none\n"));
        let full = LogFile { file: OpenOptions::new().write(true).open("/dev/full").unwrap(), ..log };
        assert!(full.write(b"two").is_err());
    }
}
