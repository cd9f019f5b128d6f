//! The audit log's file: opened, written, rotated when it has grown.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// When a file is set aside, and how many of those are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rotation {
    /// `server_audit_file_rotate_size`, bytes.
    pub size: u64,
    /// `server_audit_file_rotations`; 0: the file grows for ever.
    pub keep: u64,
}

/// An open file.
#[derive(Debug)]
pub(super) struct AuditFile {
    pub(super) path: PathBuf,
    file: File,
    size: u64,
}

impl AuditFile {
    /// Opens it at its end.
    pub(super) fn open(path: &Path) -> io::Result<AuditFile> {
        let file = OpenOptions::new().create(true).append(true).mode(0o640).open(path)?;
        let size = file.metadata()?.len();
        Ok(AuditFile { path: path.to_owned(), file, size })
    }

    /// Writes a line, all of it or nothing, as far as the file system lets it.
    pub(super) fn write(&mut self, line: &[u8], rotation: Rotation) -> io::Result<()> {
        if rotation.keep > 0 && self.size >= rotation.size {
            self.rotate(rotation.keep)?;
        }
        (&self.file).write_all(line).inspect_err(|_| {
            let _ = self.file.set_len(self.size);
        })?;
        self.size += line.len() as u64;
        Ok(())
    }

    /// Sets the file aside as number 1; what was 1 becomes 2, and the last one goes.
    pub(super) fn rotate(&mut self, keep: u64) -> io::Result<()> {
        let digits = keep.to_string().len();
        let numbered = |number: u64| {
            let mut name = self.path.as_os_str().to_owned();
            name.push(format!(".{number:0digits$}"));
            PathBuf::from(name)
        };
        for number in (1..keep).rev() {
            renamed(&numbered(number), &numbered(number + 1))?;
        }
        renamed(&self.path, &numbered(1))?;
        *self = AuditFile::open(&self.path)?;
        Ok(())
    }
}

fn renamed(from: &Path, to: &Path) -> io::Result<()> {
    match std::fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn files(dir: &Path) -> Vec<(String, String)> {
        let mut found: Vec<_> = std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                (entry.file_name().into_string().unwrap(), std::fs::read_to_string(entry.path()).unwrap())
            })
            .collect();
        found.sort();
        found
    }

    #[test]
    fn a_file_that_has_grown_is_set_aside_and_the_oldest_goes() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = AuditFile::open(&dir.path().join("a.log")).unwrap();
        let rotation = Rotation { size: 4, keep: 2 };
        for line in ["one\n", "two\n", "three\n", "four\n", "5\n", "6\n", "7\n"] {
            file.write(line.as_bytes(), rotation).unwrap();
        }
        let text = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        assert_eq!(
            files(dir.path()),
            [text("a.log", "7\n"), text("a.log.1", "5\n6\n"), text("a.log.2", "four\n")]
        );
        file.write(b"much longer\n", Rotation { size: 4, keep: 0 }).unwrap();
        file.write(b"8\n", Rotation { size: 4, keep: 0 }).unwrap();
        assert_eq!(files(dir.path())[0], text("a.log", "7\nmuch longer\n8\n"), "no rotations");
    }

    #[test]
    fn a_disk_that_is_full_leaves_no_half_line() {
        let mut full = AuditFile {
            path: "x".into(),
            file: OpenOptions::new().write(true).open("/dev/full").unwrap(),
            size: 0,
        };
        assert!(full.write(b"two", Rotation::default()).is_err());
        assert_eq!(full.size, 0);
    }
}
