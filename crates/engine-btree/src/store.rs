//! The file: its tables, and one transaction of it.
//!
//! | table | key | value |
//! |---|---|---|
//! | `versions` | key, inverted commit number (`key`) | 0: deleted; 1 and the value |
//! | `garbage` | commit number (big-endian), key | nothing: what is to be looked at once the watermark is there |
//! | `meta` | `format`, `applied` | u64 |
//!
//! A writer holds `Store::state`, so `applied` is always that of the newest transaction.

use crate::backend::{Backend, Files};
use crate::config::BtreeConfig;
use crate::key::VersionKey;
use crate::space::Space;
use crate::sums::Sums;
use crate::{NAME, damage, io_error, store_error};
use bytes::Bytes;
use omnibus_disk::{Disk, File, Open};
use omnibus_engine::{EngineError, Kept};
use parking_lot::Mutex;
use redb::{
    Database, Durability, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable,
    ReadableTableMetadata, TableDefinition, WriteTransaction,
};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) const VERSIONS: TableDefinition<'_, VersionKey, &[u8]> = TableDefinition::new("versions");
pub(crate) const GARBAGE: TableDefinition<'_, &[u8], ()> = TableDefinition::new("garbage");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// The format of this engine's file that this version writes and reads.
pub const FORMAT: u64 = 1;
pub(crate) const FILE: &str = "data.redb";
/// A file that is being made, by a first start or for a backup.
const NEW_FILE: &str = "data.redb.new";
pub(crate) const SUMS: &str = "sums";

/// The table of versions, as of one transaction.
pub(crate) type Versions = ReadOnlyTable<VersionKey, &'static [u8]>;

pub(crate) struct Store {
    /// There until it is dropped.
    database: Option<Database>,
    pub(crate) state: Mutex<StoreState>,
    pub(crate) path: PathBuf,
    pub(crate) files: Arc<Files>,
    disk: Disk,
    sums: Arc<Sums>,
}

/// The state after the newest transaction.
pub(crate) struct StoreState {
    pub(crate) applied: u64,
    /// Bytes written since the last durable transaction.
    pub(crate) loose: u64,
    /// The lowest number in `garbage`.
    pub(crate) garbage_from: Option<u64>,
}

/// A stored value.
pub(crate) fn encode(value: Option<&Bytes>) -> Vec<u8> {
    match value {
        None => vec![0],
        Some(value) => [&[1], &value[..]].concat(),
    }
}

/// Decodes the form of `encode`.
pub(crate) fn decode(stored: &[u8]) -> Result<Option<Bytes>, EngineError> {
    match stored.split_first() {
        Some((0, [])) => Ok(None),
        Some((1, value)) => Ok(Some(Bytes::copy_from_slice(value))),
        _ => Err(EngineError::Corrupt { engine: NAME, detail: "a version of an unknown kind".to_owned() }),
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // Closing reads, and may meet damage; the next start says so.
        let database = self.database.take();
        let _ = damage::caught(&self.path, || {
            drop(database);
            Ok(())
        });
    }
}

impl Store {
    /// Opens the file, or creates it durably. It has its name only once it is whole.
    pub(crate) fn open(config: &BtreeConfig) -> Result<Store, EngineError> {
        let disk = &config.disk;
        disk.create_dir_all(&config.directory).map_err(io_error)?;
        let path = config.directory.join(FILE);
        if !disk.exists(&path).map_err(io_error)? {
            let new = config.directory.join(NEW_FILE);
            for left in [&new, &path.with_extension(SUMS)] {
                disk.remove_if_there(left).map_err(io_error)?;
            }
            // Opened before anything is written: it is told of every write that failed.
            let synced = disk.open(&new, Open::Create).map_err(io_error)?;
            damage::caught(&new, || Store::create(&new, config))?;
            synced.sync_all().map_err(io_error)?;
            disk.rename(&new, &path).map_err(io_error)?;
        }
        // Asserts RECOVER-3: a kill may have come before the name of the file was durable.
        disk.sync_dir(&config.directory).map_err(io_error)?;
        if let Some(parent) = config.directory.parent() {
            disk.sync_dir(parent).map_err(io_error)?;
        }
        damage::caught(&path, || Store::open_existing(&path, config))
    }

    /// Makes the tables of a new file.
    fn create(path: &Path, config: &BtreeConfig) -> Result<(), EngineError> {
        let file = config.disk.open(path, Open::Write).map_err(io_error)?;
        let (database, _) = database(file, None, config)?;
        initialize(&database).map(|_| ())
    }

    fn open_existing(path: &Path, config: &BtreeConfig) -> Result<Store, EngineError> {
        let file = config.disk.open(path, Open::Write).map_err(io_error)?;
        let len = file.len().map_err(io_error)?;
        let sums = match Sums::read(&config.disk, &path.with_extension(SUMS), len).map_err(io_error)? {
            Some(sums) => sums,
            None => verified(path, config)?,
        };
        let sums = Arc::new(sums);
        let (database, files) = database(file, Some(Arc::clone(&sums)), config)?;
        let state = initialize(&database)?;
        if state.applied < sums.applied() {
            let what = format!("it was at commit {} and is at {} now", sums.applied(), state.applied);
            return Err(damage::error(path, &what));
        }
        Ok(Store {
            database: Some(database),
            state: Mutex::new(state),
            path: path.to_owned(),
            files,
            disk: config.disk.clone(),
            sums,
        })
    }

    /// Gives the files the form of new ones.
    pub(crate) fn renew(&self) -> Result<(), EngineError> {
        // Only who has it writes.
        let _state = self.state.lock();
        if self.files.full() {
            return Ok(());
        }
        self.files.renew(&self.disk, &self.path).map_err(io_error)?;
        self.sums.renew(&self.disk, &self.path.with_extension(SUMS)).map_err(io_error)
    }

    /// Estimates what the file keeps for a snapshot at `at`: rows with several versions are as large as the others.
    pub(crate) fn kept_since(&self, at: u64) -> Result<Kept, EngineError> {
        let read = self.read()?;
        let garbage = read.open_table(GARBAGE).map_err(store_error)?;
        let Some(first) = first_garbage(&garbage)? else { return Ok(Kept::default()) };
        let several = garbage.len().map_err(store_error)?;
        let all = read.open_table(VERSIONS).map_err(store_error)?.len().map_err(store_error)?;
        let whole = Kept::part(self.files.len().map_err(io_error)?, 0, all, all.saturating_sub(several));
        let bytes = Kept::part(whole, first.saturating_sub(1), applied_of(&read)?, at);
        Ok(Kept { bytes, files: u64::from(bytes > 0) })
    }

    fn database(&self) -> Result<&Database, EngineError> {
        self.database.as_ref().ok_or_else(|| io_error(ErrorKind::NotConnected.into()))
    }

    /// A transaction that reads the present state.
    pub(crate) fn read(&self) -> Result<ReadTransaction, EngineError> {
        self.database()?.begin_read().map_err(store_error)
    }

    /// The present state, for readers.
    pub(crate) fn versions(&self) -> Result<Versions, EngineError> {
        self.read()?.open_table(VERSIONS).map_err(store_error)
    }

    /// Checks that the disk has room for `bytes` more, besides the blocks that wait for space already.
    pub(crate) fn room(&self, bytes: u64) -> Result<(), EngineError> {
        if self.files.full() {
            return Err(io_error(ErrorKind::StorageFull.into()));
        }
        let trial = self.path.with_extension("room");
        let file = self.disk.open(&trial, Open::Replace).map_err(io_error)?;
        let reserved = file.reserve(bytes);
        drop(file);
        self.disk.remove_if_there(&trial).map_err(io_error)?;
        reserved.map(|_| ()).map_err(io_error)
    }

    /// Runs one transaction that ends at `applied`. If so requested, it and everything before it are durable on return.
    pub(crate) fn transaction(
        &self,
        state: &mut StoreState,
        applied: u64,
        durable: bool,
        body: impl FnOnce(&WriteTransaction, &mut StoreState) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let mut write = self.database()?.begin_write().map_err(store_error)?;
        let durability = if durable { Durability::Immediate } else { Durability::None };
        write.set_durability(durability).map_err(|error| store_error(redb::Error::from(error)))?;
        // Else opening after a crash would walk the whole file.
        write.set_quick_repair(durable);
        body(&write, state)?;
        if applied > state.applied {
            let mut meta = write.open_table(META).map_err(store_error)?;
            meta.insert("applied", applied).map_err(store_error)?;
        }
        write.commit().map_err(store_error)?;
        state.applied = state.applied.max(applied);
        if durable {
            state.loose = 0;
            self.sums.persisted(state.applied).map_err(io_error)?;
        }
        Ok(())
    }
}

/// Locks the file, if nobody else keeps it locked. A program that starts another one has its locks there, too, until that one runs: what was
/// locked and closed a moment ago may be locked still.
fn lock(file: &File) -> std::io::Result<bool> {
    const PATIENCE: Duration = Duration::from_secs(1);
    let begun = Instant::now();
    while !file.try_lock()? {
        if begun.elapsed() > PATIENCE {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(true)
}

fn database(
    file: File,
    sums: Option<Arc<Sums>>,
    config: &BtreeConfig,
) -> Result<(Database, Arc<Files>), EngineError> {
    match lock(&file) {
        Ok(false) => {
            return Err(io_error(Error::new(ErrorKind::WouldBlock, "another process has the file open")));
        }
        Err(error) if error.kind() != ErrorKind::Unsupported => return Err(io_error(error)),
        Ok(true) | Err(_) => {}
    }
    let mut builder = redb::Builder::new();
    builder.set_cache_size(config.cache_size);
    let space = Space::new(Arc::clone(&config.full_disk), config.directory.join(FILE));
    let files = Arc::new(Files::new(file, sums, space));
    let database = builder.create_with_backend(Backend(Arc::clone(&files))).map_err(store_error)?;
    Ok((database, files))
}

/// Makes the file of checksums if it is missing or damaged: redb first verifies the whole file by its own checksums.
fn verified(path: &Path, config: &BtreeConfig) -> Result<Sums, EngineError> {
    tracing::info!(path = %path.display(), "engine-btree: no usable checksums beside the file; verifying it");
    let (mut database, _) = database(config.disk.open(path, Open::Write).map_err(io_error)?, None, config)?;
    if !database.check_integrity().map_err(store_error)? {
        return Err(damage::error(path, "a page's checksum does not match"));
    }
    drop(database);
    let file = config.disk.open(path, Open::Read).map_err(io_error)?;
    Sums::make(&config.disk, &path.with_extension(SUMS), &file).map_err(io_error)
}

/// Makes the tables if there are none, and reads where the file stands.
pub(crate) fn initialize(database: &Database) -> Result<StoreState, EngineError> {
    let write = database.begin_write().map_err(store_error)?;
    let mut state = StoreState { applied: 0, loose: 0, garbage_from: None };
    let fresh = {
        let mut meta = write.open_table(META).map_err(store_error)?;
        let format = meta.get("format").map_err(store_error)?.map(|found| found.value());
        state.applied = meta.get("applied").map_err(store_error)?.map_or(0, |found| found.value());
        match format {
            Some(FORMAT) => {}
            None => {
                meta.insert("format", FORMAT).map_err(store_error)?;
            }
            Some(found) => {
                return Err(EngineError::Format {
                    engine: NAME,
                    found: found.to_string(),
                    supported: FORMAT.to_string(),
                });
            }
        }
        write.open_table(VERSIONS).map_err(store_error)?;
        let garbage = write.open_table(GARBAGE).map_err(store_error)?;
        state.garbage_from = first_garbage(&garbage)?;
        format.is_none()
    };
    if fresh {
        write.commit().map_err(store_error)?
    } else {
        write.abort().map_err(store_error)?
    }
    Ok(state)
}

/// The commit number that a transaction of the file ends at.
pub(crate) fn applied_of(read: &ReadTransaction) -> Result<u64, EngineError> {
    let meta = read.open_table(META).map_err(store_error)?;
    Ok(meta.get("applied").map_err(store_error)?.map_or(0, |found| found.value()))
}

/// The lowest number in the table of garbage.
pub(crate) fn first_garbage(
    garbage: &impl ReadableTable<&'static [u8], ()>,
) -> Result<Option<u64>, EngineError> {
    let first = garbage.first().map_err(store_error)?;
    Ok(first.and_then(|(key, _)| key.value().first_chunk().map(|number| u64::from_be_bytes(*number))))
}
