//! One table file, read without the tree: by a search of its index in memory and of one block.
//!
//! The blocks come from the cache that the tree has, and go there. A table's index is kept (`index`) once it has been asked for a few times and
//! while there is room for it; its filter likewise. A table without, or of another form, is read by the tree.

use crate::block::{Block, Found, Row};
use crate::index::Index;
use crate::{damaged, large, table_error};
use bytes::Bytes;
use lsm_tree::descriptor_table::DescriptorTable;
use lsm_tree::file_accessor::FileAccessor;
use lsm_tree::table::block::BlockType;
use lsm_tree::table::filter::block::FilterBlock;
use lsm_tree::table::util::load_block;
use lsm_tree::table::{BlockHandle, IndexBlock};
use lsm_tree::{Cache, CompressionType, GlobalTableId, Table, TreeId};
use omnibus_engine::EngineError;
use std::ops::Bound;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Reads of a table by the tree, before its index is made: that reads all of the index, forty blocks of a large table.
const FEW: u32 = 8;

/// The access to the files of one tree.
pub(crate) struct TableFiles {
    tree: TreeId,
    accessor: FileAccessor,
    cache: Arc<Cache>,
    /// Bytes that indexes and filters may still take.
    room: AtomicUsize,
}

impl TableFiles {
    pub(crate) fn new(tree: TreeId, open: Arc<DescriptorTable>, cache: Arc<Cache>) -> TableFiles {
        // An index and a filter are a hundredth of their table, so this is enough for tables eight times as large as the cache.
        let room = AtomicUsize::new(TableFiles::room(&cache));
        TableFiles { tree, accessor: FileAccessor::DescriptorTable(open), cache, room }
    }

    fn room(cache: &Cache) -> usize {
        usize::try_from(cache.capacity() / 8).unwrap_or(usize::MAX)
    }

    #[cfg(test)]
    pub(crate) fn taken(&self) -> usize {
        TableFiles::room(&self.cache) - self.room.load(Ordering::Relaxed)
    }

    fn takes(&self, bytes: usize) -> bool {
        self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(bytes)).is_ok()
    }
}

/// A table's index and filter in memory.
struct Loaded {
    index: Index,
    filter: Option<FilterBlock>,
    size: usize,
}

/// A table.
pub(crate) struct Reader {
    table: Table,
    files: Arc<TableFiles>,
    /// How often it was read before it had an index.
    asked: AtomicU32,
    /// Nothing inside: there is no room for it, or the table is not for here.
    loaded: OnceLock<Option<Loaded>>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(Some(loaded)) = self.loaded.get() {
            self.files.room.fetch_add(loaded.size, Ordering::Relaxed);
        }
    }
}

impl Reader {
    pub(crate) fn new(table: Table, files: Arc<TableFiles>) -> Reader {
        Reader { table, files, asked: AtomicU32::new(0), loaded: OnceLock::new() }
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    #[cfg(test)]
    pub(crate) fn size(&self) -> usize {
        self.loaded.get().and_then(Option::as_ref).map_or(0, |loaded| loaded.size)
    }

    fn id(&self) -> GlobalTableId {
        (self.files.tree, self.table.id()).into()
    }

    fn load(
        &self,
        place: &BlockHandle,
        kind: BlockType,
        form: CompressionType,
    ) -> Result<lsm_tree::table::Block, EngineError> {
        let (path, files) = (&self.table.path, &self.files);
        load_block(self.id(), path, &files.accessor, &files.cache, place, kind, form)
            .map_err(|error| table_error(path, error))
    }

    /// A data block. `None` if it has another form.
    fn block(&self, place: &BlockHandle) -> Result<Option<Block>, EngineError> {
        let form = self.table.metadata.data_block_compression;
        Ok(Block::of(self.load(place, BlockType::Data, form)?.data.into()))
    }

    /// The index, if it is to be used by now.
    fn loaded(&self) -> Option<&Loaded> {
        if let Some(loaded) = self.loaded.get() {
            return loaded.as_ref();
        }
        if self.asked.fetch_add(1, Ordering::Relaxed) < FEW {
            return None;
        }
        let Ok(read) = self.read() else {
            // The tree reads what it can of a damaged table, and tells where it cannot. Some reads later it is tried again.
            self.asked.store(0, Ordering::Relaxed);
            return None;
        };
        // Another thread may have been quicker: what is not kept is given back.
        let read = read.filter(|loaded| self.files.takes(loaded.size));
        if let Err(Some(twice)) = self.loaded.set(read) {
            self.files.room.fetch_add(twice.size, Ordering::Relaxed);
        }
        self.loaded.get().and_then(Option::as_ref)
    }

    /// Reads index and filter. `None` if one of them, or the first block, has another form than this module knows.
    fn read(&self) -> Result<Option<Loaded>, EngineError> {
        let regions = &self.table.regions;
        if regions.filter_tli.is_some() {
            return Ok(None);
        }
        let form = self.table.metadata.index_block_compression;
        let top = IndexBlock::new(self.load(&regions.tli, BlockType::Index, form)?);
        let mut index = Index::default();
        let mut add = |block: &IndexBlock| {
            block.iter().all(|row| {
                let last = &block.as_slice()[row.end_key.0..row.end_key.1];
                row.prefix.is_none() && index.push(last, *row.offset, row.size)
            })
        };
        if regions.index.is_some() {
            for part in top.iter() {
                let place = BlockHandle::new(part.offset, part.size);
                if !add(&IndexBlock::new(self.load(&place, BlockType::Index, form)?)) {
                    return Ok(None);
                }
            }
        } else if !add(&top) {
            return Ok(None);
        }
        index.shrink();
        if index.len() == 0 || self.block(&index.place(0))?.is_none() {
            return Ok(None);
        }
        let filter = match &regions.filter {
            Some(place) => {
                Some(FilterBlock::new(self.load(place, BlockType::Filter, CompressionType::None)?))
            }
            None => None,
        };
        let size = index.size() + filter.as_ref().map_or(0, FilterBlock::size);
        Ok(Some(Loaded { index, filter, size }))
    }

    fn other_form(&self) -> EngineError {
        damaged(&self.table.path, "a block has another form than those before it")
    }

    fn damaged(&self) -> EngineError {
        damaged(&self.table.path, "a block has no row where its index says")
    }

    /// A data block that is in the cache. `None` if it is not, or has another form.
    fn cached(&self, place: &BlockHandle) -> Option<Block> {
        Block::of(self.files.cache.get_block(self.id(), place.offset())?.data.into())
    }

    /// The newest version of a key at or below `at`, its number and, but for a deletion, its value; `hash` is that of the key.
    /// `last`: nobody else is asked behind it, so that it most often has what is looked for.
    pub(crate) fn get(
        &self,
        key: &[u8],
        hash: u64,
        at: u64,
        last: bool,
    ) -> Result<Option<(u64, Option<Bytes>)>, EngineError> {
        let Some(Loaded { index, filter, .. }) = self.loaded() else { return self.by_tree(key, hash, at) };
        let first = index.lower_bound(key);
        // A block that is at hand says whether it has the key as fast as a filter does, and then has it.
        let mut at_hand = if last && first < index.len() { self.cached(&index.place(first)) } else { None };
        if at_hand.is_none()
            && let Some(filter) = filter
            && !filter.maybe_contains_hash(hash).map_err(|error| table_error(&self.table.path, error))?
        {
            return Ok(None);
        }
        let Some(limit) = at.checked_sub(self.table.global_seqno()) else { return Ok(None) };
        for nth in first..index.len() {
            let block = match at_hand.take() {
                Some(block) => block,
                None => self.block(&index.place(nth))?.ok_or_else(|| self.other_form())?,
            };
            match block.find(key, hash, limit) {
                Found::Row(row) => {
                    let value =
                        row.value.map(|value| large::unpack(block.data().slice(value))).transpose()?;
                    return Ok(Some((row.number + self.table.global_seqno(), value)));
                }
                Found::Damaged => return Err(self.damaged()),
                Found::Nothing if index.last_key(nth) > key => break,
                Found::Nothing => {}
            }
        }
        Ok(None)
    }

    fn by_tree(&self, key: &[u8], hash: u64, at: u64) -> Result<Option<(u64, Option<Bytes>)>, EngineError> {
        // The tree shows what is older than a number.
        let entry = self.table.get(key, at.saturating_add(1), hash);
        let Some(entry) = entry.map_err(|error| table_error(&self.table.path, error))? else {
            return Ok(None);
        };
        let value = if entry.key.is_tombstone() { None } else { Some(large::unpack(entry.value.into())?) };
        Ok(Some((entry.key.seqno, value)))
    }

    /// A walk from a key on; `None` if the tree has to make it.
    pub(crate) fn rows_from(&self, from: Bound<&[u8]>) -> Result<Option<Rows<'_>>, EngineError> {
        let Some(Loaded { index, .. }) = self.loaded() else { return Ok(None) };
        let next = match from {
            Bound::Included(key) | Bound::Excluded(key) => index.lower_bound(key),
            Bound::Unbounded => 0,
        };
        let mut rows = Rows { reader: self, index, next, block: None, at: 0 };
        if rows.next_block()?
            && let Some(block) = &rows.block
        {
            rows.at = match from {
                Bound::Unbounded => 0,
                Bound::Included(key) | Bound::Excluded(key) => {
                    block.lower_bound(key).ok_or_else(|| self.damaged())?
                }
            };
        }
        if let Bound::Excluded(key) = from {
            rows.skip(key)?;
        }
        Ok(Some(rows))
    }
}

/// A walk over the versions in a table, in the order of keys and of those the newest first.
pub(crate) struct Rows<'r> {
    reader: &'r Reader,
    index: &'r Index,
    /// The number of the block behind the present one.
    next: usize,
    block: Option<Block>,
    /// Where the next row begins.
    at: usize,
}

impl Rows<'_> {
    /// Goes to the next block; false if there is none.
    fn next_block(&mut self) -> Result<bool, EngineError> {
        if self.next == self.index.len() {
            self.block = None;
            return Ok(false);
        }
        let block = self.reader.block(&self.index.place(self.next))?;
        self.block = Some(block.ok_or_else(|| self.reader.other_form())?);
        self.next += 1;
        self.at = 0;
        Ok(true)
    }

    /// Passes the versions of a key, where the walk stands at it.
    fn skip(&mut self, key: &[u8]) -> Result<(), EngineError> {
        while let Some(row) = self.next()? {
            if self.data().is_some_and(|data| data[row.key.clone()] != *key) {
                self.at = row.begin;
                break;
            }
        }
        Ok(())
    }

    /// The next version, in the present block (`data`).
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Row>, EngineError> {
        loop {
            let Some(block) = &self.block else { return Ok(None) };
            if self.at < block.end() {
                let mut row = block.row(self.at).ok_or_else(|| self.reader.damaged())?;
                self.at = row.next();
                row.number += self.reader.table.global_seqno();
                return Ok(Some(row));
            }
            if !self.next_block()? {
                return Ok(None);
            }
        }
    }

    /// The block in which the row that came last lies.
    #[inline]
    pub(crate) fn data(&self) -> Option<&Bytes> {
        self.block.as_ref().map(Block::data)
    }
}
