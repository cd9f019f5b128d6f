//! Compressed events: MariaDB's (`log_bin_compress`) and MySQL's whole transactions (`binlog_transaction_compression`).
//!
//! What a block says of its length is a limit, never an allocation.

use omnibus_format::DecodeError;
use omnibus_format::EventType;
use omnibus_format::MAX_EVENT_SIZE;
use omnibus_format::cursor::Reader;
use std::io::Read;

/// The contents of a MariaDB compressed block: a byte that says how long the length is and how it is compressed, the
/// length, high byte first, and a zlib stream.
///
/// # Errors
/// It is not such a block, or not of the length that it says.
pub fn inflate(block: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut r = Reader::new(block);
    let head = r.u8("compressed block")?;
    let (is_block, algorithm, len) = (head & 0x80 != 0, head >> 4 & 7, usize::from(head & 7));
    if !is_block || algorithm != 0 || !(1..=4).contains(&len) {
        return Err(r.error("compressed block's head"));
    }
    let len = r
        .take(len, "compressed block's length")?
        .iter()
        .fold(0usize, |length, byte| length << 8 | usize::from(*byte));
    if len > MAX_EVENT_SIZE as usize {
        return Err(r.error("compressed block's length"));
    }
    let contents = miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(r.rest(), len);
    let contents = contents.map_err(|_| DecodeError::new(0, "compressed block"))?;
    if contents.len() != len {
        return Err(DecodeError::new(0, "compressed block's length"));
    }
    Ok(contents)
}

/// A MariaDB compressed event as the plain one that it stands for: type and body. `None` for other types.
///
/// # Errors
/// It is damaged.
pub fn plain_event(event_type: EventType, body: &[u8]) -> Result<Option<(EventType, Vec<u8>)>, DecodeError> {
    use EventType as E;
    let plain = match event_type {
        E::MARIADB_QUERY_COMPRESSED => E::QUERY,
        E::MARIADB_WRITE_ROWS_COMPRESSED_V1 => E::WRITE_ROWS_V1,
        E::MARIADB_UPDATE_ROWS_COMPRESSED_V1 => E::UPDATE_ROWS_V1,
        E::MARIADB_DELETE_ROWS_COMPRESSED_V1 => E::DELETE_ROWS_V1,
        E::MARIADB_WRITE_ROWS_COMPRESSED => E::WRITE_ROWS,
        E::MARIADB_UPDATE_ROWS_COMPRESSED => E::UPDATE_ROWS,
        E::MARIADB_DELETE_ROWS_COMPRESSED => E::DELETE_ROWS,
        _ => return Ok(None),
    };
    let head = match plain {
        E::QUERY => omnibus_format::events::Query::decode(body)?.sql.len(),
        _ => omnibus_format::events::Rows::decode(plain, body)?.rows.len(),
    };
    let (head, block) = body.split_at(body.len() - head);
    let mut whole = head.to_vec();
    whole.extend_from_slice(&inflate(block)?);
    Ok(Some((plain, whole)))
}

const PAYLOAD_END: u64 = 0;
const PAYLOAD_SIZE: u64 = 1;
const PAYLOAD_COMPRESSION: u64 = 2;
const COMPRESSION_ZSTD: u64 = 0;
const COMPRESSION_NONE: u64 = 255;

/// The events in a TRANSACTION_PAYLOAD event's body, one behind the other, without checksums.
///
/// # Errors
/// It is damaged, or compressed in an unknown way.
pub fn payload(body: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut r = Reader::new(body);
    let (mut size, mut compression) = (None, COMPRESSION_NONE);
    loop {
        let field = r.lenenc("payload field")?;
        if field == PAYLOAD_END {
            break;
        }
        let value = r.lenenc_bytes("payload field")?;
        match field {
            PAYLOAD_SIZE => size = Some(Reader::new(value).lenenc_len("payload size")?),
            PAYLOAD_COMPRESSION => compression = Reader::new(value).lenenc("payload compression")?,
            _ => {}
        }
    }
    let contents = match size {
        Some(size) => r.take(size, "payload")?,
        None => r.rest(),
    };
    match compression {
        COMPRESSION_NONE => Ok(contents.to_vec()),
        COMPRESSION_ZSTD => unzstd(contents),
        _ => Err(DecodeError::new(0, "payload compression")),
    }
}

fn unzstd(contents: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let damaged = || DecodeError::new(0, "zstd payload");
    let mut rest = contents;
    let mut out = Vec::new();
    // A long payload may be several frames.
    while !rest.is_empty() {
        let decoder = ruzstd::decoding::StreamingDecoder::new(&mut rest).map_err(|_| damaged())?;
        let left = u64::from(MAX_EVENT_SIZE).saturating_sub(out.len() as u64);
        let read = decoder.take(left + 1).read_to_end(&mut out).map_err(|_| damaged())?;
        if read as u64 > left {
            return Err(damaged());
        }
    }
    Ok(out)
}
