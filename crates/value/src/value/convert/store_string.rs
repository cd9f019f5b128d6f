//! Storing into CHAR, VARCHAR, TEXT, their binary kinds, ENUM and SET.

use bytes::Bytes;

use super::store::Raw;
use super::{Problem, StoreContext, parse_i64_prefix};
use crate::Value;
use crate::collation::Charset;
use crate::column::{ColumnKind, ColumnType};
use crate::text::write_f64_within;

/// The value's text in the column's character set. Numbers and dates are ASCII.
fn text_for(value: &Value, ty: &ColumnType, ctx: &StoreContext) -> (Bytes, Option<Problem>) {
    let target = ty.charset();
    let text = match value {
        Value::Bytes(text) => text,
        Value::Decimal(d) => return (Value::Decimal(d.in_full()).to_bytes(&natural_type(value)), None),
        Value::Double(n) if !ty.kind.is_lob() => return real_within(*n, ty),
        Value::Float(n) if !ty.kind.is_lob() => return real_within(f64::from(*n), ty),
        _ => return (value.to_bytes(&natural_type(value)), None),
    };
    if ctx.charset == target || ctx.charset.converts_as_is(target) {
        if target == Charset::Binary || text.is_ascii() {
            return (text.clone(), None);
        }
        let valid = target.well_formed_len(text);
        if valid == text.len() {
            return (text.clone(), None);
        }
        return (text.slice(..valid), Some(Problem::IncorrectString));
    }
    let mut out = Vec::with_capacity(text.len() + text.len() / 2);
    let bad = ctx.charset.convert(target, text, &mut out);
    (Bytes::from(out), (bad > 0).then_some(Problem::IncorrectString))
}

/// As many digits of a double as a column has room for.
fn real_within(n: f64, ty: &ColumnType) -> (Bytes, Option<Problem>) {
    let mut text = Vec::with_capacity(24);
    let whole = write_f64_within(n, ty.length as usize, &mut text);
    (text.into(), (!whole).then_some(Problem::TooLong))
}

/// A type that prints the value with what it has itself.
fn natural_type(value: &Value) -> ColumnType {
    ColumnType::of(match value {
        Value::Bit(_) => ColumnKind::Bit,
        _ => ColumnKind::VarBinary,
    })
}

pub(super) fn store(value: &Value, ty: &ColumnType, ctx: &StoreContext) -> Raw {
    let (text, problem) = text_for(value, ty, ctx);
    let (kept, length_problem) = fit(&text, ty);
    let problem = problem.or(length_problem);
    let stored = match ty.kind {
        // CHAR never holds trailing spaces; BINARY is always full.
        ColumnKind::Char if ty.charset() != Charset::Binary => {
            let end = text[..kept].iter().rposition(|&c| c != b' ').map_or(0, |at| at + 1);
            text.slice(..end)
        }
        ColumnKind::Char | ColumnKind::Binary if kept < ty.length as usize => {
            let mut padded = Vec::with_capacity(ty.length as usize);
            padded.extend_from_slice(&text[..kept]);
            padded.resize(ty.length as usize, 0);
            Bytes::from(padded)
        }
        _ if kept < text.len() => text.slice(..kept),
        _ => text,
    };
    (Value::Bytes(stored), problem)
}

/// Bytes that fit, and what to say about the rest.
fn fit(text: &[u8], ty: &ColumnType) -> (usize, Option<Problem>) {
    let charset = ty.charset();
    let kept = if ty.kind.is_lob() {
        let limit = ty.kind.lob_limit();
        if text.len() <= limit {
            return (text.len(), None);
        }
        charset.well_formed_len(&text[..limit])
    } else {
        charset.byte_offset(text, ty.length as usize)
    };
    if kept == text.len() {
        return (kept, None);
    }
    let only_spaces = charset != Charset::Binary && text[kept..].iter().all(|&c| c == b' ');
    let problem = match (only_spaces, ty.kind) {
        (true, ColumnKind::Char) => None,
        (true, _) => Some(Problem::Rounded),
        (false, _) => Some(Problem::TooLong),
    };
    (kept, problem)
}

fn label_index(ty: &ColumnType, text: &[u8]) -> Option<usize> {
    let collation = ty.collation();
    ty.labels.iter().position(|label| collation.eq(label, text))
}

/// Without its fraction: indexes and masks are cut, not rounded.
fn whole(value: &Value) -> Value {
    match value {
        Value::Decimal(n) => Value::Decimal(n.truncate(0)),
        Value::Float(_) | Value::Double(_) => Value::Double(value.to_f64().value.trunc()),
        other => other.clone(),
    }
}

pub(super) fn store_enum(value: &Value, ty: &ColumnType, ctx: &StoreContext) -> Raw {
    let bad = (Value::Enum(0), Some(Problem::Truncated));
    let by_index = |n: i128| match u16::try_from(n) {
        Ok(index) if index > 0 && usize::from(index) <= ty.labels.len() => Some((Value::Enum(index), None)),
        _ => None,
    };
    match value {
        Value::Bytes(_) | Value::Date(_) | Value::DateTime(_) | Value::Time(_) | Value::Json(_) => {
            let (text, problem) = text_for(value, ty, ctx);
            if problem.is_some() {
                return bad;
            }
            if let Some(at) = label_index(ty, &text) {
                return (Value::Enum(at as u16 + 1), None);
            }
            match parse_i64_prefix(&text) {
                (n, true) => by_index(n).unwrap_or(bad),
                _ => bad,
            }
        }
        // An index is taken as it is; an ENUM of another type goes by label, see the executor.
        Value::Enum(0) => (Value::Enum(0), None),
        other => by_index(i128::from(whole(other).to_i64().value)).unwrap_or(bad),
    }
}

pub(super) fn store_set(value: &Value, ty: &ColumnType, ctx: &StoreContext) -> Raw {
    let members = ty.labels.len().min(64) as u32;
    let all = u64::MAX.checked_shr(64 - members).unwrap_or(0);
    let by_mask = |mask: u64| {
        let problem = (mask & !all != 0).then_some(Problem::Truncated);
        (Value::Set(mask & all), problem)
    };
    match value {
        Value::Bytes(_) | Value::Date(_) | Value::DateTime(_) | Value::Time(_) | Value::Json(_) => {
            let (text, problem) = text_for(value, ty, ctx);
            if text.is_empty() {
                return (Value::Set(0), problem);
            }
            let mut mask = 0;
            let mut problem = problem;
            // Spaces count but at the very end.
            let end = text.iter().rposition(|&c| c != b' ').map_or(0, |last| last + 1);
            for part in text[..end].split(|&c| c == b',') {
                match label_index(ty, part).filter(|_| !part.ends_with(b" ")) {
                    Some(bit) => mask |= 1 << bit,
                    None => problem = Some(Problem::Truncated),
                }
            }
            if mask == 0
                && !text.ends_with(b" ")
                && let (n, true) = parse_i64_prefix(&text)
            {
                return by_mask(bits_of(n));
            }
            (Value::Set(mask), problem)
        }
        Value::Decimal(n) => by_mask(bits_of(super::store::rounded(&n.truncate(0)))),
        Value::Float(_) | Value::Double(_) => by_mask(bits_of(value.to_f64().value as i128)),
        other => by_mask(other.to_u64().value),
    }
}

/// The bits of a number in two's complement: a SET takes its members from those of -1, too.
fn bits_of(n: i128) -> u64 {
    n.clamp(i128::from(i64::MIN), i128::from(u64::MAX)) as u64
}
