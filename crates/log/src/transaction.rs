//! Finds the beginnings and ends of transactions in a sequence of events.
//!
//! A pure function of event types and, for QUERY events, of the first word of the statement. Used by recovery to find
//! the end of the last whole transaction, and by rotation checks. Both dialects and files without GTIDs are understood:
//!
//! - a GTID event opens a transaction; XID, `COMMIT`, `ROLLBACK`, XA_PREPARE or a payload event closes it; a QUERY that
//!   is not `BEGIN` or `XA START` right behind the GTID is a statement that commits by itself and closes it too;
//! - MariaDB's GTID says by a flag whether such a single statement follows;
//! - type 28 (ignorable) events are part of the transaction they stand in and never close it. Between transactions they
//!   are whole by themselves (padding, private records).

use omnibus_format::events::Query;
use omnibus_format::{EventType, RawEvent};

/// The place of an event in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventPlace {
    /// Between transactions: file headers, rotation, padding.
    Outside,
    /// The first event of a transaction.
    First,
    /// Inside of a transaction.
    Inside,
    /// The event that makes its transaction whole.
    Last,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrackerState {
    Outside,
    /// After a GTID: the next QUERY decides.
    Opened,
    /// After MariaDB's GTID with the standalone flag: the next QUERY closes.
    Standalone,
    /// After BEGIN: until XID or COMMIT.
    Body,
}

/// Follows the events of a log.
#[derive(Clone, Debug)]
pub struct TransactionTracker {
    state: TrackerState,
}

impl Default for TransactionTracker {
    fn default() -> Self {
        TransactionTracker { state: TrackerState::Outside }
    }
}

/// MariaDB's GTID flag for a transaction of one statement that commits by itself.
const MARIADB_STANDALONE: u8 = 1;

impl TransactionTracker {
    /// Starts between two transactions.
    #[must_use]
    pub fn new() -> TransactionTracker {
        TransactionTracker::default()
    }

    /// Returns whether a transaction is open.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.state != TrackerState::Outside
    }

    /// Takes the next event and returns its place.
    pub fn step(&mut self, event: &RawEvent<'_>) -> EventPlace {
        match event.header.event_type {
            EventType::GTID | EventType::ANONYMOUS_GTID | EventType::GTID_TAGGED => {
                self.open(TrackerState::Opened)
            }
            EventType::MARIADB_GTID => {
                // Sequence number (8), domain (4), flags (1).
                let standalone = event.body.get(12).is_some_and(|flags| flags & MARIADB_STANDALONE != 0);
                self.open(if standalone { TrackerState::Standalone } else { TrackerState::Body })
            }
            EventType::XID | EventType::XA_PREPARE | EventType::TRANSACTION_PAYLOAD => self.close(),
            EventType::QUERY | EventType::MARIADB_QUERY_COMPRESSED | EventType::EXECUTE_LOAD_QUERY => {
                self.query(event)
            }
            EventType::FORMAT_DESCRIPTION
            | EventType::PREVIOUS_GTIDS
            | EventType::ROTATE
            | EventType::STOP
            | EventType::MARIADB_GTID_LIST
            | EventType::MARIADB_BINLOG_CHECKPOINT => {
                // None of these can stand inside of a transaction; whatever was open never became whole.
                self.state = TrackerState::Outside;
                EventPlace::Outside
            }
            _ if self.state == TrackerState::Outside => EventPlace::Outside,
            _ => EventPlace::Inside,
        }
    }

    fn open(&mut self, state: TrackerState) -> EventPlace {
        self.state = state;
        EventPlace::First
    }

    fn close(&mut self) -> EventPlace {
        self.state = TrackerState::Outside;
        EventPlace::Last
    }

    fn query(&mut self, event: &RawEvent<'_>) -> EventPlace {
        let verb =
            if event.header.event_type == EventType::QUERY { Verb::of(event.body) } else { Verb::Other };
        match (self.state, verb) {
            // A file without GTIDs: BEGIN opens, anything else is whole by itself.
            (TrackerState::Outside, Verb::Begin) => self.open(TrackerState::Body),
            (TrackerState::Opened, Verb::Begin) => {
                self.state = TrackerState::Body;
                EventPlace::Inside
            }
            (TrackerState::Body, Verb::End)
            | (TrackerState::Outside | TrackerState::Opened | TrackerState::Standalone, _) => self.close(),
            (TrackerState::Body, _) => EventPlace::Inside,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Begin,
    End,
    Other,
}

impl Verb {
    fn of(body: &[u8]) -> Verb {
        let Ok(Query { sql, .. }) = Query::decode(body) else { return Verb::Other };
        let is = |words: &[u8]| sql.eq_ignore_ascii_case(words);
        if is(b"BEGIN") || sql.get(..9).is_some_and(|head| head.eq_ignore_ascii_case(b"XA START ")) {
            Verb::Begin
        } else if is(b"COMMIT") || is(b"ROLLBACK") {
            Verb::End
        } else {
            Verb::Other
        }
    }
}
