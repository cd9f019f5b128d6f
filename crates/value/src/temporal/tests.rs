//! Temporal values against tables made with a real server.
#![allow(clippy::unwrap_used)]
