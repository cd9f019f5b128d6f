//! SELECT: from a query's syntax tree to rows in a sink. Growing.

pub mod storage;

pub use storage::{LockMode, Scan, Storage, WaitPolicy};
