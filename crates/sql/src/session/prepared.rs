//! Prepared statements.

/// A prepared statement.
pub struct Prepared {}
