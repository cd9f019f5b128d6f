//! String functions that look at strings: LENGTH, LOCATE, FIELD, STRCMP, ASCII, FIND_IN_SET.

use super::{Def, MANY, int_arg, str_arg, ty};
use crate::error::{ExecResult, SqlResult};
use crate::expr::types::{BINARY, Family};
use crate::expr::{BindContext, Context, Expr, ExprType, Kind, charset};
use omnibus_value::{ColumnKind, Value};
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
    Def::collating("STRCMP", 2, 2, strcmp_type, strcmp),
    Def::collating("FIELD", 2, MANY, |_, _| Ok(ExprType::int(3)), field),
    Def::collating("FIND_IN_SET", 2, 2, ty::int, find_in_set),
];

/// First place of `needle`, which is not empty, in `haystack`, by bytes.
pub(super) fn find(haystack: &[u8], needle: &[u8], cx: &mut Context<'_>) -> ExecResult<Option<usize>> {
    for (at, piece) in haystack.windows(needle.len()).enumerate() {
        cx.compared(needle.len())?;
        if piece == needle {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

fn length(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    Ok(Value::Int(str_arg!(args, 0, cx).len() as i64))
}

fn bit_length(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    Ok(Value::Int(str_arg!(args, 0, cx).len() as i64 * 8))
}

fn char_length(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    Ok(Value::Int(charset::char_count(&value, args[0].ty.column.collation) as i64))
}

fn ascii(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    Ok(Value::Int(str_arg!(args, 0, cx).first().copied().map_or(0, i64::from)))
}

fn ord(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    let width = charset::char_width(&value, args[0].ty.column.collation).min(value.len());
    Ok(Value::Int(value[..width].iter().fold(0, |n, b| n << 8 | i64::from(*b))))
}

/// 1-based character position of `needle` at or behind character `from`, 0 if it is not there.
/// As in MySQL, what is compared under the collation with the needle is as many bytes as it has: `ä` does not hold `a`.
fn position(
    haystack: &[u8],
    needle: &[u8],
    from: usize,
    collation: u16,
    cx: &mut Context<'_>,
) -> ExecResult<i64> {
    let mut at = 0;
    let mut number = 0;
    let mut rest = charset::chars(haystack, collation);
    loop {
        if number >= from {
            if needle.is_empty() {
                return Ok(number as i64 + 1);
            }
            let Some(piece) = haystack.get(at..at + needle.len()) else { return Ok(0) };
            cx.compared(needle.len())?;
            if piece == needle || charset::compare_no_pad(piece, needle, collation) == Ordering::Equal {
                return Ok(number as i64 + 1);
            }
        }
        let Some(character) = rest.next() else { return Ok(0) };
        at += character.len();
        number += 1;
    }
}

/// The collation that both arguments are compared under.
fn common(a: &Expr, b: &Expr) -> u16 {
    crate::expr::mix::merge_all([&a.ty, &b.ty], BINARY, "locate").map_or(BINARY, |(collation, _)| collation)
}

/// The collation of a search: that of the text in MySQL, unless that is no text.
fn searched(text: &Expr, wanted: &Expr, cx: &Context<'_>) -> u16 {
    match text.ty.family() == Family::String && !cx.session.settings.mariadb {
        true => text.ty.column.collation,
        false => common(text, wanted),
    }
}

fn instr(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let haystack = str_arg!(args, 0, cx);
    let needle = str_arg!(args, 1, cx);
    position(&haystack, &needle, 0, searched(&args[0], &args[1], cx), cx).map(Value::Int)
}

fn locate(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let needle = str_arg!(args, 0, cx);
    let haystack = str_arg!(args, 1, cx);
    let from = if args.len() > 2 { int_arg!(args, 2, cx) } else { 1 };
    let Some(from) = usize::try_from(from).ok().and_then(|f| f.checked_sub(1)) else {
        return Ok(Value::Int(0));
    };
    position(&haystack, &needle, from, searched(&args[1], &args[0], cx), cx).map(Value::Int)
}

/// -1, 0 or 1.
fn strcmp_type(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    let mut ty = ty::boolean(args, cx)?;
    ty.column.length = 2;
    Ok(ty)
}

fn strcmp(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let a = str_arg!(args, 0, cx);
    let b = str_arg!(args, 1, cx);
    Ok(Value::Int(charset::compare(&a, &b, common(&args[0], &args[1])) as i64))
}

/// Place of the first of the other arguments that equals the first one, 0 if none does. All are compared as one type: text if
/// all are, exact numbers if all are, else doubles.
fn field(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let exact = |e: &Expr| matches!(e.ty.family(), Family::Integer | Family::Decimal);
    let number = |e: &Expr| exact(e) || e.ty.family() == Family::Real;
    if !args.iter().any(number) {
        return place(
            args,
            cx,
            |e, cx| e.eval_str(cx),
            |a, b, of| charset::compare(a, b, common(&args[0], of)).is_eq(),
        );
    }
    if args.iter().all(exact) {
        let equal = |a: &Value, b: &Value, _: &Expr| {
            crate::expr::compare::values(a, b, BINARY) == Some(Ordering::Equal)
        };
        return place(
            args,
            cx,
            |e, cx| Ok(Some(e.eval(cx)?).filter(|value| !matches!(value, Value::Null))),
            equal,
        );
    }
    place(args, cx, |e, cx| e.eval_f64(cx), |a, b, _| a == b)
}

/// Place of the first of the other arguments that equals the first, as `value` reads them and `equal` compares them.
fn place<T>(
    args: &[Expr],
    cx: &mut Context<'_>,
    value: impl Fn(&Expr, &mut Context<'_>) -> ExecResult<Option<T>>,
    equal: impl Fn(&T, &T, &Expr) -> bool,
) -> ExecResult<Value> {
    let Some(wanted) = value(&args[0], cx)? else { return Ok(Value::Int(0)) };
    for (at, arg) in args.iter().enumerate().skip(1) {
        if value(arg, cx)?.is_some_and(|other| equal(&wanted, &other, arg)) {
            return Ok(Value::Int(at as i64));
        }
    }
    Ok(Value::Int(0))
}

/// The place of a text in a SET column is that of the member among those of the type, not of the value: in MariaDB's dialect of a constant.
fn place_in_type(
    constant: &Expr,
    list: &Expr,
    wanted: &[u8],
    collation: u16,
    cx: &mut Context<'_>,
) -> ExecResult<Option<i64>> {
    let column = match &list.kind {
        Kind::Text(inner) | Kind::Transcode(inner) => inner,
        _ => list,
    };
    if (cx.session.settings.mariadb && constant.as_const().is_none())
        || column.ty.column.kind != ColumnKind::Set
        || !matches!(column.kind, Kind::Column { .. })
    {
        return Ok(None);
    }
    let Value::Set(members) = column.eval(cx)? else { return Ok(None) };
    let mut labels = column.ty.column.labels.iter();
    let found = labels.position(|label| charset::compare_no_pad(label, wanted, collation).is_eq());
    Ok(Some(found.filter(|at| members >> at & 1 == 1).map_or(0, |at| at as i64 + 1)))
}

fn find_in_set(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let wanted = str_arg!(args, 0, cx);
    let list = str_arg!(args, 1, cx);
    if list.is_empty() || wanted.contains(&b',') {
        return Ok(Value::Int(0));
    }
    let collation = common(&args[0], &args[1]);
    if let Some(place) = place_in_type(&args[0], &args[1], &wanted, collation, cx)? {
        return Ok(Value::Int(place));
    }
    let found = list
        .split(|b| *b == b',')
        .position(|item| charset::compare_no_pad(item, &wanted, collation) == Ordering::Equal);
    Ok(Value::Int(found.map_or(0, |i| i as i64 + 1)))
}
