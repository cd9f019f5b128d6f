//! The gate in front of all writers: what FLUSH TABLES WITH READ LOCK closes.
//!
//! While the gate is closed, a transaction that holds no write lock on any table must first get the gate's own table
//! lock, which the closing transaction holds in mode S. Transactions that write already continue, so that they can end.
//! Then no table has a writer. An open gate costs one load per table request. A table's holders and the gate are read
//! under the table's shard, so a writer is either seen by `others_write` or sees the closed gate.

use crate::handle::TrxLocks;
use crate::mode::Mode;
use crate::queue::Queue;
use crate::sync::atomic::Ordering;
use crate::tables::Tables;
use crate::trx::{GATE, Trx};
use crate::wait::Request;
use std::sync::Arc;

impl Tables {
    /// Returns whether a request must go through the gate first. Called under the table's shard.
    pub(crate) fn gated(&self, table: u64, wanted: Mode) -> bool {
        wanted.writes() && table != GATE && self.gate.load(Ordering::SeqCst) != 0
    }

    fn others_write(&self, trx: &Arc<Trx>) -> bool {
        // Who waits for a table since before the gate was closed will get it without seeing the gate.
        let writes = |queue: &Queue| {
            queue.holders().any(|hold| hold.mode.writes() && !Arc::ptr_eq(&hold.trx, trx))
                || queue.waiters().any(|waiter| waiter.mode.writes())
        };
        self.shards().any(|shard| shard.lock().iter().any(|(table, queue)| *table != GATE && writes(queue)))
    }
}

impl TrxLocks {
    /// Closes the gate; it is closed once this is granted and `others_write` is false. Must be followed by `open_gate`,
    /// also if the wait failed.
    pub fn close_gate(&self) -> Request {
        self.manager.tables.gate.fetch_add(1, Ordering::SeqCst);
        self.manager.request_table(&self.trx, GATE, Mode::TABLE_S)
    }

    /// Returns whether other transactions write, or may: they hold a table in a mode for writing.
    #[must_use]
    pub fn others_write(&self) -> bool {
        self.manager.tables.others_write(&self.trx)
    }

    /// Undoes one `close_gate`.
    pub fn open_gate(&self) {
        self.manager.tables.gate.fetch_sub(1, Ordering::SeqCst);
        self.release_table(GATE);
    }
}
