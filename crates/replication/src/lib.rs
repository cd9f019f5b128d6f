//! Replication: making binlog events of changes, and changes of binlog events.
//!
//! `generate` turns a statement's row changes (full row images) into events and hands them to an
//! `EventSink`, which is a transaction's event cache. Applying, the dump and the replica are
//! built on `omnibus_format` in the same way. No files, no clock, no session state here.

pub mod generate;
