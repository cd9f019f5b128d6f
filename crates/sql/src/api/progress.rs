//! How far a long statement is: what SHOW PROCESSLIST and `events_stages_current` say of it.
//!
//! Written by the thread that runs the statement, some hundred times a second at most; read by any other.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The work of a definition statement on a table's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Work {
    /// Reading them, for an index.
    Read = 1,
    /// Writing the index.
    Insert,
    /// Following what others have changed meanwhile.
    Follow,
    /// Writing all rows anew.
    Copy,
}

impl Work {
    const ALL: [Work; 4] = [Work::Read, Work::Insert, Work::Follow, Work::Copy];

    /// MySQL's name for such a stage.
    #[must_use]
    pub fn event_name(self) -> &'static str {
        match self {
            Work::Read => "stage/innodb/alter table (read PK and internal sort)",
            Work::Insert => "stage/innodb/alter table (insert)",
            Work::Follow => "stage/innodb/alter table (log apply index)",
            Work::Copy => "stage/sql/copy to tmp table",
        }
    }

    /// The State column.
    #[must_use]
    pub fn state(self) -> &'static str {
        match self {
            Work::Read | Work::Insert | Work::Follow => "altering table",
            Work::Copy => "copy to tmp table",
        }
    }
}

/// The progress of a session's running statement.
#[derive(Debug, Default)]
pub struct Progress {
    work: AtomicU8,
    done: AtomicU64,
    estimated: AtomicU64,
}

/// A look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progressed {
    /// The current work.
    pub work: Work,
    /// Rows and entries that are done.
    pub done: u64,
    /// How many there will have been, as far as is known.
    pub estimated: u64,
}

impl Progressed {
    /// Of a hundred.
    #[must_use]
    pub fn percent(self) -> u64 {
        self.done.min(self.estimated) * 100 / self.estimated.max(1)
    }
}

impl Progress {
    /// Work begins, `more` of it than was told before.
    pub fn begin(&self, work: Work, more: u64) {
        self.estimated.fetch_add(more, Ordering::Relaxed);
        self.work.store(work as u8, Ordering::Release);
    }

    /// So much was done.
    pub fn add(&self, done: u64) {
        self.done.fetch_add(done, Ordering::Relaxed);
    }

    /// The statement is over.
    pub fn end(&self) {
        self.work.store(0, Ordering::Release);
        self.done.store(0, Ordering::Relaxed);
        self.estimated.store(0, Ordering::Relaxed);
    }

    /// How far it is, if there is anything to tell.
    #[must_use]
    pub fn read(&self) -> Option<Progressed> {
        let number = self.work.load(Ordering::Acquire);
        let work = Work::ALL.into_iter().find(|work| *work as u8 == number)?;
        let load = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        Some(Progressed { work, done: load(&self.done), estimated: load(&self.estimated) })
    }
}
