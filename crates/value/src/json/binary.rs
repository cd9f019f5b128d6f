//! MySQL's binary JSON: sorted key directories with offsets, scalars inlined where they fit.
//!
//! Decoding accepts any bytes: every offset is checked, and depth and the size of the whole are limited, so damaged
//! input gives [`JsonError::Damaged`].

use bytes::Bytes;
use std::cell::Cell;

use super::{Json, JsonError, MAX_DEPTH};
use crate::decimal::Decimal;
use crate::temporal::{DateTime, Time};

const SMALL_OBJECT: u8 = 0;
const LARGE_OBJECT: u8 = 1;
const SMALL_ARRAY: u8 = 2;
const LARGE_ARRAY: u8 = 3;
const LITERAL: u8 = 4;
const INT16: u8 = 5;
const UINT16: u8 = 6;
const INT32: u8 = 7;
const UINT32: u8 = 8;
const INT64: u8 = 9;
const UINT64: u8 = 10;
const DOUBLE: u8 = 11;
const STRING: u8 = 12;
const OPAQUE: u8 = 15;

/// MYSQL_TYPE numbers of opaque values.
const TYPE_TIMESTAMP: u8 = 7;
const TYPE_DATE: u8 = 10;
const TYPE_TIME: u8 = 11;
const TYPE_DATETIME: u8 = 12;
const TYPE_NEWDECIMAL: u8 = 246;

pub(super) fn encode(json: &Json) -> Result<Bytes, JsonError> {
    let mut out = vec![0];
    out[0] = write_value(json, &mut out, 1, false)?;
    Ok(Bytes::from(out))
}

/// Appends a value; its type byte. `small`: it is in a container with offsets of two bytes, so it is one if it is one.
fn write_value(json: &Json, out: &mut Vec<u8>, depth: usize, small: bool) -> Result<u8, JsonError> {
    Ok(match json {
        Json::Array(_) | Json::Object(_) => return write_container(json, out, depth, small),
        Json::Null | Json::Bool(_) => {
            out.push(literal(json));
            LITERAL
        }
        Json::Int(n) => write_int(*n, out),
        Json::UInt(n) => write_uint(*n, out),
        Json::Double(n) => {
            out.extend_from_slice(&n.to_le_bytes());
            DOUBLE
        }
        Json::String(s) => {
            write_length(s.len(), out)?;
            out.extend_from_slice(s.as_bytes());
            STRING
        }
        other => {
            let (kind, data) = opaque(other);
            out.push(kind);
            write_length(data.len(), out)?;
            out.extend_from_slice(&data);
            OPAQUE
        }
    })
}

fn literal(json: &Json) -> u8 {
    match json {
        Json::Bool(true) => 1,
        Json::Bool(false) => 2,
        _ => 0,
    }
}

fn write_int(n: i64, out: &mut Vec<u8>) -> u8 {
    if let Ok(n) = i16::try_from(n) {
        out.extend_from_slice(&n.to_le_bytes());
        INT16
    } else if let Ok(n) = i32::try_from(n) {
        out.extend_from_slice(&n.to_le_bytes());
        INT32
    } else {
        out.extend_from_slice(&n.to_le_bytes());
        INT64
    }
}

fn write_uint(n: u64, out: &mut Vec<u8>) -> u8 {
    if let Ok(n) = u16::try_from(n) {
        out.extend_from_slice(&n.to_le_bytes());
        UINT16
    } else if let Ok(n) = u32::try_from(n) {
        out.extend_from_slice(&n.to_le_bytes());
        UINT32
    } else {
        out.extend_from_slice(&n.to_le_bytes());
        UINT64
    }
}

fn opaque(json: &Json) -> (u8, Vec<u8>) {
    match json {
        Json::Decimal(n) => {
            let (precision, scale) = (n.precision(), n.shown_scale());
            let mut data = vec![precision, scale];
            n.to_binlog(precision, scale, &mut data);
            (TYPE_NEWDECIMAL, data)
        }
        Json::Date(v) => (TYPE_DATE, DateTime::from(*v).packed().to_le_bytes().to_vec()),
        Json::DateTime(v) => (TYPE_DATETIME, v.packed().to_le_bytes().to_vec()),
        Json::Timestamp(v) => (TYPE_TIMESTAMP, v.packed().to_le_bytes().to_vec()),
        Json::Time(v) => (TYPE_TIME, v.packed().to_le_bytes().to_vec()),
        Json::Opaque(kind, data) => (*kind, data.to_vec()),
        _ => (0, Vec::new()),
    }
}

/// Seven bits a byte, the lowest first.
fn write_length(len: usize, out: &mut Vec<u8>) -> Result<(), JsonError> {
    let mut rest = u32::try_from(len).map_err(|_| JsonError::TooLarge)?;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
    Ok(())
}

/// Writes a container. The size of its offsets is decided before anything is written: trying both sizes would try all
/// combinations of nested containers.
fn write_container(json: &Json, out: &mut Vec<u8>, depth: usize, small: bool) -> Result<u8, JsonError> {
    if depth > MAX_DEPTH {
        return Err(JsonError::TooDeep);
    }
    let small = small || small_size(json, depth).is_some();
    if !write_sized(json, out, depth, !small)? {
        return Err(JsonError::TooLarge);
    }
    Ok(match (json, small) {
        (Json::Array(_), true) => SMALL_ARRAY,
        (Json::Array(_), false) => LARGE_ARRAY,
        (_, true) => SMALL_OBJECT,
        (_, false) => LARGE_OBJECT,
    })
}

/// Bytes of a container with offsets of two bytes; `None` if they are too few. Looks at no more than has that size.
fn small_size(json: &Json, depth: usize) -> Option<usize> {
    const MOST: usize = u16::MAX as usize;
    if depth > MAX_DEPTH {
        return None;
    }
    let mut size = 4;
    let mut add = |bytes: usize| {
        size += bytes;
        (size <= MOST).then_some(())
    };
    match json {
        Json::Array(items) => {
            add(3 * items.len())?;
            items.iter().try_for_each(|item| add(size_behind(item, depth)?))?;
        }
        Json::Object(members) => {
            add(7 * members.len())?;
            members.iter().try_for_each(|(key, member)| {
                add(key.len())?;
                add(size_behind(member, depth)?)
            })?;
        }
        _ => {}
    }
    Some(size)
}

/// Bytes of a value behind the directory of a small container; a container of its own must be small.
fn size_behind(json: &Json, depth: usize) -> Option<usize> {
    let blob = |len: usize| len + (usize::BITS - (len | 1).leading_zeros()).div_ceil(7) as usize;
    Some(match json {
        _ if inlined(json, false).is_some() => 0,
        Json::Array(_) | Json::Object(_) => small_size(json, depth + 1)?,
        Json::Int(n) => {
            if i32::try_from(*n).is_ok() {
                4
            } else {
                8
            }
        }
        Json::UInt(n) => {
            if u32::try_from(*n).is_ok() {
                4
            } else {
                8
            }
        }
        Json::Double(_) => 8,
        Json::String(text) => blob(text.len()),
        other => 1 + blob(opaque(other).1.len()),
    })
}

fn put(out: &mut [u8], at: usize, n: usize, large: bool) -> bool {
    if large {
        let Ok(n) = u32::try_from(n) else { return false };
        out[at..at + 4].copy_from_slice(&n.to_le_bytes());
    } else {
        let Ok(n) = u16::try_from(n) else { return false };
        out[at..at + 2].copy_from_slice(&n.to_le_bytes());
    }
    true
}

/// Writes with two- or four-byte offsets; `false` if two bytes are too few.
fn write_sized(json: &Json, out: &mut Vec<u8>, depth: usize, large: bool) -> Result<bool, JsonError> {
    let (keys, values): (Vec<&str>, Vec<&Json>) = match json {
        Json::Array(items) => (Vec::new(), items.iter().collect()),
        Json::Object(items) => items.iter().map(|(k, v)| (k.as_str(), v)).unzip(),
        _ => return Err(JsonError::Damaged),
    };
    let width = if large { 4 } else { 2 };
    let start = out.len();
    let keys_at = start + 2 * width;
    let values_at = keys_at + keys.len() * (width + 2);
    out.resize(values_at + values.len() * (width + 1), 0);
    if !put(out, start, values.len(), large) {
        return Ok(false);
    }
    for (i, key) in keys.iter().enumerate() {
        let entry = keys_at + i * (width + 2);
        let len = u16::try_from(key.len()).map_err(|_| JsonError::LongKey)?;
        let offset = out.len() - start;
        if !put(out, entry, offset, large) {
            return Ok(false);
        }
        out[entry + width..entry + width + 2].copy_from_slice(&len.to_le_bytes());
        out.extend_from_slice(key.as_bytes());
    }
    for (i, value) in values.iter().enumerate() {
        let entry = values_at + i * (width + 1);
        if let Some((kind, bits)) = inlined(value, large) {
            out[entry] = kind;
            out[entry + 1..entry + 1 + width].copy_from_slice(&bits.to_le_bytes()[..width]);
            continue;
        }
        let offset = out.len() - start;
        if !put(out, entry + 1, offset, large) {
            return Ok(false);
        }
        out[entry] = write_value(value, out, depth + 1, !large)?;
        if !large && out.len() - start > usize::from(u16::MAX) {
            return Ok(false);
        }
    }
    let size = out.len() - start;
    Ok(put(out, start + width, size, large))
}

fn inlined(json: &Json, large: bool) -> Option<(u8, u32)> {
    match *json {
        Json::Null | Json::Bool(_) => Some((LITERAL, u32::from(literal(json)))),
        Json::Int(n) => match (i16::try_from(n), i32::try_from(n)) {
            (Ok(n), _) => Some((INT16, n as u16 as u32)),
            (_, Ok(n)) if large => Some((INT32, n as u32)),
            _ => None,
        },
        Json::UInt(n) => match (u16::try_from(n), u32::try_from(n)) {
            (Ok(n), _) => Some((UINT16, u32::from(n))),
            (_, Ok(n)) if large => Some((UINT32, n)),
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn decode(binary: &[u8]) -> Result<Json, JsonError> {
    // An empty value is what a JSON column holds after a failed conversion; it reads as null.
    match binary.split_first() {
        None => Ok(Json::Null),
        Some((&kind, data)) => read_value(kind, data, 1, &Budget(Cell::new(data.len()))),
    }
}

/// Returns an upper bound of the number of values in a document, whole or damaged.
pub(super) fn nodes(binary: &[u8]) -> usize {
    let Some((&kind, data)) = binary.split_first() else { return 0 };
    // Each has an entry of three bytes.
    let mut left = data.len() / 3 + 1;
    count_nodes(kind, data, 1, &mut left);
    data.len() / 3 + 1 - left
}

fn count_nodes(kind: u8, data: &[u8], depth: usize, left: &mut usize) {
    if kind > LARGE_ARRAY || depth > MAX_DEPTH {
        return;
    }
    let large = matches!(kind, LARGE_OBJECT | LARGE_ARRAY);
    let width = if large { 4 } else { 2 };
    let get = |at: usize| -> usize {
        match large {
            true => array(data, at).map_or(usize::MAX, |bytes| u32::from_le_bytes(bytes) as usize),
            false => array(data, at).map_or(usize::MAX, |bytes| usize::from(u16::from_le_bytes(bytes))),
        }
    };
    let count = get(0);
    let keys = if matches!(kind, SMALL_OBJECT | LARGE_OBJECT) { count.saturating_mul(width + 2) } else { 0 };
    let values_at = keys.saturating_add(2 * width);
    let within = count.min(*left);
    *left -= within;
    for entry in (0..within).map(|i| values_at.saturating_add(i * (width + 1))) {
        let Some(&kind) = data.get(entry) else { return };
        if kind <= LARGE_ARRAY
            && let Some(child) = data.get(get(entry + 1)..)
        {
            count_nodes(kind, child, depth + 1, left);
        }
    }
}

/// Bytes that may still be read. No two values share bytes in a document that a server wrote, so all of them together are not
/// longer than it; entries of a damaged one that point at the same value would make a tree that grows with a power of its depth.
struct Budget(Cell<usize>);

impl Budget {
    fn spend(&self, bytes: usize) -> Result<(), JsonError> {
        self.0.set(self.0.get().checked_sub(bytes).ok_or(JsonError::Damaged)?);
        Ok(())
    }
}

fn array<const N: usize>(data: &[u8], at: usize) -> Result<[u8; N], JsonError> {
    let slice = data.get(at..at.saturating_add(N)).ok_or(JsonError::Damaged)?;
    slice.try_into().map_err(|_| JsonError::Damaged)
}

fn read_length(data: &[u8]) -> Result<(usize, usize), JsonError> {
    let mut len = 0u64;
    for (i, &b) in data.iter().take(5).enumerate() {
        len |= u64::from(b & 0x7f) << (7 * i);
        if b & 0x80 == 0 {
            return Ok((usize::try_from(len).map_err(|_| JsonError::Damaged)?, i + 1));
        }
    }
    Err(JsonError::Damaged)
}

fn read_blob<'a>(data: &'a [u8], budget: &Budget) -> Result<&'a [u8], JsonError> {
    let (len, used) = read_length(data)?;
    budget.spend(len)?;
    data.get(used..used.saturating_add(len)).ok_or(JsonError::Damaged)
}

fn read_value(kind: u8, data: &[u8], depth: usize, budget: &Budget) -> Result<Json, JsonError> {
    Ok(match kind {
        SMALL_OBJECT | LARGE_OBJECT | SMALL_ARRAY | LARGE_ARRAY => {
            return read_container(kind, data, depth, budget);
        }
        LITERAL => match data.first() {
            Some(0) => Json::Null,
            Some(1) => Json::Bool(true),
            Some(2) => Json::Bool(false),
            _ => return Err(JsonError::Damaged),
        },
        INT16 => Json::Int(i64::from(i16::from_le_bytes(array(data, 0)?))),
        UINT16 => Json::UInt(u64::from(u16::from_le_bytes(array(data, 0)?))),
        INT32 => Json::Int(i64::from(i32::from_le_bytes(array(data, 0)?))),
        UINT32 => Json::UInt(u64::from(u32::from_le_bytes(array(data, 0)?))),
        INT64 => Json::Int(i64::from_le_bytes(array(data, 0)?)),
        UINT64 => Json::UInt(u64::from_le_bytes(array(data, 0)?)),
        DOUBLE => {
            let n = f64::from_le_bytes(array(data, 0)?);
            if !n.is_finite() {
                return Err(JsonError::Damaged);
            }
            Json::Double(n)
        }
        STRING => Json::String(utf8(read_blob(data, budget)?)?),
        OPAQUE => {
            let (&kind, rest) = data.split_first().ok_or(JsonError::Damaged)?;
            return read_opaque(kind, read_blob(rest, budget)?);
        }
        _ => return Err(JsonError::Damaged),
    })
}

fn utf8(bytes: &[u8]) -> Result<String, JsonError> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| JsonError::Damaged)
}

fn read_opaque(kind: u8, data: &[u8]) -> Result<Json, JsonError> {
    let damaged = JsonError::Damaged;
    let packed = || array::<8>(data, 0).map(i64::from_le_bytes);
    Ok(match kind {
        TYPE_NEWDECIMAL => {
            let [precision, scale] = array(data, 0)?;
            let read = Decimal::from_binlog(precision, scale, &data[2..]);
            Json::Decimal(read.map_err(|_| damaged)?.0)
        }
        TYPE_DATE => Json::Date(DateTime::from_packed(packed()?).ok_or(damaged)?.date()),
        TYPE_DATETIME => Json::DateTime(DateTime::from_packed(packed()?).ok_or(damaged)?),
        TYPE_TIMESTAMP => Json::Timestamp(DateTime::from_packed(packed()?).ok_or(damaged)?),
        TYPE_TIME => Json::Time(Time::from_packed(packed()?).ok_or(damaged)?),
        _ => Json::Opaque(kind, Bytes::copy_from_slice(data)),
    })
}

fn read_container(kind: u8, data: &[u8], depth: usize, budget: &Budget) -> Result<Json, JsonError> {
    if depth > MAX_DEPTH {
        return Err(JsonError::TooDeep);
    }
    let large = matches!(kind, LARGE_OBJECT | LARGE_ARRAY);
    let is_object = matches!(kind, SMALL_OBJECT | LARGE_OBJECT);
    let width = if large { 4 } else { 2 };
    let get = |at: usize| -> Result<usize, JsonError> {
        Ok(if large {
            u32::from_le_bytes(array(data, at)?) as usize
        } else {
            usize::from(u16::from_le_bytes(array(data, at)?))
        })
    };
    let (count, size) = (get(0)?, get(width)?);
    let key_width = if is_object { width + 2 } else { 0 };
    let values_at = 2 * width + count.saturating_mul(key_width);
    let header = values_at.saturating_add(count.saturating_mul(width + 1));
    if size > data.len() || header > size {
        return Err(JsonError::Damaged);
    }
    budget.spend(header)?;
    let data = &data[..size];
    let value = |i: usize| -> Result<Json, JsonError> {
        let entry = values_at + i * (width + 1);
        let kind = data[entry];
        let inline = matches!(kind, LITERAL | INT16 | UINT16) || (large && matches!(kind, INT32 | UINT32));
        let from = if inline { entry + 1 } else { get(entry + 1)? };
        // Children lie behind the directory, so damaged offsets cannot make a cycle.
        if !inline && from < header {
            return Err(JsonError::Damaged);
        }
        read_value(kind, data.get(from..).ok_or(JsonError::Damaged)?, depth + 1, budget)
    };
    if !is_object {
        let mut items = Vec::with_capacity(count);
        (0..count).try_for_each(|i| value(i).map(|item| items.push(item)))?;
        return Ok(Json::Array(items));
    }
    let key = |i: usize| -> Result<String, JsonError> {
        let entry = 2 * width + i * (width + 2);
        let from = get(entry)?;
        let len = usize::from(u16::from_le_bytes(array(data, entry + width)?));
        budget.spend(len)?;
        utf8(data.get(from..from.saturating_add(len)).ok_or(JsonError::Damaged)?)
    };
    let mut members = Vec::with_capacity(count);
    for i in 0..count {
        members.push((key(i)?, value(i)?));
    }
    Ok(Json::object(members))
}
