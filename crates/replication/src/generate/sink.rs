//! The destination of generated events: a transaction's event cache, or a vector in tests.

use omnibus_format::{EventContext, EventType, writer::append_event};

/// Takes events in order. Called by the session that runs the transaction; never concurrently.
pub trait EventSink {
    /// The reason why an event could not be kept (the cache's limit, or its spill file).
    type Error;

    /// Keeps one event. `body` excludes header and checksum; the sink adds timestamp and server id. After an error the
    /// statement must be rolled back.
    ///
    /// # Errors
    /// The sink's own; no part of the event was kept.
    fn event(&mut self, event_type: u8, flags: u16, body: &[u8]) -> Result<(), Self::Error>;

    /// Converts the error of reading a file that belongs into an event.
    fn lost(&self, error: std::io::Error) -> Self::Error;
}

/// A sink that keeps cached events in memory. It never fails by itself.
#[derive(Clone, Debug)]
pub struct VecSink {
    /// The header fields.
    pub context: EventContext,
    /// Cached events: headers without position and checksum.
    pub bytes: Vec<u8>,
}

impl VecSink {
    /// Creates an empty sink.
    pub fn new(timestamp: u32, server_id: u32) -> Self {
        Self { context: EventContext { timestamp, server_id }, bytes: Vec::new() }
    }
}

impl EventSink for VecSink {
    type Error = std::io::Error;

    fn event(&mut self, event_type: u8, flags: u16, body: &[u8]) -> Result<(), Self::Error> {
        append_event(&mut self.bytes, self.context, EventType(event_type), flags, body);
        Ok(())
    }

    fn lost(&self, error: std::io::Error) -> std::io::Error {
        error
    }
}
