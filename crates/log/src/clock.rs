//! The wall clock of all higher crates: the time in events, statements and replicas.

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since 1970; 0 on a clock that is before it.
#[must_use]
#[inline]
pub fn now_us() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}
