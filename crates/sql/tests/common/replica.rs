//! A replica in a test: what a source logged, event by event.

use super::{Client, TestPort};
use omnibus_commit::{ReplayEvent, Ticket};
use omnibus_format::{EventHeader, EventType};
use omnibus_replication::changes::{ApplyError, ApplyTarget, EventDecoder, Position, Step};
use omnibus_sql::apply::{Applier, ApplySettings, stored_position};
use omnibus_sql::{Database, KillFlag, SqlSession};
use std::sync::Arc;

/// A database that another one's changes are applied to.
pub struct Replica {
    pub port: Arc<TestPort>,
    pub database: Arc<Database>,
    pub client: Client,
    pub applier: Applier,
    pub decoder: EventDecoder,
    pub fed: usize,
}

pub fn replica(settings: ApplySettings) -> Replica {
    let port = TestPort::new();
    let database = Database::open(port.clone()).unwrap();
    let session = SqlSession::new(database.clone(), 900, Arc::new(KillFlag::default()));
    let client = Client::new(&database);
    let applier = Applier::new(session, settings);
    Replica { port, database, client, applier, decoder: EventDecoder::default(), fed: 0 }
}

pub fn header(event_type: EventType) -> EventHeader {
    EventHeader { timestamp: 1_700_000_000, event_type, server_id: 77, size: 0, log_pos: 0, flags: 0 }
}

impl Replica {
    pub fn event(&mut self, kind: EventType, body: &[u8]) -> Result<Step<Ticket>, ApplyError> {
        let position = Position { channel: "ch".into(), state: self.fed.to_le_bytes().to_vec() };
        self.decoder.apply(&header(kind), body, &mut self.applier, Some(&position)).inspect_err(|_| {
            self.decoder.reset();
            self.applier.rollback();
        })
    }

    pub fn transaction(&mut self, events: &[ReplayEvent]) -> Result<(), ApplyError> {
        self.fed += 1;
        for event in events {
            if let Step::Committed(ticket) = self.event(event.event_type, &event.body)? {
                ticket.wait().unwrap();
            }
        }
        assert!(!self.decoder.in_transaction());
        Ok(())
    }

    /// Everything that `source` has logged since `from`.
    pub fn catch_up(&mut self, source: &TestPort, from: usize) -> Result<(), ApplyError> {
        let log: Vec<_> = source.log.lock().iter().skip(from).map(|(_, on, e)| (*on, e.clone())).collect();
        for (logged, events) in log {
            if logged {
                self.transaction(&events)?;
            }
        }
        Ok(())
    }

    pub fn position(&self) -> Option<usize> {
        let state = stored_position(&self.database, "ch").unwrap()?;
        Some(usize::from_le_bytes(state.try_into().unwrap()))
    }
}
