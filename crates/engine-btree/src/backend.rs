//! The file under the B-tree: redb's own, with a checksum of every block (`sums`), and with a write for which the disk is too
//! full waiting and being tried again. redb takes nothing more after an error, so an error would be the end of the server.
//!
//! For the same reason a read that fails, or that meets a damaged block, is no error to redb: it unwinds through redb to the
//! engine's edge (`damage::caught`), where it becomes one. redb holds no lock while it reads.
//!
//! The wait ends without space when [`crate::BtreeConfig::wait_for_space`] is switched off.

use crate::damage;
use crate::sums::Sums;
use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};
use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const AGAIN: Duration = Duration::from_millis(500);

/// See the module.
#[derive(Debug)]
pub(crate) struct Backend {
    file: FileBackend,
    /// None while redb verifies the file by its own means.
    sums: Option<Arc<Sums>>,
    patient: Arc<AtomicBool>,
}

impl Backend {
    pub(crate) fn new(file: FileBackend, sums: Option<Arc<Sums>>, patient: Arc<AtomicBool>) -> Backend {
        Backend { file, sums, patient }
    }

    fn with_sums(&self, work: impl Fn(&Sums) -> io::Result<()>) -> io::Result<()> {
        self.sums.as_ref().map_or(Ok(()), |sums| self.patiently(|| work(sums)))
    }

    fn patiently(&self, write: impl Fn() -> io::Result<()>) -> io::Result<()> {
        let mut said = false;
        loop {
            match write() {
                Err(error) if is_full(&error) && self.patient.load(Ordering::Acquire) => {
                    if !std::mem::replace(&mut said, true) {
                        tracing::error!(%error, "engine-btree: the disk is full; writing waits until there is space");
                    }
                    std::thread::sleep(AGAIN);
                }
                done => return done,
            }
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if let Err(error) = self.file.read(offset, out) {
            damage::unwind(format!("block at {offset}: {error}"));
        }
        let verified = self.sums.as_ref().map_or(Ok(()), |sums| sums.verify(offset, out));
        if let Err(offset) = verified {
            damage::unwind(format!("block at {offset}: its checksum does not match"));
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.with_sums(|sums| sums.resize(len))?;
        self.patiently(|| self.file.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.with_sums(Sums::sync)?;
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.with_sums(|sums| sums.written(offset, data))?;
        self.patiently(|| self.file.write(offset, data))
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}
