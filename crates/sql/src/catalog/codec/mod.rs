//! Rows and keys as bytes.
//!
//! A row is the binlog's full image of it, behind a few bytes where the table's rows have had other forms (`versions`). A clustered key is the index's space, then the encoded
//! key columns (or the 8-byte hidden row id). A secondary entry's key is its space, the encoded
//! columns, and behind them the clustered key without its space, unless the index is unique and no
//! column is NULL: then equal columns are equal keys, and the clustered key is in the value.

mod key;
mod row;
mod versions;

pub use key::{Entry, KeyCodec, key_text, row_key_text, successor};
pub use row::{RowCodec, Stored, text};
pub use versions::{Earlier, MAX_VERSIONS, Origin, RowVersions};
