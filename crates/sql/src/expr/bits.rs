//! `& | ^ ~ << >>`, BIT_COUNT and the aggregates of bits: of integers, and of bytes as MySQL has them since 8.0. Whether operands are bytes
//! is the binder's to say (`is_bits_of_bytes`), since MariaDB takes bytes for numbers.

use super::Expr;
use super::context::Context;
use super::node::BitOp;
use super::types::{BINARY, ExprType, Family};
use crate::error::{ExecResult, SqlError};
use crate::expr::functions::aggregate::AggregateSpec;
use crate::memory::Account;
use omnibus_parser::ast::AggregateKind;
use omnibus_value::Value;

/// Whether an operand is bytes by itself: what is written as X'..' alone is a number as well.
pub(crate) fn is_bits_of_bytes(ty: &ExprType) -> bool {
    may_be_bytes(ty) && !ty.is_binary_literal() && !ty.is_null()
}

/// Whether an operand can be bytes beside one that is.
pub(crate) fn may_be_bytes(ty: &ExprType) -> bool {
    ty.is_null() || ty.family() == Family::String && ty.column.collation == BINARY
}

/// Evaluates `a op b`; the type of the result says whether they are bytes.
///
/// # Errors
/// 3513: bytes of unequal length.
pub(super) fn binary(op: BitOp, pair: &[Expr; 2], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    if ty.family() != Family::String {
        let Some(a) = pair[0].eval_int(cx)? else { return Ok(Value::Null) };
        let Some(b) = pair[1].eval_int(cx)? else { return Ok(Value::Null) };
        return Ok(Value::UInt(of_integers(op, a as u64, b as u64)));
    }
    let Some(a) = pair[0].eval_str(cx)? else { return Ok(Value::Null) };
    cx.ask(a.len())?;
    if let BitOp::ShiftLeft | BitOp::ShiftRight = op {
        let Some(by) = pair[1].eval_int(cx)? else { return Ok(Value::Null) };
        // A negative number is a large one.
        let by = usize::try_from(by as u64).unwrap_or(usize::MAX);
        return Ok(Value::Bytes(shifted(&a, by, op == BitOp::ShiftLeft).into()));
    }
    let Some(b) = pair[1].eval_str(cx)? else { return Ok(Value::Null) };
    let mut out = a.to_vec();
    combine(&mut out, &b, op)?;
    Ok(Value::Bytes(out.into()))
}

/// Evaluates `~e`.
///
/// # Errors
/// As evaluation of the operand.
pub(super) fn not(e: &Expr, ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    if ty.family() != Family::String {
        return Ok(e.eval_int(cx)?.map_or(Value::Null, |n| Value::UInt(!(n as u64))));
    }
    let Some(bytes) = e.eval_str(cx)? else { return Ok(Value::Null) };
    cx.ask(bytes.len())?;
    Ok(Value::Bytes(bytes.iter().map(|byte| !byte).collect::<Vec<u8>>().into()))
}

/// The most bytes that MySQL's aggregates of bits take.
pub(in crate::expr) const LONGEST: usize = 511;

/// Returns the neutral element of an aggregate: combining it with a value leaves the value.
pub(in crate::expr) fn neutral(kind: AggregateKind, length: usize) -> Vec<u8> {
    vec![if kind == AggregateKind::BitAnd { 0xff } else { 0 }; length]
}

/// 3514.
pub(in crate::expr) fn too_long() -> SqlError {
    let message = "Aggregate bitwise functions cannot accept arguments longer than 511 bytes; consider using the SUBSTRING() function";
    SqlError::new(3514, b"HY000", message)
}

/// Takes the value for the row in the frame up into an aggregate of bytes.
///
/// # Errors
/// 3513, 3514; as evaluation.
pub(in crate::expr) fn take(
    so_far: &mut Option<Vec<u8>>,
    spec: &AggregateSpec,
    account: &mut Account,
    cx: &mut Context<'_>,
) -> ExecResult<()> {
    let Some(bytes) = spec.args[0].eval_str(cx)? else { return Ok(()) };
    if bytes.len() > LONGEST {
        return Err(too_long().into());
    }
    if so_far.is_none() {
        account.grow(bytes.len(), &cx.session.settings)?;
    }
    let op = match spec.kind {
        AggregateKind::BitAnd => BitOp::And,
        AggregateKind::BitOr => BitOp::Or,
        _ => BitOp::Xor,
    };
    combine(so_far.get_or_insert_with(|| neutral(spec.kind, bytes.len())), &bytes, op)
}

fn combine(a: &mut [u8], b: &[u8], op: BitOp) -> ExecResult<()> {
    if a.len() != b.len() {
        let message = "Binary operands of bitwise operators must be of equal length";
        return Err(SqlError::new(3513, b"HY000", message).into());
    }
    for (a, b) in a.iter_mut().zip(b) {
        *a = of_integers(op, u64::from(*a), u64::from(*b)) as u8;
    }
    Ok(())
}

fn of_integers(op: BitOp, a: u64, b: u64) -> u64 {
    let shift = u32::try_from(b).ok();
    match op {
        BitOp::And => a & b,
        BitOp::Or => a | b,
        BitOp::Xor => a ^ b,
        BitOp::ShiftLeft => shift.and_then(|s| a.checked_shl(s)).unwrap_or(0),
        BitOp::ShiftRight => shift.and_then(|s| a.checked_shr(s)).unwrap_or(0),
    }
}

/// All bits moved towards the first byte or the last; those that leave are lost.
fn shifted(bytes: &[u8], by: usize, left: bool) -> Vec<u8> {
    let (whole, bits) = (by / 8, by % 8);
    let byte = |at: Option<usize>| at.and_then(|at| bytes.get(at)).map_or(0, |byte| u16::from(*byte));
    let one = |at: usize| {
        if left {
            let (high, low) = (byte(at.checked_add(whole)), byte(at.checked_add(whole + 1)));
            ((high << 8 | low) << bits >> 8) as u8
        } else {
            let from = at.checked_sub(whole);
            let (high, low) = (byte(from.and_then(|from| from.checked_sub(1))), byte(from));
            ((high << 8 | low) >> bits) as u8
        }
    };
    (0..bytes.len()).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::shifted;

    #[test]
    fn bits_move_over_bytes() {
        assert_eq!(shifted(&[0xff, 0x00, 0xff], 4, true), [0xf0, 0x0f, 0xf0]);
        assert_eq!(shifted(&[0xff, 0x00, 0xff], 9, false), [0x00, 0x7f, 0x80]);
        assert_eq!(shifted(&[0xff, 0x01], 0, true), [0xff, 0x01]);
        for by in [16, 17, 1000, usize::MAX] {
            assert_eq!(shifted(&[0xff, 0xff], by, true), [0, 0]);
            assert_eq!(shifted(&[0xff, 0xff], by, false), [0, 0]);
        }
    }
}
