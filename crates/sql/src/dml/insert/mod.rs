//! INSERT, REPLACE, and whatever else puts rows into a table: LOAD DATA, CREATE TABLE ... SELECT.

mod auto_increment;
mod before;
mod documents;
mod duplicate;
mod plan;
mod run;
mod source;

pub(crate) use plan::{InsertPlan, fits_any_values};
pub(crate) use run::Counts;
