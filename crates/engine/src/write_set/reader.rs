//! Reads a run's writes in order, a block at a time.

use super::Write;
use super::run::{Block, Run, Value, Version, take};
use bytes::Bytes;
use std::collections::VecDeque;
use std::io::Result;
use std::ops::Bound;
use std::sync::Arc;

/// All writes of a run, of all keys; or of each key within bounds the newest below a number.
#[derive(Debug)]
pub(super) struct Reader {
    run: Arc<Run>,
    /// Blocks that are not read.
    from_block: usize,
    to_block: usize,
    from: Bound<Bytes>,
    to: Bound<Bytes>,
    until: u64,
    reverse: bool,
    /// The block at hand, forward.
    block: Bytes,
    /// Backward: what it has.
    ready: VecDeque<Version>,
    /// Reading backward: the newest write so far of a key that continues in the previous block.
    open: Option<Version>,
    last: Option<Bytes>,
}

impl Reader {
    /// Creates a reader of all keys, for `next_version`.
    pub(super) fn of_all(run: &Arc<Run>, until: u64) -> Reader {
        Reader::of_range(run, until, Bound::Unbounded, Bound::Unbounded, false)
    }

    pub(super) fn of_range(
        run: &Arc<Run>,
        until: u64,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        reverse: bool,
    ) -> Reader {
        let from_block = match from {
            Bound::Included(key) | Bound::Excluded(key) => {
                run.blocks.partition_point(|block| block.first[..] < *key).saturating_sub(1)
            }
            Bound::Unbounded => 0,
        };
        let to_block = match to {
            Bound::Included(key) | Bound::Excluded(key) => {
                run.blocks.partition_point(|block| block.first[..] <= *key)
            }
            Bound::Unbounded => run.blocks.len(),
        };
        Reader {
            run: Arc::clone(run),
            from_block,
            to_block: to_block.max(from_block),
            from: from.map(Bytes::copy_from_slice),
            to: to.map(Bytes::copy_from_slice),
            until,
            reverse,
            block: Bytes::new(),
            ready: VecDeque::new(),
            open: None,
            last: None,
        }
    }

    /// The next write, also one that a newer one hides. Forward.
    pub(super) fn next_version(&mut self) -> Result<Option<Version>> {
        loop {
            if let Some(version) = take(&mut self.block)? {
                if version.number < self.until {
                    return Ok(Some(version));
                }
            } else if self.from_block < self.to_block {
                self.from_block += 1;
                self.block = self.run.read(self.from_block - 1)?;
            } else {
                return Ok(None);
            }
        }
    }

    /// Returns the written value, reading it from the file if need be.
    pub(super) fn load(&self, value: Value) -> Result<Write> {
        self.run.load(value)
    }

    /// The next key's newest write.
    pub(super) fn next_live(&mut self) -> Result<Option<Version>> {
        if self.reverse { self.backward() } else { self.forward() }
    }

    fn forward(&mut self) -> Result<Option<Version>> {
        loop {
            let Some(version) = take(&mut self.block)? else {
                if self.from_block == self.to_block {
                    return Ok(None);
                }
                self.from_block += 1;
                self.block = self.run.block(self.from_block - 1)?;
                continue;
            };
            if is_behind(&self.to, &version.key) {
                (self.block, self.from_block) = (Bytes::new(), self.to_block);
                return Ok(None);
            }
            let seen = self.last.as_ref() == Some(&version.key);
            if version.number < self.until && !seen && !is_before(&self.from, &version.key) {
                self.last = Some(version.key.clone());
                return Ok(Some(version));
            }
        }
    }

    fn backward(&mut self) -> Result<Option<Version>> {
        while self.ready.is_empty() {
            if self.from_block == self.to_block {
                return Ok(self.open.take());
            }
            self.to_block -= 1;
            let mut block = self.run.block(self.to_block)?;
            while let Some(version) = take(&mut block)? {
                let seen = self.ready.back().is_some_and(|newer| newer.key == version.key);
                let within = !is_before(&self.from, &version.key) && !is_behind(&self.to, &version.key);
                if version.number < self.until && !seen && within {
                    self.ready.push_back(version);
                }
            }
            if let Some(open) = self.open.take()
                && self.ready.back().is_none_or(|newer| newer.key != open.key)
            {
                self.ready.push_back(open);
            }
            let Block { first, continues, .. } = &self.run.blocks[self.to_block];
            if *continues && self.ready.front().is_some_and(|version| version.key == *first) {
                self.open = self.ready.pop_front();
            }
        }
        Ok(self.ready.pop_back())
    }
}

fn is_before(from: &Bound<Bytes>, key: &[u8]) -> bool {
    match from {
        Bound::Included(from) => *key < from[..],
        Bound::Excluded(from) => *key <= from[..],
        Bound::Unbounded => false,
    }
}

fn is_behind(to: &Bound<Bytes>, key: &[u8]) -> bool {
    match to {
        Bound::Included(to) => *key > to[..],
        Bound::Excluded(to) => *key >= to[..],
        Bound::Unbounded => false,
    }
}
