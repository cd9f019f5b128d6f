//! Events in MariaDB's form. In a log of MariaDB's dialect the GTID event stands for BEGIN and XA START, the text of a
//! row statement is an ANNOTATE_ROWS event, and status variables that MariaDB does not know are left out, because they
//! end its reading of the block.
//!
//! All generators of events produce MySQL's form; the trx cache converts it here. Called by sessions and replica
//! workers.

use super::{CacheError, TrxCache};
use omnibus_format::EventType;
use omnibus_format::events::{Query, StatusVars, XaPrepare};
use omnibus_format::header::FLAG_IGNORABLE;

/// The opening of a group of events that is not among its cached events, because it is known only at the group's end or
/// is part of the GTID event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// The body of the QUERY event that follows the GTID event, in MySQL's dialect: XA START, or BEGIN if the branch was
    /// committed in one phase.
    Statement(Box<[u8]>),
    /// BEGIN as part of MariaDB's GTID event, like the following ones.
    Transaction,
    /// XA START; the xid in the form of the GTID event, known once the branch is prepared.
    Branch(Box<[u8]>),
    /// XA COMMIT or XA ROLLBACK of a prepared branch, which is the whole group. A replica does not begin with it before
    /// it has prepared the branch.
    BranchEnd(Box<[u8]>),
}

impl TrxCache {
    /// Appends one event in MariaDB's form.
    pub(super) fn append_for_mariadb(
        &mut self,
        event_type: u8,
        flags: u16,
        body: &[u8],
    ) -> Result<(), CacheError> {
        match EventType(event_type) {
            EventType::QUERY => self.append_query(flags, body),
            EventType::ROWS_QUERY => {
                // Its first byte is a length that nobody reads.
                let text = body.get(1..).unwrap_or_default();
                self.append_as_is(EventType::MARIADB_ANNOTATE_ROWS.0, flags & !FLAG_IGNORABLE, text)
            }
            EventType::XA_PREPARE => {
                let Ok(event) = XaPrepare::decode(body) else {
                    return self.append_as_is(event_type, flags, body);
                };
                self.opening = Some(Opening::Branch(xid(&event)));
                self.append_as_is(event_type, flags, body)
            }
            _ => self.append_as_is(event_type, flags, body),
        }
    }

    fn append_query(&mut self, flags: u16, body: &[u8]) -> Result<(), CacheError> {
        let kind = EventType::QUERY.0;
        let Ok(query) = Query::decode(body) else { return self.append_as_is(kind, flags, body) };
        if self.events == 0 && self.opening.is_none() {
            if query.sql == b"BEGIN" {
                self.opening = Some(Opening::Transaction);
                return Ok(());
            }
            if query.sql.starts_with(b"XA START ") {
                self.opening = Some(Opening::Branch(Box::default()));
                return Ok(());
            }
        }
        if let Some(xid) = ended_branch(query.sql) {
            self.opening = Some(Opening::BranchEnd(xid));
        }
        match without_unknown(query.status) {
            None => self.append_as_is(kind, flags, body),
            Some(status) => {
                let mut known = Vec::with_capacity(body.len());
                Query { status: &status, ..query }.encode(&mut known);
                self.append_as_is(kind, flags, &known)
            }
        }
    }
}

impl TrxCache {
    /// Keeps a QUERY event that is XA START until it is known how the branch ends. Returns whether it is one.
    pub(super) fn keep_opening(&mut self, body: &[u8]) -> bool {
        let start = Query::decode(body).is_ok_and(|query| query.sql.starts_with(b"XA START "));
        if start {
            self.opening = Some(Opening::Statement(body.into()));
        }
        start
    }

    /// Records that the branch is committed in one phase, and so is a transaction like any other. MariaDB's servers and
    /// tools know no other form of it.
    pub fn open_as_transaction(&mut self) {
        self.opening = match self.opening.take() {
            Some(Opening::Statement(body)) => {
                let mut begin = Vec::with_capacity(body.len());
                if let Ok(query) = Query::decode(&body) {
                    Query { sql: b"BEGIN", ..query }.encode(&mut begin);
                }
                Some(Opening::Statement(begin.into()))
            }
            Some(Opening::Branch(_)) => Some(Opening::Transaction),
            other => other,
        };
    }
}

/// Returns the status block without the variables that MariaDB does not know; `None` if there are none.
fn without_unknown(status: &[u8]) -> Option<Vec<u8>> {
    let vars = StatusVars::decode(status).ok()?;
    let known = StatusVars {
        // MariaDB has the fraction of the time under a number of its own.
        microseconds: None,
        mariadb_hrnow: vars.mariadb_hrnow.or(vars.microseconds),
        explicit_defaults_for_timestamp: None,
        ddl_xid: None,
        default_collation_for_utf8mb4: None,
        sql_require_primary_key: None,
        default_table_encryption: None,
        ..vars.clone()
    };
    let mut block = Vec::new();
    (known != vars).then(|| known.encode(&mut block))?;
    Some(block)
}

/// Returns the branch that `XA COMMIT X'67',X'62',1` or `XA ROLLBACK` ends.
fn ended_branch(sql: &[u8]) -> Option<Box<[u8]>> {
    let name = sql.strip_prefix(b"XA COMMIT ").or_else(|| sql.strip_prefix(b"XA ROLLBACK "))?;
    let mut parts = std::str::from_utf8(name).ok()?.split(',');
    let mut hex = || {
        let digits = parts.next()?.strip_prefix("X'")?.strip_suffix('\'')?;
        let pairs = (0..digits.len()).step_by(2);
        pairs.map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()).collect::<Option<Vec<u8>>>()
    };
    let (gtrid, bqual) = (hex()?, hex()?);
    let format_id = parts.next()?.parse().ok()?;
    Some(xid(&XaPrepare { one_phase: false, format_id, gtrid: &gtrid, bqual: &bqual }))
}

/// Encodes an xid as in MariaDB's GTID event.
fn xid(event: &XaPrepare<'_>) -> Box<[u8]> {
    let mut bytes = Vec::with_capacity(6 + event.gtrid.len() + event.bqual.len());
    bytes.extend_from_slice(&event.format_id.to_le_bytes());
    bytes.push(event.gtrid.len() as u8);
    bytes.push(event.bqual.len() as u8);
    bytes.extend_from_slice(event.gtrid);
    bytes.extend_from_slice(event.bqual);
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::ended_branch;

    #[test]
    fn the_branch_that_a_statement_ends() {
        assert_eq!(ended_branch(b"XA COMMIT X'78',X'',1").as_deref(), Some(&b"\x01\0\0\0\x01\0x"[..]));
        assert_eq!(
            ended_branch(b"XA ROLLBACK X'0a',X'62',258").as_deref(),
            Some(&b"\x02\x01\0\0\x01\x01\nb"[..])
        );
        for other in [&b"XA START X'78',X'',1"[..], b"XA COMMIT", b"XA COMMIT X'7',X'',1", b"XA COMMIT \xff"]
        {
            assert_eq!(ended_branch(other), None);
        }
    }
}
