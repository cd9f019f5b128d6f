//! How long a statement may hold its thread.

/// How long a statement may hold its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// On an async worker: never block; return an [`crate::Interrupt`] instead.
    Inline,
    /// On a thread that may block: wait for locks here.
    Blocking,
}
