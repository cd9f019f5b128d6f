//! Converts events of the log to the packets of one client: which are left out, changed and added.
//!
//! An event is sent as the bytes of the file, so the client's copy equals the log, and no checksum is computed anew.
//! Changed are: FORMAT_DESCRIPTION (not in use; without a position and a creation time if the stream starts behind it;
//! the checksum algorithm that the client gets), and all events for a client that wants no checksums. Added are
//! artificial ROTATEs, which name the file of the following events, and heartbeats. Left out are private events, whose
//! place is then a gap between end positions: clients take positions from the events that they get. Only MySQL's own
//! replicas add lengths up, so for them a gap is filled (`fill`). A MariaDB replica that is about to wait behind a gap
//! is told its position (`settle`); otherwise waiting for the source's position there would never end.
//!
//! A client that copies files (`@omnibus_whole_files`) gets every event unchanged.
//!
//! Pure. One per dump session, which calls it.

mod packets;

use super::block::{Block, BlockEvent};
use super::error::SourceError;
use super::filter::Filter;
use super::parts::Parts;
use super::peer::{Peer, WantedChecksum};
use super::request::{DumpRequest, FLAG_ANNOTATE_OR_HEARTBEAT_V2};
use omnibus_format::events::{Heartbeat, MariadbGtidList};
use omnibus_format::header::{FLAG_ARTIFICIAL, FLAG_IGNORABLE, FLAG_SKIP_REPLICATION, FLAGS_OFFSET};
use omnibus_format::private::PRIVATE_MAGIC;
use omnibus_format::{Checksum, EventType};
use omnibus_log::{FileNames, FileSeq, LogPosition};
use omnibus_wire::OutBuf;

/// The largest event in bytes that a client accepts: the maximum of `replica_max_allowed_packet`.
const MAX_EVENT: usize = 1 << 30;
/// The maximum length of a FORMAT_DESCRIPTION in bytes; those of real servers are far shorter.
const MAX_FORMAT: usize = 64 << 10;
/// GTID_LIST flag: START SLAVE UNTIL is fulfilled.
const UNTIL_REACHED: u8 = 1;
/// The first of the two bytes.
pub const SEMI_SYNC_MAGIC: u8 = 0xef;
/// Offset of the second byte: behind the frame's header, the packet's first byte and the first of the two.
const ASKS_AT: usize = 4 + 1 + 1;

/// Returns whether events of this type are between transactions.
fn ends_group(event_type: EventType) -> bool {
    matches!(
        event_type,
        EventType::FORMAT_DESCRIPTION
            | EventType::ROTATE
            | EventType::STOP
            | EventType::INCIDENT
            | EventType::PREVIOUS_GTIDS
            | EventType::MARIADB_GTID_LIST
    )
}

/// The stream of one client; see the module.
#[derive(Debug)]
pub struct Stream {
    names: FileNames,
    server_id: u32,
    wanted: WantedChecksum,
    /// The checksum algorithm of the events sent last.
    checksum: Checksum,
    file: FileSeq,
    position: u64,
    mariadb: bool,
    /// The log is in MariaDB's dialect.
    mariadb_log: bool,
    /// The client asked for the statements behind row events.
    annotate: bool,
    heartbeat_v2: bool,
    /// The client adds lengths up; see the module.
    counts_bytes: bool,
    /// The client copies files: nothing is left out.
    whole_files: bool,
    /// The last event was left out.
    gap: bool,
    filter: Filter,
    /// Each packet has the two bytes that request an acknowledgement, or not.
    semi_sync: bool,
    /// The offset of the last packet's second byte among the packets being collected.
    asks_at: Option<usize>,
    /// The position behind the last event of the log that was collected or sent. Events that are made for the client
    /// alone do not count: a replica that has applied everything is not behind them.
    real_end: LogPosition,
    /// Events marked with `skip_replication` are left out.
    skip_marked: bool,
    /// The present transaction is left out.
    skipping: bool,
    /// Transactions were left out since the last event that was sent.
    skipped: bool,
    /// The parts of the present block that are sent from it.
    parts: Parts,
    /// The event that the last block ended in.
    inside: Option<Inside>,
}

/// An event that is sent in pieces.
#[derive(Debug)]
struct Inside {
    /// File offset of its end.
    end: u64,
    /// The number of bytes still to come.
    left: usize,
    /// The number of these that fit into the packet's present frame; `None` if the event is left out.
    room: Option<usize>,
}

impl Stream {
    /// Creates the stream of a client that begins at `start`.
    #[must_use]
    pub fn new(
        peer: &Peer,
        request: &DumpRequest,
        names: FileNames,
        server_id: u32,
        start: LogPosition,
    ) -> Stream {
        let flag = request.flags & FLAG_ANNOTATE_OR_HEARTBEAT_V2 != 0;
        let mariadb = peer.is_mariadb();
        Stream {
            names,
            server_id,
            wanted: peer.checksum,
            // Before the first FORMAT_DESCRIPTION a client goes by what it asked for.
            checksum: if peer.checksum == WantedChecksum::Crc32 { Checksum::Crc32 } else { Checksum::None },
            file: start.file,
            position: start.offset.0,
            mariadb,
            mariadb_log: false,
            annotate: flag || !mariadb,
            heartbeat_v2: flag && !mariadb,
            counts_bytes: !mariadb && !peer.uuid.is_empty() && request.executed.is_none(),
            whole_files: peer.whole_files,
            gap: false,
            filter: Filter::All,
            semi_sync: peer.semi_sync,
            asks_at: None,
            real_end: start,
            skip_marked: false,
            skipping: false,
            skipped: false,
            parts: Parts::default(),
            inside: None,
        }
    }

    /// Leaves out the transactions that the client has.
    #[must_use]
    pub fn with_filter(self, filter: Filter) -> Stream {
        Stream { filter, ..self }
    }

    /// With `true`, leaves out events marked with `skip_replication`.
    #[must_use]
    pub fn without_marked(self, skip_marked: bool) -> Stream {
        Stream { skip_marked, ..self }
    }

    /// The position of the next event to be sent.
    #[must_use]
    pub fn position(&self) -> LogPosition {
        LogPosition::new(self.file, self.position)
    }

    /// The name of the file that the stream is in.
    #[must_use]
    pub fn file_name(&self) -> String {
        self.names.log(self.file)
    }

    /// Appends the first packets: the position of the stream and, if that is not the start of a file, the file's
    /// FORMAT_DESCRIPTION.
    ///
    /// # Errors
    /// The client cannot read this log.
    pub fn begin(&mut self, format_description: Option<&[u8]>, out: &mut OutBuf) -> Result<(), SourceError> {
        self.put_rotate(out);
        match format_description {
            Some(event) => self.put_format(event, true, out),
            None => Ok(()),
        }
    }

    /// Continues in another file of the log.
    pub fn next_file(&mut self, file: FileSeq, out: &mut OutBuf) {
        self.file = file;
        self.position = 4;
        self.gap = false;
        self.put_rotate(out);
    }

    /// The parts of the last block that are to be sent between the collected bytes. If there are any, everything has to
    /// be sent before the next block is passed.
    #[must_use]
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Appends the events of a block from the present position on.
    ///
    /// # Errors
    /// An event cannot be sent.
    pub fn block(&mut self, block: &Block, out: &mut OutBuf) -> Result<(), SourceError> {
        debug_assert_eq!(block.file(), self.file);
        debug_assert!(self.parts.is_empty());
        if block.goes_on() {
            self.go_on(block.len(), out);
            return Ok(());
        }
        for event in block.events_from(self.position) {
            let room = self.event(&event, block.checksum(), out)?;
            if event.missing() > 0 {
                self.inside = Some(Inside { end: event.end(), left: event.missing(), room });
                break;
            }
            self.position = event.end();
        }
        Ok(())
    }

    /// Returns whether a packet is half sent, so that nothing else can be sent.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.inside.is_some()
    }

    /// Continues an event with the present block, its next piece.
    fn go_on(&mut self, len: usize, out: &mut OutBuf) {
        let Some(Inside { end, left, room }) = self.inside.take() else { return };
        let left = left.saturating_sub(len);
        let room = room.map(|room| self.put_piece(0..len, left, room, out));
        if left == 0 {
            self.position = end;
        } else {
            self.inside = Some(Inside { end, left, room });
        }
    }

    /// Appends a heartbeat with the stream's position.
    pub fn heartbeat(&mut self, out: &mut OutBuf) {
        let name = self.file_name();
        let heartbeat = Heartbeat { file: name.as_bytes(), position: Some(self.position) };
        if self.heartbeat_v2 {
            self.put_made(out, EventType::HEARTBEAT_V2, 0, 0, |body| heartbeat.encode_v2(body));
        } else if let Ok(position) = u32::try_from(self.position) {
            self.put_made(out, EventType::HEARTBEAT, 0, position, |body| heartbeat.encode_v1(body));
        }
    }

    /// Appends an event. Returns the room left in the packet's frame, if the event was a long one.
    fn event(
        &mut self,
        event: &BlockEvent<'_>,
        checksum: Checksum,
        out: &mut OutBuf,
    ) -> Result<Option<usize>, SourceError> {
        let event_type = event.event_type();
        let most = if event_type == EventType::FORMAT_DESCRIPTION { MAX_FORMAT } else { MAX_EVENT };
        if event.size > most {
            let (file, position, size) = (self.file_name(), event.offset, event.size as u64);
            return Err(SourceError::TooLarge { file, position, size });
        }
        match event_type {
            EventType::ANONYMOUS_GTID if self.filter.is_mysql() => {
                let (file, position) = (self.file_name(), event.offset);
                return Err(SourceError::Anonymous { file, position });
            }
            EventType::TRANSACTION_PAYLOAD if self.mariadb && !self.skipping => {
                let (file, position) = (self.file_name(), event.offset);
                return Err(SourceError::Compressed { file, position });
            }
            EventType::GTID
            | EventType::ANONYMOUS_GTID
            | EventType::GTID_TAGGED
            | EventType::MARIADB_GTID => {
                self.skipping = self.filter.skips(event, checksum)?;
            }
            _ if ends_group(event_type) => self.skipping = false,
            _ => {}
        }
        if self.skipping || self.skip_marked && is_marked(event.bytes) {
            self.gap = true;
            self.skipped = true;
            return Ok(None);
        }
        if std::mem::take(&mut self.skipped) && self.filter.is_mysql() {
            // Brings a MySQL replica's position past what it was not sent.
            self.heartbeat(out);
        }
        match event_type {
            EventType::FORMAT_DESCRIPTION => self.put_format(event.bytes, false, out)?,
            _ if self.whole_files => return Ok(self.put_event(event, checksum, out)),
            EventType::IGNORABLE if event.body(checksum).starts_with(&PRIVATE_MAGIC) => {
                self.gap = true;
                if self.counts_bytes {
                    self.fill(event, out);
                }
            }
            EventType::ROWS_QUERY if !self.annotate => self.gap = true,
            EventType::MARIADB_ANNOTATE_ROWS if !(self.mariadb && self.annotate) => self.gap = true,
            EventType::MARIADB_GTID if !self.mariadb => self.put_begin(event, checksum, out),
            EventType::MARIADB_GTID_LIST if !self.mariadb => self.gap = true,
            _ => {
                self.gap = false;
                return Ok(self.put_event(event, checksum, out));
            }
        }
        Ok(None)
    }

    /// Returns whether the client has received everything that `START SLAVE UNTIL` asked for; it is told so once.
    pub fn until_reached(&mut self, out: &mut OutBuf) -> bool {
        if !self.filter.is_fulfilled() {
            return false;
        }
        let list = MariadbGtidList { flags: UNTIL_REACHED, gtids: Vec::new() };
        self.put_made(out, EventType::MARIADB_GTID_LIST, FLAG_ARTIFICIAL, 0, |body| list.encode(body));
        true
    }

    /// Requests an acknowledgement of the last collected packet. Returns the position that the client will have reached
    /// at least; `None` if there is no packet.
    pub fn ask(&mut self, out: &mut OutBuf) -> Option<LogPosition> {
        let at = self.asks_at.take().filter(|_| self.semi_sync)?;
        out.set_byte(at, 1);
        // The client's answer starts the numbering of packets anew.
        out.set_seq(1);
        Some(self.real_end)
    }

    /// Records that the collected bytes have been sent.
    pub fn sent(&mut self) {
        self.asks_at = None;
        self.parts.clear();
    }

    /// Prepares for waiting, when everything was sent.
    pub fn settle(&mut self, out: &mut OutBuf) {
        let behind_gap = std::mem::take(&mut self.gap) | std::mem::take(&mut self.skipped);
        if behind_gap && self.filter.is_mysql() {
            self.heartbeat(out);
        } else if behind_gap && self.mariadb {
            let (position, name) = (self.position as u32, self.file_name());
            if !self.mariadb_log {
                return self.put_made(out, EventType::IGNORABLE, FLAG_IGNORABLE, position, |_| ());
            }
            // The one event that replicas by GTID take between transactions, and do nothing with.
            self.put_made(out, EventType::MARIADB_BINLOG_CHECKPOINT, 0, position, |body| {
                body.extend_from_slice(&(name.len() as u32).to_le_bytes());
                body.extend_from_slice(name.as_bytes());
            });
        }
    }
}

fn is_marked(event: &[u8]) -> bool {
    let flags = event.get(FLAGS_OFFSET..FLAGS_OFFSET + 2).and_then(|bytes| bytes.try_into().ok());
    flags.is_some_and(|bytes| u16::from_le_bytes(bytes) & FLAG_SKIP_REPLICATION != 0)
}
