//! Row events of another server, or of BINLOG, as changes of tables: columns by position, values converted, rows found by their
//! images. The changes go through the same writes as statements'.

mod convert;
mod lookup;
mod mapping;
mod rows;

pub use convert::Conversions;
pub(crate) use rows::{RowApplier, RowRules};
