//! Tables as pieces of their primary key, handed to workers.
//!
//! A table begins as one piece. Whoever takes a piece of a large table asks the source for the key that is so many rows
//! further on, hands the rest back and works on the part before it, so that several workers share a table without anything
//! being known of its keys beforehand.

use crate::bounds::{KeyValue, Range};
use crate::error::ImportError;
use crate::session::Session;
use crate::table::Table;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;

/// The most rows of a piece.
const MOST_ROWS: u64 = 1_000_000;

/// A part of a table, by its number in the list of tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub table: usize,
    pub range: Range,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Piece>,
    /// Pieces of each table that are waiting or worked on.
    open: Vec<usize>,
    /// The sum of `open`.
    left: usize,
    /// A worker has failed: nobody gets anything any more.
    stopped: bool,
}

/// The pieces that are left.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    queue: Mutex<Queue>,
    changed: Condvar,
    /// About how many bytes of rows a piece has.
    bytes: u64,
}

impl Pieces {
    /// All of these tables, the largest first, so that none of them is left to a single worker at the end.
    pub(crate) fn of(tables: &[Table], bytes: u64) -> Pieces {
        let mut order: Vec<usize> = (0..tables.len()).collect();
        order.sort_by_key(|&table| std::cmp::Reverse(tables[table].bytes));
        let waiting: VecDeque<Piece> =
            order.into_iter().map(|table| Piece { table, range: Range::default() }).collect();
        let queue = Queue { left: waiting.len(), waiting, open: vec![1; tables.len()], stopped: false };
        Pieces { queue: Mutex::new(queue), changed: Condvar::new(), bytes }
    }

    /// Takes a piece; waits while others may hand some back. `None` when nothing is left, or somebody failed.
    pub(crate) fn take(&self) -> Option<Piece> {
        let mut queue = self.queue.lock();
        loop {
            if queue.stopped || queue.left == 0 {
                return None;
            }
            if let Some(piece) = queue.waiting.pop_front() {
                return Some(piece);
            }
            self.changed.wait(&mut queue);
        }
    }

    /// Hands the rest of a piece back.
    fn give_back(&self, rest: Piece) {
        let mut queue = self.queue.lock();
        queue.open[rest.table] += 1;
        queue.left += 1;
        queue.waiting.push_front(rest);
        self.changed.notify_one();
    }

    /// A piece is done. Returns whether its table is.
    pub(crate) fn done(&self, table: usize) -> bool {
        let mut queue = self.queue.lock();
        queue.open[table] -= 1;
        queue.left -= 1;
        if queue.left == 0 {
            self.changed.notify_all();
        }
        queue.open[table] == 0
    }

    /// Sends everybody home.
    pub(crate) fn stop(&self) {
        self.queue.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Makes a piece of a large table shorter, and hands its rest back.
    pub(crate) fn split(
        &self,
        source: &mut Session,
        table: &Table,
        piece: &mut Piece,
    ) -> Result<(), ImportError> {
        if table.key.is_empty() || table.bytes <= self.bytes {
            return Ok(());
        }
        let row = (table.bytes / table.rows.max(1)).max(1);
        let rows = (self.bytes / row).clamp(1, MOST_ROWS);
        if let Some(border) = border(source, table, &piece.range, rows)? {
            let rest = Range { after: Some(border.clone()), to: piece.range.to.take() };
            piece.range.to = Some(border);
            self.give_back(Piece { table: piece.table, range: rest });
        }
        Ok(())
    }
}

/// Returns the key `rows` rows into a range; `None` if the range has fewer.
fn border(
    source: &mut Session,
    table: &Table,
    range: &Range,
    rows: u64,
) -> Result<Option<KeyValue>, ImportError> {
    let key = table.key_list();
    let mut found = source.rows(&format!(
        "SELECT {key} FROM {}{}{} ORDER BY {key} LIMIT 1 OFFSET {}",
        table.name.quoted(),
        table.by_key(),
        range.condition(&table.key),
        rows - 1
    ))?;
    Ok(found.pop().map(|row| row.into_iter().map(Option::unwrap_or_default).collect()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::selection::TableName;

    fn table(bytes: u64) -> Table {
        let name = TableName { database: "d".into(), table: bytes.to_string() };
        Table { name, columns: Vec::new(), key: Vec::new(), has_key: false, rows: 1, bytes, resumed: false }
    }

    #[test]
    fn a_table_is_done_with_its_last_piece_and_all_with_the_last_table() {
        let pieces = Pieces::of(&[table(1), table(9)], 1);
        let first = pieces.take().unwrap();
        assert_eq!(first.table, 1, "the largest comes first");
        pieces.give_back(Piece { table: 1, range: Range { after: Some(vec![vec![1]]), to: None } });
        let rest = pieces.take().unwrap();
        assert_eq!((rest.table, rest.range.after.is_some()), (1, true));
        assert!(!pieces.done(1) && pieces.done(1));
        assert_eq!(pieces.take().unwrap().table, 0);
        assert!(pieces.done(0));
        assert_eq!(pieces.take(), None);
    }

    #[test]
    fn after_a_failure_nobody_gets_anything() {
        let pieces = Pieces::of(&[table(1)], 1);
        pieces.stop();
        assert_eq!(pieces.take(), None);
    }
}
