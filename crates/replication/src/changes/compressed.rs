//! Compressed events of MariaDB (`log_bin_compress`). The length that a block announces is used as a limit and never
//! allocated ahead.

use omnibus_format::DecodeError;
use omnibus_format::EventType;
use omnibus_format::cursor::Reader;
use omnibus_format::payload::TOO_LONG;

/// Decompresses a MariaDB compressed block: a byte with the size of the length and the algorithm, the length, high byte
/// first, and a zlib stream.
///
/// # Errors
/// The block is malformed, has another length than it announces, or is longer than `longest` bytes.
pub fn inflate(block: &[u8], longest: u32) -> Result<Vec<u8>, DecodeError> {
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
    if len > longest as usize {
        return Err(r.error(TOO_LONG));
    }
    let contents = miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(r.rest(), len);
    let contents = contents.map_err(|_| DecodeError::new(0, "compressed block"))?;
    if contents.len() != len {
        return Err(DecodeError::new(0, "compressed block's length"));
    }
    Ok(contents)
}

/// Converts a MariaDB compressed event to the plain one that it stands for: type and body. `None` for other types.
///
/// # Errors
/// The event is damaged, or stands for more than `longest` bytes.
pub fn plain_event(
    event_type: EventType,
    body: &[u8],
    longest: u32,
) -> Result<Option<(EventType, Vec<u8>)>, DecodeError> {
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
    let mut whole = inflate(block, longest)?;
    // In place: the contents may be all that there is room for.
    whole.splice(..0, head.iter().copied());
    Ok(Some((plain, whole)))
}
