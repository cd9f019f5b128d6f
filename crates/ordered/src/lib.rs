//! Containers for the writes and locks of a large transaction: byte strings without a handle each (`Chunks`), and
//! positions in the order of keys (`Order`).
//!
//! A map with the keys in it takes about a hundred bytes for a key of sixteen, and a cache miss a comparison. Here a key
//! takes twelve: its position, and eight of its bytes, with which nearly every comparison ends.
//!
//! The crate does not know the meaning of the keys. It runs on the caller's thread only.

mod chunks;
mod order;

pub use chunks::{ChunkRef, Chunks};
pub use order::{Order, Positions, Slot};

/// Access to the keys by position.
pub trait Keys {
    /// The key at a position that was inserted.
    fn key(&self, at: u32) -> &[u8];
}
