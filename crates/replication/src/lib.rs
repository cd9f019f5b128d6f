//! Replication: making binlog events of changes, and changes of binlog events.
//!
//! `model` says what a change is, as questions with answers. `generate` turns a statement's row changes (full row images)
//! into events and hands them to an `EventSink`, which is a transaction's event cache. `apply` goes the other way: from events
//! to an `ApplyTarget` that executes them; `consume` gives the same changes to anybody else, as JSON lines for one. `client`
//! speaks to a source, `replica` is what a channel is made of, `source` what a source sends. `limit` is how long an event may be.

pub mod apply;
pub mod client;
pub mod consume;
pub mod generate;
pub mod limit;
pub mod model;
pub mod replica;
pub mod source;
