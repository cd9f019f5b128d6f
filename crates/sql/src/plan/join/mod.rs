//! Joins: in which order the tables of a block are read (`order`), how each is read for the rows before it (`scan`), and where conditions wait that
//! are dear to ask (`late_conditions`); the tree that all become (`node`).

mod late_conditions;
mod node;
mod order;
mod scan;

pub(super) use order::{Planned, Rest, plan};
