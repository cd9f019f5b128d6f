//! What binding gives: values of expressions, and what result columns say about themselves.

mod columns;
mod expressions;
