//! OK, ERR and EOF packets, both directions.

use crate::buf::{DecodeError, Reader, put_lenenc, put_lenenc_bytes};
use crate::consts::{Capability, Status};
use crate::session_state::StateChange;

/// A statement succeeded without rows, or its rows have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OkPacket<'a> {
    /// Rows changed.
    pub affected: u64,
    /// First generated AUTO_INCREMENT value.
    pub last_insert_id: u64,
    /// Session status. `SESSION_STATE_CHANGED` is set by the encoder.
    pub status: Status,
    /// Number of warnings.
    pub warnings: u16,
    /// Text for people, such as `Rows matched: 1  Changed: 1  Warnings: 0`.
    pub info: &'a [u8],
    /// Session state that changed, if the client asked for it.
    pub changes: &'a [StateChange<'a>],
}

impl<'a> OkPacket<'a> {
    /// Appends the payload. `end_of_rows` gives it the EOF header, as CLIENT_DEPRECATE_EOF wants.
    pub fn encode(&self, out: &mut Vec<u8>, caps: Capability, end_of_rows: bool) {
        out.push(if end_of_rows { 0xFE } else { 0x00 });
        put_lenenc(out, self.affected);
        put_lenenc(out, self.last_insert_id);
        let track = caps.has(Capability::SESSION_TRACK);
        let changed = track && !self.changes.is_empty();
        let status = if changed { self.status.with(Status::SESSION_STATE_CHANGED) } else { self.status };
        out.extend_from_slice(&status.0.to_le_bytes());
        out.extend_from_slice(&self.warnings.to_le_bytes());
        // With its length whatever the client asked for: all servers do so, and all clients expect it.
        if changed || !self.info.is_empty() {
            put_lenenc_bytes(out, self.info);
        }
        if changed {
            let mut state = Vec::new();
            for change in self.changes {
                change.encode(&mut state);
            }
            put_lenenc_bytes(out, &state);
        }
    }

    /// Reads the payload; session state is skipped.
    pub fn decode(payload: &'a [u8], _: Capability) -> Result<OkPacket<'a>, DecodeError> {
        let mut r = Reader::new(payload);
        if !matches!(r.u8("OK header")?, 0x00 | 0xFE) {
            return Err(DecodeError::Malformed("OK header"));
        }
        let affected = r.lenenc("affected rows")?;
        let last_insert_id = r.lenenc("last insert id")?;
        let status = Status(r.u16("status")?);
        let warnings = r.u16("warnings")?;
        let info = if r.is_empty() { &[] } else { r.lenenc_bytes("info")? };
        Ok(OkPacket { affected, last_insert_id, status, warnings, info, changes: &[] })
    }
}

/// A statement failed, or the connection is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrPacket<'a> {
    /// MySQL error number.
    pub code: u16,
    /// SQLSTATE.
    pub state: [u8; 5],
    /// The error's text.
    pub message: std::borrow::Cow<'a, [u8]>,
}

/// The protocol's limit for a message, `MYSQL_ERRMSG_SIZE`.
const MAX_MESSAGE: usize = 511;

impl<'a> ErrPacket<'a> {
    /// Appends the payload. Before the login is read a client has shown no capabilities; SQLSTATE is
    /// left out then, as clients expect.
    pub fn encode(&self, out: &mut Vec<u8>, caps: Capability) {
        out.push(0xFF);
        out.extend_from_slice(&self.code.to_le_bytes());
        if caps.has(Capability::PROTOCOL_41) {
            out.push(b'#');
            out.extend_from_slice(&self.state);
        }
        out.extend_from_slice(truncate_utf8(&self.message, MAX_MESSAGE));
    }

    /// Reads the payload.
    pub fn decode(payload: &'a [u8]) -> Result<ErrPacket<'a>, DecodeError> {
        let mut r = Reader::new(payload);
        if r.u8("ERR header")? != 0xFF {
            return Err(DecodeError::Malformed("ERR header"));
        }
        let code = r.u16("error number")?;
        let mut state = *b"HY000";
        if r.rest().first() == Some(&b'#') {
            r.u8("SQLSTATE marker")?;
            state.copy_from_slice(r.take(5, "SQLSTATE")?);
        }
        Ok(ErrPacket { code, state, message: r.take_rest().into() })
    }
}

/// The longest prefix of at most `max` bytes that does not end inside a UTF-8 character.
fn truncate_utf8(s: &[u8], max: usize) -> &[u8] {
    if s.len() <= max {
        return s;
    }
    let mut n = max;
    while n > 0 && s[n] & 0xC0 == 0x80 {
        n -= 1;
    }
    &s[..n]
}

/// Appends an EOF packet's payload, for clients without CLIENT_DEPRECATE_EOF.
pub fn encode_eof(out: &mut Vec<u8>, warnings: u16, status: Status) {
    out.push(0xFE);
    out.extend_from_slice(&warnings.to_le_bytes());
    out.extend_from_slice(&status.0.to_le_bytes());
}

/// Returns whether a payload ends a sequence of rows or columns.
#[must_use]
pub fn is_eof(payload: &[u8], caps: Capability) -> bool {
    let limit = if caps.has(Capability::DEPRECATE_EOF) { crate::frame::MAX_FRAME } else { 9 };
    payload.first() == Some(&0xFE) && payload.len() < limit
}
