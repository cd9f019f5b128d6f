//! Open encrypted table files: their callers see what is behind the header, in clear text.

use crate::file::{handed_on, read_full};
use crate::key::{BLOCK, FileKey};
use crate::scratch::{PIECE, Pool};
use crate::table_header::TABLE_HEADER;
use crate::xts::UnitKey;
use omnibus_disk::{File, Metadata, OpenFile};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

const FRONT: u64 = TABLE_HEADER as u64;

/// A file that is written once, from its beginning to its end.
#[derive(Debug)]
pub(crate) struct InOrder {
    pub(crate) file: File,
    pub(crate) key: FileKey,
    pub(crate) pool: Arc<Pool>,
}

impl OpenFile for InOrder {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.file.read_at(bytes, offset + FRONT)?;
        self.key.apply(&mut bytes[..read], offset);
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let len = bytes.len().min(PIECE);
        self.pool.with(len, |piece| {
            piece.copy_from_slice(&bytes[..len]);
            self.key.apply(piece, offset);
            self.file.write_all_at(piece, offset + FRONT)
        })?;
        Ok(len)
    }

    // Space that is added would have to read as zeros.
    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn reserve(&self, _: u64) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    handed_on!();
}

/// A file that is written anywhere, and again. Its length is a multiple of sixteen: one that is cut elsewhere ends with zeros.
#[derive(Debug)]
pub(crate) struct InPlace {
    pub(crate) file: File,
    pub(crate) key: UnitKey,
    pub(crate) pool: Arc<Pool>,
    /// Held by who writes a part of a block, which is read for that.
    pub(crate) parts: Mutex<()>,
}

impl InPlace {
    /// Reads whole blocks in clear text. What is behind the end stays as it was given.
    fn read_blocks(&self, blocks: &mut [u8], from: u64) -> io::Result<usize> {
        let read = read_full(&*self.file, blocks, from + FRONT)?;
        // A crash may have left a file that ends elsewhere; nothing in there was synced.
        let whole = read - read % BLOCK as usize;
        self.key.decrypt(&mut blocks[..whole], from);
        blocks[whole..read].fill(0);
        Ok(whole)
    }

    fn write_blocks(&self, blocks: &mut [u8], from: u64) -> io::Result<()> {
        self.key.encrypt(blocks, from);
        self.file.write_all_at(blocks, from + FRONT)
    }

    /// Writes what begins or ends within a block, with the rest of its blocks as it is.
    fn write_parts(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let _one = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let from = offset - offset % BLOCK;
        let end = offset + bytes.len() as u64;
        let to = end.next_multiple_of(BLOCK);
        let mut whole = vec![0; (to - from) as usize];
        let edges = [(offset > from, from), (end < to, to - BLOCK)];
        for (_, at) in edges.into_iter().filter(|(is_cut, _)| *is_cut) {
            let place = (at - from) as usize;
            self.read_blocks(&mut whole[place..place + BLOCK as usize], at)?;
        }
        let place = (offset - from) as usize;
        whole[place..place + bytes.len()].copy_from_slice(bytes);
        self.write_blocks(&mut whole, from)
    }
}

impl OpenFile for InPlace {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let skip = (offset % BLOCK) as usize;
        if skip == 0 && bytes.len().is_multiple_of(BLOCK as usize) {
            return self.read_blocks(bytes, offset);
        }
        let mut whole = vec![0; (skip + bytes.len()).next_multiple_of(BLOCK as usize)];
        let read = self.read_blocks(&mut whole, offset - skip as u64)?;
        let found = read.saturating_sub(skip).min(bytes.len());
        bytes[..found].copy_from_slice(&whole[skip..skip + found]);
        Ok(found)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let len = bytes.len().min(PIECE);
        let whole = len - len % BLOCK as usize;
        if !offset.is_multiple_of(BLOCK) || whole == 0 {
            self.write_parts(&bytes[..len], offset)?;
            return Ok(len);
        }
        self.pool.with(whole, |piece| {
            piece.copy_from_slice(&bytes[..whole]);
            self.write_blocks(piece, offset)
        })?;
        Ok(whole)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let end = len.next_multiple_of(BLOCK);
        if len < end && OpenFile::metadata(self)?.len >= end {
            self.write_parts(&vec![0; (end - len) as usize], len)?;
        }
        self.file.set_len(end + FRONT)
    }

    fn reserve(&self, len: u64) -> io::Result<bool> {
        self.file.reserve(len.next_multiple_of(BLOCK) + FRONT)
    }

    handed_on!();
}
