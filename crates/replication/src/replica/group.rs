//! Cuts the stream of a dump into transactions.
//!
//! A transaction is passed on when its last event has arrived, so that no transaction is begun that the source may not
//! finish. Only one that exceeds a limit is passed on in pieces, to be applied alone and rolled back if its end never
//! arrives. Runs on the receiver's thread.

use super::position::SourcePosition;
use crate::changes::{Borders, Class};
use crate::model::TrxHeader;
use omnibus_format::events::{FormatDescription, Heartbeat, Rotate};
use omnibus_format::header::{FLAG_ARTIFICIAL, HEADER_LEN};
use omnibus_format::{DecodeError, EventHeader, EventType, RawEvent};
use std::sync::Arc;

/// A buffer of consecutive events without checksums.
#[derive(Clone, Debug, Default)]
pub struct EventBuf {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl EventBuf {
    fn push(&mut self, event: &RawEvent<'_>) {
        self.bytes.extend_from_slice(&event.bytes[..HEADER_LEN]);
        self.bytes.extend_from_slice(event.body);
        self.ends.push(self.bytes.len());
    }

    /// Iterates over header and body of each event.
    pub fn iter(&self) -> impl Iterator<Item = Result<(EventHeader, &[u8]), DecodeError>> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let event = &self.bytes[start..end];
            start = end;
            EventHeader::decode(event).map(|header| (header, &event[HEADER_LEN..]))
        })
    }

    /// The number of bytes of memory.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }

    /// The number of bytes in use.
    fn filled(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<usize>()
    }

    /// The number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there is no event.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

/// The memory that the last transaction took: the next one is likely to need as much.
#[derive(Clone, Copy, Debug, Default)]
struct Room {
    bytes: usize,
    events: usize,
}

/// The maximum number of bytes reserved for a transaction before its length is known.
const MOST_AHEAD: usize = 64 << 10;

impl Room {
    fn of(events: &EventBuf) -> Room {
        Room { bytes: events.bytes.len().min(MOST_AHEAD), events: events.ends.len().min(MOST_AHEAD / 64) }
    }

    fn like(self) -> EventBuf {
        EventBuf { bytes: Vec::with_capacity(self.bytes), ends: Vec::with_capacity(self.events) }
    }
}

/// A transaction of the source, or its first piece.
#[derive(Clone, Debug)]
pub struct Received {
    /// Its identity.
    pub trx: TrxHeader,
    /// The format of its events.
    pub format: Arc<FormatDescription>,
    /// Its events.
    pub events: EventBuf,
    /// The position of its beginning.
    pub start: SourcePosition,
    /// The position behind its last event, or behind this piece.
    pub end: SourcePosition,
    /// The source waits until it is stored safely here.
    pub wants_ack: bool,
}

/// An item that the receiver passes on.
#[derive(Clone, Debug)]
pub enum Item {
    /// A whole transaction.
    Trx(Box<Received>),
    /// The first piece of a large one.
    First(Box<Received>),
    /// The next piece of a large transaction; with an end, the last one.
    More {
        /// Events.
        events: EventBuf,
        /// The transaction's end, and whether the source waits.
        end: Option<(SourcePosition, bool)>,
    },
    /// The connection was lost, so the rest of the transaction will not come. It will be sent again from its beginning.
    Gone,
    /// The stream advanced to here without changes; the flag is true if the source waits until everything before is
    /// safe.
    Moved(SourcePosition, bool),
}

impl Item {
    /// The number of bytes of memory.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Item::Trx(received) | Item::First(received) => received.events.size() + size_of::<Received>(),
            Item::More { events, .. } => events.size() + 64,
            Item::Gone | Item::Moved(..) => 64,
        }
    }
}

/// The result of an event.
#[derive(Debug)]
pub enum Feed {
    /// It was kept, and no item is complete yet.
    Kept,
    /// An item is complete.
    Item(Item),
    /// It was not kept: a heartbeat or the like.
    Nothing,
}

/// Cuts a stream into transactions; see the module.
#[derive(Debug)]
pub struct Grouper {
    borders: Borders,
    format: Option<Arc<FormatDescription>>,
    at: SourcePosition,
    open: Option<Received>,
    /// Pieces of the open transaction were passed on.
    in_pieces: bool,
    /// The number of bytes from which a transaction is passed on in pieces.
    limit: usize,
    room: Room,
}

impl Grouper {
    /// Creates a grouper for a stream from `at`.
    #[must_use]
    pub fn new(at: SourcePosition, limit: usize) -> Grouper {
        let (borders, room) = (Borders::default(), Room::default());
        Grouper { borders, format: None, at, open: None, in_pieces: false, limit, room }
    }

    /// The position behind the last event.
    #[must_use]
    pub fn at(&self) -> &SourcePosition {
        &self.at
    }

    /// Returns whether a transaction has begun that has not ended.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The transaction that has begun and not ended.
    #[must_use]
    pub fn open_trx(&self) -> Option<&TrxHeader> {
        self.open.as_ref().map(|open| &open.trx)
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// An event that determines borders cannot be decoded.
    pub fn feed(&mut self, event: &RawEvent<'_>, wants_ack: bool) -> Result<Feed, DecodeError> {
        let class = self.borders.classify(&event.header, event.body)?;
        match class {
            Class::Other => {
                let start = self.at.clone();
                self.advance(event)?;
                return self.other(event, &start, wants_ack);
            }
            Class::Begin(trx) | Class::Single(trx) => {
                let start = self.at.clone();
                self.advance(event)?;
                let format = self.format.clone().ok_or(DecodeError::new(0, "format description first"))?;
                let lost = self.open.is_some();
                self.in_pieces = false;
                let (end, events) = (start.clone(), self.room.like());
                self.open = Some(Received { trx, format, events, start, end, wants_ack: false });
                if lost {
                    return Err(DecodeError::new(0, "end of the transaction before"));
                }
            }
            Class::Inside | Class::End => self.advance(event)?,
        }
        let Some(open) = &mut self.open else {
            return Err(DecodeError::new(0, "beginning of the transaction"));
        };
        open.events.push(event);
        open.wants_ack |= wants_ack;
        if matches!(class, Class::End | Class::Single(_)) {
            return Ok(Feed::Item(self.finish()));
        }
        if open.events.filled() < self.limit {
            return Ok(Feed::Kept);
        }
        open.end = self.at.clone();
        let next = EventBuf { bytes: Vec::with_capacity(open.events.bytes.len()), ends: Vec::new() };
        let events = std::mem::replace(&mut open.events, next);
        let item = if self.in_pieces {
            Item::More { events, end: None }
        } else {
            Item::First(Box::new(Received { events, ..open.clone() }))
        };
        self.in_pieces = true;
        Ok(Feed::Item(item))
    }

    fn finish(&mut self) -> Item {
        let in_pieces = std::mem::take(&mut self.in_pieces);
        let mut open = self.open.take();
        if let Some(open) = &mut open {
            open.end = self.at.clone();
            self.room = Room::of(&open.events);
        }
        match open {
            Some(open) if in_pieces => {
                Item::More { events: open.events, end: Some((open.end, open.wants_ack)) }
            }
            Some(open) => Item::Trx(Box::new(open)),
            None => Item::Gone,
        }
    }

    /// Ends the stream because the connection was lost. Returns the item that reports it, if pieces were passed on.
    pub fn abandon(&mut self) -> Option<Item> {
        self.open = None;
        std::mem::take(&mut self.in_pieces).then_some(Item::Gone)
    }

    /// Advances to the source's next event. The header has 32 bits of the position, and MariaDB omits it inside
    /// transactions.
    fn advance(&mut self, event: &RawEvent<'_>) -> Result<(), DecodeError> {
        let header = &event.header;
        if header.event_type == EventType::ROTATE {
            let rotate = Rotate::decode(event.body)?;
            let file = std::str::from_utf8(rotate.file).map_err(|_| DecodeError::new(8, "file name"))?;
            if file.is_empty() || file.len() > 512 || file.contains(['/', '\n', '\0']) {
                return Err(DecodeError::new(8, "file name"));
            }
            self.at = SourcePosition::new(file, rotate.position);
            return Ok(());
        }
        if matches!(header.event_type, EventType::HEARTBEAT | EventType::HEARTBEAT_V2) {
            return self.follow_heartbeat(event);
        }
        let made_up = header.flags & FLAG_ARTIFICIAL != 0
            // Of a file that is begun in its middle.
            || (header.event_type == EventType::FORMAT_DESCRIPTION && u64::from(header.log_pos) <= self.at.position)
            || (header.event_type == EventType::MARIADB_GTID_LIST && header.log_pos == 0);
        if made_up {
            return Ok(());
        }
        // Repeated, or in another's place. Of a place beyond 4 GiB the header has the lower bits.
        let ahead = header.log_pos.wrapping_sub(self.at.position as u32) as i32;
        if header.log_pos != 0 && ahead <= 0 {
            return Err(DecodeError::new(13, "end behind that of the event before"));
        }
        let behind = self.at.position.wrapping_add(u64::from(header.size));
        let whole = header.log_pos == 0 || header.log_pos == behind as u32;
        self.at.position = if whole { behind } else { u64::from(header.log_pos) };
        Ok(())
    }

    /// Takes the position from a heartbeat, by which a source that omits events reports its progress.
    fn follow_heartbeat(&mut self, event: &RawEvent<'_>) -> Result<(), DecodeError> {
        let heartbeat = match event.header.event_type {
            EventType::HEARTBEAT_V2 => Heartbeat::decode_v2(event.body)?,
            _ => Heartbeat::decode_v1(event.body),
        };
        let position = heartbeat.position.unwrap_or(u64::from(event.header.log_pos));
        if self.open.is_none() && heartbeat.file == self.at.file.as_bytes() && position > self.at.position {
            self.at.position = position;
        }
        Ok(())
    }

    fn other(
        &mut self,
        event: &RawEvent<'_>,
        start: &SourcePosition,
        wants_ack: bool,
    ) -> Result<Feed, DecodeError> {
        if event.header.event_type == EventType::FORMAT_DESCRIPTION {
            self.format = Some(Arc::new(FormatDescription::decode(event.body)?));
            self.borders = Borders::default();
            // The source crashed inside of a transaction and began a new file.
            if let Some(item) = self.abandon() {
                return Ok(Feed::Item(item));
            }
        }
        // The position goes on over what is in no transaction.
        if self.open.is_none() && (wants_ack || self.at != *start) {
            return Ok(Feed::Item(Item::Moved(self.at.clone(), wants_ack)));
        }
        Ok(Feed::Nothing)
    }
}
