//! Pieces of the SQL that `sql` prints: which words begin and end transactions, events in base64, remarks.

use std::io::{self, Write};

use omnibus_format::header::HEADER_LEN;
use omnibus_format::{EventType, RawEvent};

/// Events that say nothing to another server.
pub(super) fn is_left_out(event: &RawEvent<'_>) -> bool {
    use EventType as E;
    matches!(
        event.header.event_type,
        E::IGNORABLE | E::PREVIOUS_GTIDS | E::MARIADB_GTID_LIST | E::MARIADB_BINLOG_CHECKPOINT | E::HEARTBEAT
    )
}

/// Returns whether a statement only begins (false) or ends (true) a transaction; it needs no database then.
pub(super) fn transaction_word(sql: &[u8]) -> Option<bool> {
    let is = |word: &[u8]| sql.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    if sql.eq_ignore_ascii_case(b"BEGIN") || is(b"XA START") || is(b"SAVEPOINT") || is(b"XA END") {
        return Some(false);
    }
    if is(b"ROLLBACK TO") {
        return Some(false);
    }
    let ends = sql.eq_ignore_ascii_case(b"COMMIT") || sql.eq_ignore_ascii_case(b"ROLLBACK");
    (ends || is(b"XA COMMIT") || is(b"XA ROLLBACK")).then_some(true)
}

/// The statement that made rows, as a remark.
pub(super) fn remark(sql: &[u8], out: &mut impl Write) -> io::Result<()> {
    for line in sql.split(|byte| *byte == b'\n') {
        out.write_all(b"#Q> ")?;
        out.write_all(line)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// The event with another type and body.
pub(super) fn with_body(event: &RawEvent<'_>, event_type: EventType, body: &[u8], checksum: bool) -> Vec<u8> {
    let mut bytes = event.bytes[..HEADER_LEN].to_vec();
    let size = (HEADER_LEN + body.len() + if checksum { 4 } else { 0 }) as u32;
    bytes[4] = event_type.0;
    bytes[9..13].copy_from_slice(&size.to_le_bytes());
    bytes.extend_from_slice(body);
    if checksum {
        let sum = omnibus_format::checksum::crc32(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
    }
    bytes
}

/// Lines of 76 digits.
pub(super) fn base64(bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
    out.write_all(&omnibus_value::base64::encode_lines(bytes))?;
    out.write_all(b"\n")
}
