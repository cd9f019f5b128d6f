//! Replication: generates binlog events from changes, and applies binlog events as changes.
//!
//! `model` defines a change as traits with questions. `generate` turns a statement's row changes (full row images) into
//! events and passes them to an `EventSink`, which is a transaction's event cache. `changes` does the reverse: it passes
//! events to an `ApplyTarget` that executes them. `consume` passes the same changes to other consumers, such as JSON
//! lines. `client` talks to a source, `replica` has the parts of a channel, `source` sends a log to replicas, and
//! `limit` bounds the length of events.
//!
//! The changes of a log as JSON lines:
//!
//! ```no_run
//! use omnibus_replication::consume::{Feed, JsonLines, LogFiles};
//!
//! let mut files = LogFiles::of_index("data/binlog.index".as_ref())?;
//! let mut feed = Feed::new(JsonLines::new(std::io::stdout()));
//! files.read(&mut feed)?; // again later for what was written since
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod changes;
pub mod client;
pub mod consume;
pub mod generate;
pub mod limit;
pub mod model;
pub mod replica;
pub mod source;
