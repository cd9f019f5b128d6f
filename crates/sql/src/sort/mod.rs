//! ORDER BY: keys whose bytes sort, and an external merge sort of records under them.

mod external;
mod key;

pub use external::{ExternalSort, Sorted};
pub use key::{KeyForm, Part};
