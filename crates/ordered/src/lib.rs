//! What a large transaction's writes and locks are kept in: byte strings without a handle each (`Chunks`), and positions in the
//! order of keys (`Order`).
//!
//! A map with the keys in it takes about a hundred bytes for a key of sixteen, and a cache miss a comparison. Here a key
//! takes twelve: its position, and eight of its bytes, with which nearly every comparison ends.
//!
//! It knows neither who asks nor what the keys mean. No thread but the caller's.

mod chunks;
mod order;

pub use chunks::{ChunkRef, Chunks};
pub use order::{Order, Positions, Slot};

/// Where the keys are.
pub trait Keys {
    /// The key at a position that was inserted.
    fn key(&self, at: u32) -> &[u8];
}
