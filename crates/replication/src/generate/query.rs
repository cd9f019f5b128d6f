//! QUERY events: BEGIN, COMMIT, DDL, XA; and the events that end a transaction: XID, XA_PREPARE.

use omnibus_format::EventType;
use omnibus_format::events::{Query, StatusVars, XaPrepare, Xid};
use omnibus_format::header::FLAG_SUPPRESS_USE;

use super::sink::EventSink;

/// The session state that QUERY carries, with its status variables encoded once; made anew when
/// one of the session's variables changes.
#[derive(Clone, Debug)]
pub struct QueryContext {
    /// Connection id.
    pub thread_id: u32,
    status: Vec<u8>,
    body: Vec<u8>,
}

impl QueryContext {
    /// Creates a context with these status variables; `catalog` is filled in if absent.
    pub fn new(thread_id: u32, vars: &StatusVars) -> Self {
        let mut vars = vars.clone();
        vars.flags2.get_or_insert(0);
        vars.catalog.get_or_insert_with(|| b"std".to_vec());
        let mut status = Vec::new();
        vars.encode(&mut status);
        Self { thread_id, status, body: Vec::new() }
    }

    fn send<S: EventSink>(
        &mut self,
        sink: &mut S,
        flags: u16,
        database: &[u8],
        sql: &[u8],
        extra: &[u8],
        error_code: u16,
    ) -> Result<(), S::Error> {
        self.body.clear();
        let plain = self.status.len();
        self.status.extend_from_slice(extra);
        let status = &self.status;
        Query { thread_id: self.thread_id, exec_time: 0, error_code, status, database, sql }
            .encode(&mut self.body);
        self.status.truncate(plain);
        sink.event(EventType::QUERY.0, flags, &self.body)
    }
}

/// QUERY "BEGIN": opens a transaction's events.
///
/// # Errors
/// The sink's error.
pub fn begin<S: EventSink>(
    context: &mut QueryContext,
    sink: &mut S,
    database: &[u8],
) -> Result<(), S::Error> {
    context.send(sink, FLAG_SUPPRESS_USE, database, b"BEGIN", &[], 0)
}

/// QUERY "COMMIT": closes a transaction of non-transactional changes; others end with `xid`.
///
/// # Errors
/// The sink's error.
pub fn commit<S: EventSink>(
    context: &mut QueryContext,
    sink: &mut S,
    database: &[u8],
) -> Result<(), S::Error> {
    context.send(sink, FLAG_SUPPRESS_USE, database, b"COMMIT", &[], 0)
}

/// QUERY with a statement of XA: `XA START`, `XA END`, `XA COMMIT` or `XA ROLLBACK` and a name.
///
/// # Errors
/// The sink's error.
pub fn xa<S: EventSink>(
    context: &mut QueryContext,
    sink: &mut S,
    database: &[u8],
    sql: &[u8],
) -> Result<(), S::Error> {
    context.send(sink, FLAG_SUPPRESS_USE, database, sql, &[], 0)
}

/// XA_PREPARE: closes the first phase of an XA transaction.
///
/// # Errors
/// The sink's error.
pub fn xa_prepare<S: EventSink>(sink: &mut S, event: &XaPrepare<'_>) -> Result<(), S::Error> {
    let mut body = Vec::new();
    event.encode(&mut body);
    sink.event(EventType::XA_PREPARE.0, 0, &body)
}

/// QUERY with a DDL statement, which is a transaction of its own. `ddl_xid` marks atomic DDL.
/// `database` is the session's current one (empty for none), `utf8mb4` its `default_collation_for_utf8mb4`, which a
/// server with another default must know.
///
/// # Errors
/// The sink's error.
pub fn ddl<S: EventSink>(
    context: &mut QueryContext,
    sink: &mut S,
    database: &[u8],
    sql: &[u8],
    ddl_xid: u64,
    utf8mb4: u16,
) -> Result<(), S::Error> {
    let mut extra = Vec::with_capacity(12);
    let own = StatusVars {
        ddl_xid: Some(ddl_xid),
        default_collation_for_utf8mb4: Some(utf8mb4),
        ..StatusVars::default()
    };
    own.encode(&mut extra);
    let flags = if database.is_empty() { FLAG_SUPPRESS_USE } else { 0 };
    context.send(sink, flags, database, sql, &extra, 0)
}

/// XID: closes a transaction.
///
/// # Errors
/// The sink's error.
pub fn xid<S: EventSink>(sink: &mut S, xid: u64) -> Result<(), S::Error> {
    sink.event(EventType::XID.0, 0, &Xid(xid).0.to_le_bytes())
}
