//! The text of GROUP_CONCAT: its parts in their order, as many bytes as there may be.

use super::aggregate::AggregateSpec;
use crate::error::SqlError;
use crate::expr::{Context, compare};
use crate::memory::{Account, memory_of};
use bytes::Bytes;
use omnibus_value::Value;
use std::cmp::Ordering;

/// The bytes that a part of GROUP_CONCAT takes beside its text and keys.
pub(super) const PART_COST: usize = 64;
/// Bytes of parts past the limit that are kept until they are looked through.
pub(super) const PRUNE_AT: usize = 64 << 10;

/// Drops the parts of GROUP_CONCAT that those in front of them leave no place for.
pub(super) fn prune(
    parts: &mut Vec<(Vec<Value>, Bytes)>,
    length: &mut usize,
    max: usize,
    spec: &AggregateSpec,
    account: &mut Account,
) {
    sort(parts, spec);
    let mut kept = 0;
    let mut total = 0;
    while total <= max && kept < parts.len() {
        total += parts[kept].1.len() + spec.separator.len();
        kept += 1;
    }
    for (keys, text) in parts.drain(kept..) {
        account.shrink(memory_of(&keys) + text.len() + PART_COST);
    }
    *length = total;
}

pub(super) fn concat(
    mut parts: Vec<(Vec<Value>, Bytes)>,
    spec: &AggregateSpec,
    cx: &mut Context<'_>,
) -> Value {
    if parts.is_empty() {
        return Value::Null;
    }
    sort(&mut parts, spec);
    if let Some(limit) = spec.limit {
        parts.truncate(limit);
    }
    let texts: Vec<&[u8]> = parts.iter().map(|(_, text)| &text[..]).collect();
    let mut out = texts.join(&spec.separator[..]);
    let max = usize::try_from(cx.session.settings.group_concat_max_len).unwrap_or(usize::MAX);
    if out.len() > max {
        let collation = spec.ty.column.collation;
        let mut end = 0;
        for character in crate::expr::charset::chars(&out, collation) {
            if end + character.len() > max {
                break;
            }
            end += character.len();
        }
        out.truncate(end);
        cx.warn(SqlError::new(1260, b"HY000", format!("Row {} was cut by GROUP_CONCAT()", texts.len())));
    }
    Value::Bytes(out.into())
}

fn sort(parts: &mut [(Vec<Value>, Bytes)], spec: &AggregateSpec) {
    parts.sort_by(|(a, _), (b, _)| {
        for ((x, y), (expr, descending)) in a.iter().zip(b).zip(&spec.order) {
            let order = compare::sort_order(x, y, expr.ty.column.collation);
            if order != Ordering::Equal {
                return if *descending { order.reverse() } else { order };
            }
        }
        Ordering::Equal
    });
}
