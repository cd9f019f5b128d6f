//! Sequences (MariaDB's): a table of one row, and numbers that are taken out of it a block at a time.
//!
//! Pure. The row says from where on no number has been given to anybody; whoever takes a block commits the row behind it first
//! (`store::sequence`), so that a crash wastes numbers and never gives one twice.

use super::{Column, ColumnDefault, Table};
use crate::error::{SqlError, SqlResult};
use omnibus_parser::ast::Expr;
use omnibus_sync::Mutex;
use omnibus_value::Value;
use std::sync::atomic::{AtomicU64, Ordering};

/// The table option that marks such a table.
pub const OPTION: &str = "SEQUENCE=1";

/// The columns of every sequence, as they are in row events of MariaDB servers.
pub const COLUMNS: &str = "`next_not_cached_value` bigint(21) NOT NULL, `minimum_value` bigint(21) NOT NULL, \
    `maximum_value` bigint(21) NOT NULL, \
    `start_value` bigint(21) NOT NULL COMMENT 'start value when sequences is created or value if RESTART is used', \
    `increment` bigint(21) NOT NULL COMMENT 'increment value', `cache_size` bigint(21) unsigned NOT NULL, \
    `cycle_option` tinyint(1) unsigned NOT NULL COMMENT '0 if no cycles are allowed, 1 if the sequence should begin a new cycle when maximum_value is passed', \
    `cycle_count` bigint(21) NOT NULL COMMENT 'How many cycles have been done'";

/// The row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceRow {
    /// The first number that nobody has; past the end it is one beyond it.
    pub next: i64,
    /// MINVALUE.
    pub minimum: i64,
    /// MAXVALUE.
    pub maximum: i64,
    /// START.
    pub start: i64,
    /// INCREMENT; 0 is that of AUTO_INCREMENT.
    pub increment: i64,
    /// How many are taken at once; 0 is one.
    pub cache: u64,
    /// CYCLE.
    pub cycle: bool,
    /// How often it has begun anew.
    pub round: i64,
}

/// Numbers that were taken out of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    next: i64,
    end: i64,
    step: i64,
}

/// The rest of the last block, and the version of the row that it is of.
pub type SequenceBlock = Option<(Block, u64)>;

/// The state of a sequence's table in memory.
#[derive(Debug, Default)]
pub struct SequenceState {
    /// The block of numbers; who takes some holds its lock.
    pub(crate) block: Mutex<SequenceBlock>,
    pub(crate) version: AtomicU64,
}

impl SequenceState {
    /// Somebody else has changed the row.
    pub(crate) fn changed(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
    }
}

/// Error 4091.
pub(crate) fn unknown(name: &str) -> SqlError {
    SqlError::new(4091, b"42S02", format!("Unknown SEQUENCE: '{name}'"))
}

/// Error 4089.
pub(crate) fn not_sequence(table: &Table) -> SqlError {
    let message = format!("'{}.{}' is not a SEQUENCE", table.def.db, table.def.name);
    SqlError::new(4089, b"42S02", message)
}

/// Error 1031: rows of a sequence change by taking numbers out of it.
pub(crate) fn no_option(table: &Table) -> SqlError {
    let (db, name) = (&table.def.db, &table.def.name);
    let message = format!("Storage engine SEQUENCE of the table `{db}`.`{name}` doesn't have this option");
    SqlError::new(1031, b"HY000", message)
}

/// The database, if it is said, and the name of the sequence that an expression takes a number from.
pub(crate) fn named_in(expr: &Expr) -> Option<(Option<&str>, &str)> {
    let Expr::Function(call) = expr else { return None };
    let asks = call.name.is("nextval") || call.name.is("lastval");
    match &call.args[..] {
        [Expr::Column(name)] if asks && call.schema.is_none() => {
            Some((name.table().map(|db| db.as_str()), &name.name))
        }
        _ => None,
    }
}

/// The sequences that the defaults of a table take numbers from.
pub(crate) fn sequences_of(table: &Table) -> Vec<(String, String)> {
    let named = |column: &Column| match &column.default {
        ColumnDefault::Expression(expr) => {
            let (db, name) = named_in(&expr.tree)?;
            Some((db.unwrap_or(&table.def.db).to_owned(), name.to_owned()))
        }
        _ => None,
    };
    table.columns().iter().filter_map(named).collect()
}

/// How far one number is from the next, and which of them is meant where INCREMENT is 0.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// `auto_increment_increment`.
    pub increment: i64,
    /// `auto_increment_offset`.
    pub offset: i64,
}

impl Block {
    /// The next number.
    pub fn take(&mut self) -> Option<i64> {
        let left = if self.step > 0 { self.next < self.end } else { self.next > self.end };
        if !left {
            return None;
        }
        let number = self.next;
        self.next = clamp(i128::from(number) + i128::from(self.step));
        Some(number)
    }

    /// The number that `take` would give.
    #[must_use]
    pub fn peek(&self) -> i64 {
        self.next
    }
}

fn clamp(n: i128) -> i64 {
    n.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

impl SequenceRow {
    /// From the columns, in order.
    ///
    /// # Errors
    /// They are no sequence's: damage.
    pub fn of(values: &[Value]) -> SqlResult<SequenceRow> {
        let number = |at: usize| match values.get(at) {
            Some(Value::Int(n)) => Ok(*n),
            Some(Value::UInt(n)) => i64::try_from(*n).map_err(|_| SqlError::unknown_error()),
            _ => Err(SqlError::unknown_error()),
        };
        Ok(SequenceRow {
            next: number(0)?,
            minimum: number(1)?,
            maximum: number(2)?,
            start: number(3)?,
            increment: number(4)?,
            cache: number(5)?.unsigned_abs(),
            cycle: number(6)? != 0,
            round: number(7)?,
        })
    }

    /// The columns.
    #[must_use]
    pub fn values(&self) -> Vec<Value> {
        vec![
            Value::Int(self.next),
            Value::Int(self.minimum),
            Value::Int(self.maximum),
            Value::Int(self.start),
            Value::Int(self.increment),
            Value::UInt(self.cache),
            Value::UInt(u64::from(self.cycle)),
            Value::Int(self.round),
        ]
    }

    /// Whether its numbers make a sequence.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.minimum < self.maximum
            && self.minimum != i64::MIN
            && self.maximum != i64::MAX
            && (self.minimum..=self.maximum).contains(&self.start)
            && (self.minimum - 1..=self.maximum + 1).contains(&self.next)
            && self.cache < i64::MAX as u64 / self.increment.unsigned_abs().max(1)
    }

    /// Takes a block out of it; `None`: it has run out.
    pub fn reserve(&mut self, step: Step) -> Option<Block> {
        let (increment, from) = match self.increment {
            0 => (step.increment.max(1), aligned(self.next, step)),
            increment => (increment, self.next),
        };
        let spent = |n: i64| if increment > 0 { n > self.maximum } else { n < self.minimum };
        let mut from = from;
        if spent(from) {
            if !self.cycle {
                return None;
            }
            from = if increment > 0 { self.minimum } else { self.maximum };
            self.round = self.round.saturating_add(1);
        }
        let many = i128::from(self.cache.max(1));
        let end = i128::from(from) + i128::from(increment) * many;
        self.next = end.clamp(i128::from(self.minimum) - 1, i128::from(self.maximum) + 1) as i64;
        Some(Block { next: from, end: self.next, step: increment })
    }

    /// SETVAL: the next number is behind `value`, or is it, unless that was passed already. `free` is the first number that
    /// nobody has been given.
    pub fn set(&mut self, value: i64, used: bool, round: i64, free: i64, step: Step) -> bool {
        let increment = if self.increment == 0 { step.increment.max(1) } else { self.increment };
        let next = if used { clamp(i128::from(value) + i128::from(increment)) } else { value };
        let next = next.clamp(self.minimum - 1, self.maximum + 1);
        let behind = if increment > 0 { next < free } else { next > free };
        if round < self.round || round == self.round && behind {
            return false;
        }
        self.next = next;
        self.round = round;
        true
    }

    /// The clauses of CREATE SEQUENCE.
    #[must_use]
    pub fn text(&self) -> String {
        let cache = if self.cache == 0 { "nocache".to_owned() } else { format!("cache {}", self.cache) };
        let cycle = if self.cycle { "cycle" } else { "nocycle" };
        format!(
            "start with {} minvalue {} maxvalue {} increment by {} {cache} {cycle}",
            self.start, self.minimum, self.maximum, self.increment
        )
    }
}

/// The first number of `offset + n * increment` that is at least `n`.
fn aligned(n: i64, step: Step) -> i64 {
    let increment = i128::from(step.increment.max(1));
    let over = (i128::from(n) - i128::from(step.offset)).rem_euclid(increment);
    clamp(i128::from(n) + if over == 0 { 0 } else { increment - over })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const ONE: Step = Step { increment: 1, offset: 1 };

    fn row() -> SequenceRow {
        SequenceRow {
            next: 100,
            minimum: 5,
            maximum: 1000,
            start: 100,
            increment: 10,
            cache: 5,
            cycle: true,
            round: 0,
        }
    }

    /// As a MariaDB 10.11 answers.
    #[test]
    fn numbers_come_in_blocks_and_begin_anew() {
        let mut row = row();
        let mut block = row.reserve(ONE).unwrap();
        assert_eq!(row.next, 150);
        assert_eq!([block.take(), block.take()], [Some(100), Some(110)]);
        assert!(!row.set(50, true, 0, block.peek(), ONE));
        assert!(row.set(900, true, 0, block.peek(), ONE));
        assert_eq!(row.next, 910);
        assert!(row.set(990, false, 0, 910, ONE));
        let mut block = row.reserve(ONE).unwrap();
        assert_eq!([block.take(), block.take(), block.take()], [Some(990), Some(1000), None]);
        assert_eq!(row.next, 1001);
        assert_eq!(row.reserve(ONE).unwrap().take(), Some(5));
        assert_eq!((row.next, row.round), (55, 1));
    }

    #[test]
    fn a_sequence_without_cycle_runs_out() {
        let mut row = SequenceRow { cycle: false, cache: 0, maximum: 101, increment: 1, ..row() };
        assert_eq!(
            [row.reserve(ONE).unwrap().take(), row.reserve(ONE).unwrap().take()],
            [Some(100), Some(101)]
        );
        assert_eq!((row.reserve(ONE), row.next), (None, 102));
        let mut down = SequenceRow { increment: -1, next: 6, ..row };
        assert_eq!(
            [down.reserve(ONE).unwrap().take(), down.reserve(ONE).unwrap().take()],
            [Some(6), Some(5)]
        );
        assert_eq!(down.reserve(ONE), None);
    }

    #[test]
    fn an_increment_of_zero_is_that_of_auto_increment() {
        let mut row = SequenceRow { increment: 0, cache: 2, ..row() };
        let mut block = row.reserve(Step { increment: 10, offset: 3 }).unwrap();
        assert_eq!([block.take(), block.take(), block.take()], [Some(103), Some(113), None]);
    }

    #[test]
    fn the_ends_of_the_range_overflow_nothing() {
        let mut row = SequenceRow {
            next: i64::MAX - 1,
            minimum: 1,
            maximum: i64::MAX - 1,
            start: 1,
            increment: i64::MAX,
            cache: 0,
            cycle: false,
            round: 0,
        };
        assert!(row.is_sound());
        assert_eq!(row.reserve(ONE).unwrap().take(), Some(i64::MAX - 1));
        assert_eq!((row.reserve(ONE), row.next), (None, i64::MAX));
        assert!(!SequenceRow { maximum: i64::MAX, ..row }.is_sound());
    }
}
