//! The storage engines of a server: which there are, and how they are opened in a data directory.
//!
//! Another engine is one more line in `OTHERS`. Its slot is its place there and part of the data format: lines are
//! never reordered.

use omnibus_disk::{Disk, FullDisk};
use omnibus_encryption::TableEncryption;
use omnibus_engine::{CommitNo, Engine, EngineError, EngineSet};
use omnibus_engine_btree::{BtreeConfig, BtreeEngine};
use omnibus_engine_lsm::{LsmConfig, LsmEngine};
use omnibus_sql::api::{DEFAULT_ENGINE, is_default_engine, is_foreign_engine};
use omnibus_sql::catalog::persist;
use omnibus_sql::load_catalog;
use std::path::Path;
use std::sync::Arc;

/// The variables about engines.
#[derive(Clone, Copy, Debug)]
pub struct EngineSettings {
    /// `lsm_memtable_size`.
    pub lsm_memtable_size: u64,
    /// `lsm_block_cache_size`.
    pub lsm_block_cache_size: u64,
    /// `btree_cache_size`.
    pub btree_cache_size: u64,
}

/// Where engines have their files.
#[derive(Clone, Debug)]
pub struct EngineDisks {
    /// For files that say what state an engine is in.
    pub state: Disk,
    /// For files that rows are in: encrypted, if files are. Reads and writes are counted as those of `state` are.
    pub rows: Disk,
    /// As `rows`; not counted, because a library takes the names of these files away.
    pub tables: Disk,
    /// Whether a full disk is waited for, and who else waits.
    pub full: Arc<FullDisk>,
}

impl EngineDisks {
    /// Those over a disk.
    #[must_use]
    pub fn new(disk: &Disk, encryption: &TableEncryption, full: &Arc<FullDisk>) -> EngineDisks {
        EngineDisks {
            state: disk.clone(),
            rows: encryption.over(disk.clone()),
            tables: encryption.over(Disk::default()),
            full: Arc::clone(full),
        }
    }
}

type Open = fn(&EngineSettings, &Path, &EngineDisks) -> Result<Arc<dyn Engine>, EngineError>;

/// Slot 1 and up.
const OTHERS: &[(&str, Open)] = &[("BTREE", open_btree)];

/// An engine's name as we write it; that of the one in slot 0, which also keeps the catalog, for those that it stands in for.
#[must_use]
pub fn find(name: &str) -> Option<&'static str> {
    if is_default_engine(name) || is_foreign_engine(name) {
        return Some(DEFAULT_ENGINE);
    }
    OTHERS.iter().map(|(name, _)| *name).find(|known| known.eq_ignore_ascii_case(name))
}

/// Opens or creates all of them. They wait for space on a full disk as long as it says so.
///
/// # Errors
/// Any engine's.
pub fn open(
    settings: &EngineSettings,
    datadir: &Path,
    disks: &EngineDisks,
) -> Result<Arc<dyn Engine>, EngineError> {
    let mut config = LsmConfig::new(&datadir.join("lsm"));
    config.memtable_size = settings.lsm_memtable_size;
    config.block_cache_size = settings.lsm_block_cache_size;
    config.full_disk = Arc::clone(&disks.full);
    config.disk = disks.state.clone();
    config.rows = disks.tables.clone();
    let first = LsmEngine::open(config)?;
    let others = OTHERS.iter().map(|(_, open)| open(settings, datadir, disks));
    let others = others.collect::<Result<Vec<_>, _>>()?;
    for engine in &others {
        if first.applied() > CommitNo::ZERO && EngineSet::<LsmEngine>::is_new(&**engine)? {
            refuse_if_used(datadir, &first, &**engine)?;
        }
    }
    Ok(Arc::new(EngineSet::new(first, others, persist::definition_keys())?))
}

/// An engine without files is new only if no table is in it; else its files were lost.
fn refuse_if_used(datadir: &Path, first: &dyn Engine, engine: &dyn Engine) -> Result<(), EngineError> {
    let damaged = |detail| EngineError::Corrupt { engine: engine.name(), detail };
    let catalog = load_catalog(&*first.snapshot(CommitNo::MAX)).map_err(|error| damaged(error.message))?;
    match catalog.tables().find(|table| *table.def.engine == *engine.name()) {
        Some(table) => {
            let place = datadir.join(engine.name().to_ascii_lowercase());
            Err(damaged(format!(
                "its files are missing or empty in {}, but {} is stored in it; restore the data directory from a backup, or make this server anew from a replica",
                place.display(),
                table.qualified()
            )))
        }
        None => Ok(()),
    }
}

fn open_btree(
    settings: &EngineSettings,
    datadir: &Path,
    disks: &EngineDisks,
) -> Result<Arc<dyn Engine>, EngineError> {
    let mut config = BtreeConfig::new(&datadir.join("btree"));
    config.cache_size = settings.btree_cache_size as usize;
    config.full_disk = Arc::clone(&disks.full);
    config.disk = disks.rows.clone();
    Ok(Arc::new(BtreeEngine::open(config)?))
}
