//! The file under the B-tree: redb's own, with a checksum of every block (`sums`), and with a write for which the disk is too
//! full being kept in memory until there is space (`space`).
//!
//! A read that fails, or that meets a damaged block, is no error to redb, which takes nothing more after one: it unwinds
//! through redb to the engine's edge (`damage::caught`), where it becomes one. redb holds no lock while it reads.

use crate::space::Space;
use crate::sums::Sums;
use crate::{damage, form};
use omnibus_disk::{Disk, File};
use parking_lot::RwLock;
use redb::{BackendError, StorageBackend};
use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const AGAIN: Duration = Duration::from_millis(500);
/// The interval at which a wait checks whether it has to end.
const LOOK: Duration = Duration::from_millis(20);

/// See the module.
#[derive(Debug)]
pub(crate) struct Files {
    /// Another one takes its place when it gets another form (`form`).
    file: RwLock<File>,
    /// None while redb verifies the file by its own means.
    sums: Option<Arc<Sums>>,
    space: Space,
}

/// The storage that redb uses.
#[derive(Debug)]
pub(crate) struct Backend(pub(crate) Arc<Files>);

impl Files {
    pub(crate) fn new(file: File, sums: Option<Arc<Sums>>, space: Space) -> Files {
        Files { file: RwLock::new(file), sums, space }
    }

    /// Returns whether a write waits for space now.
    pub(crate) fn full(&self) -> bool {
        self.space.full()
    }

    /// Goes on with a file in the form of new ones. Nobody writes meanwhile.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn renew(&self, disk: &Disk, path: &Path) -> io::Result<()> {
        if let Some(file) = form::renewed(disk, path)? {
            *self.file.write() = file;
        }
        Ok(())
    }

    /// Bytes of the file.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn len(&self) -> io::Result<u64> {
        self.file.read().len()
    }

    /// How often there was no room.
    pub(crate) fn failures(&self) -> u64 {
        self.space.failures()
    }

    /// Bytes that are kept in memory for want of space.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.space.kept()
    }

    /// Ends every wait for space.
    pub(crate) fn stop_waiting(&self) {
        self.space.close();
    }

    /// Writes what waits for space: false if there still is too little.
    ///
    /// # Errors
    /// Errors other than a full disk; a full disk, too, if waiting is switched off.
    pub(crate) fn settle(&self) -> io::Result<bool> {
        match self.drain() {
            Err(error) if self.space.waits_for(&error) => Ok(false),
            done => done.map(|()| true),
        }
    }

    /// Waits until nothing is kept in memory for want of space.
    ///
    /// # Errors
    /// Errors other than a full disk; a full disk, too, if waiting is switched off.
    pub(crate) fn wait_until_settled(&self) -> io::Result<()> {
        if self.full() { self.patiently(|| self.drain()) } else { Ok(()) }
    }

    fn with_sums(&self, work: impl FnOnce(&Sums) -> io::Result<()>) -> io::Result<()> {
        self.sums.as_ref().map_or(Ok(()), |sums| work(sums))
    }

    /// The checksums go first: they must be there when a block is.
    fn drain(&self) -> io::Result<()> {
        if self.space.full() {
            self.with_sums(Sums::sync)?;
        }
        self.space.drain(&self.file.read())
    }

    fn patiently(&self, step: impl Fn() -> io::Result<()>) -> io::Result<()> {
        loop {
            let made = self.space.made();
            match step() {
                Err(error) if self.space.waits_for(&error) => {}
                done => return done,
            }
            let since = std::time::Instant::now();
            while self.space.patient() && since.elapsed() < AGAIN && self.space.made() == made {
                std::thread::sleep(LOOK);
            }
        }
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if let Err(error) = self.0.space.read(&self.0.file.read(), offset, out) {
            damage::unwind(format!("block at {offset}: {error}"));
        }
        let verified = self.0.sums.as_ref().map_or(Ok(()), |sums| sums.verify(offset, out));
        if let Err(offset) = verified {
            damage::unwind(format!("block at {offset}: its checksum does not match"));
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        match self.0.with_sums(|sums| sums.resize(len)) {
            // They are durable with the next sync; a crash before it leaves a file to be verified as a whole.
            Err(error) if self.0.space.waits_for(&error) => {}
            done => done?,
        }
        self.0.space.cut(len);
        self.0.patiently(|| self.0.file.read().set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.patiently(|| {
            self.0.drain()?;
            self.0.with_sums(Sums::sync)
        })?;
        self.0.file.read().sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let keep = match self.0.with_sums(|sums| sums.written(offset, data)) {
            // A block must not be in the file before its checksum can be.
            Err(error) if self.0.space.waits_for(&error) => true,
            done => done.map(|()| false)?,
        };
        self.0.space.write(&self.0.file.read(), offset, data, keep)
    }

    fn close(&self) -> io::Result<()> {
        Ok(())
    }

    // The file as a whole is locked, by whoever opened it (`store`).
    fn try_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<bool, BackendError> {
        Ok(true)
    }

    fn try_lock_shared_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<bool, BackendError> {
        Ok(true)
    }

    fn lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<(), BackendError> {
        Ok(())
    }

    fn lock_shared_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<(), BackendError> {
        Ok(())
    }

    fn unlock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<(), BackendError> {
        Ok(())
    }

    fn query_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<bool, BackendError> {
        Ok(false)
    }
}
