//! Rewrites the front part of finished files: the headers of encrypted ones, under another key. Any thread that may
//! block.

use crate::config::LogConfig;
use crate::error::{IoFailure, failed};
use crate::finish::open_to_cut;
use crate::handle::LogHandle;
use crate::tail::FilePin;
use std::io;
use std::path::Path;

impl LogHandle {
    /// Calls `change` on the front of each finished file for which `wanted` returns true, oldest first. A file with
    /// another name, in a backup, is left unchanged there, and a copy takes its place here. A file that is purged
    /// meanwhile is skipped.
    ///
    /// # Errors
    /// `wanted` or `change` failed, or the operating system did, on a file that still exists.
    pub fn change_fronts(
        &self,
        wanted: &dyn Fn(&Path) -> io::Result<bool>,
        change: &dyn Fn(&Path) -> io::Result<()>,
    ) -> Result<(), IoFailure> {
        self.wait_for_background();
        for entry in self.list().into_iter().filter(|entry| !entry.active) {
            let Ok(_pin) = FilePin::new(self, entry.file) else { continue };
            let path = self.catalog.path_of(entry.file);
            if wanted(&path).map_err(failed("look at", &path))? {
                let LogConfig { disk, faults, .. } = &self.catalog.config;
                open_to_cut(disk, faults, &path, entry.size)?;
                change(&path).map_err(failed("write", &path))?;
            }
        }
        Ok(())
    }
}
