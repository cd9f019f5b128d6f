//! Changing what is in front of finished files: the headers of encrypted ones, under another key. Any thread that may block.

use crate::config::LogConfig;
use crate::error::{IoFailure, failed};
use crate::finish::open_to_cut;
use crate::handle::LogHandle;
use crate::tail::FilePin;
use std::io;
use std::path::Path;

impl LogHandle {
    /// Has the beginnings of finished files changed, oldest first: of those that `wanted` is true for. A file with another name, in
    /// a backup, is left as it is there, and gets a copy in its place. One that is purged meanwhile is left out.
    ///
    /// # Errors
    /// Of a file that stays: what `wanted` or `change` says, or the operating system.
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
