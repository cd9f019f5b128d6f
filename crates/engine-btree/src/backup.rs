//! Backups: a new file with the contents of one transaction, written through the store itself.
//!
//! The file changes in place, so it cannot be linked. A reader sees one transaction for as long as it needs, while the
//! writer continues; the copy does not have the free pages of the original.

use crate::config::BtreeConfig;
use crate::shared::Shared;
use crate::store::{GARBAGE, Store, VERSIONS, applied_of};
use crate::{io_error, store_error};
use omnibus_engine::interruptible::GoOn;
use omnibus_engine::{CommitNo, EngineError};
use redb::ReadableTable;
use std::io::{Error, ErrorKind};
use std::path::Path;
use std::sync::Arc;

/// Bytes of one transaction of the copy, about: a transaction's dirty pages are kept in memory.
const BATCH: usize = 16 << 20;
/// Transactions from one that is durable to the next.
const DURABLE: u32 = 8;

/// See `Engine::backup_to`.
pub(crate) fn backup(shared: &Shared, root: &Path, go_on: GoOn<'_>) -> Result<CommitNo, EngineError> {
    let name = shared.config.directory.file_name().ok_or_else(|| io_error(ErrorKind::InvalidInput.into()))?;
    let directory = root.join(name);
    if directory.exists() {
        return Err(io_error(Error::new(ErrorKind::AlreadyExists, directory.display().to_string())));
    }
    let read = shared.store.read()?;
    let applied = applied_of(&read)?;
    let target = Store::open(&BtreeConfig { directory, full_disk: Arc::default(), ..shared.config.clone() })?;
    let mut state = target.state.lock();
    let versions = read.open_table(VERSIONS).map_err(store_error)?;
    let mut pairs = versions.iter().map_err(store_error)?.peekable();
    for batch in 1.. {
        if pairs.peek().is_none() {
            break;
        }
        // Durable now and then, so that the last transaction has little to write.
        target.transaction(&mut state, 0, batch % DURABLE == 0, |write, _| {
            let mut table = write.open_table(VERSIONS).map_err(store_error)?;
            let mut bytes = 0;
            go_on().map_err(io_error)?;
            while bytes < BATCH
                && let Some(pair) = pairs.next()
            {
                let (key, value) = pair.map_err(store_error)?;
                bytes += value.value().len() + 64;
                table.insert(key.value(), value.value()).map_err(store_error)?;
            }
            Ok(())
        })?;
    }
    let garbage = read.open_table(GARBAGE).map_err(store_error)?;
    target.transaction(&mut state, applied, true, |write, _| {
        let mut table = write.open_table(GARBAGE).map_err(store_error)?;
        for pair in garbage.iter().map_err(store_error)? {
            table.insert(pair.map_err(store_error)?.0.value(), ()).map_err(store_error)?;
        }
        Ok(())
    })?;
    Ok(CommitNo(applied))
}
