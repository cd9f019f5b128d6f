//! String functions that look at strings: LENGTH, LOCATE, FIELD, STRCMP, ASCII, FIND_IN_SET.

use super::{Def, MANY, int_arg, str_arg, ty};
use crate::error::ExecResult;
use crate::expr::{Exec, Expr, ExprType, charset};
use omnibus_value::Value;
use std::cmp::Ordering;

pub(super) const DEFS: &[Def] = &[
    Def::new("LENGTH", 1, 1, ty::int, length),
    Def::new("OCTET_LENGTH", 1, 1, ty::int, length),
    Def::new("BIT_LENGTH", 1, 1, ty::int, bit_length),
    Def::new("CHAR_LENGTH", 1, 1, ty::int, char_length),
    Def::new("CHARACTER_LENGTH", 1, 1, ty::int, char_length),
    Def::new("ASCII", 1, 1, ty::int, ascii),
    Def::new("ORD", 1, 1, ty::bigint, ord),
    Def::collating("INSTR", 2, 2, ty::int, instr),
    Def::collating("LOCATE", 2, 3, ty::int, locate),
    Def::collating("POSITION", 2, 2, ty::int, locate),
    Def::collating("STRCMP", 2, 2, ty::boolean, strcmp),
    Def::collating("FIELD", 2, MANY, ty::int, field),
    Def::collating("FIND_IN_SET", 2, 2, ty::int, find_in_set),
];

/// First place of `needle` in `haystack`, by bytes.
pub(super) fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    if needle.is_empty() {
        return Some(0);
    }
    if needle.len() > haystack.len() {
        return None;
    }
    haystack.windows(needle.len()).position(|w| w == needle)
}

fn length(args: &[Expr], _: &ExprType, cx: &mut Exec<'_>) -> ExecResult<Value> {
    Ok(Value::Int(str_arg!(args, 0, cx).len() as i64))
}

fn bit_length(args: &[Expr], _: &ExprType, cx: &mut Exec<'_>) -> ExecResult<Value> {
    Ok(Value::Int(str_arg!(args, 0, cx).len() as i64 * 8))
}

fn char_length(args: &[Expr], _: &ExprType, cx: &mut Exec<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    Ok(Value::Int(charset::char_count(&value, args[0].ty.column.collation) as i64))
}

fn ascii(args: &[Expr], _: &ExprType, cx: &mut Exec<'_>) -> ExecResult<Value> {
    Ok(Value::Int(str_arg!(args, 0, cx).first().copied().map_or(0, i64::from)))
}

fn ord(args: &[Expr], _: &ExprType, cx: &mut Exec<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    let width = charset::char_width(&value, args[0].ty.column.collation).min(value.len());
    Ok(Value::Int(value[..width].iter().fold(0, |n, b| n << 8 | i64::from(*b))))
}

/// 1-based character position of `needle` at or behind character `from`, 0 if it is not there.
/// Compares character by character under the collation.
fn position(haystack: &[u8], needle: &[u8], from: usize, collation: u16) -> i64 {
    let characters: Vec<&[u8]> = charset::chars(haystack, collation).collect();
    if from > characters.len() {
        return 0;
    }
    let wanted = charset::char_count(needle, collation);
    if wanted == 0 {
        return from as i64 + 1;
    }
    let mut offsets = Vec::with_capacity(characters.len() + 1);
    let mut at = 0;
    for c in &characters {
        offsets.push(at);
        at += c.len();
    }
    offsets.push(at);
    for start in from..=characters.len().saturating_sub(wanted) {
        if start + wanted > characters.len() {
            break;
        }
        let piece = &haystack[offsets[start]..offsets[start + wanted]];
        if piece == needle || charset::compare_no_pad(piece, needle, collation) == Ordering::Equal {
            return start as i64 + 1;
        }
    }
    0
}

/// The collation that both arguments are compared under.
fn common(a: &Expr, b: &Expr) -> u16 {
    crate::expr::types::merge_all([&a.ty, &b.ty], crate::expr::types::BINARY, "locate")
        .map_or(crate::expr::types::BINARY, |(collation, _)| collation)
}

fn instr(args: &[Expr], _: &ExprType, cx: &mut Exec<'_>) -> ExecResult<Value> {
    let haystack = str_arg!(args, 0, cx);
    let needle = str_arg!(args, 1, cx);
    Ok(Value::Int(position(&haystack, &needle, 0, common(&args[0], &args[1]))))
}

fn locate(args: &[Expr], _: &ExprType, cx: &mut Exec<'_>) -> ExecResult<Value> {
    let needle = str_arg!(args, 0, cx);
    let haystack = str_arg!(args, 1, cx);
    let from = if args.len() > 2 { int_arg!(args, 2, cx) } else { 1 };
    let Some(from) = usize::try_from(from).ok().and_then(|f| f.checked_sub(1)) else {
        return Ok(Value::Int(0));
    };
    Ok(Value::Int(position(&haystack, &needle, from, common(&args[0], &args[1]))))
}

fn strcmp(args: &[Expr], _: &ExprType, cx: &mut Exec<'_>) -> ExecResult<Value> {
    let a = str_arg!(args, 0, cx);
    let b = str_arg!(args, 1, cx);
    Ok(Value::Int(charset::compare(&a, &b, common(&args[0], &args[1])) as i64))
}

fn field(args: &[Expr], _: &ExprType, cx: &mut Exec<'_>) -> ExecResult<Value> {
    let wanted = args[0].eval(cx)?;
    if matches!(wanted, Value::Null) {
        return Ok(Value::Int(0));
    }
    for (i, arg) in args.iter().enumerate().skip(1) {
        let value = arg.eval(cx)?;
        let collation = common(&args[0], arg);
        if crate::expr::compare::values(&wanted, &value, collation) == Some(Ordering::Equal) {
            return Ok(Value::Int(i as i64));
        }
    }
    Ok(Value::Int(0))
}

fn find_in_set(args: &[Expr], _: &ExprType, cx: &mut Exec<'_>) -> ExecResult<Value> {
    let wanted = str_arg!(args, 0, cx);
    let list = str_arg!(args, 1, cx);
    if list.is_empty() || wanted.contains(&b',') {
        return Ok(Value::Int(0));
    }
    let collation = common(&args[0], &args[1]);
    let found = list
        .split(|b| *b == b',')
        .position(|item| charset::compare_no_pad(item, &wanted, collation) == Ordering::Equal);
    Ok(Value::Int(found.map_or(0, |i| i as i64 + 1)))
}
