//! Reading ahead for nested loops: they often ask an index for one small range after the other in rising order, and a search costs as
//! much as reading some ten rows.
//!
//! Of each index a window is kept: what lies in a range of it, read in one go. A range within the window is answered from there. Windows
//! are made only while ranges keep rising, and grow as long as they answer; where they do not pay, the next trial waits twice as
//! long. Only consistent reads of a transaction that has written nothing come here, so a window is true for as long as its
//! snapshot is read. It is forgotten with the attempt at the statement, or where memory has no room for it.

use crate::memory::{Account, MemoryLimits};
use bytes::Bytes;
use omnibus_engine::{CommitNo, EngineError, Snapshot};
use std::ops::{Bound, Range};

/// Ranges that must rise one after the other before a window is tried.
const RISING: u32 = 4;
/// Rows read ahead at first and at most.
const FIRST: usize = 16;
const LAST: usize = 256;
/// A window pays if it answers a range for so many rows that were read for it.
const ROWS_A_SEARCH: usize = 10;
/// Ranges that pass at most between two trials.
const MOST_PASSED: u32 = 1 << 12;
/// Indexes that are remembered.
const INDEXES: usize = 16;
/// Bytes of a window beyond which it grows no further.
const MOST_BYTES: usize = 1 << 18;
/// Bytes of all windows that are not counted: most statements have less.
const FREE: usize = 16 << 10;

/// The windows of a statement.
#[derive(Debug, Default)]
pub(super) struct Near {
    /// The snapshot that they are of.
    snapshot: CommitNo,
    indexes: Vec<Window>,
    account: Option<Account>,
    limits: MemoryLimits,
}

/// The pairs of one index that were read ahead.
#[derive(Debug)]
struct Window {
    space: [u8; 4],
    /// Where the range began that was asked for last.
    last: Bytes,
    rising: u32,
    /// All pairs of the index from here on ...
    from: Bytes,
    /// ... and below this.
    to: Bytes,
    pairs: Vec<(Bytes, Bytes)>,
    /// Bytes of the pairs.
    bytes: usize,
    /// No pair in front of this one is in the range that was asked for last.
    at: usize,
    /// Ranges that the window has answered.
    answered: usize,
    /// Rows to be read ahead; 0: none.
    ahead: usize,
    /// Ranges to let pass before the next trial, and how many the trial after that waits for.
    pass: u32,
    next_pass: u32,
}

impl Near {
    /// Forgets what was read of another snapshot than that of this number.
    pub(super) fn turn_to(&mut self, snapshot: CommitNo) {
        if self.snapshot != snapshot {
            self.snapshot = snapshot;
            self.indexes.clear();
        }
    }

    /// One that takes the memory of its windows there.
    pub(super) fn counted(account: Account) -> Near {
        Near { account: Some(account), ..Near::default() }
    }

    /// One that knows nothing, with the room of this one, for a statement within these limits.
    pub(super) fn emptied(mut self, limits: MemoryLimits) -> Near {
        self.indexes.clear();
        self.account.iter_mut().for_each(Account::clear);
        Near { limits, ..self }
    }

    /// The pairs with keys from `from` on and below `to`, of one index, if they were read before or it is worth reading some more with them.
    /// `None`: the caller reads. No more than `most` pairs.
    pub(super) fn range(
        &mut self,
        snapshot: &dyn Snapshot,
        from: &Bytes,
        to: &[u8],
        most: usize,
    ) -> Result<Option<&[(Bytes, Bytes)]>, EngineError> {
        let Some(space) = from.first_chunk::<4>().filter(|space| to.starts_with(*space)) else {
            return Ok(None);
        };
        let Some(at) = self.indexes.iter().position(|window| window.space == *space) else {
            if self.indexes.len() < INDEXES {
                self.indexes.push(Window::new(*space, from));
            }
            return Ok(None);
        };
        let before = self.indexes[at].bytes;
        let found = self.indexes[at].range(snapshot, from, to, most)?;
        let has_room = self.indexes[at].bytes <= before || self.has_room();
        Ok(found.filter(|_| has_room).map(|found| &self.indexes[at].pairs[found]))
    }

    /// Asks for the memory of the windows. Where there is no room for them all are given up.
    fn has_room(&mut self) -> bool {
        let bytes = self.indexes.iter().map(|window| window.bytes).sum::<usize>();
        let Some(account) = self.account.as_mut().filter(|account| bytes > FREE || account.used() > 0) else {
            return true;
        };
        let has_room = account.resize(bytes, self.limits).is_ok();
        if !has_room {
            account.clear();
            self.indexes.iter_mut().for_each(Window::give_up);
        }
        has_room
    }
}

impl Window {
    fn new(space: [u8; 4], from: &Bytes) -> Window {
        Window {
            space,
            last: from.clone(),
            rising: 0,
            from: Bytes::new(),
            to: Bytes::new(),
            pairs: Vec::new(),
            bytes: 0,
            at: 0,
            answered: 0,
            ahead: 0,
            pass: 0,
            next_pass: RISING,
        }
    }

    fn range(
        &mut self,
        snapshot: &dyn Snapshot,
        from: &Bytes,
        to: &[u8],
        most: usize,
    ) -> Result<Option<Range<usize>>, EngineError> {
        if *from >= self.from && *to <= *self.to {
            self.answered += 1;
            return Ok(Some(self.pairs_of(from, to)).filter(|pairs| pairs.len() < most));
        }
        let rising = *from >= self.last;
        self.last = from.clone();
        self.judge();
        if !rising {
            self.rising = 0;
            return Ok(None);
        }
        self.rising += 1;
        if self.pass > 0 {
            self.pass -= 1;
            return Ok(None);
        }
        if self.rising < RISING {
            return Ok(None);
        }
        self.read(snapshot, from, to, most)
    }

    /// Whether the window that is left behind has paid.
    fn judge(&mut self) {
        if self.to.is_empty() {
            return;
        }
        if self.answered * ROWS_A_SEARCH >= self.pairs.len() {
            self.ahead = (self.ahead * 2).min(LAST);
            self.next_pass = RISING;
            self.empty();
        } else {
            self.give_up();
        }
    }

    /// Forgets the window, and lets ranges pass before the next one.
    fn give_up(&mut self) {
        self.ahead = 0;
        self.pass = self.next_pass;
        self.next_pass = (self.next_pass * 2).min(MOST_PASSED);
        self.empty();
    }

    fn empty(&mut self) {
        (self.from, self.to) = (Bytes::new(), Bytes::new());
        self.pairs.clear();
        (self.at, self.answered, self.bytes) = (0, 0, 0);
    }

    /// Reads a range and some rows behind it.
    fn read(
        &mut self,
        snapshot: &dyn Snapshot,
        from: &Bytes,
        to: &[u8],
        most: usize,
    ) -> Result<Option<Range<usize>>, EngineError> {
        self.ahead = self.ahead.max(FIRST);
        let end = Bytes::from((u32::from_be_bytes(self.space) + 1).to_be_bytes().to_vec());
        let (pairs, bytes, mut behind) = (&mut self.pairs, &mut self.bytes, 0);
        let whole =
            snapshot.visit(Bound::Included(&from[..]), Bound::Excluded(&end[..]), &mut |key, value| {
                behind += usize::from(&key[..] >= to);
                *bytes += key.len() + value.len();
                pairs.push((key.to_bytes(), value.to_bytes()));
                behind < self.ahead && *bytes < MOST_BYTES && (behind > 0 || pairs.len() < most)
            })?;
        let known = match self.pairs.last() {
            // The next key that there can be.
            Some((last, _)) if !whole => Bytes::from([&last[..], &[0]].concat()),
            _ => end,
        };
        if *known < *to {
            // The range is no small one.
            self.give_up();
            return Ok(None);
        }
        (self.from, self.to) = (from.clone(), known);
        (self.at, self.answered) = (0, 1);
        Ok(Some(self.pairs_of(from, to)).filter(|pairs| pairs.len() < most))
    }

    /// The window's pairs of a range within it.
    fn pairs_of(&mut self, from: &[u8], to: &[u8]) -> Range<usize> {
        if self.at.checked_sub(1).is_some_and(|before| self.pairs[before].0[..] >= *from) {
            self.at = 0;
        }
        let first = self.at + self.pairs[self.at..].partition_point(|(key, _)| key[..] < *from);
        self.at = first;
        let count = self.pairs[first..].iter().take_while(|(key, _)| key[..] < *to).count();
        first..first + count
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::memory::SessionMemory;
    use omnibus_engine::SnapshotIter;
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Pairs {
        pairs: BTreeMap<Bytes, Bytes>,
        searches: AtomicUsize,
    }

    impl Snapshot for Pairs {
        fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
            Ok(self.pairs.get(key).cloned())
        }

        fn get_version(&self, key: &[u8]) -> Result<Option<(CommitNo, Bytes)>, EngineError> {
            Ok(self.pairs.get(key).map(|value| (CommitNo(1), value.clone())))
        }

        fn scan<'a>(&'a self, from: Bound<&[u8]>, to: Bound<&[u8]>, _: bool) -> SnapshotIter<'a> {
            self.searches.fetch_add(1, Ordering::Relaxed);
            let pairs = self.pairs.range::<[u8], _>((from, to));
            Box::new(pairs.map(|(key, value)| Ok((key.clone(), value.clone()))))
        }
    }

    impl Pairs {
        /// So many rows for each of so many numbers, of several indexes.
        fn new(numbers: u32, rows: u32) -> Pairs {
            let mut made = Pairs::default();
            for space in 7..9 {
                for number in 0..numbers {
                    for row in 0..rows {
                        made.pairs.insert(key(space, number, Some(row)), Bytes::from(vec![row as u8; 3]));
                    }
                }
            }
            made
        }

        /// The pairs of a range, whoever answers.
        fn ask(&self, near: &mut Near, from: &Bytes, to: &Bytes) -> Vec<(Bytes, Bytes)> {
            let known = near.range(self, from, to, 64).unwrap().map(<[_]>::to_vec);
            let answer = known.unwrap_or_else(|| {
                let found = self.scan(Bound::Included(from), Bound::Excluded(to), false);
                found.collect::<Result<Vec<_>, _>>().unwrap()
            });
            let range = (Bound::Included(from.clone()), Bound::Excluded(to.clone()));
            let right: Vec<_> = self.pairs.range(range).map(|(k, v)| (k.clone(), v.clone())).collect();
            assert_eq!(answer, right, "from {from:?} to {to:?}");
            answer
        }
    }

    fn key(space: u32, number: u32, row: Option<u32>) -> Bytes {
        let row = row.map(u32::to_be_bytes);
        [&space.to_be_bytes()[..], &number.to_be_bytes(), row.as_ref().map_or(&[], |row| &row[..])]
            .concat()
            .into()
    }

    #[test]
    fn rising_ranges_are_answered_by_few_searches() {
        let (pairs, mut near) = (Pairs::new(1000, 4), Near::default());
        for number in 0..1000 {
            // A join asks for the same rows again where it has subqueries.
            for _ in 0..3 {
                let found = pairs.ask(&mut near, &key(7, number, None), &key(7, number + 1, None));
                assert_eq!(found.len(), 4);
            }
        }
        assert!(pairs.searches.load(Ordering::Relaxed) < 40, "{:?}", pairs.searches);
    }

    #[test]
    fn distant_ranges_are_not_read_ahead_for_long() {
        let (pairs, mut near) = (Pairs::new(100_000, 1), Near::default());
        for number in (0..100_000).step_by(100) {
            pairs.ask(&mut near, &key(7, number, None), &key(7, number + 1, None));
        }
        // One search a range; of a window that did not pay a few more.
        assert!(pairs.searches.load(Ordering::Relaxed) <= 1000, "{:?}", pairs.searches);
        let read_in_vain = near.indexes.iter().map(|window| window.next_pass).max().unwrap();
        assert!(read_in_vain >= 512, "{near:?}");
    }

    #[test]
    fn whatever_is_asked_the_answer_is_what_the_snapshot_has() {
        let mut pairs = Pairs::new(300, 5);
        pairs.pairs.values_mut().for_each(|value| *value = Bytes::from(vec![7; 300]));
        let session = Arc::new(SessionMemory::default());
        let mut near = Near::counted(Account::new(&session));
        let mut random = 1u64;
        let mut next = |below: u32| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as u32 % below
        };
        let mut at = 0;
        for _ in 0..20_000 {
            // Mostly a little further on, sometimes anywhere; small ranges and large ones, within rows and behind the last.
            at = if next(20) == 0 { next(310) } else { (at + next(3)) % 310 };
            let space = if next(50) == 0 { 8 } else { 7 };
            let length = if next(30) == 0 { next(40) } else { next(2) };
            let row = (next(4) == 0).then(|| next(6));
            let (from, to) = (key(space, at, row), key(space, at + length, Some(next(6))));
            if from < to {
                pairs.ask(&mut near, &from, &to);
            }
            if next(500) == 0 {
                // With room, and without any (MEMORY-1).
                let connection = if next(2) == 0 { 0 } else { u64::MAX };
                near = near.emptied(MemoryLimits { connection, server: u64::MAX });
                assert_eq!(session.used(), 0);
            }
        }
    }
}
