//! All writes of a set, oldest first, also those that a later one hides.
//!
//! The first are kept as they come. Those of a large transaction are copied behind one another into chunks of memory: an
//! allocation for each key and each value, and the handles to them, would take more than the rows of a narrow table.

use super::Write;
use bytes::Bytes;
use omnibus_ordered::{ChunkRef, Chunks, Keys};

/// Writes that are kept as they come.
const KEPT: usize = 128;
/// Entries of a page.
const PAGE: usize = 4096;
/// No write is hidden.
const NONE: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(super) struct Log {
    kept: Vec<Kept>,
    /// Further ones, if there are any.
    rest: Option<Box<Rest>>,
    /// About what it takes.
    bytes: usize,
}

#[derive(Debug, Default)]
struct Rest {
    packed: Vec<Vec<Packed>>,
    keys: Chunks,
    values: Chunks,
}

#[derive(Debug)]
struct Kept {
    key: Bytes,
    write: Write,
    hides: u32,
}

#[derive(Debug)]
struct Packed {
    key: ChunkRef,
    /// The value; `None` for a deletion.
    value: Option<ChunkRef>,
    hides: u32,
}

impl Log {
    pub(super) fn len(&self) -> usize {
        self.kept.len() + self.rest.as_ref().map_or(0, |rest| rest.len())
    }

    pub(super) fn memory(&self) -> usize {
        self.bytes
    }

    /// `hides`: the write of the same key that this one hides.
    pub(super) fn push(&mut self, key: Bytes, write: Write, hides: Option<u32>) {
        self.bytes += cost(key.len(), write.as_ref().map(Bytes::len));
        let hides = hides.unwrap_or(NONE);
        if self.kept.len() < KEPT {
            self.kept.push(Kept { key, write, hides });
            return;
        }
        self.rest.get_or_insert_default().push(key, write, hides);
    }

    /// Takes the last write off.
    pub(super) fn pop(&mut self) {
        if let Some(Packed { key, value, .. }) = self.rest.as_mut().and_then(|rest| rest.pop()) {
            self.bytes -= cost(key.len(), value.map(ChunkRef::len));
        } else if let Some(Kept { key, write, .. }) = self.kept.pop() {
            self.bytes -= cost(key.len(), write.as_ref().map(Bytes::len));
        }
    }

    #[inline]
    fn rest(&self) -> &Rest {
        self.rest.as_ref().expect("a write that is not among the first is among the others")
    }

    #[inline]
    fn packed(&self, at: u32) -> &Packed {
        let at = at as usize - KEPT;
        &self.rest().packed[at / PAGE][at % PAGE]
    }

    pub(super) fn hides(&self, at: u32) -> Option<u32> {
        let hides = match self.kept.get(at as usize) {
            Some(kept) => kept.hides,
            None => self.packed(at).hides,
        };
        (hides != NONE).then_some(hides)
    }

    pub(super) fn set_hides(&mut self, at: u32, hides: u32) {
        match self.kept.get_mut(at as usize) {
            Some(kept) => kept.hides = hides,
            None => {
                let at = at as usize - KEPT;
                if let Some(rest) = &mut self.rest {
                    rest.packed[at / PAGE][at % PAGE].hides = hides;
                }
            }
        }
    }

    pub(super) fn is_delete(&self, at: u32) -> bool {
        match self.kept.get(at as usize) {
            Some(kept) => kept.write.is_none(),
            None => self.packed(at).value.is_none(),
        }
    }

    /// Borrows the written value; `None` for a deletion.
    pub(super) fn value(&self, at: u32) -> Option<&[u8]> {
        match self.kept.get(at as usize) {
            Some(kept) => kept.write.as_deref(),
            None => self.packed(at).value.map(|value| self.rest().values.slice(value)),
        }
    }

    pub(super) fn write(&self, at: u32) -> Write {
        match self.kept.get(at as usize) {
            Some(kept) => kept.write.clone(),
            None => self.packed(at).value.map(|value| self.rest().values.bytes(value)),
        }
    }

    /// From now on what is read shares the memory that it lies in. Nothing must be pushed any more.
    pub(super) fn seal(&mut self) {
        if let Some(rest) = &mut self.rest {
            rest.keys.seal();
            rest.values.seal();
        }
    }

    /// A key and what is written to it; once for each. After `seal`.
    pub(super) fn take(&mut self, at: u32) -> (Bytes, Write) {
        match self.kept.get_mut(at as usize) {
            Some(kept) => (std::mem::take(&mut kept.key), kept.write.take()),
            None => (self.rest().keys.bytes(self.packed(at).key), self.write(at)),
        }
    }
}

impl Rest {
    fn len(&self) -> usize {
        self.packed.last().map_or(0, |last| (self.packed.len() - 1) * PAGE + last.len())
    }

    fn push(&mut self, key: Bytes, write: Write, hides: u32) {
        let key = self.keys.push(key);
        let value = write.map(|value| self.values.push(value));
        if self.packed.last().is_none_or(|page| page.len() == PAGE) {
            self.packed.push(Vec::with_capacity(PAGE));
        }
        // Just seen to.
        if let Some(page) = self.packed.last_mut() {
            page.push(Packed { key, value, hides });
        }
    }

    fn pop(&mut self) -> Option<Packed> {
        let page = self.packed.last_mut()?;
        let last = page.pop()?;
        // No page is empty.
        if page.is_empty() {
            self.packed.pop();
        }
        self.keys.pop(last.key);
        if let Some(value) = last.value {
            self.values.pop(value);
        }
        Some(last)
    }
}

impl Keys for Log {
    #[inline]
    fn key(&self, at: u32) -> &[u8] {
        match self.kept.get(at as usize) {
            Some(kept) => &kept.key,
            None => self.rest().keys.slice(self.packed(at).key),
        }
    }
}

/// Returns the bytes of a write, including its place in the index.
fn cost(key: usize, value: Option<usize>) -> usize {
    key + value.unwrap_or(0) + 64
}
