//! Sessions: transaction state and statement dispatch.

mod state;

pub use state::SessionState;
