//! The file with the process's number, where `pid_file` names one: what starts and stops servers looks for it.
//!
//! It is there as long as the server serves, and stays after a kill: the next start writes it anew.

use std::path::{Path, PathBuf};

/// The file. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct PidFile {
    path: PathBuf,
}

impl PidFile {
    /// Writes the process's number to the file.
    ///
    /// # Errors
    /// The file can't be written.
    pub(crate) fn write(path: &Path) -> std::io::Result<PidFile> {
        std::fs::write(path, format!("{}\n", std::process::id()))?;
        Ok(PidFile { path: path.to_owned() })
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
