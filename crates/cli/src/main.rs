//! The `omnibus` program.
fn main() {}
