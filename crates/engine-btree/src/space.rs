//! A disk that is too full. What can not be written waits in memory, and counts as written: redb writes under locks that
//! readers take, also on a reader's thread to make room in its cache, so none of its writes may wait there, and after an
//! error it takes nothing more. A sync waits, and only there: until what is kept here is in the file, or until nobody wants
//! to wait ([`crate::BtreeConfig::full_disk`], SPACE-1).
//!
//! So what is kept is at most what one transaction of the file writes: the writer thread begins none while something is, and
//! one that may be large (`load::install`) waits between its rows.

use omnibus_disk::{File, FullDisk};
use std::collections::BTreeMap;
use std::io::{Error, Result};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

const BLOCK: usize = crate::sums::BLOCK;
/// The name under which it waits (SPACE-1).
const WHO: &str = "the B-tree";

/// See the module.
#[derive(Debug)]
pub(crate) struct Space {
    disk: Arc<FullDisk>,
    path: PathBuf,
    /// The engine is being closed: nothing waits any more.
    closing: AtomicBool,
    /// Something is kept, or a sync waits.
    full: AtomicBool,
    /// How often there was no room.
    failures: AtomicU64,
    /// By the number of the block.
    kept: Mutex<BTreeMap<u64, Box<[u8]>>>,
}

impl Space {
    pub(crate) fn new(disk: Arc<FullDisk>, path: PathBuf) -> Space {
        Space {
            disk,
            path,
            failures: AtomicU64::new(0),
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
        self.disk.is_patient() && !self.closing.load(Ordering::Acquire)
    }

    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.disk.goes_on(WHO, false);
    }

    /// Whether a failure is one to wait for.
    pub(crate) fn waits_for(&self, error: &Error) -> bool {
        let waits = omnibus_disk::is_full(error.kind()) && self.patient();
        if waits {
            // Told first: who finds `full` set takes it back, also on another thread.
            self.disk.waits(WHO, &format_args!("can not write {}: {error}", self.path.display()));
            self.full.store(true, Ordering::Release);
            self.failures.fetch_add(1, Ordering::AcqRel);
        }
        waits
    }

    /// How often there was no room.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Acquire)
    }

    /// Changes when room was made.
    pub(crate) fn made(&self) -> u64 {
        self.disk.made()
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
        self.disk.goes_on(WHO, true);
        Ok(())
    }
}
