//! The contents of an archive: base backups, and the part of the log that has no gap.

use crate::error::ArchiveError;
use crate::layout::{self, BACKUPS, BaseBackup, Identity, LOG, LogEnd};
use crate::piece::{Piece, chain};
use crate::store::Store;
use omnibus_log::{FileNames, FileSeq};

/// A log file in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRange {
    /// Its name.
    pub file: String,
    /// Its number.
    pub seq: FileSeq,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// `server_uuid` of the server whose log it is; `None` while nothing was shipped.
    pub server: Option<String>,
    /// Whole ones, oldest first.
    pub backups: Vec<BaseBackup>,
    /// Names of backups without a list: being made, or never finished.
    pub unfinished: Vec<String>,
    /// Files of the log, oldest first.
    pub log: Vec<LogRange>,
}

impl Inventory {
    /// Reads the lists.
    ///
    /// # Errors
    /// The store's, or a list is damaged.
    pub fn of(store: &Store) -> Result<Inventory, ArchiveError> {
        let mut found = Inventory::default();
        if let Some(bytes) = store.get(layout::IDENTITY)? {
            let document = layout::parse(layout::IDENTITY, &bytes)?;
            found.server = Identity::of(&document).map(|identity| identity.server);
        }
        let there = store.list(BACKUPS)?;
        for id in there.objects.iter().filter_map(|name| layout::document(name)) {
            let name = layout::backup_list(id);
            let Some(bytes) = store.get(&name)? else { continue };
            let backup = BaseBackup::of(id, &layout::parse(&name, &bytes)?);
            found
                .backups
                .push(backup.ok_or_else(|| ArchiveError::Damaged { name, what: "no list of files".into() })?);
        }
        found.backups.sort_by(|a, b| a.id.cmp(&b.id));
        found.unfinished = there
            .folders
            .into_iter()
            .filter(|id| found.backups.iter().all(|whole| whole.id != *id))
            .collect();
        let files = store.list(LOG)?.folders;
        found.log =
            files.into_iter().filter_map(|file| Some(LogRange { seq: number(&file)?, file })).collect();
        found.log.sort_by_key(|range| range.seq);
        Ok(found)
    }

    /// Pieces of a log file from its beginning on, without a gap.
    ///
    /// # Errors
    /// The store's.
    pub(crate) fn pieces(store: &Store, file: &str) -> Result<Vec<Piece>, ArchiveError> {
        let names = store.list(&layout::log_folder(file))?.objects;
        Ok(chain(names.iter().filter_map(|name| name.parse().ok()).collect()))
    }

    /// Returns the number of bytes of a log file that are archived.
    ///
    /// # Errors
    /// The store's.
    pub fn end_of(store: &Store, file: &str) -> Result<u64, ArchiveError> {
        Ok(Self::pieces(store, file)?.last().map_or(0, Piece::end))
    }

    /// Returns the end of a log file, if it has ended.
    pub(crate) fn log_end(store: &Store, file: &str) -> Result<Option<LogEnd>, ArchiveError> {
        let name = layout::log_end(file);
        let Some(bytes) = store.get(&name)? else { return Ok(None) };
        Ok(LogEnd::of(&layout::parse(&name, &bytes)?))
    }
}

/// Splits a file name: `binlog.000007` into `binlog` and 7.
pub(crate) fn split(file: &str) -> Option<(FileNames, FileSeq)> {
    let (basename, _) = file.rsplit_once('.')?;
    let names = FileNames::new(basename);
    let seq = names.parse(file)?;
    (names.log(seq) == file).then_some((names, seq))
}

fn number(file: &str) -> Option<FileSeq> {
    split(file).map(|(_, seq)| seq)
}
