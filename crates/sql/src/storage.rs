//! Storage as SELECT, and every expression with a subquery, sees it. Not storage itself: `store`
//! implements it over a transaction, the tests over vectors in memory.
//!
//! The shape is "batches into a caller's vector", because an engine's iterator borrows its
//! snapshot while a row's evaluation may itself need storage (a subquery, an inner table): a scan
//! is therefore a plain position that the caller owns, and each batch resumes behind the last key.
//! Called on the session's thread only. Every method may return an `Interrupt`; the caller passes
//! it up untouched with `?`. The kill flag and the row budget are checked in here, once a batch.

use crate::api::SessionSettings;
use crate::catalog::Table;
use crate::error::Interrupt;
use bytes::Bytes;
use omnibus_engine::{CommitNo, Mark};
use std::collections::VecDeque;
use std::sync::Arc;

/// How rows are locked as they are read, the weakest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMode {
    /// A consistent read of the snapshot.
    #[default]
    None,
    /// FOR SHARE, LOCK IN SHARE MODE, and plain reads at SERIALIZABLE.
    Share,
    /// FOR UPDATE, UPDATE, DELETE.
    Exclusive,
}

/// The behaviour at a row that somebody else has locked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WaitPolicy {
    /// Wait (an interrupt in inline mode).
    #[default]
    Wait,
    /// Error 3572 at once.
    NoWait,
    /// Leave the row out.
    SkipLocked,
}

/// A range of one index, in encoded keys (`codec`, the space in front), and how far a scan of it has come. The caller owns it;
/// `Storage::fetch` moves it.
#[derive(Clone, Debug)]
pub struct Scan {
    /// Position of the index in `Table::indexes()`.
    pub index: usize,
    /// First key wanted, inclusive.
    pub from: Bytes,
    /// First key not wanted any more.
    pub to: Bytes,
    /// From the end to the beginning.
    pub reverse: bool,
    /// Row locks to take.
    pub lock: LockMode,
    /// For rows locked by others.
    pub wait: WaitPolicy,
    /// Storage's own note: the last key delivered; `None` before the first batch.
    pub last: Option<Bytes>,
    /// Set once nothing is left.
    pub done: bool,
    /// Storage's own note: what a locking scan has read and not locked yet, and how much it reads next.
    pub(crate) ahead: Option<Box<ReadAhead>>,
    pub(crate) batch: usize,
}

/// Storage's own note of a locking scan: what it has read and not locked yet.
#[derive(Clone, Debug)]
pub(crate) struct ReadAhead {
    pub(crate) pairs: VecDeque<(Bytes, Bytes)>,
    /// A number whose commit and all before were in what was read.
    pub(crate) installed: CommitNo,
    /// The mark of what the transaction had written then.
    pub(crate) written: Mark,
    /// Whether nothing is behind them.
    pub(crate) all: bool,
    /// Entries to be read next time.
    pub(crate) next: usize,
}

impl ReadAhead {
    /// The last entry.
    pub(crate) fn last(&self) -> Option<Bytes> {
        self.pairs.back().map(|(key, _)| key.clone())
    }
}

impl Scan {
    /// A scan that has not begun.
    #[must_use]
    pub fn new(index: usize, (from, to): (Bytes, Bytes)) -> Scan {
        Scan {
            index,
            from,
            to,
            reverse: false,
            lock: LockMode::None,
            wait: WaitPolicy::Wait,
            last: None,
            done: false,
            ahead: None,
            batch: 0,
        }
    }
}

/// The statement that asks for a number, as a sequence's own transaction must know it.
#[derive(Clone, Copy)]
pub struct SequenceAsk<'a> {
    /// The session's variables.
    pub settings: &'a SessionSettings,
    /// The current database, empty if none.
    pub database: &'a str,
    /// The statement's text.
    pub sql: &'a [u8],
    /// Its start, seconds since 1970.
    pub timestamp: u32,
    /// CONNECTION_ID().
    pub connection_id: u32,
}

/// Rows by key and by range. Rows are full row images (null bitmap + binlog field encoding).
pub trait Storage {
    /// The row whose complete key in unique index `index` (0: the primary key) is `key`, the index's space in front.
    /// A missing row is locked as a gap when `lock` asks for locks and the isolation level wants it.
    fn get(
        &mut self,
        table: &Arc<Table>,
        index: usize,
        key: &Bytes,
        lock: LockMode,
        wait: WaitPolicy,
    ) -> Result<Option<Bytes>, Interrupt>;

    /// Appends up to about `want` further rows of the scan to `rows` and moves the scan behind
    /// them; sets `scan.done` when there is nothing left. Through a secondary index it looks the
    /// rows up by primary key.
    fn fetch(
        &mut self,
        table: &Arc<Table>,
        scan: &mut Scan,
        rows: &mut Vec<Bytes>,
        want: usize,
    ) -> Result<(), Interrupt>;

    /// As `fetch` of a consistent read of the clustered index: rows that `keep` refuses are not taken, but count among the `want`. False if it is
    /// another kind of scan, and then nothing was read.
    ///
    /// # Errors
    /// As `fetch`.
    fn fetch_kept(
        &mut self,
        _: &Arc<Table>,
        _: &mut Scan,
        _rows: &mut Vec<Bytes>,
        _want: usize,
        _keep: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<bool, Interrupt> {
        Ok(false)
    }

    /// As `fetch`, the entries of the index instead of rows: key with its space, and value. False if the rows are to be
    /// locked, and then nothing was read.
    ///
    /// # Errors
    /// As `fetch`.
    fn fetch_entries(
        &mut self,
        _: &Arc<Table>,
        _: &mut Scan,
        _entries: &mut Vec<(Bytes, Bytes)>,
        _want: usize,
    ) -> Result<bool, Interrupt> {
        Ok(false)
    }

    /// Whether reads that ask for `lock` lock rows as they read them.
    fn locks_rows(&self, _: &Table, lock: LockMode) -> bool {
        lock != LockMode::None
    }

    /// Whether a locking read of this table looks at rows without locks first, and locks those that match (READ COMMITTED):
    /// with `point_keyed` and `fetch_keyed` that take none, and `lock_row`, instead of `get` and `fetch`.
    fn locks_matches(&self, _: &Table, _: LockMode) -> bool {
        false
    }

    /// As `get`, with the row's clustered key in front. `late`: takes no lock on the row; `lock` is what may follow.
    ///
    /// # Errors
    /// As `get`.
    fn point_keyed(
        &mut self,
        _: &Arc<Table>,
        _index: usize,
        _key: &Bytes,
        _lock: LockMode,
        _wait: WaitPolicy,
        _late: bool,
    ) -> Result<Option<(Bytes, Bytes)>, Interrupt> {
        Ok(None)
    }

    /// As `fetch`, with each row's clustered key. `late`: takes no locks on rows.
    ///
    /// # Errors
    /// As `fetch`.
    fn fetch_keyed(
        &mut self,
        _: &Arc<Table>,
        scan: &mut Scan,
        _keys: &mut Vec<Bytes>,
        _rows: &mut Vec<Bytes>,
        _want: usize,
        _late: bool,
    ) -> Result<(), Interrupt> {
        scan.done = true;
        Ok(())
    }

    /// Locks a row by its clustered key. Its newest version, and whether the lock is new; `None` if it is gone or was left
    /// out, and then it is not locked.
    ///
    /// # Errors
    /// As `get`.
    fn lock_row(
        &mut self,
        _: &Arc<Table>,
        _key: &Bytes,
        _lock: LockMode,
        _wait: WaitPolicy,
    ) -> Result<Option<(Bytes, bool)>, Interrupt> {
        Ok(None)
    }

    /// Gives a new lock of `lock_row` back: the row does not match any more.
    fn unlock_row(&mut self, _key: &Bytes) -> Result<(), Interrupt> {
        Ok(())
    }

    /// Asks to go on on a thread that may block (SLEEP, GET_LOCK): `NeedBlocking` if this one may not.
    fn need_blocking(&mut self) -> Result<(), Interrupt> {
        Ok(())
    }

    /// The next number of a sequence.
    ///
    /// # Errors
    /// 4084, lock waits, `NeedBlocking`.
    fn next_value(&mut self, _: &Arc<Table>, _: &SequenceAsk<'_>) -> Result<i64, Interrupt> {
        Err(Interrupt::NeedBlocking)
    }

    /// Lets a sequence go on from a number; false if it has passed it.
    ///
    /// # Errors
    /// As `next_value`.
    fn set_value(
        &mut self,
        _: &Arc<Table>,
        _: (i64, bool, i64),
        _: &SequenceAsk<'_>,
    ) -> Result<bool, Interrupt> {
        Err(Interrupt::NeedBlocking)
    }

    /// Fails with 1317 when the statement has been killed.
    fn check_killed(&mut self) -> Result<(), Interrupt> {
        Ok(())
    }

    /// The statement looks at definitions: its reply waits until they are durable.
    fn see_definitions(&self) {}

    /// The transaction (a `Trx`), if there is one: for what runs statements of its own.
    fn transaction(&mut self) -> Option<&mut dyn std::any::Any> {
        None
    }

    /// About how many rows the table has, for join order and EXPLAIN. Cheap; may be stale.
    fn estimate_rows(&mut self, table: &Arc<Table>) -> u64;
}

/// Storage without tables, for expressions that need none.
#[derive(Debug)]
pub struct NoStorage;

impl Storage for NoStorage {
    fn get(
        &mut self,
        _: &Arc<Table>,
        _: usize,
        _: &Bytes,
        _: LockMode,
        _: WaitPolicy,
    ) -> Result<Option<Bytes>, Interrupt> {
        Ok(None)
    }
    fn fetch(
        &mut self,
        _: &Arc<Table>,
        scan: &mut Scan,
        _: &mut Vec<Bytes>,
        _: usize,
    ) -> Result<(), Interrupt> {
        scan.done = true;
        Ok(())
    }
    fn need_blocking(&mut self) -> Result<(), Interrupt> {
        Err(Interrupt::NeedBlocking)
    }
    /// Looks for KILL in work that takes long, which is none for who has no statement.
    fn check_killed(&mut self) -> Result<(), Interrupt> {
        Err(Interrupt::NeedBlocking)
    }
    fn estimate_rows(&mut self, _: &Arc<Table>) -> u64 {
        0
    }
}
