//! Makes a data directory from an archive: the newest base backup that is not past the requested point, and the log
//! from there up to it.
//!
//! The result is the directory that a crash at that point would have left, so only the first start's recovery remains
//! to be done. Pieces and files are compared with their checksums as they arrive, and files of the log with the next
//! file's description of them. Until everything is there and durable the folder is not a data directory.

use crate::error::ArchiveError;
use crate::inventory::{Inventory, split};
use crate::layout::{self, BaseBackup};
use crate::note::{Note, Notes};
use crate::piece::Piece;
use crate::store::Store;
use crate::until::{Search, Step, Until, time_text};
use omnibus_format::header::{FLAGS_OFFSET, MAGIC};
use omnibus_log::{Disk, FileNames, FileSeq, GroupedFile, GroupsEnd, LogOffset, Next, ReadFile, clip_file};
use omnibus_server::backup::Restoration;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The base backup's name.
    pub backup: String,
    /// The log file that it ends in.
    pub file: String,
    /// The position in the file.
    pub position: u64,
    /// `gtid_executed` of there; in MariaDB's dialect of the base backup's position.
    pub gtid_executed: String,
    /// Transactions of the log that are not in the base backup.
    pub transactions: u64,
    /// The time of the last commit, RFC 3339; empty if there is none.
    pub last_commit: String,
}

/// Makes a data directory of `folder`, which does not exist or is empty.
///
/// # Errors
/// See [`ArchiveError`]. What was begun then is no data directory; remove it.
pub fn restore(
    store: &Store,
    folder: &Path,
    until: &Until,
    notes: Notes<'_>,
) -> Result<Restored, ArchiveError> {
    let there = Inventory::of(store)?;
    let backup = choose(&there, until, store.url())?;
    let (names, seq) = split(&backup.info.file)
        .ok_or_else(|| ArchiveError::Missing(format!("'{}' is no log file's name", backup.info.file)))?;
    let target = Restoration::begin(folder)?;
    let format = fetch_backup(store, backup, &target, notes)?;
    let mut log = Log {
        store,
        target: &target,
        there: &there,
        names: names.clone(),
        search: Search::new(until.clone(), backup, seq),
        before: None,
        notes,
    };
    let last = log.fetch(backup, seq)?;
    let search = log.search;
    let mut paths: Vec<&str> = backup.info.files.keys().map(String::as_str).collect();
    let index = index_of(backup, &names, last);
    let index_name = names.index();
    let path = target.place(&index_name)?;
    std::fs::write(&path, index).map_err(ArchiveError::io(&path))?;
    File::open(&path).and_then(|file| file.sync_all()).map_err(ArchiveError::io(&path))?;
    paths.push(&index_name);
    target.finish(paths, &format)?;
    let mysql = backup.info.gtid_executed.parse::<omnibus_format::GtidSet>().is_ok();
    Ok(Restored {
        backup: backup.id.clone(),
        file: names.log(last),
        position: search.border,
        gtid_executed: if mysql { search.executed().to_string() } else { backup.info.gtid_executed.clone() },
        transactions: search.transactions,
        last_commit: if search.transactions == 0 { String::new() } else { time_text(search.last_us) },
    })
}

fn choose<'i>(there: &'i Inventory, until: &Until, url: &str) -> Result<&'i BaseBackup, ArchiveError> {
    if let Some(backup) = there.backups.iter().rev().find(|backup| until.can_begin_with(backup)) {
        return Ok(backup);
    }
    Err(ArchiveError::Missing(match there.backups.first() {
        None => format!("{url} has no base backup: `omnibus archive --backup-in` takes one"),
        Some(first) => format!(
            "{url} does not reach back to {until}: its oldest base backup is of {} at {}:{}",
            time_text(first.taken_us),
            first.info.file,
            first.info.position
        ),
    }))
}

/// Fetches the backup's files. Returns the text of the data directory's format file.
fn fetch_backup(
    store: &Store,
    backup: &BaseBackup,
    target: &Restoration,
    notes: Notes<'_>,
) -> Result<String, ArchiveError> {
    let folder = layout::backup_folder(&backup.id);
    let mut format = None;
    for (path, &size) in &backup.info.files {
        let name = format!("{folder}/{path}");
        let is_mark = Restoration::is_mark(path);
        let (len, crc) = if is_mark {
            let bytes = store.get(&name)?.unwrap_or_default();
            format = Some(String::from_utf8_lossy(&bytes).into_owned());
            (bytes.len() as u64, crc32fast::hash(&bytes))
        } else {
            store.get_file(&name, &target.place(path)?)?
        };
        let expected = backup.info.checksums.get(path).copied().unwrap_or(crc);
        if (len, crc) != (size, expected) {
            let what =
                format!("{len} bytes with the checksum {crc:08x} instead of {size} with {expected:08x}");
            return Err(ArchiveError::Damaged { name, what });
        }
        if !is_mark {
            notes(Note::Restored { file: path.clone(), bytes: len });
        }
    }
    format.filter(|text| !text.is_empty()).ok_or_else(|| ArchiveError::Damaged {
        name: layout::backup_list(&backup.id),
        what: "it has no mark of a data directory".into(),
    })
}

/// The files that the backup has, and those behind them.
fn index_of(backup: &BaseBackup, names: &FileNames, last: FileSeq) -> String {
    let mut files: Vec<FileSeq> = backup.info.files.keys().filter_map(|path| names.parse(path)).collect();
    while let Some(next) =
        files.iter().max().filter(|newest| **newest < last).and_then(|newest| newest.next())
    {
        files.push(next);
    }
    files.sort_unstable();
    files.iter().map(|seq| format!("./{}\n", names.log(*seq))).collect()
}

/// The log's part.
struct Log<'r> {
    store: &'r Store,
    target: &'r Restoration,
    there: &'r Inventory,
    names: FileNames,
    search: Search,
    /// The end of the previous file's groups.
    before: Option<GroupsEnd>,
    notes: Notes<'r>,
}

impl Log<'_> {
    /// Fetches files from the backup's last one on. Returns the last.
    fn fetch(&mut self, backup: &BaseBackup, first: FileSeq) -> Result<FileSeq, ArchiveError> {
        let mut seq = first;
        loop {
            let name = self.names.log(seq);
            let path = self.target.place(&name)?;
            let next = seq.next().filter(|next| self.there.log.iter().any(|range| range.seq == *next));
            self.bring(&name, &path, seq == first)?;
            self.search.file(seq);
            let step = self.read(&path, seq, next.is_some())?;
            if seq == first && self.search.border < backup.info.position {
                return Err(ArchiveError::Damaged {
                    name,
                    what: format!("it ends at {}, in front of the backup's position", self.search.border),
                });
            }
            match next {
                Some(next) if step == Step::On => seq = next,
                _ => break self.end(&path, seq, step == Step::Stop || next.is_none())?,
            }
        }
        Ok(seq)
    }

    /// All that is archived of a file; of the first one the backup has a beginning.
    fn bring(&self, name: &str, path: &Path, is_first: bool) -> Result<(), ArchiveError> {
        let failed = ArchiveError::io;
        let pieces = Inventory::pieces(self.store, name)?;
        if pieces.is_empty() && is_first {
            return Ok(());
        }
        if pieces.is_empty() {
            return Err(ArchiveError::Gap(format!("nothing is left of {name}")));
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed(path))?;
        // One that is encrypted is another form of the same; what is archived is not.
        if is_first && !is_plain(&file).map_err(failed(path))? {
            file.set_len(0).map_err(failed(path))?;
        }
        let mut at = 0;
        for piece in &pieces {
            let bytes = self.piece(name, piece)?;
            let new = &bytes[(at - piece.offset) as usize..];
            put(&file, at, new).map_err(failed(path))?.then_some(()).ok_or_else(|| {
                ArchiveError::Damaged {
                    name: name.to_owned(),
                    what: "the base backup and the log disagree".into(),
                }
            })?;
            at = piece.end();
        }
        file.sync_all().map_err(failed(path))?;
        (self.notes)(Note::Restored { file: name.to_owned(), bytes: at });
        Ok(())
    }

    fn piece(&self, file: &str, piece: &Piece) -> Result<bytes::Bytes, ArchiveError> {
        let name = format!("{}/{piece}", layout::log_folder(file));
        let bytes = self.store.get(&name)?.unwrap_or_default();
        if piece.is(&bytes) {
            return Ok(bytes);
        }
        Err(ArchiveError::Damaged { name, what: format!("{} bytes with another checksum", bytes.len()) })
    }

    /// Follows the file's transactions. Says whether the wanted place is in it.
    fn read(&mut self, path: &Path, seq: FileSeq, complete: bool) -> Result<Step, ArchiveError> {
        let mut file = GroupedFile::new(ReadFile::open(&Disk::default(), seq, path)?)?;
        if let (Some(before), Some(start)) = (self.before, file.chain_start())
            && start.before_end != 0
            && (GroupsEnd { end: start.before_end, chain: start.before_chain }) != before
        {
            let what = format!("{} says that the file before it ends elsewhere", self.names.log(seq));
            return Err(ArchiveError::Gap(what));
        }
        loop {
            match file.next()? {
                Next::Event(event) => {
                    let step = self.search.step(&event).map_err(|error| ArchiveError::Damaged {
                        name: self.names.log(seq),
                        what: format!("at {}: {error}", event.offset),
                    })?;
                    if step == Step::Stop {
                        return Ok(step);
                    }
                }
                Next::End(_) => {
                    self.before = file.groups_end();
                    return Ok(self.search.file_ended(complete));
                }
            }
        }
    }

    /// The last file ends where the search has, as a crash there would have left it.
    fn end(&mut self, path: &Path, seq: FileSeq, clip: bool) -> Result<(), ArchiveError> {
        let name = self.names.log(seq);
        if !self.search.found {
            if let Some(later) = self.there.log.iter().find(|range| range.seq > seq) {
                return Err(ArchiveError::Gap(format!(
                    "behind {name} comes {}; what is before it is brought back with --until {name}:{}",
                    later.file, self.search.border
                )));
            }
            if !self.search.may_end_early() {
                return Err(ArchiveError::Missing(format!(
                    "{} ends at {name}:{}, and {} is not in it",
                    self.store.url(),
                    self.search.border,
                    self.search.until()
                )));
            }
        }
        if clip {
            self.search.border = clip_file(&Disk::default(), path, LogOffset(self.search.border))?.0;
        }
        Ok(())
    }
}

/// Returns whether a file is a log in clear text, or empty.
fn is_plain(file: &File) -> std::io::Result<bool> {
    let mut magic = [0; MAGIC.len()];
    Ok(file.read_at(&mut magic, 0)? == 0 || magic == MAGIC)
}

/// Puts bytes in their place. What is there already must be the same, but for the flag that says that a file is in use.
fn put(file: &File, at: u64, bytes: &[u8]) -> std::io::Result<bool> {
    let len = file.metadata()?.len();
    let there = usize::try_from(len.saturating_sub(at)).unwrap_or(usize::MAX).min(bytes.len());
    let mut old = vec![0; there];
    file.read_exact_at(&mut old, at)?;
    let flags = (MAGIC.len() + FLAGS_OFFSET) as u64;
    let same = old.iter().zip(bytes).enumerate().all(|(n, (old, new))| old == new || at + n as u64 == flags);
    file.write_all_at(bytes, at)?;
    Ok(same)
}
