//! INSERT, REPLACE, UPDATE and DELETE: plans made from trees, and their execution.

pub(crate) mod cast;
pub(crate) mod defaults;
