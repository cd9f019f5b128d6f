//! The maximum length of a source's event: `replica_max_allowed_packet`, for events from the network and for those that
//! a compressed event stands for. It is shared by all receivers and appliers; a new value takes effect at once.

use omnibus_format::MAX_EVENT_SIZE;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The maximum number of bytes around the rows or the text of an event, which are not counted.
const AROUND: u32 = 64 << 10;

/// A shared limit; see the module.
#[derive(Clone, Debug)]
pub struct EventLimit(Arc<AtomicU32>);

impl Default for EventLimit {
    fn default() -> EventLimit {
        EventLimit(Arc::new(AtomicU32::new(MAX_EVENT_SIZE)))
    }
}

impl EventLimit {
    /// Sets the limit, in bytes of rows or text.
    pub fn set(&self, bytes: u64) {
        let most = MAX_EVENT_SIZE - AROUND;
        let bytes = u32::try_from(bytes).map_or(most, |bytes| bytes.min(most));
        self.0.store(bytes + AROUND, Ordering::Relaxed);
    }

    /// The maximum length of an event in bytes, header included.
    #[must_use]
    pub fn longest(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}
