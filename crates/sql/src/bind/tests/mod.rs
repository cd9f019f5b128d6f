//! Results of binding: values of expressions, and metadata of result columns.

mod columns;
mod expressions;
