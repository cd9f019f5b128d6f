//! The binary log format: encoding and decoding of events, GTID sets, row images and checksums.
//!
//! Pure: no I/O, no clock, no session state. Every decoder is bounds-checked and returns an error with an offset; no
//! input makes it panic. Encoders append to a `Vec<u8>` that the caller reuses. Formats are MySQL 8.4's, and MariaDB's
//! own events are decoded; `docs/internals/format.md` describes the contents of this server's files and the sources of
//! the formats.
//!
//! A file of two events, written and read:
//!
//! ```
//! use omnibus_format::events::Xid;
//! use omnibus_format::writer::write_final;
//! use omnibus_format::{Checksum, EventContext, EventIter, EventType, FormatDescription, MAGIC, ScanRules};
//!
//! let context = EventContext { timestamp: 1_767_225_600, server_id: 1 };
//! let description = FormatDescription::new("8.4.0-example", 0, Checksum::Crc32);
//! let mut file = MAGIC.to_vec();
//! let at = write_final(&mut file, context, EventType::FORMAT_DESCRIPTION, 0, 4, Checksum::Crc32, |body| {
//!     description.encode(body);
//! });
//! let end = write_final(&mut file, context, EventType::XID, 0, at, Checksum::Crc32, |body| Xid(7).encode(body));
//! assert_eq!(end, file.len() as u64);
//!
//! let events = EventIter::of_file(&file, ScanRules::default())?.collect::<Result<Vec<_>, _>>()?;
//! assert_eq!(events[1].offset, at);
//! assert_eq!(Xid::decode(events[1].body)?, Xid(7));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod binlog_state;
pub mod checksum;
pub mod cursor;
pub mod describe;
pub mod error;
pub mod event_type;
pub mod events;
pub mod field;
pub mod group;
pub mod gtid;
mod gtid_mode;
mod gtid_state;
pub mod header;
mod identity;
pub mod payload;
pub mod private;
mod private_log;
pub mod row;
pub mod scan;
mod server_uuid;
mod tsid;
mod varlen;
pub mod writer;

pub use binlog_state::{BinlogState, GtidListError, GtidPosition};
pub use checksum::{CHECKSUM_LEN, Checksum};
pub use error::{DecodeError, EncodeError};
pub use event_type::EventType;
pub use events::FormatDescription;
pub use gtid::{GtidSet, ServerUuid};
pub use gtid_mode::{GtidMode, Unnamed};
pub use gtid_state::{Dialect, GtidState};
pub use header::{EventHeader, HEADER_LEN, MAGIC};
pub use identity::{AnyGtid, Origin};
pub use private::Private;
pub use private_log::{LogPrivate, MIN_FILLER};
pub use row::RowShape;
pub use scan::{EventIter, MAX_EVENT_SIZE, RawEvent, ScanError, ScanErrorKind, ScanRules, parse_event};
pub use tsid::{Tag, Tsid};
pub use writer::EventContext;

#[cfg(test)]
mod tests;
