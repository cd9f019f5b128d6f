//! The many record locks of one transaction in one space that no other transaction has requested.
//!
//! A record with a queue of its own takes some hundred bytes; here one takes about fifty, mostly its key. As soon as
//! another transaction requests such a record, it is moved into a queue (`Space`). The kinds of locks and their
//! conflicts are the same.
//!
//! A bulk may be widened: from then on it stands for every record of its space that has no queue, whether it exists or
//! not, and stores none of them. No other transaction has a bulk in the space then.

use crate::interval::Interval;
use crate::mode::Mode;
use crate::trx::Trx;
use bytes::Bytes;
use omnibus_ordered::{ChunkRef, Chunks, Keys, Order, Slot};
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

/// The maximum number of insert locks that wait to be sorted: a request for another record of the space has to wait for
/// the sorting.
const LOOSE: usize = if cfg!(test) { 2 } else { 1 << 15 };

/// The first bytes of the keys of a space.
type Prefix = [u8; 4];
type KeyBounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

struct Record {
    key: ChunkRef,
    mode: Mode,
}

#[derive(Default)]
struct Records {
    keys: Chunks,
    records: Vec<Record>,
}

impl Keys for Records {
    #[inline]
    fn key(&self, at: u32) -> &[u8] {
        self.keys.slice(self.records[at as usize].key)
    }
}

/// See the module.
pub(crate) struct Bulk {
    pub(crate) trx: Arc<Trx>,
    prefix: Prefix,
    records: Records,
    order: Order,
    /// Insert locks that are not sorted yet: most of them are never searched for, and sorting them together costs a
    /// fraction of a search each. Empty while a range waits.
    loose: Vec<u32>,
    /// A lower bound of the number of insert locks: one that was requested twice counts twice.
    pub(crate) inserts: usize,
    /// Records that have come out: their locks are in queues now.
    pub(crate) out: Vec<Bytes>,
    /// It stands for all records of the space, without a queue.
    pub(crate) whole: bool,
}

fn prefix(key: &[u8]) -> Option<Prefix> {
    key.first_chunk().copied()
}

impl Bulk {
    /// Creates a bulk for keys with the prefix of this one; `None` for shorter keys.
    pub(crate) fn for_key(trx: &Arc<Trx>, key: &[u8]) -> Option<Bulk> {
        Some(Bulk {
            trx: Arc::clone(trx),
            prefix: prefix(key)?,
            records: Records::default(),
            order: Order::default(),
            loose: Vec::new(),
            inserts: 0,
            out: Vec::new(),
            whole: false,
        })
    }

    /// Makes the bulk stand for all records. Returns the number of records that it had one by one.
    pub(crate) fn widen(&mut self) -> usize {
        self.whole = true;
        (self.order, self.loose, self.inserts) = (Order::default(), Vec::new(), 0);
        std::mem::take(&mut self.records).records.len()
    }

    /// Brings all into order.
    pub(crate) fn settle(&mut self) {
        let loose = std::mem::take(&mut self.loose);
        if loose.is_empty() {
            return;
        }
        let mut twice = Vec::new();
        self.order.merge(&self.records, &loose, |newer, older| twice.push((newer, older)));
        let records = &mut self.records.records;
        for (newer, older) in twice {
            records[newer as usize].mode = records[newer as usize].mode.join(records[older as usize].mode);
        }
    }

    fn find(&mut self, key: &[u8]) -> Option<Slot> {
        if prefix(key) != Some(self.prefix) {
            return None;
        }
        self.settle();
        self.order.find(&self.records, key).ok()
    }

    /// The lock of a record that has no queue.
    pub(crate) fn mode_of(&mut self, key: &[u8]) -> Option<Mode> {
        if self.whole {
            return Some(Mode::X);
        }
        let slot = self.find(key)?;
        Some(self.records.records[self.order.at(slot) as usize].mode)
    }

    /// Adds a record. One that is here already must be asked for as an insert, and is so from then on. `sorted`: at its place at once,
    /// which is dearer. False: it can not be added.
    pub(crate) fn add(&mut self, key: &[u8], mode: Mode, sorted: bool) -> bool {
        let Ok(at) = u32::try_from(self.records.records.len()) else { return false };
        if prefix(key) != Some(self.prefix) {
            return false;
        }
        let insert = mode == Mode::INSERT;
        let sorted = sorted || !insert;
        if sorted {
            self.settle();
        }
        let place = self.records.keys.push_copy(key);
        self.records.records.push(Record { key: place, mode });
        if !self.loose.is_empty() || !self.order.append(&self.records, key, at) {
            if !sorted {
                self.loose.push(at);
                if self.loose.len() == LOOSE {
                    self.settle();
                }
            } else {
                match self.order.find(&self.records, key) {
                    Err(slot) => self.order.insert(slot, key, at),
                    Ok(slot) if insert => {
                        let older = self.order.at(slot) as usize;
                        self.records.records[older].mode = self.records.records[older].mode.join(mode);
                    }
                    Ok(_) => return false,
                }
            }
        }
        self.inserts += usize::from(insert);
        true
    }

    /// Takes a record out. Its key's memory stays until all go.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<Mode> {
        let slot = self.find(key)?;
        let mode = self.records.records[self.order.at(slot) as usize].mode;
        self.order.remove(slot);
        self.inserts -= usize::from(mode == Mode::INSERT);
        Some(mode)
    }

    /// Returns whether there is an insert lock in a non-empty interval. All locks must be in order, because a linear
    /// search for each insert would take quadratic time.
    pub(crate) fn inserts_in(&self, interval: &Interval) -> bool {
        debug_assert!(self.loose.is_empty(), "ranges look at bulks in order");
        self.whole
            || self.inserts > 0
                && self.bounds(interval).is_some_and(|(from, to)| {
                    let mut within = self.order.range(&self.records, from, to);
                    within.any(|at| self.records.records[at as usize].mode == Mode::INSERT)
                })
    }

    /// The interval's part where keys begin as these do.
    fn bounds<'i>(&self, interval: &'i Interval) -> Option<KeyBounds<'i>> {
        let side = |key: &[u8]| {
            let common = key.len().min(self.prefix.len());
            let beginning = key[..common].cmp(&self.prefix[..common]);
            // A shorter key is before all that it begins.
            if beginning.is_eq() && common < self.prefix.len() { Ordering::Less } else { beginning }
        };
        let from = match side(&interval.from) {
            Ordering::Less => Bound::Unbounded,
            Ordering::Equal => Bound::Included(&interval.from[..]),
            Ordering::Greater => return None,
        };
        let to = match &interval.to {
            None => Bound::Unbounded,
            Some(to) => match side(to) {
                Ordering::Less => return None,
                Ordering::Equal => Bound::Excluded(&to[..]),
                Ordering::Greater => Bound::Unbounded,
            },
        };
        Some((from, to))
    }
}
