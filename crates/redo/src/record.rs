//! One record: length u32, checksum u32, then the payload. Integers are little-endian.
//!
//! | kind | payload behind the kind and the transaction's id u64 |
//! |---|---|
//! | 1 prepare | number of writes u32; each: key length u32, key, 1 and value length u32 and value, or 0 |
//! | 2 commit | commit number u64 |
//! | 3 rollback | |
//!
//! The checksum (CRC-32) covers the segment's number and the payload. A length of 0 is the end: segments are zeros
//! before they are written.

use bytes::{Buf, Bytes};
use omnibus_engine::{CommitNo, EngineError, TrxId, WriteSet};

const HEADER: usize = 8;
const PREPARE: u8 = 1;
const COMMIT: u8 = 2;
const ROLLBACK: u8 = 3;

#[derive(Debug)]
pub(crate) enum Record {
    Prepare(TrxId, WriteSet),
    Commit(TrxId, CommitNo),
    Rollback(TrxId),
}

/// A prepare's payload; made before any lock is taken.
///
/// # Errors
/// The part of the writes that is in files could not be read.
pub(crate) fn prepare(trx: TrxId, writes: &WriteSet) -> Result<Vec<u8>, EngineError> {
    let mut out = Vec::with_capacity(32 + writes.memory());
    out.push(PREPARE);
    out.extend_from_slice(&trx.0.to_le_bytes());
    let (count_at, mut count) = (out.len(), 0u32);
    out.extend_from_slice(&count.to_le_bytes());
    let part = |out: &mut Vec<u8>, bytes: &[u8]| {
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(bytes);
    };
    for pending in writes.iter() {
        let pending = pending?;
        count += 1;
        part(&mut out, pending.key());
        match pending.write() {
            Some(value) => {
                out.push(1);
                part(&mut out, &value);
            }
            None => out.push(0),
        }
    }
    out[count_at..count_at + 4].copy_from_slice(&count.to_le_bytes());
    Ok(out)
}

pub(crate) fn commit(trx: TrxId, no: CommitNo) -> Vec<u8> {
    let mut out = vec![COMMIT];
    out.extend_from_slice(&trx.0.to_le_bytes());
    out.extend_from_slice(&no.0.to_le_bytes());
    out
}

pub(crate) fn rollback(trx: TrxId) -> Vec<u8> {
    let mut out = vec![ROLLBACK];
    out.extend_from_slice(&trx.0.to_le_bytes());
    out
}

fn checksum(segment: u64, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&segment.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}

/// Appends the record with this payload.
pub(crate) fn frame(out: &mut Vec<u8>, segment: u64, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    out.extend_from_slice(&checksum(segment, payload).to_le_bytes());
    out.extend_from_slice(payload);
}

/// Bytes of a record with this payload.
pub(crate) fn framed_len(payload: &[u8]) -> u64 {
    (HEADER + payload.len()) as u64
}

/// The next content of a segment.
pub(crate) enum Next<'a> {
    Record(Record, &'a [u8]),
    /// Zeros, or nothing.
    End,
    /// Neither.
    Torn,
}

pub(crate) fn next(segment: u64, bytes: &[u8]) -> Next<'_> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else {
        return if bytes.iter().all(|byte| *byte == 0) { Next::End } else { Next::Torn };
    };
    let (mut len, mut sum) = ([0; 4], [0; 4]);
    len.copy_from_slice(&header[..4]);
    sum.copy_from_slice(&header[4..]);
    let len = u32::from_le_bytes(len) as usize;
    if len == 0 {
        return if header == &[0; HEADER] { Next::End } else { Next::Torn };
    }
    let Some((payload, rest)) = rest.split_at_checked(len) else { return Next::Torn };
    if checksum(segment, payload) != u32::from_le_bytes(sum) {
        return Next::Torn;
    }
    match decode(payload) {
        Some(record) => Next::Record(record, rest),
        None => Next::Torn,
    }
}

fn decode(mut payload: &[u8]) -> Option<Record> {
    let kind = payload.try_get_u8().ok()?;
    let trx = TrxId(payload.try_get_u64_le().ok()?);
    let record = match kind {
        PREPARE => {
            let mut writes = WriteSet::default();
            for _ in 0..payload.try_get_u32_le().ok()? {
                let key = part(&mut payload)?;
                match payload.try_get_u8().ok()? {
                    0 => writes.delete(key),
                    1 => writes.put(key, part(&mut payload)?),
                    _ => return None,
                }
            }
            Record::Prepare(trx, writes)
        }
        COMMIT => Record::Commit(trx, CommitNo(payload.try_get_u64_le().ok()?)),
        ROLLBACK => Record::Rollback(trx),
        _ => return None,
    };
    payload.is_empty().then_some(record)
}

fn part(payload: &mut &[u8]) -> Option<Bytes> {
    let len = payload.try_get_u32_le().ok()? as usize;
    let (bytes, rest) = payload.split_at_checked(len)?;
    *payload = rest;
    Some(Bytes::copy_from_slice(bytes))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn records_come_back_and_every_flipped_bit_and_cut_is_noticed() {
        let mut writes = WriteSet::default();
        writes.put(Bytes::from_static(b"k"), Bytes::from_static(b"value"));
        writes.put(Bytes::from_static(b"empty"), Bytes::new());
        writes.delete(Bytes::from_static(b"gone"));
        let mut bytes = Vec::new();
        frame(&mut bytes, 7, &prepare(TrxId(3), &writes).unwrap());
        let Next::Record(Record::Prepare(TrxId(3), back), []) = next(7, &bytes) else { panic!("not read") };
        let all = |set: WriteSet| set.into_writes().unwrap().collect::<Vec<_>>();
        assert_eq!(all(back), all(writes));
        assert!(matches!(next(8, &bytes), Next::Torn), "another segment's");
        for at in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[at / 8] ^= 1 << (at % 8);
            assert!(!matches!(next(7, &bad), Next::Record(..)), "bit {at}");
        }
        for len in 1..bytes.len() {
            let mut cut = bytes.clone();
            cut[len..].fill(0);
            assert!(!matches!(next(7, &cut), Next::Record(..)), "cut at {len}");
        }
        assert!(matches!(next(7, &[0; 100]), Next::End));
        assert!(matches!(next(7, &[]), Next::End));
    }
}
