//! XA: transactions that another program's transaction manager prepares first and finishes later.
//!
//! Three pieces: [`Xid`] is a branch's name, as text and as key bytes; `record` is how a prepared branch is kept in
//! the engine; [`Registry`] is who has which branch now. The statements are `session::xa`, what they do to a
//! transaction is `store::xa`.
//!
//! # What a prepared branch is
//!
//! XA PREPARE commits a transaction whose engine writes are a *record*: one head row and one row per write, in a
//! space of the catalog's own. The rows that it changed stay as they are, and their locks stay held, by the registry.
//! XA COMMIT is another transaction: the writes themselves and the deletion of the record. XA ROLLBACK deletes the
//! record. So neither recovery nor checkpoints, purging or snapshots know of XA: the log file that holds a branch's
//! row events may be purged like any other as soon as the engine has persisted the record.
//!
//! RECOVER-2: replay makes the same record from the row events of a group that ends with XA_PREPARE, and applies it at
//! QUERY `XA COMMIT`. After a restart the registry is filled from the records, and every key that a branch writes is
//! locked again. Locks of rows that were only read are not, as in MySQL.
//!
//! AUTO_INCREMENT counter rows are not part of a record: they are not transactional, and take effect with the prepare.

pub(crate) mod record;
mod registry;
mod xid;

pub use registry::{Held, PreparedSeen, Registry};
pub use xid::Xid;
pub(crate) use xid::{Completion, completion};
