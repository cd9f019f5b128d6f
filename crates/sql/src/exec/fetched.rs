//! Counts of the rows that one reading of a table gives, for those who ask how its indexes are used, and of its steps, for the session.

use crate::api::{RowWork, Tally};
use crate::catalog::Usage;

/// Rows that one reading has fetched, given to the table when it ends or goes on to another index.
#[derive(Debug)]
pub(super) struct Fetched<'t> {
    usage: &'t Usage,
    index: Option<usize>,
    rows: u64,
    way: RowWork,
}

impl<'t> Fetched<'t> {
    /// None so far.
    #[must_use]
    pub(super) fn new(usage: &'t Usage) -> Fetched<'t> {
        Fetched { usage, index: None, rows: 0, way: RowWork::Scanned }
    }

    /// So many more.
    #[inline]
    pub(super) fn rows(&mut self, rows: u64, tally: &Tally) {
        self.rows += rows;
        tally.steps(self.way, rows);
    }

    /// There are no more.
    pub(super) fn end(&self, tally: &Tally) {
        if self.way == RowWork::Scanned {
            tally.step(RowWork::End);
        }
    }

    /// A whole table is read from here on: as it lies, or along an index but the first.
    pub(super) fn whole(&mut self, index: usize, reverse: bool, tally: &Tally) {
        let (way, end) = match (index, reverse) {
            (_, true) => (RowWork::Backward, RowWork::Last),
            (0, false) => (RowWork::Scanned, RowWork::First),
            (_, false) => (RowWork::Forward, RowWork::First),
        };
        tally.read_whole();
        tally.step(end);
        tally.step(RowWork::Key);
        self.along(Some(index).filter(|index| *index > 0), way);
    }

    /// From here on by a place of this index, in this way.
    pub(super) fn by(&mut self, index: usize, way: RowWork, tally: &Tally) {
        tally.step(RowWork::Key);
        self.along(Some(index), way);
    }

    fn along(&mut self, index: Option<usize>, way: RowWork) {
        self.way = way;
        if index != self.index {
            self.give();
            self.index = index;
        }
    }

    fn give(&mut self) {
        if self.rows > 0 {
            self.usage.fetch(self.index, std::mem::take(&mut self.rows));
        }
    }
}

impl Drop for Fetched<'_> {
    fn drop(&mut self) {
        self.give();
    }
}
