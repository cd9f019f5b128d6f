//! The writes of a transaction that is being replayed, in bounded memory: beyond a limit they go to files (`WriteSet::spill`).

use crate::error::{SqlError, SqlResult};
use bytes::Bytes;
use omnibus_engine::{IntoSorted, Write, WriteSet};
use omnibus_temporary::TempFolder;

/// See the module.
pub(super) struct Sink {
    set: WriteSet,
    folder: TempFolder,
    limit: usize,
}

impl Sink {
    /// Keeps about `limit` bytes in memory, as write sets count them.
    pub(super) fn new(folder: &TempFolder, limit: usize) -> Sink {
        Sink { set: WriteSet::default(), folder: folder.clone(), limit }
    }

    pub(super) fn write(&mut self, key: Bytes, write: Write) -> SqlResult<()> {
        match write {
            Some(value) => self.set.put(key, value),
            None => self.set.delete(key),
        }
        if self.set.held() >= self.limit {
            self.set.spill(&|| self.folder.file()).map_err(SqlError::internal)?;
        }
        Ok(())
    }

    /// The write of a key, if there is one.
    pub(super) fn get(&self, key: &[u8]) -> SqlResult<Option<Write>> {
        self.set.get(key).map_err(SqlError::internal)
    }

    /// All writes, if they are in memory.
    pub(super) fn into_set(self) -> std::result::Result<WriteSet, Box<Sink>> {
        if self.set.is_spilled() { Err(Box::new(self)) } else { Ok(self.set) }
    }

    /// All writes in key order, each key once.
    pub(super) fn into_sorted(self) -> IntoSorted {
        self.set.into_sorted()
    }

    /// Forgets all writes.
    pub(super) fn clear(&mut self) {
        self.set.clear();
    }

    /// Another one with the same limit.
    pub(super) fn empty(&self) -> Sink {
        Sink::new(&self.folder, self.limit)
    }
}
