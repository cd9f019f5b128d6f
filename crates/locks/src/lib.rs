//! Row, range and table locks of transactions, with deadlock detection at wait time.
//!
//! The crate knows no SQL, no engine and no runtime. A wait is an object that a thread can park on and that is also a
//! `Future`; error numbers (1205, 1213, 1317) are the caller's.
//!
//! The kinds of locks:
//! - *record locks* (`RowMode`) name an index key, there or not, in a space;
//! - an *insert* lock is an exclusive record lock on a key that is about to appear, and waits for
//!   other transactions' range locks over that key;
//! - *range locks* keep an interval of a space free of other transactions' inserts. They never
//!   conflict with each other; they wait for other transactions' insert locks inside, because
//!   such a row is not in any engine yet and a scan would miss it;
//! - *table locks* (`TableMode`) are metadata locks and `LOCK TABLES` in one: statements take the
//!   intention modes, DDL takes `Exclusive`.
//!
//! Rules:
//! - LOCK-1 Grants to a key are first come, first served, except that a holder's own upgrade goes to the front: it could
//!   never be granted behind a transaction that waits for it. `Exclusive` requests for a table, which definitions make, go
//!   before the other kinds.
//! - LOCK-2 Every wait ends: by grant, by deadlock (found when the wait that closes the cycle begins), by kill, or by the
//!   caller's timeout. A waiter is woken by itself.
//! - LOCK-3 A transaction waits for at most one lock at a time, and requests come from one thread at a time; release, kill
//!   and introspection may come from any thread. A session's transaction and its locks by name are two transactions here,
//!   *beside* each other: only one of them waits at a time, and a transaction that waits for one of them waits for both.
//! - SNAP-3 A transaction that acquires a lock, whether it waited or not, gets the number of the commit that last released
//!   it (`released`).
//!
//! Lock order inside: detector, then one space's or table's shard, then one transaction's wait slot.
//! No shard is ever held while another is taken, and nobody is woken under a shard.

mod bulk;
mod deadlock;
mod detect;
mod gate;
mod handle;
mod held;
mod interval;
mod manager;
mod mode;
mod outcome;
mod queue;
mod reach;
mod released;
mod request;
mod space;
mod stats;
mod tables;
mod trx;
mod wait;

#[cfg(test)]
mod tests;

use omnibus_sync as sync;

pub use deadlock::{Deadlock, Deadlocked, Observer};
pub use handle::{TrxHandle, TrxLocks};
pub use held::{HeldCounts, HeldLock, Waiting};
pub use manager::LockManager;
pub use mode::{RowMode, TableMode};
pub use outcome::WaitOutcome;
pub use released::Stamp;
pub use stats::{LockStats, LockTarget, TableLockInfo, WaitInfo};
pub use wait::{LockWait, Request};
