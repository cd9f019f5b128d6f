//! MySQL values: what a column can hold, how it compares, converts, prints, and sorts as bytes.
//!
//! Pure: no I/O, no clock, no catalog. Everything above speaks in these types, so a value is
//! converted exactly where MySQL converts it and nowhere else.

pub mod base64;
pub mod collation;
pub mod column;
pub mod compare;
pub mod decimal;
pub mod fixed;
pub mod hex;
pub mod json;
pub mod key;
pub mod literal;
pub mod locale;
pub mod pace;
mod shared;
pub mod stack;
pub mod temporal;
pub mod text;
pub mod uuid;
pub mod value;

pub use column::{ColumnKind, ColumnType};
pub use fixed::{Fixed, FixedKind};
pub use shared::shared;
pub use value::{Value, convert};
