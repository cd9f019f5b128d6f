//! Transactions over the engine: reads with their overlay and locks, row changes with index
//! maintenance, AUTO_INCREMENT, and the events that describe them.
//!
//! One [`Trx`] belongs to one session and is used on its thread only.

mod ahead;
mod applied;
mod auto;
mod backup_lock;
mod building;
mod counters;
mod definition;
mod definition_lock;
mod end;
mod events;
mod floor;
mod foreign_keys;
pub(crate) mod kept_statistics;
mod lock;
mod log;
mod lookup;
mod matches;
mod memory;
mod near;
mod overlay;
mod port;
mod private_events;
mod range;
mod read;
pub(crate) mod samples;
mod savepoint;
mod sequence;
mod snapshot;
mod statement;
mod statistics;
mod storage;
mod table_lock;
mod temp;
mod transaction;
mod trx;
mod watch;
mod write;
mod xa;

pub(crate) use applied::Applied;
pub(crate) use auto::{auto_value, whole_index};
pub(crate) use building::Build;
pub use building::locked_table;
pub(crate) use definition::OpenDefinition;
pub(crate) use definition_lock::{Names, tables_are_locked};
pub use events::StatementInfo;
pub use floor::Floor;
pub(crate) use foreign_keys::{chosen_row, has_children, verify_foreign_key};
pub use lock::Patience;
pub(crate) use lock::wait_failure;
pub(crate) use port::HeldSnapshot;
pub use port::{CommitPort, SnapshotHold};
pub(crate) use private_events::{private_event, write_set_event};
pub(crate) use range::by_ref;
pub use range::{KeyRange, RowAt};
pub(crate) use sequence::{put_sequence, row_key as sequence_key, sequence_row};
pub(crate) use table_lock::{Locked, is_locked, not_locked, only_read_locked};
pub use temp::TemporaryTables;
pub(crate) use trx::need_replan;
pub(crate) use trx::set_cache_context;
pub use trx::{Marks, Trx, TrxContext};
pub use watch::SessionWatch;
pub use write::{Duplicate, InsertOutcome, RowChange, duplicate_error};
pub(crate) use xa::{BranchState, restore};
