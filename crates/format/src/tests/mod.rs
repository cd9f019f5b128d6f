//! Tests of the whole crate, one file per subject.
#![allow(clippy::unwrap_used)]

mod describe;
mod events;
mod old;
mod private;
mod rows;
mod scan;
