//! How long an event of a source may be: `replica_max_allowed_packet`, for what comes over the network and for what a compressed
//! event stands for. Shared by all who receive and apply: a new value acts at once.

use omnibus_format::MAX_EVENT_SIZE;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// What surrounds the rows or the text of an event and is not counted.
const AROUND: u32 = 64 << 10;

/// See the module.
#[derive(Clone, Debug)]
pub struct EventLimit(Arc<AtomicU32>);

impl Default for EventLimit {
    fn default() -> EventLimit {
        EventLimit(Arc::new(AtomicU32::new(MAX_EVENT_SIZE)))
    }
}

impl EventLimit {
    /// A new limit, in bytes of rows or text.
    pub fn set(&self, bytes: u64) {
        let most = MAX_EVENT_SIZE - AROUND;
        let bytes = u32::try_from(bytes).map_or(most, |bytes| bytes.min(most));
        self.0.store(bytes + AROUND, Ordering::Relaxed);
    }

    /// The longest event that is taken, head included.
    #[must_use]
    pub fn longest(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}
