//! Joins: in which order the tables of a block are read (`order`), how each is read for the rows before it (`scan`), and where conditions wait that
//! are dear to ask (`late`); the tree that all become (`node`).

mod late;
mod node;
mod order;
mod scan;

pub(super) use order::{Planned, Rest, plan};
