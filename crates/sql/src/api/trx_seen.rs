//! Transactions as other threads see them: what INNODB_TRX and `events_transactions_*` are made of.

use super::Isolation;
use omnibus_engine::CommitNo;
use omnibus_locks::{HeldCounts, LockTarget, Waiting};

/// A transaction's characteristics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrxKind {
    /// Its isolation level.
    pub isolation: Isolation,
    /// READ ONLY.
    pub read_only: bool,
    /// It lasts beyond a statement.
    pub open: bool,
}

/// A look at a transaction.
#[derive(Clone, Debug)]
pub struct TrxSeen {
    /// Its number: the connection's in the upper half, and in the lower one how many transactions of it there were.
    pub id: u64,
    /// The connection; 0 for nobody's.
    pub session: u64,
    /// Its characteristics.
    pub kind: TrxKind,
    /// `unique_checks`, and `foreign_key_checks`.
    pub checks: (bool, bool),
    /// An earlier statement of it has used a table.
    pub begun: bool,
    /// When it was opened, or its only statement began; microseconds since 1970.
    pub opened_us: u64,
    /// When it first used a table, as far as it has.
    pub began_us: u64,
    /// The snapshot that its reads see, and since when.
    pub snapshot: Option<(CommitNo, u64)>,
    /// Rows inserted, changed and deleted.
    pub rows_changed: u64,
    /// Its locks, counted.
    pub held: HeldCounts,
    /// About how many bytes they take.
    pub lock_bytes: usize,
    /// The wait that is under way.
    pub waiting: Option<Waiting>,
}

/// A transaction that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedTrx {
    /// As [`TrxSeen::id`].
    pub id: u64,
    /// Its characteristics.
    pub kind: TrxKind,
    /// It left nothing behind.
    pub rolled_back: bool,
    /// Microseconds since 1970.
    pub began_us: u64,
    /// When COMMIT began, or ROLLBACK was done.
    pub ended_us: u64,
}

impl TrxSeen {
    /// Returns whether tables are involved: MySQL's engine has such a transaction in its list.
    #[must_use]
    pub fn uses_tables(&self) -> bool {
        let used = self.begun || self.snapshot.is_some() || self.rows_changed > 0;
        used || self.held.rows > 0 || self.waits_for_row().is_some()
    }

    /// As it is when it leaves its session.
    pub(crate) fn prepared(self) -> TrxSeen {
        let kind = TrxKind { open: true, ..self.kind };
        TrxSeen { session: 0, kind, begun: true, snapshot: None, waiting: None, ..self }
    }

    /// As it is when it is found after a restart: nobody knows when it began.
    pub(crate) fn found(self, number: u64) -> TrxSeen {
        let now = omnibus_commit::now_us();
        TrxSeen { id: number, began_us: now, opened_us: now, ..self.prepared() }
    }

    /// The wait, if it is one for a row or for a gap between rows.
    #[must_use]
    pub fn waits_for_row(&self) -> Option<&Waiting> {
        let row =
            |wait: &&Waiting| matches!(wait.target, LockTarget::Record { .. } | LockTarget::Range { .. });
        self.waiting.as_ref().filter(row)
    }

    /// Returns whether it is one statement that reads and locks no rows.
    #[must_use]
    pub fn only_reads(&self) -> bool {
        !self.kind.open && self.rows_changed == 0 && self.held.rows == 0 && self.held.written == 0
    }
}
