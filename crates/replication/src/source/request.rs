//! The requests that begin a stream: COM_REGISTER_SLAVE, COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID, without their first
//! byte.
//!
//! Bounds-checked; a request never allocates more than its own length (WIRE-1).

use omnibus_format::cursor::Reader;
use omnibus_format::events::PreviousGtids;
use omnibus_format::{DecodeError, GtidSet};

/// Do not wait at the end: EOF.
pub const FLAG_NON_BLOCKING: u16 = 0x01;
/// MariaDB: send ANNOTATE_ROWS. MySQL: send HEARTBEAT version 2.
pub const FLAG_ANNOTATE_OR_HEARTBEAT_V2: u16 = 0x02;
/// MySQL: a GTID set follows.
pub const FLAG_THROUGH_GTID: u16 = 0x04;

/// COM_REGISTER_SLAVE: the properties that SHOW REPLICAS shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    /// The replica's `server_id`.
    pub server_id: u32,
    /// Its `report_host`.
    pub host: String,
    /// Its `report_user`.
    pub user: String,
    /// Its `report_port`.
    pub port: u16,
    /// The `server_id` of its source, as far as it knows.
    pub source_id: u32,
}

impl Registration {
    /// Decodes the payload. The password is skipped.
    ///
    /// # Errors
    /// The payload is truncated.
    pub fn decode(payload: &[u8]) -> Result<Registration, DecodeError> {
        let mut r = Reader::new(payload);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let server_id = r.u32("server id")?;
        let host = text(r.short_bytes("host")?);
        let user = text(r.short_bytes("user")?);
        r.short_bytes("password")?;
        let port = r.u16("port")?;
        r.u32("rank")?;
        let source_id = r.u32("source id")?;
        Ok(Registration { server_id, host, user, port, source_id })
    }
}

/// The start of the log that a client wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpRequest {
    /// The file's name; empty is the oldest.
    pub file: String,
    /// Offset of an event in it.
    pub position: u64,
    /// `FLAG_*`.
    pub flags: u16,
    /// The client's `server_id`; 0 from tools that do not follow the log.
    pub server_id: u32,
    /// The transactions that the client has, if it asks by GTID.
    pub executed: Option<GtidSet>,
}

impl DumpRequest {
    /// Decodes COM_BINLOG_DUMP.
    ///
    /// # Errors
    /// The payload is truncated.
    pub fn decode(payload: &[u8]) -> Result<DumpRequest, DecodeError> {
        let mut r = Reader::new(payload);
        let position = u64::from(r.u32("position")?);
        let flags = r.u16("flags")?;
        let server_id = r.u32("server id")?;
        let file = file_name(r.rest());
        Ok(DumpRequest { file, position, flags, server_id, executed: None })
    }

    /// Decodes COM_BINLOG_DUMP_GTID. Without [`FLAG_THROUGH_GTID`] some clients omit the set; most send it regardless.
    ///
    /// # Errors
    /// The payload is truncated, or the set is malformed.
    pub fn decode_gtid(payload: &[u8]) -> Result<DumpRequest, DecodeError> {
        let mut r = Reader::new(payload);
        let flags = r.u16("flags")?;
        let server_id = r.u32("server id")?;
        let len = r.u32("length of the file name")?;
        let len = usize::try_from(len).map_err(|_| r.error("length of the file name"))?;
        let file = file_name(r.take(len, "file name")?);
        let position = r.u64("position")?;
        let executed = if r.is_empty() {
            GtidSet::new()
        } else {
            let len = r.u32("length of the GTID set")?;
            let len = usize::try_from(len).map_err(|_| r.error("length of the GTID set"))?;
            let bytes = r.take(len, "GTID set")?;
            if bytes.is_empty() { GtidSet::new() } else { PreviousGtids::decode(bytes)?.set }
        };
        Ok(DumpRequest { file, position, flags, server_id, executed: Some(executed) })
    }

    /// Returns whether the stream ends where the log ends.
    #[must_use]
    pub fn ends_at_end(&self) -> bool {
        self.flags & FLAG_NON_BLOCKING != 0 || self.server_id == 0
    }
}

/// The maximum length of a log file's name in bytes; the requested name is repeated in errors and in the server's log.
const LONGEST_NAME: usize = 512;

/// Decodes a file name. Some clients send the NUL that ends their string.
fn file_name(text: &[u8]) -> String {
    let text = text.split(|&byte| byte == 0).next().unwrap_or(text);
    String::from_utf8_lossy(&text[..text.len().min(LONGEST_NAME)]).into_owned()
}
