//! A server's log as events with their places in its files.
//!
//! Asks as `mysqlbinlog` does: not as a replica, so nothing is registered, and the server ends the stream at its log's end
//! unless it is asked with a server id. Events are checked before they are given; a file name that a server says is never more
//! than a name here. A connection that is lost is an error of [`LogStream::next`]; [`LogStream::reopen`] goes on behind the last
//! event. Blocking; called by `omnibus binlog`, and by what archives a log or streams its changes.

use super::connection::{Connection, Endpoint};
use super::dump::{DumpRequest, DumpStart};
use super::error::ClientError;
use super::introduce::Reader;
use omnibus_format::events::{FormatDescription, Rotate};
use omnibus_format::header::FLAG_ARTIFICIAL;
use omnibus_format::scan::{ScanErrorKind, parse_event};
use omnibus_format::{Checksum, EventType, ScanRules};

/// Whom to ask, and as whom.
#[derive(Clone, Debug)]
pub struct LogSource {
    /// Where the server is and how to get in.
    pub endpoint: Endpoint,
    /// Go on without TLS where the server has none.
    pub may_be_plain: bool,
    /// What SHOW PROCESSLIST and the connection's attributes call us.
    pub program: &'static str,
    /// What is wanted.
    pub reader: Reader,
    /// 0: the stream ends where the log does. Any other follows it; no replica may have it.
    pub server_id: u32,
}

/// What a stream says next.
#[derive(Debug)]
pub enum Said {
    /// An event of the file: its offset, and all its bytes.
    Event(u64, Vec<u8>),
    /// What follows is from another file, the one that [`LogStream::file`] names now.
    File,
    /// Nothing that is in a file: the server is there, and has nothing more for now.
    Nothing,
    /// The log's end.
    End,
}

/// Why a stream does not go on.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The server, or the way to it.
    #[error(transparent)]
    Source(#[from] ClientError),
    /// What came is no whole event.
    #[error("{file} is damaged at offset {offset}: {what}")]
    Damage {
        /// The server's file.
        file: String,
        /// Where in it.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
}

impl LogSource {
    /// A connection that asks questions.
    ///
    /// # Errors
    /// No way there, or not let in.
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
        connection.start_dump(&DumpRequest {
            server_id: self.server_id,
            start: DumpStart::File { file: file.to_owned(), position },
            annotate: true,
            semi_sync: false,
        })?;
        Ok((connection, ScanRules { checksum, verify_position: false, ..ScanRules::default() }))
    }
}

/// See the module.
pub struct LogStream {
    source: LogSource,
    connection: Connection,
    /// It was asked for again: the file's head has been seen.
    again: bool,
    rules: ScanRules,
    file: String,
    position: u64,
}

impl LogStream {
    /// Begins with the event at `position` of `file`; 4 is the first one.
    ///
    /// # Errors
    /// The server's, or of the way to it.
    pub fn open(source: LogSource, file: &str, position: u64) -> Result<LogStream, ClientError> {
        let (connection, rules) = source.dump(file, position)?;
        Ok(LogStream { source, connection, again: false, rules, file: file.to_owned(), position })
    }

    /// Asks once more, on a new connection, for what is behind the last event.
    ///
    /// # Errors
    /// As [`LogStream::open`]; [`ClientError::may_pass`] says whether to try again.
    pub fn reopen(&mut self) -> Result<(), ClientError> {
        (self.connection, self.rules) = self.source.dump(&self.file, self.position)?;
        self.again = true;
        Ok(())
    }

    /// The file that the events are from.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Where the last event ended.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Whether nothing more has come yet: [`LogStream::next`] would wait.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.connection.has_packet()
    }

    /// How events that were given are to be parsed: they were checked when they came.
    #[must_use]
    pub fn rules(&self) -> ScanRules {
        ScanRules { verify_checksum: false, ..self.rules }
    }

    /// Damage that a reader of the events has found.
    #[must_use]
    pub fn damage(&self, what: String) -> StreamError {
        StreamError::Damage { file: self.file.clone(), offset: self.position, what }
    }

    /// What comes next. Waits, at most as long as the endpoint's silence may last.
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

/// Whether a source repeats an event of the file's beginning, without a position, for a start further behind.
fn is_head(kind: EventType) -> bool {
    matches!(
        kind,
        EventType::FORMAT_DESCRIPTION
            | EventType::PREVIOUS_GTIDS
            | EventType::MARIADB_GTID_LIST
            | EventType::MARIADB_START_ENCRYPTION
    )
}
