//! Applying what another server did: a session of the SQL layer as a target of changes.
//!
//! [`Applier`] executes statements with their whole context and row events (`row_events`), and keeps a channel's
//! position in the same transaction. It is privileged and exempt from `read_only`. It runs on a thread that may block.
//! Not here: reading streams, choosing what may run in parallel, deciding what to do after an error.

mod applier;
mod context;
mod position;
mod set_statement;

pub use crate::row_events::Conversions;
pub use applier::{Applier, ApplySettings, ServerStatements};
pub use position::{forget_position, store_position, stored_position, stored_positions};
