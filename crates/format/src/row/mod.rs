//! Row images: a table's shape, whole rows, single columns, projections, and iteration over row events.
//!
//! An image is a null bitmap with one bit per present column, then the field bytes of each present column that is not
//! NULL. A FULL image (all columns) is also the engine's row format.

mod bitmap;
mod image;
mod images;
mod json_diff;
mod shape;

pub use bitmap::{Bitmap, count_bits, is_set};
pub use image::project;
pub use images::{Images, RowChange, RowImage};
pub use json_diff::{JsonDiff, JsonDiffError, JsonDiffOp, JsonDiffs, put_json_diff};
pub use shape::{ColumnShape, RowShape};
