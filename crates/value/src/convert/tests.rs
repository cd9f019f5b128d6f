//! Conversions against tables made with a real server.
