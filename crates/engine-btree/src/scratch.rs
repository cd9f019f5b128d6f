//! The file under the B-tree when it is only looked at: what redb writes to open it, after a crash above all, stays in memory.
//! Checksums are looked at as in `backend`.

use crate::damage;
use crate::sums::{BLOCK, Sums};
use omnibus_disk::File;
use parking_lot::Mutex;
use redb::{BackendError, StorageBackend};
use std::collections::HashSet;
use std::io::Result;
use std::ops::Bound;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Scratch {
    /// The file of an overlay.
    file: File,
    sums: Option<Arc<Sums>>,
    /// Blocks that are not as they are in the file.
    written: Mutex<HashSet<u64>>,
}

impl Scratch {
    pub(crate) fn new(file: File, sums: Option<Arc<Sums>>) -> Scratch {
        Scratch { file, sums, written: Mutex::default() }
    }
}

impl StorageBackend for Scratch {
    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        if let Err(error) = self.file.read_exact_at(out, offset) {
            damage::unwind(format!("block at {offset}: {error}"));
        }
        let Some(sums) = &self.sums else { return Ok(()) };
        let written = self.written.lock();
        for (at, block) in (offset..).step_by(BLOCK).zip(out.chunks(BLOCK)) {
            if !written.contains(&(at / BLOCK as u64))
                && let Err(offset) = sums.verify(at, block)
            {
                damage::unwind(format!("block at {offset}: its checksum does not match"));
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let blocks = offset / BLOCK as u64..(offset + data.len() as u64).div_ceil(BLOCK as u64);
        self.written.lock().extend(blocks);
        self.file.write_all_at(data, offset)
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }

    // The directory's lock is held.
    fn try_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> std::result::Result<bool, BackendError> {
        Ok(true)
    }

    fn try_lock_shared_range(&self, _: Bound<u64>, _: Bound<u64>) -> std::result::Result<bool, BackendError> {
        Ok(true)
    }

    fn lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> std::result::Result<(), BackendError> {
        Ok(())
    }

    fn lock_shared_range(&self, _: Bound<u64>, _: Bound<u64>) -> std::result::Result<(), BackendError> {
        Ok(())
    }

    fn unlock_range(&self, _: Bound<u64>, _: Bound<u64>) -> std::result::Result<(), BackendError> {
        Ok(())
    }

    fn query_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> std::result::Result<bool, BackendError> {
        Ok(false)
    }
}
