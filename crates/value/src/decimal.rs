//! stub
/// DECIMAL.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decimal(i64);
