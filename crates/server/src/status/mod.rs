//! Counters of the server and of each session, and SHOW STATUS.
//!
//! A session counts in its own entry, so counting never contends; the server's figures are the sum
//! over live sessions and those that are gone.

mod counters;
mod render;

pub use counters::{COM_NAMES, Counter, ServerCounters, SessionCounters, com_index};
pub use render::{StatusSources, TransportStatus, render};
