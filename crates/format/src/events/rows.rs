//! WRITE_ROWS, UPDATE_ROWS and DELETE_ROWS, version 2 (version 1 and the types before it are decoded too).

use crate::cursor::{Reader, put_lenenc};
use crate::error::DecodeError;
use crate::event_type::EventType;

/// Last rows event of its statement; the table maps end with it.
pub const ROWS_FLAG_STMT_END: u16 = 1;
/// `foreign_key_checks=0`.
pub const ROWS_FLAG_NO_FOREIGN_KEY_CHECKS: u16 = 2;
/// `unique_checks=0`.
pub const ROWS_FLAG_RELAXED_UNIQUE_CHECKS: u16 = 4;
/// The source checked the foreign keys itself, and what they take along is in the log (MySQL since 9.6).
pub const ROWS_FLAG_FOREIGN_KEYS_ARE_KEPT: u16 = 16;
/// The kind of row change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsKind {
    /// After images only.
    Write,
    /// Before and after image of each row.
    Update,
    /// Before images only.
    Delete,
}

impl RowsKind {
    /// The version 2 event type.
    pub fn event_type(self) -> EventType {
        match self {
            RowsKind::Write => EventType::WRITE_ROWS,
            RowsKind::Update => EventType::UPDATE_ROWS,
            RowsKind::Delete => EventType::DELETE_ROWS,
        }
    }

    /// Returns the kind of a row event type of version 1 or 2, or of MySQL 5.1 before its release.
    pub fn of(event_type: EventType) -> Option<Self> {
        match event_type {
            EventType::WRITE_ROWS | EventType::WRITE_ROWS_V1 | EventType::PRE_GA_WRITE_ROWS => {
                Some(RowsKind::Write)
            }
            EventType::UPDATE_ROWS
            | EventType::PARTIAL_UPDATE_ROWS
            | EventType::UPDATE_ROWS_V1
            | EventType::PRE_GA_UPDATE_ROWS => Some(RowsKind::Update),
            EventType::DELETE_ROWS | EventType::DELETE_ROWS_V1 | EventType::PRE_GA_DELETE_ROWS => {
                Some(RowsKind::Delete)
            }
            _ => None,
        }
    }
}

/// The decoded event; `row::Images` iterates over `rows`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows<'a> {
    /// The kind of change.
    pub kind: RowsKind,
    /// The number of the last TABLE_MAP with the row's table.
    pub table_id: u64,
    /// `ROWS_FLAG_*`.
    pub flags: u16,
    /// Extra data of version 2, its length field not included.
    pub extra: &'a [u8],
    /// After images may have changes of JSON documents instead of documents (PARTIAL_UPDATE_ROWS).
    pub partial: bool,
    /// Number of columns.
    pub columns: usize,
    /// Columns present in before images (UPDATE, DELETE); empty for WRITE.
    pub before: &'a [u8],
    /// Columns present in after images (WRITE, UPDATE); empty for DELETE.
    pub after: &'a [u8],
    /// The images.
    pub rows: &'a [u8],
    /// Offset of `rows` in the body, for error messages.
    pub rows_offset: usize,
}

impl<'a> Rows<'a> {
    /// Decodes the body of a rows event of either version.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn decode(event_type: EventType, body: &'a [u8]) -> Result<Self, DecodeError> {
        let kind = RowsKind::of(event_type).ok_or(DecodeError::new(0, "rows event type"))?;
        let mut r = Reader::new(body);
        let table_id = r.uint(6, "table id")?;
        let flags = r.u16("rows flags")?;
        let mut extra: &[u8] = &[];
        if event_type.0 >= EventType::WRITE_ROWS.0 {
            let len = usize::from(r.u16("extra data length")?);
            let len = len.checked_sub(2).ok_or_else(|| r.error("extra data length"))?;
            extra = r.take(len, "extra data")?;
        }
        let columns = r.lenenc_len("column count")?;
        let first = r.take(columns.div_ceil(8), "column bitmap")?;
        let (before, after): (&[u8], &[u8]) = match kind {
            RowsKind::Write => (&[], first),
            RowsKind::Delete => (first, &[]),
            // One bitmap for both images.
            RowsKind::Update if event_type == EventType::PRE_GA_UPDATE_ROWS => (first, first),
            RowsKind::Update => (first, r.take(columns.div_ceil(8), "column bitmap")?),
        };
        let rows_offset = r.position();
        let rows = r.rest();
        let partial = event_type == EventType::PARTIAL_UPDATE_ROWS;
        Ok(Self { kind, table_id, flags, extra, partial, columns, before, after, rows, rows_offset })
    }
}

/// Appends a version 2 body up to where the images start. `bitmaps` are the column bitmaps: one,
/// or before and after for UPDATE. The flags are at byte 6 of the body.
#[inline]
pub fn put_rows_header(out: &mut Vec<u8>, table_id: u64, flags: u16, columns: usize, bitmaps: &[&[u8]]) {
    out.extend_from_slice(&table_id.to_le_bytes()[..6]);
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(&2u16.to_le_bytes());
    put_lenenc(out, columns as u64);
    for bitmap in bitmaps {
        out.extend_from_slice(bitmap);
    }
}
