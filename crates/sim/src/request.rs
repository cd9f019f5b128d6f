//! Transactions of the simulation: a few rows of its own each, and one that all of them write; and what replay makes of them.

use crate::mutant::Mutant;
use crate::names::{LETTERS, PRIVATE, id_of, id_of_event};
use bytes::Bytes;
use omnibus_commit::{CommitRequest, Coordinator, Replay, ReplayEvent, Replayed};
use omnibus_engine::{CommitNo, SpaceId, WriteSet};
use omnibus_format::EventType;
use omnibus_format::events::{Query, RowsQuery, Xid};
use omnibus_sql::recover::Replayer;
use std::sync::Arc;

/// A transaction that a session wants.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) id: u64,
    /// Its rows, and one for each engine that all who write to it write. Their keys sort before all others.
    pub(crate) pairs: Arc<[(Bytes, Bytes)]>,
    /// Gets a GTID.
    pub(crate) logged: bool,
    /// Its number, which no other has since its server was started.
    pub(crate) xid: u64,
    /// Takes part in two phases.
    pub(crate) prepares: bool,
    /// Drops another transaction's rows, which are a space of their own.
    pub(crate) drops: Option<u64>,
}

/// In which engines a transaction has its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowEngines {
    Slot(usize),
    Both,
}

impl RowEngines {
    fn slot(self, row: usize) -> usize {
        match self {
            RowEngines::Slot(slot) => slot,
            RowEngines::Both => row % LETTERS.len(),
        }
    }
}

impl Wanted {
    /// Creates a transaction of a number of rows of about the given size in bytes.
    pub(crate) fn new(
        id: u64,
        place: RowEngines,
        rows: usize,
        row_bytes: usize,
        drops: Option<u64>,
    ) -> Wanted {
        let own = |row: usize| {
            let value = format!("{id}{}", "v".repeat(row_bytes));
            (Bytes::from(format!("{}{id:08}.{row}", LETTERS[place.slot(row)])), Bytes::from(value))
        };
        let shared =
            LETTERS.iter().enumerate().filter(|(slot, _)| (0..rows).any(|row| place.slot(row) == *slot));
        let shared =
            shared.map(|(_, letter)| (Bytes::from(format!("{letter}shared")), Bytes::from(id.to_string())));
        let dropped = drops.map(|id| {
            (Bytes::from(format!("{}space{id:08}", LETTERS[place.slot(0)])), Bytes::from("dropped"))
        });
        let pairs = (0..rows).map(own).chain(shared).chain(dropped).collect();
        Wanted { id, pairs, logged: true, xid: 0, prepares: false, drops }
    }

    /// Creates a request that the oracle knows by its number only.
    pub(crate) fn nothing(id: u64, logged: bool) -> Wanted {
        Wanted { id, pairs: Arc::default(), logged, xid: 0, prepares: false, drops: None }
    }

    fn writes(&self) -> WriteSet {
        let mut writes = WriteSet::default();
        self.pairs.iter().for_each(|(key, value)| writes.put(key.clone(), value.clone()));
        writes
    }

    /// Builds the commit request of a session. The error is one of its own events.
    pub(crate) fn request(&self, coordinator: &Coordinator) -> Result<CommitRequest, String> {
        let mut cache = coordinator.new_cache();
        cache.set_context(1_700_000_000, 7);
        let mut add = |kind: EventType, flags: u16, body: &[u8]| {
            cache.append_event(kind.0, flags, body).map_err(|error| error.to_string())
        };
        let mut body = Vec::new();
        if self.logged {
            let sql: &[u8] = b"BEGIN";
            Query { thread_id: 1, exec_time: 0, error_code: 0, status: &[], database: b"", sql }
                .encode(&mut body);
            add(EventType::QUERY, 0, &body)?;
            for (key, value) in &*self.pairs {
                body.clear();
                RowsQuery(&text(key, value)).encode(&mut body);
                add(EventType::ROWS_QUERY, 0x80, &body)?;
            }
            body.clear();
            Xid(self.xid).encode(&mut body);
            add(EventType::XID, 0, &body)?;
        } else {
            body.extend_from_slice(PRIVATE);
            for (key, value) in &*self.pairs {
                body.extend(text(key, value));
                body.push(b'\n');
            }
            add(EventType::IGNORABLE, 0x80, &body)?;
        }
        let at = 1_700_000_000_000_000 + self.id;
        let mut request = CommitRequest::new(cache, self.writes(), self.logged, at);
        request.xid = self.prepares.then_some(self.xid);
        if let Some(id) = self.drops {
            let engine = Arc::clone(coordinator.engine());
            let number = u32::try_from(id).unwrap_or(u32::MAX);
            let spaces = [0, 1].map(|slot| SpaceId::in_slot(slot, number));
            request.on_ordered =
                Some(Box::new(move |no| spaces.into_iter().for_each(|space| engine.drop_space(space, no))));
        }
        Ok(request)
    }
}

fn text(key: &[u8], value: &[u8]) -> Vec<u8> {
    [key, b"=", value].concat()
}

/// Turns events back into writes: those of transactions here, and those of SQL.
#[derive(Default)]
pub(crate) struct Reader {
    /// The part of the open transaction that has been passed.
    begun: (Option<u64>, WriteSet),
    sql: Option<Replayer>,
    mutant: Option<Mutant>,
}

impl Reader {
    pub(crate) fn new(sql: Option<Replayer>, mutant: Option<Mutant>) -> Reader {
        Reader { sql, mutant, ..Reader::default() }
    }

    /// Returns whether an event is one of those made here.
    fn is_ours(&self, event: &ReplayEvent) -> bool {
        match event.event_type {
            EventType::ROWS_QUERY | EventType::MARIADB_ANNOTATE_ROWS | EventType::IGNORABLE => {
                self.begun.0.is_some() || id_of_event(event.event_type, &event.body).is_some()
            }
            _ => false,
        }
    }

    /// Returns whether the event gets lost.
    fn loses(&self, event: &ReplayEvent) -> bool {
        match self.mutant {
            Some(Mutant::ReplayNoPrepare) => event.event_type == EventType::XA_PREPARE,
            Some(Mutant::ReplayNoEnd) => {
                event.event_type == EventType::QUERY && id_of_event(EventType::QUERY, &event.body).is_some()
            }
            _ => false,
        }
    }

    fn take(&mut self, event: &ReplayEvent) -> Result<(), String> {
        let (id, writes) = &mut self.begun;
        let mut take = |text: &[u8]| {
            let at = text.iter().position(|byte| *byte == b'=').ok_or("a row without a value")?;
            *id = id.or(id_of(&text[..at]));
            writes.put(Bytes::copy_from_slice(&text[..at]), Bytes::copy_from_slice(&text[at + 1..]));
            Ok::<(), String>(())
        };
        match event.event_type {
            EventType::ROWS_QUERY => {
                take(RowsQuery::decode(&event.body).map_err(|error| error.to_string())?.0)
            }
            EventType::MARIADB_ANNOTATE_ROWS => take(&event.body),
            _ => {
                let lines = event.body[PRIVATE.len()..].split(|byte| *byte == b'\n');
                lines.filter(|line| !line.is_empty()).try_for_each(take)
            }
        }
    }
}

impl Replay for Reader {
    fn transaction(&mut self, no: CommitNo, events: &[ReplayEvent]) -> Result<Replayed, String> {
        self.part(no, events)?;
        let (id, writes) = std::mem::take(&mut self.begun);
        match &mut self.sql {
            Some(sql) if id.is_none() => sql.transaction(no, &[]),
            Some(sql) => {
                sql.forget();
                Ok(Replayed::Writes(writes))
            }
            None => id.map(|_| Replayed::Writes(writes)).ok_or("a transaction without rows".to_owned()),
        }
    }

    fn part(&mut self, no: CommitNo, events: &[ReplayEvent]) -> Result<(), String> {
        let mut of_sql = Vec::new();
        for event in events {
            if self.is_ours(event) {
                self.take(event)?;
            } else if self.sql.is_some() && !self.loses(event) {
                of_sql.push(event.clone());
            }
        }
        match &mut self.sql {
            Some(sql) if self.begun.0.is_none() => sql.part(no, &of_sql),
            _ => Ok(()),
        }
    }

    fn forget(&mut self) {
        self.begun = Default::default();
        if let Some(sql) = &mut self.sql {
            sql.forget();
        }
    }
}
