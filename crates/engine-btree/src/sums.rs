//! A checksum of every block of the file, in a file beside it (`data.sums`): redb checks its own only when it repairs, so a
//! damaged page would be read as rows.
//!
//! redb never writes over a page that the last durable transaction refers to. So the checksums of what is durable never change
//! either, and it is enough that new ones are durable before the sync that makes new pages durable returns: they are kept in
//! memory, and written and synced by `sync` just before the file. What a crash leaves unequal is pages that nothing refers to.
//! Before the file grows, checksums for the new blocks are made durable, so the checksums always reach as far as the file.
//!
//! The first block is redb's header, changed in place, whose commit slots have checksums of redb's. Of it we keep a checksum
//! of what says where pages are (`LAYOUT`), the one before too because a crash may leave either; and the commit number that is
//! in the file at least, so that an older state of it is noticed.
//!
//! The file consists of sectors of 512 bytes, which a device writes whole: 127 values (u32 LE) and a CRC-32 of them.
//! The first sector has a magic number, a version, the layout's checksums, and the commit number. A lost or damaged
//! file of checksums is made anew after redb has verified the whole file (`store`); so is the missing one of older
//! versions.

use crate::form;
use omnibus_disk::{Disk, File, Open};
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeSet;
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::path::Path;

/// Bytes that a checksum is of; redb's pages are multiples.
pub(crate) const BLOCK: usize = 4096;
const SECTOR: usize = 512;
const VALUES: usize = SECTOR / 4 - 1;
const MAGIC: u32 = u32::from_be_bytes(*b"sums");
const VERSION: u32 = 1;
/// The byte range of redb's header with the sizes by which pages are found.
const LAYOUT: Range<usize> = 12..32;

/// Values of the first sector.
const FIRST: usize = 6;

#[derive(Debug)]
pub(crate) struct Sums {
    /// Another one takes its place when it gets another form (`form`).
    file: RwLock<File>,
    state: RwLock<BlockSums>,
    /// Serialises syncs; readers do not wait for it.
    syncing: Mutex<()>,
}

#[derive(Debug)]
struct BlockSums {
    /// The checksum of each block; 0 for a block that was never written.
    values: Vec<u32>,
    /// The checksums of the present layout and of the one before.
    layout: [u32; 2],
    applied: u64,
    dirty: BTreeSet<usize>,
}

/// Computes the checksum of a block's bytes; never 0.
fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes).max(1)
}

fn sealed(values: impl Iterator<Item = u32>) -> [u8; SECTOR] {
    let mut sector = [0; SECTOR];
    for (place, value) in sector.chunks_exact_mut(4).zip(values.take(VALUES)) {
        place.copy_from_slice(&value.to_le_bytes());
    }
    let seal = checksum(&sector[..SECTOR - 4]);
    sector[SECTOR - 4..].copy_from_slice(&seal.to_le_bytes());
    sector
}

fn unsealed(sector: &[u8]) -> Option<impl Iterator<Item = u32> + '_> {
    let value = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_le_bytes);
    let (values, seal) = sector.split_at(SECTOR - 4);
    (value(seal) == checksum(values)).then(|| values.chunks_exact(4).map(value))
}

impl BlockSums {
    fn sector(&self, number: usize) -> [u8; SECTOR] {
        let Some(at) = number.checked_sub(1) else {
            let (low, high) = (self.applied as u32, (self.applied >> 32) as u32);
            return sealed([MAGIC, VERSION, self.layout[0], self.layout[1], low, high].into_iter());
        };
        sealed(self.values.iter().skip(at * VALUES).copied())
    }

    fn set(&mut self, block: usize, value: u32) {
        if self.values.len() <= block {
            self.values.resize(block + 1, 0);
        }
        self.values[block] = value;
        self.dirty.insert(block / VALUES + 1);
    }
}

impl Sums {
    /// Reads them all; `None` if they are damaged or do not reach over `len` bytes of the file.
    pub(crate) fn read(disk: &Disk, path: &Path, len: u64) -> Result<Option<Sums>> {
        let bytes = match disk.read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            bytes => bytes?,
        };
        let mut sectors = bytes.chunks_exact(SECTOR);
        let Some(first) = sectors.next().and_then(unsealed) else { return Ok(None) };
        let first: Vec<u32> = first.take(FIRST).collect();
        let &[MAGIC, version, layout, before, low, high] = &first[..] else { return Ok(None) };
        if version != VERSION {
            let what = format!("{}: version {version} is not supported, only {VERSION}", path.display());
            return Err(Error::new(ErrorKind::InvalidData, what));
        }
        let mut values = Vec::with_capacity(bytes.len() / 4);
        for sector in sectors {
            let Some(more) = unsealed(sector) else { return Ok(None) };
            values.extend(more);
        }
        if ((values.len() * BLOCK) as u64) < len {
            return Ok(None);
        }
        let file = disk.open(path, Open::Write)?;
        let applied = u64::from(low) | u64::from(high) << 32;
        let state = BlockSums { values, layout: [layout, before], applied, dirty: BTreeSet::new() };
        Ok(Some(Sums { file: RwLock::new(file), state: RwLock::new(state), syncing: Mutex::default() }))
    }

    /// Makes those of a file as it is, which was verified. Durable on return.
    pub(crate) fn make(disk: &Disk, path: &Path, of: &File) -> Result<Sums> {
        let temporary = path.with_extension("sums.new");
        let file = disk.open(&temporary, Open::Replace)?;
        let mut state =
            BlockSums { values: Vec::new(), layout: [0; 2], applied: 0, dirty: BTreeSet::from([0]) };
        let mut block = vec![0; BLOCK];
        for number in 0..of.len()? / BLOCK as u64 {
            of.read_exact_at(&mut block, number * BLOCK as u64)?;
            if number == 0 {
                state.layout = [checksum(&block[LAYOUT]); 2];
            }
            let never = block.iter().all(|byte| *byte == 0);
            state.set(number as usize, if never { 0 } else { checksum(&block) });
        }
        let sums = Sums { file: RwLock::new(file), state: RwLock::new(state), syncing: Mutex::default() };
        sums.sync()?;
        disk.rename(&temporary, path)?;
        path.parent().map_or(Ok(()), |folder| disk.sync_dir(folder))?;
        Ok(sums)
    }

    /// Compares bytes that were read at `offset` with their checksums; the error is the offset of a damaged block.
    pub(crate) fn verify(&self, offset: u64, bytes: &[u8]) -> std::result::Result<(), u64> {
        let state = self.state.read();
        if offset == 0 && bytes.len() >= LAYOUT.end && !state.layout.contains(&checksum(&bytes[LAYOUT])) {
            return Err(0);
        }
        let numbers = offset / BLOCK as u64..;
        for (number, block) in numbers.zip(bytes.chunks_exact(BLOCK)) {
            match state.values.get(number as usize) {
                Some(&value) if number > 0 && value != 0 && value != checksum(block) => {
                    return Err(number * BLOCK as u64);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes note of a write, which comes after it.
    pub(crate) fn written(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut state = self.state.write();
        if offset == 0 && bytes.len() >= LAYOUT.end {
            let layout = checksum(&bytes[LAYOUT]);
            if layout != state.layout[0] {
                state.layout = [layout, state.layout[0]];
                state.dirty.insert(0);
                drop(state);
                return self.sync();
            }
            return Ok(());
        }
        for (number, block) in (offset / BLOCK as u64..).zip(bytes.chunks(BLOCK)) {
            let value = if block.len() == BLOCK { checksum(block) } else { 0 };
            state.set(number as usize, value);
        }
        Ok(())
    }

    /// The file will be so long. What is behind its end is forgotten; what is new is covered, durably, before it is there.
    pub(crate) fn resize(&self, len: u64) -> Result<()> {
        let blocks = len.div_ceil(BLOCK as u64) as usize;
        let mut state = self.state.write();
        let had = state.values.len();
        for number in blocks..had {
            state.set(number, 0);
        }
        if blocks <= had {
            return Ok(());
        }
        for number in had..blocks {
            state.set(number, 0);
        }
        drop(state);
        self.sync()
    }

    /// The file has at least this number, durably. Written at once and synced with what comes next.
    pub(crate) fn persisted(&self, applied: u64) -> Result<()> {
        let mut state = self.state.write();
        state.applied = state.applied.max(applied);
        self.file.read().write_all_at(&state.sector(0), 0)
    }

    /// The number passed last to `persisted`.
    pub(crate) fn applied(&self) -> u64 {
        self.state.read().applied
    }

    /// Goes on with a file in the form of new ones.
    pub(crate) fn renew(&self, disk: &Disk, path: &Path) -> Result<()> {
        // Both of those who write to it.
        let (_one, _state) = (self.syncing.lock(), self.state.read());
        if let Some(file) = form::renewed(disk, path)? {
            *self.file.write() = file;
        }
        Ok(())
    }

    /// Makes everything that was noted before the call durable.
    pub(crate) fn sync(&self) -> Result<()> {
        let _one = self.syncing.lock();
        let sectors: Vec<_> = {
            let state = self.state.read();
            state.dirty.iter().map(|number| (*number, state.sector(*number))).collect()
        };
        if sectors.is_empty() {
            return Ok(());
        }
        for (number, sector) in &sectors {
            self.file.read().write_all_at(sector, (number * SECTOR) as u64)?;
        }
        self.file.read().sync_all()?;
        let mut state = self.state.write();
        for (number, sector) in sectors {
            // Else it has changed meanwhile.
            if state.sector(number) == sector {
                state.dirty.remove(&number);
            }
        }
        Ok(())
    }
}
