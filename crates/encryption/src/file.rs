//! An encrypted file that is open: its callers see what is behind the header, in clear text.
//!
//! A direct write needs whole blocks of the file, of which the first begins with the header: it is written again with what follows it.
//! So callers begin and end blocks `front` bytes earlier.

use crate::header::HEADER;
use crate::key::{BLOCK, FileKey};
use crate::scratch::{PIECE, Pool};
use omnibus_disk::{File, Metadata, OpenFile};
use std::io;
use std::sync::Arc;

const FRONT: u64 = HEADER as u64;

/// Reads until `bytes` is full or the file ends.
pub(crate) fn read_full(file: &dyn OpenFile, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// The requests that files of every kind hand on as they are, from behind their header of `FRONT` bytes.
macro_rules! handed_on {
    () => {
        fn front(&self) -> u64 {
            FRONT
        }

        fn metadata(&self) -> io::Result<Metadata> {
            let about = self.file.metadata()?;
            Ok(Metadata { len: about.len.saturating_sub(FRONT), ..about })
        }

        fn sync_data(&self) -> io::Result<()> {
            self.file.sync_data()
        }

        fn sync_all(&self) -> io::Result<()> {
            self.file.sync_all()
        }

        fn forget_cached(&self) -> io::Result<()> {
            self.file.forget_cached()
        }

        fn try_lock(&self) -> io::Result<bool> {
            self.file.try_lock()
        }
    };
}
pub(crate) use handed_on;

#[derive(Debug)]
pub(crate) struct EncryptedFile {
    pub(crate) file: File,
    pub(crate) key: FileKey,
    /// The header to be written with direct writes.
    pub(crate) header: Option<[u8; HEADER]>,
    pub(crate) pool: Arc<Pool>,
}

impl EncryptedFile {
    /// Fills partial blocks with zeros before the file is extended, because added space must read as zeros: the rest of
    /// the block that the file ends in, and the part of the block that it will end in.
    fn fill_partial_blocks(&self, len: u64) -> io::Result<()> {
        let old = OpenFile::metadata(self)?.len;
        if old >= len {
            return Ok(());
        }
        let zeros = |from: u64, to: u64| {
            let mut zeros = vec![0; to.saturating_sub(from) as usize];
            self.key.apply(&mut zeros, from);
            self.file.write_all_at(&zeros, from + FRONT)
        };
        let filled = old.next_multiple_of(BLOCK).min(len);
        zeros(old, filled)?;
        zeros(filled.max(len - len % BLOCK), len)
    }
}

impl OpenFile for EncryptedFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let skip = (offset % BLOCK) as usize;
        if skip == 0 && bytes.len().is_multiple_of(BLOCK as usize) {
            let read = read_full(&*self.file, bytes, offset + FRONT)?;
            self.key.reveal(&mut bytes[..read], offset);
            return Ok(read);
        }
        let from = offset - skip as u64;
        let mut whole = vec![0; (skip + bytes.len()).next_multiple_of(BLOCK as usize)];
        let read = read_full(&*self.file, &mut whole, from + FRONT)?;
        self.key.reveal(&mut whole[..read], from);
        let found = read.saturating_sub(skip).min(bytes.len());
        bytes[..found].copy_from_slice(&whole[skip..skip + found]);
        Ok(found)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.write_with_room(bytes, bytes.len(), offset)
    }

    fn write_with_room(&self, bytes: &[u8], content: usize, offset: u64) -> io::Result<usize> {
        let header: &[u8] = self.header.as_ref().filter(|_| offset == 0).map_or(&[], |header| header);
        let at = offset + FRONT - header.len() as u64;
        // Pieces end where blocks of the file do.
        let room = PIECE - (at % PIECE as u64) as usize;
        let len = bytes.len().min(room - header.len());
        let content_end = (offset + content as u64).next_multiple_of(BLOCK);
        let encrypted = usize::try_from(content_end - offset).unwrap_or(usize::MAX).min(len);
        self.pool.with(header.len() + len, |whole| {
            let (front, body) = whole.split_at_mut(header.len());
            front.copy_from_slice(header);
            body.copy_from_slice(&bytes[..len]);
            self.key.apply(&mut body[..encrypted], offset);
            self.file.write_all_at(whole, at)
        })?;
        Ok(len)
    }

    fn unit(&self) -> u64 {
        BLOCK
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.fill_partial_blocks(len)?;
        self.file.set_len(len + FRONT)
    }

    fn reserve(&self, len: u64) -> io::Result<bool> {
        self.fill_partial_blocks(len)?;
        self.file.reserve(len + FRONT)
    }

    handed_on!();
}
