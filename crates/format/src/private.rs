//! Private payloads: data for recovery that MySQL's events cannot express.
//!
//! They are in IGNORABLE events (type 28) with the ignorable flag, so that every other tool skips them, and they are
//! never sent to a replica. A body is `OMNI`, a kind byte, a version byte, and the fields of the kind. For a newer
//! version or an unknown kind a reader gets `Unknown`: recovery must refuse it, tools may skip it.

use crate::cursor::{Reader, put_lenenc, put_lenenc_bytes};
use crate::error::DecodeError;
pub use crate::header::PRIVATE_MAGIC;
use crate::private_log::{FIRST_KIND, LogPrivate};

/// The version that this code writes.
const VERSION: u8 = 1;
const WRITE_SET: u8 = 1;
const ROW_IDS: u8 = 2;
const BUILD_INDEX: u8 = 3;
const DROP_SPACES: u8 = 4;
const ALL_WRITES: u8 = 6;

/// A decoded private payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Private<'a> {
    /// Raw engine writes, in order: DDL, catalog changes, `sql_log_bin=0`.
    WriteSet(PrivateWriteSet<'a>),
    /// A part of all raw engine writes of the transaction, whose other events are redundant: they include statements
    /// logged as text, which recovery does not execute.
    AllWrites(PrivateWriteSet<'a>),
    /// Hidden row ids of the rows in the rows event that follows, in its order.
    RowIds(RowIds<'a>),
    /// From this commit on the index exists, filled from the table's rows as of this commit.
    BuildIndex {
        /// The table.
        table_id: u64,
        /// Space of the new index.
        index_id: u64,
    },
    /// These spaces are dropped as of this commit.
    DropSpaces(Vec<u32>),
    /// Information about the log itself.
    Log(LogPrivate),
    /// A payload of a later version of this server.
    Unknown {
        /// Its kind byte.
        kind: u8,
        /// Its version byte.
        version: u8,
    },
}

impl<'a> Private<'a> {
    /// Decodes an IGNORABLE event's body; `Ok(None)` if it is not a private payload.
    ///
    /// # Errors
    /// The payload is truncated or malformed.
    pub fn decode(body: &'a [u8]) -> Result<Option<Self>, DecodeError> {
        if !body.starts_with(&PRIVATE_MAGIC) {
            return Ok(None);
        }
        let mut r = Reader::new(body);
        r.take(PRIVATE_MAGIC.len(), "private magic")?;
        let (kind, version) = (r.u8("private kind")?, r.u8("private version")?);
        if kind >= FIRST_KIND {
            let log = LogPrivate::decode(kind, version, r.rest())?;
            return Ok(Some(log.map_or(Private::Unknown { kind, version }, Private::Log)));
        }
        if version != VERSION {
            return Ok(Some(Private::Unknown { kind, version }));
        }
        Ok(Some(match kind {
            WRITE_SET => Private::WriteSet(PrivateWriteSet::open(r)?),
            ALL_WRITES => Private::AllWrites(PrivateWriteSet::open(r)?),
            ROW_IDS => Private::RowIds(RowIds::open(r)?),
            BUILD_INDEX => Private::BuildIndex { table_id: r.u64("table id")?, index_id: r.u64("index id")? },
            DROP_SPACES => Private::DropSpaces(decode_spaces(&mut r)?),
            _ => Private::Unknown { kind, version },
        }))
    }
}

fn begin(out: &mut Vec<u8>, kind: u8) {
    out.extend_from_slice(&PRIVATE_MAGIC);
    out.extend_from_slice(&[kind, VERSION]);
}

/// Appends the body of a write set. `writes` yields key and new value, `None` for a deletion.
pub fn encode_write_set<'k>(
    out: &mut Vec<u8>,
    writes: impl IntoIterator<Item = (&'k [u8], Option<impl AsRef<[u8]>>)>,
) {
    begin_write_set(out);
    for (key, value) in writes {
        put_write(out, key, value.as_ref().map(AsRef::as_ref));
    }
}

/// Begins the body of a write set; [`put_write`] adds to it.
pub fn begin_write_set(out: &mut Vec<u8>) {
    begin(out, WRITE_SET);
}

/// Begins the body of a part of all writes of a transaction; [`put_write`] adds to it.
pub fn begin_all_writes(out: &mut Vec<u8>) {
    begin(out, ALL_WRITES);
}

/// Returns whether a private body is a part of all writes of a transaction.
#[must_use]
pub fn is_all_writes(body: &[u8]) -> bool {
    body.starts_with(&PRIVATE_MAGIC) && body.get(PRIVATE_MAGIC.len()) == Some(&ALL_WRITES)
}

/// Appends a write: key and new value, `None` for a deletion.
pub fn put_write(out: &mut Vec<u8>, key: &[u8], value: Option<&[u8]>) {
    out.push(u8::from(value.is_some()));
    put_lenenc_bytes(out, key);
    if let Some(value) = value {
        put_lenenc_bytes(out, value);
    }
}

/// Appends the body with the hidden row ids of the next rows event.
pub fn encode_row_ids(out: &mut Vec<u8>, ids: &[u64]) {
    begin(out, ROW_IDS);
    put_lenenc(out, ids.len() as u64);
    let mut last = 0u64;
    for &id in ids {
        // Ids of one statement mostly rise by one: one byte each.
        put_lenenc(out, zigzag(id.wrapping_sub(last) as i64));
        last = id;
    }
}

/// Appends the body that records that an index was built.
pub fn encode_build_index(out: &mut Vec<u8>, table_id: u64, index_id: u64) {
    begin(out, BUILD_INDEX);
    out.extend_from_slice(&table_id.to_le_bytes());
    out.extend_from_slice(&index_id.to_le_bytes());
}

/// Appends the body that records that spaces were dropped.
pub fn encode_drop_spaces(out: &mut Vec<u8>, spaces: &[u32]) {
    begin(out, DROP_SPACES);
    put_lenenc(out, spaces.len() as u64);
    for space in spaces {
        out.extend_from_slice(&space.to_le_bytes());
    }
}

fn decode_spaces(r: &mut Reader<'_>) -> Result<Vec<u32>, DecodeError> {
    let count = r.lenenc_len("space count")?;
    if count > r.remaining() / 4 {
        return Err(r.error("space count"));
    }
    (0..count).map(|_| r.u32("space")).collect()
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// The writes of a write set. They are checked for completeness when opened.
#[derive(Clone, Debug)]
pub struct PrivateWriteSet<'a> {
    reader: Reader<'a>,
    len: usize,
}

impl PartialEq for PrivateWriteSet<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for PrivateWriteSet<'_> {}

impl<'a> PrivateWriteSet<'a> {
    fn open(reader: Reader<'a>) -> Result<Self, DecodeError> {
        let mut check = reader.clone();
        let mut len = 0;
        while !check.is_empty() {
            next_write(&mut check)?;
            len += 1;
        }
        Ok(Self { reader, len })
    }

    /// Number of writes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no writes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Iterates over keys and new values (`None`: deleted), in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> {
        let mut reader = self.reader.clone();
        (0..self.len).map_while(move |_| next_write(&mut reader).ok())
    }
}

fn next_write<'a>(r: &mut Reader<'a>) -> Result<(&'a [u8], Option<&'a [u8]>), DecodeError> {
    match r.u8("write kind")? {
        0 => Ok((r.lenenc_bytes("write key")?, None)),
        1 => Ok((r.lenenc_bytes("write key")?, Some(r.lenenc_bytes("write value")?))),
        _ => Err(r.error("write kind")),
    }
}

/// Hidden row ids. They are checked for completeness when opened.
#[derive(Clone, Debug)]
pub struct RowIds<'a> {
    reader: Reader<'a>,
    len: usize,
}

impl PartialEq for RowIds<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for RowIds<'_> {}

impl<'a> RowIds<'a> {
    fn open(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let len = reader.lenenc_len("row id count")?;
        if len > reader.remaining() {
            return Err(reader.error("row id count"));
        }
        let mut check = reader.clone();
        for _ in 0..len {
            check.lenenc("row id")?;
        }
        Ok(Self { reader, len })
    }

    /// Number of ids.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no ids.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Iterates over the ids, in the order of the rows.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        let mut reader = self.reader.clone();
        let mut last = 0u64;
        (0..self.len).map_while(move |_| {
            last = last.wrapping_add(unzigzag(reader.lenenc("row id").ok()?) as u64);
            Some(last)
        })
    }
}
