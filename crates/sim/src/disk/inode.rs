//! One file of the model disk: its present contents, its contents on the device, and the changes in between.
//!
//! A crash takes, for each torn unit (a sector or a page) by itself, the state as of some moment since it was last made
//! durable, and the length as of some moment, too. That is the result of writing back in any order: the page cache only
//! ever writes a unit's newest content of that moment.

use crate::random::Random;
use std::sync::Arc;

/// A change that may or may not be on the device.
#[derive(Clone, Debug)]
struct Change {
    what: What,
    /// The change is durable: a write-through write that has returned.
    forced: bool,
}

#[derive(Clone, Debug)]
enum What {
    Write { offset: usize, bytes: Arc<[u8]> },
    SetLen(usize),
}

impl What {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            What::Write { offset, bytes } => {
                let end = offset + bytes.len();
                if to.len() < end {
                    to.resize(end, 0);
                }
                to[*offset..end].copy_from_slice(bytes);
            }
            What::SetLen(len) => to.resize(*len, 0),
        }
    }

    /// The bytes that it changes, in a file that is `len` bytes long at most.
    fn range(&self, len: usize) -> (usize, usize) {
        match self {
            What::Write { offset, bytes } => (*offset, offset + bytes.len()),
            What::SetLen(to) => (*to, len.max(*to)),
        }
    }

    fn touches(&self, unit: (usize, usize), len: usize) -> bool {
        let (from, to) = self.range(len);
        from < unit.1 && unit.0 < to
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    pub(super) now: Arc<Vec<u8>>,
    durable: Arc<Vec<u8>>,
    changes: Vec<Change>,
    /// Changes that have left `changes` in front.
    settled: u64,
    /// Failed write-backs, of which each descriptor is told once.
    pub(super) errors: u64,
    pub(super) locked_by: Option<u64>,
}

impl Inode {
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> u64 {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        self.change(What::Write { offset, bytes: bytes.into() })
    }

    pub(super) fn set_len(&mut self, len: u64) -> u64 {
        self.change(What::SetLen(usize::try_from(len).unwrap_or(usize::MAX)))
    }

    fn change(&mut self, what: What) -> u64 {
        what.apply(Arc::make_mut(&mut self.now));
        self.changes.push(Change { what, forced: false });
        self.newest()
    }

    /// The number of the newest change.
    pub(super) fn newest(&self) -> u64 {
        self.settled + self.changes.len() as u64
    }

    /// Returns whether a sync would have something to do.
    pub(super) fn is_dirty(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Makes every change up to number `to` durable.
    pub(super) fn settle(&mut self, to: u64) {
        while self.settled < to && !self.changes.is_empty() {
            self.changes.remove(0).what.apply(Arc::make_mut(&mut self.durable));
            self.settled += 1;
        }
    }

    /// A write-through write, number `no`, has returned.
    pub(super) fn force(&mut self, no: u64) {
        let index = no.checked_sub(self.settled + 1).and_then(|index| usize::try_from(index).ok());
        if let Some(change) = index.and_then(|index| self.changes.get_mut(index)) {
            change.forced = true;
        }
        while self.changes.first().is_some_and(|first| first.forced) {
            self.settle(self.settled + 1);
        }
    }

    /// A write-back fails: some of what it was to write is on the device, and the cache takes all of it for clean.
    pub(super) fn lose(&mut self, random: &mut Random, unit: usize) {
        self.durable = self.after_crash(random, unit);
        self.settled += self.changes.len() as u64;
        self.changes.clear();
        self.errors += 1;
    }

    /// The cache goes, but for what is waiting to be written; the length is not the cache's to forget, and what is missing of it reads
    /// as zeros.
    pub(super) fn drop_clean(&mut self) {
        let len = self.now.len();
        self.now.clone_from(&self.durable);
        self.changes.iter().for_each(|change| change.what.apply(Arc::make_mut(&mut self.now)));
        if self.now.len() != len {
            self.change(What::SetLen(len));
        }
    }

    /// Turns over a bit where these bytes are. Nothing is unsynced.
    pub(super) fn damage(&mut self, bytes: &[u8]) -> bool {
        let found = self.durable.windows(bytes.len()).position(|window| window == bytes);
        if let Some(at) = found {
            Arc::make_mut(&mut self.durable)[at] ^= 1;
            self.now.clone_from(&self.durable);
        }
        found.is_some()
    }

    /// Only the device's content is left.
    pub(super) fn forget_cache(&mut self, random: &mut Random, unit: usize) {
        self.durable = self.after_crash(random, unit);
        self.now.clone_from(&self.durable);
        self.settled += self.changes.len() as u64;
        self.changes.clear();
    }

    /// Returns the contents that a power cut leaves.
    fn after_crash(&self, random: &mut Random, unit: usize) -> Arc<Vec<u8>> {
        if self.changes.is_empty() {
            return Arc::clone(&self.durable);
        }
        let persisted = self.persisted(random);
        let longest = self.longest();
        let mut left = Vec::clone(&self.durable);
        left.resize(longest, 0);
        let by_unit = random.one_in(2);
        for start in (0..longest).step_by(unit) {
            let place = (start, (start + unit).min(longest));
            let touching: Vec<usize> = (0..self.changes.len())
                .filter(|&index| self.changes[index].what.touches(place, longest))
                .collect();
            if touching.is_empty() {
                continue;
            }
            // What is forced there is there, and so is what it went over.
            let least = touching.iter().rposition(|&index| self.changes[index].forced).map_or(0, |at| at + 1);
            let count = if by_unit {
                least + random.index(touching.len() - least + 1)
            } else {
                touching.iter().rposition(|&index| persisted[index]).map_or(0, |at| at + 1).max(least)
            };
            for &index in &touching[..count] {
                self.changes[index].what.apply_within(&mut left, place);
            }
        }
        left.truncate(self.len_after_crash(random, &persisted));
        Arc::new(left)
    }

    /// Chooses the changes that reached the device, if they go there whole.
    fn persisted(&self, random: &mut Random) -> Vec<bool> {
        let mode = random.below(4);
        let some = random.index(self.changes.len() + 1);
        let each = |(index, change): (usize, &Change)| {
            change.forced
                || match mode {
                    0 => false,
                    1 => true,
                    2 => index < some,
                    _ => random.one_in(2),
                }
        };
        self.changes.iter().enumerate().map(each).collect()
    }

    fn longest(&self) -> usize {
        let mut len = self.durable.len();
        let mut longest = len;
        for change in &self.changes {
            len = new_len(&change.what, len);
            longest = longest.max(len);
        }
        longest
    }

    /// The length as of some moment; not before the last forced write, which needed its own.
    fn len_after_crash(&self, random: &mut Random, persisted: &[bool]) -> usize {
        let least = self.changes.iter().rposition(|change| change.forced).map_or(0, |at| at + 1);
        let count = match random.below(3) {
            0 => least,
            1 => persisted.iter().rposition(|persisted| *persisted).map_or(0, |at| at + 1).max(least),
            _ => least + random.index(self.changes.len() - least + 1),
        };
        self.changes[..count].iter().fold(self.durable.len(), |len, change| new_len(&change.what, len))
    }
}

impl What {
    /// Applies the part that is within `place`; the length stays.
    fn apply_within(&self, to: &mut [u8], place: (usize, usize)) {
        let (from, until) = self.range(to.len());
        let (first, last) = (from.max(place.0), until.min(place.1).min(to.len()));
        if first >= last {
            return;
        }
        match self {
            What::Write { offset, bytes } => {
                to[first..last].copy_from_slice(&bytes[first - offset..last - offset]);
            }
            What::SetLen(_) => to[first..last].fill(0),
        }
    }
}

fn new_len(what: &What, len: usize) -> usize {
    match what {
        What::Write { offset, bytes } => len.max(offset + bytes.len()),
        What::SetLen(to) => *to,
    }
}
