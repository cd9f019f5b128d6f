//! Expressions, evaluated over the rows of a running statement.
//!
//! [`crate::bind`] resolves names and types once; `eval` runs the result any number of times. Values carry their own tags, so evaluation is dynamic where parameters may be anything; types decide metadata,
//! collations and implicit conversions.

pub mod arith;
pub(crate) mod assign;
pub(crate) mod bits;
pub mod cast;
pub mod charset;
pub mod comparable;
pub mod compare;
pub mod context;
pub mod convert;
mod direct;
pub mod eval;
pub mod functions;
pub mod hash_key;
pub(crate) mod in_place;
mod in_place_number;
pub mod interval;
pub(crate) mod into_column;
pub mod json;
pub(crate) mod json_value;
pub mod like;
pub(crate) mod mix;
pub mod node;
mod number_text;
pub mod outline;
pub(crate) mod print;
pub mod profile;
pub mod regexp;
mod same;
pub mod sequence;
pub(crate) mod sieve;
pub mod slot_set;
pub mod stored;
pub mod subquery;
pub mod sysvar;
pub mod types;
pub(crate) mod unify;
mod volatile;
pub mod xml;

pub use context::{Context, Row, Slot};
pub use node::{Expr, Kind};
pub use slot_set::SlotSet;
pub use types::{BindContext, Coercibility, ExprType};
pub(crate) use volatile::is_volatile;
