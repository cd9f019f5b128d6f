//! Shortens the last log file of a restore to a point in time.
//!
//! A transaction may end in the middle of a group. The group's head counts all bytes of the group, so recovery would
//! take the remaining part for a torn tail. Therefore the head is written anew for the bytes that stay; its claim about
//! what is durable refers to earlier bytes and stays true. The result is the file that a crash at that place would have
//! left: in use, without ROTATE or STOP. The file must not belong to a running server. Any thread that may block.

use crate::error::{IoFailure, ReadError, failed};
use crate::groups::GroupedFile;
use crate::position::{FileSeq, LogOffset};
use crate::scan::{Next, ReadFile};
use omnibus_disk::{Disk, File, Open};
use omnibus_format::group::{ChainStart, opens_group};
use omnibus_format::header::{FLAG_IN_USE, FLAGS_OFFSET, HEADER_LEN, MAGIC};
use omnibus_format::writer::restamp;
use omnibus_format::{Checksum, LogPrivate};
use std::path::Path;

/// File offset of the flags of the first event.
const FLAGS_AT: u64 = (MAGIC.len() + FLAGS_OFFSET) as u64;
/// Bytes of a group that are read at once.
const PIECE: u64 = 1 << 20;

/// The group that the end falls into.
struct Group {
    offset: u64,
    head: Vec<u8>,
    head_end: u64,
    end: u64,
    previous: u32,
    durable: u64,
    spare: usize,
}

/// Shortens the file at `path` to `end`, which lies between two transactions, and makes that durable. Returns the new
/// end, which is the start of the group if no transaction of the group would be left.
///
/// # Errors
/// The file cannot be read up to `end`, or cannot be written.
pub fn clip_file(disk: &Disk, path: &Path, end: LogOffset) -> Result<LogOffset, ReadError> {
    let mut reader = GroupedFile::new(ReadFile::open(disk, FileSeq::FIRST, path)?)?;
    let (start, mut group, mut reached) = (reader.chain_start(), None, 0);
    while reached < end.0 {
        let Next::Event(event) = reader.next()? else { break };
        reached = event.end();
        if opens_group(&event)
            && let Some(LogPrivate::Group { head, spare }) = LogPrivate::of_event(&event)
        {
            group = Some(Group {
                offset: event.offset,
                head: event.bytes.to_vec(),
                head_end: event.end(),
                end: event.end() + head.len,
                previous: head.previous,
                durable: head.durable,
                spare,
            });
        }
    }
    let checksum = reader.checksum();
    let file = disk.open(path, Open::Write).map_err(failed("open", path))?;
    let end = match (start, group.filter(|group| end.0 < group.end)) {
        (Some(_), Some(group)) if end.0 <= group.head_end => group.offset,
        (Some(start), Some(group)) => {
            let head = group.shortened(&file, path, start.salt, end.0, checksum)?;
            file.write_all_at(&head, group.offset).map_err(failed("write", path))?;
            end.0
        }
        _ => end.0.min(reached),
    };
    file.set_len(end).map_err(failed("truncate", path))?;
    mark_in_use(&file, path)?;
    file.sync_all().map_err(failed("sync", path))?;
    Ok(LogOffset(end))
}

impl Group {
    /// Builds the head for the part of the group in front of `end`.
    fn shortened(
        &self,
        file: &File,
        path: &Path,
        salt: u64,
        end: u64,
        checksum: Checksum,
    ) -> Result<Vec<u8>, IoFailure> {
        let mut chain = ChainStart { salt, crc: self.previous, ..ChainStart::default() }.chain();
        let (mut hash, mut at) = (chain.hash(), self.head_end);
        let mut piece = Vec::new();
        while at < end {
            piece.resize(PIECE.min(end - at) as usize, 0);
            file.read_exact_at(&mut piece, at).map_err(failed("read", path))?;
            hash.update(&piece);
            at += piece.len() as u64;
        }
        let head = chain.add(hash, self.offset, end - self.head_end, self.durable);
        let mut event = self.head[..HEADER_LEN].to_vec();
        LogPrivate::Group { head, spare: self.spare }.encode(&mut event);
        event.resize(self.head.len(), 0);
        let flags = u16::from_le_bytes([event[FLAGS_OFFSET], event[FLAGS_OFFSET + 1]]);
        restamp(&mut event, self.head_end as u32, flags, checksum);
        Ok(event)
    }
}

/// Sets the in-use flag. The event's checksum does not cover this flag.
fn mark_in_use(file: &File, path: &Path) -> Result<(), IoFailure> {
    let mut flags = [0];
    file.read_exact_at(&mut flags, FLAGS_AT).map_err(failed("read", path))?;
    file.write_all_at(&[flags[0] | FLAG_IN_USE as u8], FLAGS_AT).map_err(failed("write", path))
}
