//! Finds the beginnings and ends of transactions in a stream of events, without decoding the events between.
//!
//! The rules are those of all dialects: a GTID event (MySQL's, anonymous, MariaDB's) begins a transaction; servers
//! without them begin with BEGIN, or with a statement that commits by itself. XID, COMMIT, ROLLBACK and XA_PREPARE end
//! it; so does the statement of a group without BEGIN, and a compressed payload, which is a whole transaction. Called
//! by the replica's scheduler on its thread, and by the decoder.

use crate::model::TrxHeader;
use omnibus_format::events::{Gtid, MariadbGtidEvent};
use omnibus_format::header::{FLAG_IGNORABLE, FLAG_SKIP_REPLICATION};
use omnibus_format::{AnyGtid, DecodeError, EventHeader, EventType};

/// The place of an event in its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// First event of a transaction.
    Begin(TrxHeader),
    /// A statement that is a transaction by itself, without a GTID event before it.
    Single(TrxHeader),
    /// An event in the middle of a transaction.
    Inside,
    /// Its last event.
    End,
    /// An event outside of transactions: rotation, heartbeats, descriptions.
    Other,
}

/// Follows a stream of events. Start anew with [`Borders::default`] after a gap in it.
#[derive(Clone, Debug, Default)]
pub struct Borders {
    state: BorderState,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum BorderState {
    #[default]
    Outside,
    /// After a GTID event; BEGIN or a statement decides the kind of transaction.
    Announced,
    /// Inside a transaction that XID or COMMIT ends.
    Open,
    /// After events that belong to a coming statement (INTVAR and the like), without a GTID event.
    Leading,
}

impl Borders {
    /// Returns whether a transaction has begun that has not ended.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state != BorderState::Outside
    }

    /// Takes the next event. `body` excludes header and checksum.
    ///
    /// # Errors
    /// A GTID event cannot be decoded.
    pub fn classify(&mut self, header: &EventHeader, body: &[u8]) -> Result<Class, DecodeError> {
        use EventType as E;
        match header.event_type {
            E::GTID | E::ANONYMOUS_GTID | E::GTID_TAGGED => {
                self.state = BorderState::Announced;
                return Ok(Class::Begin(mysql_header(header, body)?));
            }
            E::MARIADB_GTID => {
                let trx = mariadb_header(header, body)?;
                self.state = if trx.standalone { BorderState::Announced } else { BorderState::Open };
                return Ok(Class::Begin(trx));
            }
            // Something else that was made to look like an end must not end half a transaction.
            E::XID if body.len() != 8 => return Err(DecodeError::new(body.len(), "XID of 8 bytes")),
            E::XID | E::XA_PREPARE | E::TRANSACTION_PAYLOAD => {
                self.state = BorderState::Outside;
                return Ok(Class::End);
            }
            E::QUERY | E::MARIADB_QUERY_COMPRESSED => return Ok(self.query(header, body)),
            // An incident stands where a transaction was lost, with its GTID if it has one.
            E::EXECUTE_LOAD_QUERY | E::EXEC_LOAD | E::LOAD | E::NEW_LOAD | E::INCIDENT => {
                return Ok(self.ends_group(header));
            }
            E::START_V3
            | E::STOP
            | E::ROTATE
            | E::SLAVE
            | E::FORMAT_DESCRIPTION
            | E::HEARTBEAT
            | E::HEARTBEAT_V2
            | E::PREVIOUS_GTIDS
            | E::MARIADB_BINLOG_CHECKPOINT
            | E::MARIADB_GTID_LIST
            | E::MARIADB_START_ENCRYPTION
            | E::TRANSACTION_CONTEXT
            | E::VIEW_CHANGE
            | E::IGNORABLE => return Ok(Class::Other),
            _ => {}
        }
        Ok(match self.state {
            BorderState::Outside if opens_by_itself(header.event_type) => {
                self.state = BorderState::Leading;
                Class::Begin(bare_header(header))
            }
            BorderState::Outside if header.flags & FLAG_IGNORABLE != 0 => Class::Other,
            // Passed over, it would be missed by nobody.
            BorderState::Outside => {
                return Err(DecodeError::new(4, "kind of event that stands between transactions"));
            }
            _ => Class::Inside,
        })
    }

    fn query(&mut self, header: &EventHeader, body: &[u8]) -> Class {
        // A compressed statement is long and thus none of these words.
        let text = match header.event_type {
            EventType::QUERY => query_text(body).unwrap_or_default(),
            _ => &[],
        };
        match Word::of(text) {
            Word::Begin => {
                let class = match self.state {
                    BorderState::Outside => Class::Begin(bare_header(header)),
                    _ => Class::Inside,
                };
                self.state = BorderState::Open;
                class
            }
            Word::End if self.state != BorderState::Outside => {
                self.state = BorderState::Outside;
                Class::End
            }
            _ => self.ends_group(header),
        }
    }

    /// Handles a statement, which ends its group unless a BEGIN came before.
    fn ends_group(&mut self, header: &EventHeader) -> Class {
        match self.state {
            BorderState::Open => Class::Inside,
            BorderState::Outside => Class::Single(TrxHeader { standalone: true, ..bare_header(header) }),
            BorderState::Announced | BorderState::Leading => {
                self.state = BorderState::Outside;
                Class::End
            }
        }
    }
}

/// Returns whether events of this type are a statement's context or file blocks, which may precede it in logs without
/// GTID events.
fn opens_by_itself(event_type: EventType) -> bool {
    use EventType as E;
    matches!(
        event_type,
        E::INTVAR
            | E::RAND
            | E::USER_VAR
            | E::BEGIN_LOAD_QUERY
            | E::APPEND_BLOCK
            | E::CREATE_FILE
            | E::TABLE_MAP
            | E::ROWS_QUERY
            | E::MARIADB_ANNOTATE_ROWS
    )
}

/// The role of a statement's text in its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// BEGIN, or XA START.
    Begin,
    /// COMMIT, ROLLBACK, or the second phase of XA.
    End,
    /// Any other.
    Other,
}

impl Word {
    pub(super) fn of(sql: &[u8]) -> Word {
        let is = |word: &[u8]| sql.eq_ignore_ascii_case(word);
        let starts =
            |word: &[u8]| sql.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
        match sql.first().map(u8::to_ascii_uppercase) {
            Some(b'B') if is(b"BEGIN") => Word::Begin,
            Some(b'S') if is(b"START TRANSACTION") => Word::Begin,
            Some(b'C') if is(b"COMMIT") => Word::End,
            Some(b'R') if is(b"ROLLBACK") => Word::End,
            Some(b'X') if starts(b"XA START ") || starts(b"XA BEGIN ") => Word::Begin,
            Some(b'X') if starts(b"XA COMMIT ") || starts(b"XA ROLLBACK ") => Word::End,
            _ => Word::Other,
        }
    }
}

/// Returns the statement in a QUERY event's body, without decoding the rest.
fn query_text(body: &[u8]) -> Option<&[u8]> {
    let database = usize::from(*body.get(8)?);
    let status = usize::from(u16::from_le_bytes([*body.get(11)?, *body.get(12)?]));
    body.get(13 + status + database + 1..)
}

fn bare_header(header: &EventHeader) -> TrxHeader {
    let skip = header.flags & FLAG_SKIP_REPLICATION != 0;
    TrxHeader { server_id: header.server_id, timestamp: header.timestamp, skip, ..TrxHeader::default() }
}

fn mysql_header(header: &EventHeader, body: &[u8]) -> Result<TrxHeader, DecodeError> {
    let gtid = Gtid::decode_as(header.event_type, body)?;
    let named = header.event_type != EventType::ANONYMOUS_GTID;
    let times = gtid.times.unwrap_or_default();
    Ok(TrxHeader {
        gtid: named.then_some(AnyGtid::Mysql { source: gtid.source(), gno: gtid.gno }),
        original_commit_us: times.original_commit_us,
        immediate_commit_us: times.immediate_commit_us,
        original_version: times.original_version,
        last_committed: gtid.last_committed,
        sequence_number: gtid.sequence_number,
        ..bare_header(header)
    })
}

fn mariadb_header(header: &EventHeader, body: &[u8]) -> Result<TrxHeader, DecodeError> {
    let event = MariadbGtidEvent::decode(body)?;
    let gtid = omnibus_format::events::MariadbGtid {
        domain: event.domain,
        server: header.server_id,
        sequence: event.sequence,
    };
    Ok(TrxHeader {
        gtid: Some(AnyGtid::Mariadb(gtid)),
        group_commit_id: event.commit_id,
        standalone: event.flags & MariadbGtidEvent::FLAG_STANDALONE != 0,
        alter: MariadbGtidEvent::alter_phase(body)?,
        ..bare_header(header)
    })
}

/// Returns the text of the XA START that a MariaDB GTID event stands for, if it does.
///
/// # Errors
/// The event is damaged.
pub fn mariadb_xa_start(body: &[u8]) -> Result<Option<Vec<u8>>, DecodeError> {
    if MariadbGtidEvent::decode(body)?.flags & MariadbGtidEvent::FLAG_PREPARED_XA == 0 {
        return Ok(None);
    }
    let Some((format, gtrid, bqual)) = MariadbGtidEvent::branch(body)? else { return Ok(None) };
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    Ok(Some(format!("XA START X'{}',X'{}',{format}", hex(gtrid), hex(bqual)).into_bytes()))
}
