//! Handles a full disk. Blocks that cannot be written wait in memory, and count as written: redb writes under locks
//! that readers take, also on a reader's thread to make room in its cache, so none of its writes may wait, and after an
//! error it accepts nothing more. Only a sync waits: until the blocks kept here are in the file, or until waiting is
//! switched off ([`crate::BtreeConfig::wait_for_space`]).
//!
//! So what is kept is at most what one transaction of the file writes: the writer thread begins none while something is, and
//! one that may be large (`load::install`) waits between its rows.

use omnibus_disk::File;
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

const BLOCK: usize = crate::sums::BLOCK;

/// See the module.
#[derive(Debug)]
pub(crate) struct Space {
    patient: Arc<AtomicBool>,
    /// The engine is being closed: nothing waits any more.
    closing: AtomicBool,
    /// Something is kept, or a sync waits.
    full: AtomicBool,
    /// Blocks that could not be written, by number.
    kept: Mutex<BTreeMap<u64, Box<[u8]>>>,
}

pub(crate) fn is_full(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

impl Space {
    pub(crate) fn new(patient: Arc<AtomicBool>) -> Space {
        Space {
            patient,
            closing: AtomicBool::new(false),
            full: AtomicBool::new(false),
            kept: Mutex::default(),
        }
    }

    /// Bytes that are kept.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.kept.lock().len() * BLOCK
    }

    /// Returns whether a write waits for space now.
    pub(crate) fn full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }

    pub(crate) fn patient(&self) -> bool {
        self.patient.load(Ordering::Acquire) && !self.closing.load(Ordering::Acquire)
    }

    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }

    /// Returns whether an error is a full disk, to be waited for; logs that once.
    pub(crate) fn waits_for(&self, error: &Error) -> bool {
        let waits = is_full(error) && self.patient();
        if waits && !self.full.swap(true, Ordering::AcqRel) {
            tracing::error!(%error, "engine-btree: the disk is full; writing waits until there is space");
        }
        waits
    }

    /// Reads what was written last.
    pub(crate) fn read(&self, file: &File, offset: u64, out: &mut [u8]) -> Result<()> {
        if !self.full() {
            return file.read_exact_at(out, offset);
        }
        // Held over the read: what is written meanwhile would be found in neither place.
        let kept = self.kept.lock();
        file.read_exact_at(out, offset)?;
        let first = offset / BLOCK as u64;
        let last = (offset + out.len() as u64).div_ceil(BLOCK as u64);
        for (number, bytes) in kept.range(first..last) {
            let at = number * BLOCK as u64;
            let (from, skip) = (at.saturating_sub(offset) as usize, offset.saturating_sub(at) as usize);
            let len = (BLOCK - skip).min(out.len() - from);
            out[from..from + len].copy_from_slice(&bytes[skip..skip + len]);
        }
        Ok(())
    }

    /// Writes, or keeps; `keep` has it kept in any case.
    pub(crate) fn write(&self, file: &File, offset: u64, bytes: &[u8], keep: bool) -> Result<()> {
        if !keep && !self.full() {
            match file.write_all_at(bytes, offset) {
                Err(error) if self.waits_for(&error) => {}
                done => return done,
            }
        }
        let mut kept = self.kept.lock();
        self.full.store(true, Ordering::Release);
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let (number, skip) = (at / BLOCK as u64, (at % BLOCK as u64) as usize);
            let (part, more) = rest.split_at(rest.len().min(BLOCK - skip));
            if let Some(block) = kept.get_mut(&number) {
                block[skip..skip + part.len()].copy_from_slice(part);
            } else {
                let mut block = vec![0; BLOCK].into_boxed_slice();
                if part.len() < BLOCK {
                    let there = file.len()?.saturating_sub(number * BLOCK as u64).min(BLOCK as u64);
                    file.read_exact_at(&mut block[..there as usize], number * BLOCK as u64)?;
                }
                block[skip..skip + part.len()].copy_from_slice(part);
                kept.insert(number, block);
            }
            (at, rest) = (at + part.len() as u64, more);
        }
        Ok(())
    }

    /// The file ends there: nothing behind it is to be written any more.
    pub(crate) fn cut(&self, len: u64) {
        if self.full() {
            self.kept.lock().split_off(&len.div_ceil(BLOCK as u64));
        }
    }

    /// Writes what is kept; an error while there is no space for all of it.
    pub(crate) fn drain(&self, file: &File) -> Result<()> {
        if !self.full() {
            return Ok(());
        }
        let mut kept = self.kept.lock();
        while let Some(entry) = kept.first_entry() {
            file.write_all_at(entry.get(), entry.key() * BLOCK as u64)?;
            entry.remove();
        }
        self.full.store(false, Ordering::Release);
        tracing::info!("there is space again: engine-btree goes on");
        Ok(())
    }
}
