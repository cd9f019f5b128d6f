//! The status of a channel. Its threads write it, SHOW REPLICA STATUS reads it; one short lock.

use super::position::{ChannelPosition, SourcePosition};
use crate::model::TrxHeader;
use omnibus_format::{GtidPosition, GtidSet};
use parking_lot::Mutex;

/// Replica_IO_Running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoRunning {
    /// No thread.
    #[default]
    No,
    /// The receiver is trying to connect.
    Connecting,
    /// Receiving.
    Yes,
}

impl IoRunning {
    /// The value's name in SHOW output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            IoRunning::No => "No",
            IoRunning::Connecting => "Connecting",
            IoRunning::Yes => "Yes",
        }
    }
}

/// An error and its time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorAt {
    /// 0 for none.
    pub code: u16,
    /// Its text.
    pub message: String,
    /// Microseconds since 1970.
    pub at_us: i64,
}

impl ErrorAt {
    /// Creates an error with the present time.
    #[must_use]
    pub fn now(code: u16, message: impl Into<String>) -> ErrorAt {
        ErrorAt { code, message: message.into(), at_us: now_us() }
    }
}

/// A transaction and the times of an operation on it: microseconds since 1970, 0 for not yet.
#[derive(Clone, Debug, Default)]
pub struct TrxTimes {
    /// `None` for no transaction.
    pub trx: Option<TrxHeader>,
    /// The time when receiving, queueing or applying it began.
    pub began_us: i64,
    /// The time when that ended.
    pub ended_us: i64,
}

impl TrxTimes {
    /// Begins an operation now.
    #[must_use]
    pub fn begin(trx: TrxHeader) -> TrxTimes {
        TrxTimes { trx: Some(trx), began_us: now_us(), ended_us: 0 }
    }

    /// Ends the operation now: it becomes `last`, and none is under way.
    pub fn end(&mut self, last: &mut TrxTimes) {
        *last = TrxTimes { ended_us: now_us(), ..std::mem::take(self) };
    }
}

/// The values of a channel's status.
#[derive(Clone, Debug, Default)]
pub struct StatusData {
    /// The receiver.
    pub io: IoRunning,
    /// The receiver's present activity as text.
    pub io_state: &'static str,
    /// Whether transactions are applied.
    pub sql_running: bool,
    /// The applier's present activity as text.
    pub sql_state: &'static str,
    /// Last_IO_Error.
    pub io_error: ErrorAt,
    /// Last_SQL_Error.
    pub sql_error: ErrorAt,
    /// The receiver's position.
    pub read: SourcePosition,
    /// The position up to which transactions are applied and durable.
    pub applied: ChannelPosition,
    /// Transactions received since the receiver began, if they have MySQL's GTIDs.
    pub retrieved: GtidSet,
    /// The source's server id.
    pub source_id: u32,
    /// Its UUID.
    pub source_uuid: String,
    /// Its version.
    pub source_version: String,
    /// The number of seconds that its clock is ahead.
    pub clock_ahead_s: i64,
    /// Whether it waits for acknowledgements.
    pub semi_sync: bool,
    /// Timestamp of the oldest transaction received and not applied; 0 for none.
    pub pending_timestamp: u32,
    /// Transactions applied since start.
    pub applied_count: u64,
    /// Events that the applied position has passed since start.
    pub applied_events: u64,
    /// The number of definitions among them.
    pub definitions: u64,
    /// The position behind the last received transaction in MariaDB's GTIDs, if the source is asked by them.
    pub read_gtids: GtidPosition,
    /// The number of retried transactions.
    pub retried: u64,
    /// Heartbeats received.
    pub heartbeats: u64,
    /// Microseconds since 1970 of the last one.
    pub last_heartbeat_us: i64,
    /// The transaction received last.
    pub queued: TrxTimes,
    /// The one that is being received.
    pub queueing: TrxTimes,
    /// The time until which the transaction at the front waits, for SOURCE_DELAY; seconds since 1970, 0 for none.
    pub delayed_until: i64,
}

/// Shared by a channel's threads.
#[derive(Debug, Default)]
pub struct ChannelStatus(Mutex<StatusData>);

/// Microseconds since 1970.
#[must_use]
pub(crate) fn now_us() -> i64 {
    omnibus_log::now_us() as i64
}

impl ChannelStatus {
    /// Changes the values.
    pub fn update<T>(&self, change: impl FnOnce(&mut StatusData) -> T) -> T {
        change(&mut self.0.lock())
    }

    /// A copy of the present values.
    #[must_use]
    pub fn snapshot(&self) -> StatusData {
        self.0.lock().clone()
    }

    /// Sets Last_IO_Error.
    pub fn io_error(&self, code: u16, message: impl Into<String>) {
        let error = ErrorAt::now(code, message);
        self.0.lock().io_error = error;
    }

    /// Sets Last_SQL_Error.
    pub fn sql_error(&self, code: u16, message: impl Into<String>) {
        let error = ErrorAt::now(code, message);
        self.0.lock().sql_error = error;
    }
}

impl StatusData {
    /// Seconds_Behind_Source; `None` if it is unknown.
    #[must_use]
    pub fn seconds_behind(&self, queue_is_empty: bool) -> Option<u64> {
        if !self.sql_running {
            return None;
        }
        if self.pending_timestamp != 0 {
            let now = now_us() / 1_000_000 + self.clock_ahead_s;
            return Some(u64::try_from(now - i64::from(self.pending_timestamp)).unwrap_or(0));
        }
        // Nothing known to apply: that is "none" only if the source would have told us of more.
        (queue_is_empty && self.io == IoRunning::Yes).then_some(0)
    }
}
