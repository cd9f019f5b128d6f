//! A server's log as events with their positions in its files.
//!
//! It asks as `mysqlbinlog` does: not as a replica, so nothing is registered, and the server ends the stream at its
//! log's end unless it is asked with a server id. Events are checked before they are returned; a file name from a
//! server is never used as a path. A lost connection is an error of [`LogStream::next`]; [`LogStream::reopen`]
//! continues behind the last event. Blocking; called by `omnibus binlog`, and by programs that archive a log or stream
//! its changes.

use super::connection::{Connection, Endpoint};
use super::dump::{DumpOptions, DumpStart};
use super::error::ClientError;
use super::introduce::Reader;
use omnibus_format::events::{FormatDescription, Rotate};
use omnibus_format::header::FLAG_ARTIFICIAL;
use omnibus_format::scan::{ScanErrorKind, parse_event};
use omnibus_format::{Checksum, EventType, ScanRules};

/// The server to ask, and the identity to use.
#[derive(Clone, Debug)]
pub struct LogSource {
    /// The server's address, and the credentials for it.
    pub endpoint: Endpoint,
    /// Continue without TLS if the server has none.
    pub may_be_plain: bool,
    /// The program's name in SHOW PROCESSLIST and the connection's attributes.
    pub program: &'static str,
    /// The settings of the reader.
    pub reader: Reader,
    /// With 0 the stream ends at the log's end. With another id, which no replica may have, it follows the log.
    pub server_id: u32,
}

/// One step of a stream.
#[derive(Debug)]
pub enum Said {
    /// An event of the file: its offset and all its bytes.
    Event(u64, Vec<u8>),
    /// The following events are from another file, which [`LogStream::file`] now returns.
    File,
    /// A packet that is in no file: the server is alive and has nothing more for now.
    Nothing,
    /// The end of the log.
    End,
}

/// The reason why a stream ended.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The server's or the connection's error.
    #[error(transparent)]
    Source(#[from] ClientError),
    /// The received bytes are not a whole event.
    #[error("{file} is damaged at offset {offset}: {what}")]
    Damage {
        /// The server's file.
        file: String,
        /// The offset in it.
        offset: u64,
        /// The kind of damage.
        what: String,
    },
}

impl LogSource {
    /// Opens a connection for queries.
    ///
    /// # Errors
    /// The server cannot be reached or refuses the login.
    pub fn connect(&self) -> Result<Connection, ClientError> {
        let attributes = [("program_name", self.program), ("_client_role", "binary_log_listener")];
        match Connection::open(&self.endpoint, &attributes, &|| false, drop) {
            Err(ClientError::Tls(_)) if self.may_be_plain => {
                let mut plain = self.endpoint.clone();
                plain.tls.required = false;
                Connection::open(&plain, &attributes, &|| false, drop)
            }
            other => other,
        }
    }

    fn dump(&self, file: &str, position: u64) -> Result<(Connection, ScanRules), ClientError> {
        let mut connection = self.connect()?;
        let checksum = connection.introduce_reader(self.reader)?;
        connection.start_dump(&DumpOptions {
            server_id: self.server_id,
            start: DumpStart::File { file: file.to_owned(), position },
            annotate: true,
            semi_sync: false,
        })?;
        Ok((connection, ScanRules { checksum, verify_position: false, ..ScanRules::default() }))
    }
}

/// A stream of a server's log; see the module.
pub struct LogStream {
    source: LogSource,
    connection: Connection,
    /// The dump is a repeated one: the file's head has been read before.
    again: bool,
    rules: ScanRules,
    file: String,
    position: u64,
}

impl LogStream {
    /// Opens a stream that begins with the event at `position` of `file`; 4 is the first one.
    ///
    /// # Errors
    /// The server's or the connection's.
    pub fn open(source: LogSource, file: &str, position: u64) -> Result<LogStream, ClientError> {
        let (connection, rules) = source.dump(file, position)?;
        Ok(LogStream { source, connection, again: false, rules, file: file.to_owned(), position })
    }

    /// Requests the dump again, on a new connection, from behind the last event.
    ///
    /// # Errors
    /// As [`LogStream::open`]; [`ClientError::may_pass`] says whether to try again.
    pub fn reopen(&mut self) -> Result<(), ClientError> {
        (self.connection, self.rules) = self.source.dump(&self.file, self.position)?;
        self.again = true;
        Ok(())
    }

    /// The name of the file that the events are from.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The offset behind the last event.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns whether no further packet has arrived, so that [`LogStream::next`] would wait.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.connection.has_packet()
    }

    /// The rules for parsing the returned events again: they were checked when they arrived.
    #[must_use]
    pub fn rules(&self) -> ScanRules {
        ScanRules { verify_checksum: false, ..self.rules }
    }

    /// Creates the error for damage that a reader of the events has found.
    #[must_use]
    pub fn damage(&self, what: String) -> StreamError {
        StreamError::Damage { file: self.file.clone(), offset: self.position, what }
    }

    /// Reads the next step. Waits, at most as long as the endpoint's maximum silence.
    ///
    /// # Errors
    /// The connection is lost or refused, or an event is damaged.
    // Not an iterator: it goes on after some errors.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Said, StreamError> {
        let bytes = match self.connection.next_event(false) {
            Ok(packet) => packet.event.to_vec(),
            Err(ClientError::Ended) if self.source.server_id == 0 => return Ok(Said::End),
            Err(error) => return Err(error.into()),
        };
        let event = match parse_event(&bytes, 0, &self.rules) {
            Ok(Some(event)) if event.bytes.len() == bytes.len() => event,
            Ok(_) => return Err(self.damage("an event that is not as long as it says".into())),
            Err(error) if matches!(error.kind, ScanErrorKind::BadChecksum { .. }) => {
                return Err(self.damage("a wrong checksum".into()));
            }
            Err(error) => return Err(self.damage(error.kind.to_string())),
        };
        let header = event.header;
        match header.event_type {
            EventType::HEARTBEAT | EventType::HEARTBEAT_V2 => return Ok(Said::Nothing),
            EventType::ROTATE if header.flags & FLAG_ARTIFICIAL != 0 || header.log_pos == 0 => {
                let rotate = Rotate::decode(event.body).map_err(|error| self.damage(error.to_string()))?;
                let name = String::from_utf8_lossy(rotate.file).into_owned();
                self.position = rotate.position;
                if self.file == name {
                    return Ok(Said::Nothing);
                }
                self.file = name;
                return Ok(Said::File);
            }
            EventType::FORMAT_DESCRIPTION => {
                let found = FormatDescription::checksum_of_event(event.bytes);
                self.rules.checksum = found.ok().flatten().unwrap_or(Checksum::None);
                let format = FormatDescription::decode(event.body);
                self.rules.zero_position = format.is_ok_and(|format| format.leaves_out_positions());
            }
            // Made for us, in no file.
            _ if header.flags & FLAG_ARTIFICIAL != 0 => return Ok(Said::Nothing),
            _ => {}
        }
        if header.log_pos == 0 && self.rules.zero_position && !is_head(header.event_type) {
            self.position += u64::from(header.size);
            return Ok(Said::Event(self.position - u64::from(header.size), bytes));
        }
        if header.log_pos == 0 && self.again {
            return Ok(Said::Nothing);
        }
        if header.log_pos == 0 {
            // A file's head, repeated for a start behind it.
            return Ok(Said::Event(4, bytes));
        }
        // The header has the lower 32 bits.
        let mut end = self.position & !0xffff_ffff | u64::from(header.log_pos);
        if end < self.position {
            end += 1 << 32;
        }
        self.position = end;
        Ok(Said::Event(end - u64::from(header.size), bytes))
    }
}

/// Returns whether a source repeats events of this type from the file's head, without a position, for a start further
/// behind.
fn is_head(kind: EventType) -> bool {
    matches!(
        kind,
        EventType::FORMAT_DESCRIPTION
            | EventType::PREVIOUS_GTIDS
            | EventType::MARIADB_GTID_LIST
            | EventType::MARIADB_START_ENCRYPTION
    )
}
