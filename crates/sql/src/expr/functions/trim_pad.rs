//! TRIM, LTRIM, RTRIM, LPAD, RPAD.

use super::{Def, str_arg, text, text_lengths, ty};
use crate::error::ExecResult;
use crate::expr::{Context, Expr, ExprType, charset};
use bytes::Bytes;
use omnibus_value::Value;

pub(super) const DEFS: &[Def] = &[
    Def::strings("TRIM", 1, 2, ty::like_first, trim_both),
    // What the binder makes of TRIM(LEADING x FROM s) and TRIM(TRAILING x FROM s).
    Def::strings("LTRIM", 1, 2, ty::like_first, trim_left),
    Def::strings("RTRIM", 1, 2, ty::like_first, trim_right),
    Def::strings("LPAD", 2, 3, text_lengths::padded, lpad),
    Def::strings("RPAD", 2, 3, text_lengths::padded, rpad),
];

/// Drops `what` from the chosen ends of `value`.
fn trim(value: &Bytes, what: &[u8], left: bool, right: bool) -> Bytes {
    if what.is_empty() {
        return value.clone();
    }
    let (mut from, mut to) = (0, value.len());
    if left {
        while value[from..to].starts_with(what) {
            from += what.len();
        }
    }
    if right {
        while value[from..to].ends_with(what) {
            to -= what.len();
        }
    }
    value.slice(from..to)
}

fn trimmed(args: &[Expr], cx: &mut Context<'_>, left: bool, right: bool) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    let what = if args.len() > 1 { str_arg!(args, 1, cx) } else { Bytes::from_static(b" ") };
    Ok(text(trim(&value, &what, left, right)))
}

fn trim_both(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    trimmed(args, cx, true, true)
}

fn trim_left(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    trimmed(args, cx, true, false)
}

fn trim_right(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    trimmed(args, cx, false, true)
}

/// The string cut to `length` characters, or what to add: how many characters are missing.
fn pad(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Option<(Bytes, Bytes)>> {
    let Some(value) = super::text_arg(&args[0], cx)? else { return Ok(None) };
    let Some(length) = args[1].eval_int(cx)? else { return Ok(None) };
    let filler = match args.get(2) {
        Some(arg) => match super::text_arg(arg, cx)? {
            Some(filler) => filler,
            None => return Ok(None),
        },
        None => Bytes::from_static(b" "),
    };
    let Ok(length) = usize::try_from(length) else { return Ok(None) };
    let collation = ty.column.collation;
    let count = charset::char_count(&value, collation);
    if length <= count {
        return Ok(Some((charset::slice_chars(&value, 0, length, collation), Bytes::new())));
    }
    let unit = charset::char_count(&filler, collation);
    if unit == 0 {
        // MySQL 9 leaves the text as it is.
        let value = if cx.session.settings.mariadb { Bytes::new() } else { value };
        return Ok(Some((value, Bytes::new())));
    }
    let missing = length - count;
    let longest = missing.saturating_mul(filler.len().div_ceil(unit)).saturating_add(value.len());
    if !super::string::fits(
        missing.saturating_mul(filler.len() / unit).saturating_add(value.len()),
        "lpad",
        cx,
    ) {
        return Ok(None);
    }
    cx.ask(longest.saturating_mul(2))?;
    let mut padding = filler.repeat(missing / unit);
    padding.extend_from_slice(&charset::slice_chars(&filler, 0, missing % unit, collation));
    Ok(Some((value, padding.into())))
}

fn lpad(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    Ok(pad(args, ty, cx)?.map_or(Value::Null, |(value, padding)| text([padding, value].concat())))
}

fn rpad(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    Ok(pad(args, ty, cx)?.map_or(Value::Null, |(value, padding)| text([value, padding].concat())))
}
