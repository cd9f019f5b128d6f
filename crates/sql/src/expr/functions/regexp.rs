//! REGEXP_LIKE, REGEXP_INSTR, REGEXP_SUBSTR, REGEXP_REPLACE.

use super::{Def, boolean, int_arg, str_arg, text, ty};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::regexp::{Letters, RegexpMatcher, Replacement};
use crate::expr::{Context, Expr, ExprType, charset};
use bytes::Bytes;
use omnibus_value::Value;
use regex_automata::Span;

pub(super) const DEFS: &[Def] = &[
    Def::collating("REGEXP_LIKE", 2, 3, ty::boolean, like),
    Def::collating("REGEXP_INSTR", 2, 6, ty::int, instr),
    Def::collating("REGEXP_SUBSTR", 2, 5, ty::like_first, substr),
    Def::collating("REGEXP_REPLACE", 3, 6, ty::long_string, replace),
];

/// Compiles the pattern under the match type's letters; the last of `c` and `i` wins.
fn compile(name: &str, pattern: &[u8], letters: &[u8], collation: u16) -> SqlResult<RegexpMatcher> {
    let ignore_case = !charset::is_binary_order(collation);
    let mut read = Letters { ignore_case, ..Letters::default() };
    for letter in letters {
        match letter {
            b'c' => read.ignore_case = false,
            b'i' => read.ignore_case = true,
            b'm' => read.multi_line = true,
            b'n' => read.dot_newline = true,
            b'u' => read.unix_lines = true,
            _ => return Err(SqlError::wrong_arguments(name)),
        }
    }
    RegexpMatcher::with_letters(pattern, read)
}

/// The optional match type.
fn letters(args: &[Expr], at: usize, cx: &mut Context<'_>) -> ExecResult<Option<Bytes>> {
    match args.get(at) {
        Some(arg) => arg.eval_str(cx),
        None => Ok(Some(Bytes::new())),
    }
}

/// An optional integer argument.
fn integer(args: &[Expr], at: usize, default: i128, cx: &mut Context<'_>) -> ExecResult<Option<i128>> {
    match args.get(at) {
        Some(arg) => arg.eval_int(cx),
        None => Ok(Some(default)),
    }
}

/// Byte offset of the 1-based character `position`.
fn offset(value: &Bytes, position: i128, collation: u16) -> ExecResult<usize> {
    let count = charset::char_count(value, collation);
    match usize::try_from(position) {
        Ok(p) if p >= 1 && p <= count + 1 => Ok(charset::slice_chars(value, 0, p - 1, collation).len()),
        _ => Err(SqlError::new(3686, b"HY000", "Index out of bounds in regular expression search.").into()),
    }
}

/// The match of this number at or behind byte `from`; the first is 1.
fn nth(
    matcher: &RegexpMatcher,
    value: &[u8],
    from: usize,
    occurrence: i128,
    collation: u16,
    cx: &Context<'_>,
) -> ExecResult<Option<Span>> {
    let (searched, mut last) = (matcher.searched(value), None);
    for _ in 0..occurrence.max(1) {
        cx.tick()?;
        last = matcher.find_behind(searched, from, last, collation, cx)?;
        if last.is_none() {
            break;
        }
    }
    Ok(last)
}

fn like(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    let pattern = str_arg!(args, 1, cx);
    let Some(letters) = letters(args, 2, cx)? else { return Ok(Value::Null) };
    let matcher = compile("regexp_like", &pattern, &letters, args[0].ty.column.collation)?;
    Ok(boolean(matcher.is_match(&value, cx)?))
}

fn instr(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    let pattern = str_arg!(args, 1, cx);
    let (Some(position), Some(occurrence), Some(behind)) =
        (integer(args, 2, 1, cx)?, integer(args, 3, 1, cx)?, integer(args, 4, 0, cx)?)
    else {
        return Ok(Value::Null);
    };
    let Some(letters) = letters(args, 5, cx)? else { return Ok(Value::Null) };
    let collation = args[0].ty.column.collation;
    let from = offset(&value, position, collation)?;
    let matcher = compile("regexp_instr", &pattern, &letters, collation)?;
    // Its text begins at the position: what stands before is not there for `^` and a look behind.
    let found = nth(&matcher, &value[from..], 0, occurrence, collation, cx)?;
    Ok(Value::Int(found.map_or(0, |found| {
        let end = from + if behind == 1 { found.end } else { found.start };
        charset::char_count(&value[..end], collation) as i64 + 1
    })))
}

fn substr(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    let pattern = str_arg!(args, 1, cx);
    let (Some(position), Some(occurrence)) = (integer(args, 2, 1, cx)?, integer(args, 3, 1, cx)?) else {
        return Ok(Value::Null);
    };
    let Some(letters) = letters(args, 4, cx)? else { return Ok(Value::Null) };
    let collation = args[0].ty.column.collation;
    let from = offset(&value, position, collation)?;
    let matcher = compile("regexp_substr", &pattern, &letters, collation)?;
    let found = nth(&matcher, &value, from, occurrence, collation, cx)?;
    Ok(found.map_or(Value::Null, |found| text(value.slice(found.range()))))
}

fn replace(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    let pattern = str_arg!(args, 1, cx);
    let new = str_arg!(args, 2, cx);
    let position = if args.len() > 3 { int_arg!(args, 3, cx) } else { 1 };
    let Some(occurrence) = integer(args, 4, 0, cx)? else { return Ok(Value::Null) };
    let Some(letters) = letters(args, 5, cx)? else { return Ok(Value::Null) };
    let collation = args[0].ty.column.collation;
    let from = offset(&value, position, collation)?;
    let matcher = compile("regexp_replace", &pattern, &letters, collation)?;
    let new = Replacement::read(&new, matcher.groups(), cx.session.settings.mariadb)?;
    let searched = matcher.searched(&value);
    let mut out = value[..from].to_vec();
    let mut at = from;
    let (mut number, mut last) = (0, None);
    while let Some(found) = matcher.find_behind(searched, from, last, collation, cx)? {
        cx.tick()?;
        (number, last) = (number + 1, Some(found));
        if occurrence > 0 && number != occurrence {
            continue;
        }
        let copied = found.start - at;
        cx.room(&mut out, copied + new.bytes_max(found.len()))?;
        out.extend_from_slice(&value[at..found.start]);
        matcher.expand(searched, found, &new, &mut out, cx)?;
        at = found.end;
        if !super::string::fits(out.len(), "regexp_replace", cx) {
            return Ok(Value::Null);
        }
    }
    cx.room(&mut out, value.len() - at)?;
    out.extend_from_slice(&value[at..]);
    Ok(text(out))
}
