//! Converting values: to Rust numbers and dates, to text, and into a column's type.
//!
//! Nothing here fails silently: every conversion that loses something returns a [`Problem`], and the caller decides
//! whether that is an error (strict mode) or a warning.

pub mod document;
mod number;
mod problem;
mod store;
mod store_string;
mod store_temporal;
mod temporal;
mod text;

#[cfg(test)]
mod tables;
#[cfg(test)]
mod tests;

pub use number::{parse_f64_prefix, parse_i64_prefix, round_half_even};
pub use problem::{Problem, printable};
pub(crate) use store::scalar_json;
pub use store::{ConvertError, StoreContext, Stored, fixed};
pub use text::zero_fill;

/// A value and what was lost on the way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Converted<T> {
    /// The value, clipped or cut where something was lost.
    pub value: T,
    /// The loss of the conversion.
    pub problem: Option<Problem>,
}

impl<T> Converted<T> {
    pub(crate) fn exact(value: T) -> Converted<T> {
        Converted { value, problem: None }
    }
    pub(crate) fn lossy(value: T, problem: Problem) -> Converted<T> {
        Converted { value, problem: Some(problem) }
    }
}
