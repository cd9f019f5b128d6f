//! How long the text is that functions give, as far as the arguments say: the columns of CREATE TABLE .. SELECT are that long.

use super::ty;
use crate::error::SqlResult;
use crate::expr::charset::max_width;
use crate::expr::types::{BINARY, Family, bytes};
use crate::expr::{BindContext, Expr, ExprType};
use omnibus_value::Value;

fn chars(e: &Expr) -> u64 {
    u64::from(e.ty.display_length())
}

/// An argument that is a constant integer.
fn constant(args: &[Expr], at: usize) -> Option<i64> {
    match args.get(at)?.as_const()? {
        Value::Int(n) => Some(*n),
        Value::UInt(n) => i64::try_from(*n).ok(),
        _ => None,
    }
}

fn count(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

fn text(args: &[Expr], length: u64, cx: &BindContext<'_>) -> SqlResult<ExprType> {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    let ty = ty::string_of(args, length, cx)?;
    // Characters of text beside bytes are bytes.
    let widest = args.iter().filter(|e| e.ty.family() == Family::String && !e.ty.is_null());
    match widest.map(|e| max_width(e.ty.column.collation)).max() {
        Some(width @ 2..) if ty.column.collation == BINARY => {
            ty::string_of(args, length.saturating_mul(width), cx)
        }
        _ => Ok(ty),
    }
}

/// LEFT and RIGHT.
pub(super) fn end(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    let most = chars(&args[0]);
    text(&args[..1], constant(args, 1).map_or(most, |n| most.min(count(n))), cx)
}

/// SUBSTRING.
pub(super) fn middle(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    let most = chars(&args[0]);
    let behind = match constant(args, 1) {
        Some(start) if start > 0 => most.saturating_sub(count(start) - 1),
        Some(start) if start < 0 => most.min(start.unsigned_abs()),
        _ => most,
    };
    text(&args[..1], constant(args, 2).map_or(behind, |n| behind.min(count(n))), cx)
}

/// REPLACE.
pub(super) fn replaced(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    let most = chars(&args[0]);
    // What is no constant may be shorter than its type says.
    let from = if args[1].as_const().is_some() { chars(&args[1]) } else { 1 };
    let more = chars(&args[2]).saturating_sub(from);
    let times = most.checked_div(from).unwrap_or(0);
    text(args, most.saturating_add(times.saturating_mul(more)), cx)
}

/// CONCAT_WS: the first argument stands between the others.
pub(super) fn separated(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    let between = chars(&args[0]).saturating_mul(args.len() as u64 - 2);
    text(args, between + args[1..].iter().map(chars).sum::<u64>(), cx)
}

/// REPEAT.
pub(super) fn repeated(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    let length = constant(args, 1).map_or(u64::MAX, |n| chars(&args[0]).saturating_mul(count(n)));
    text(&args[..1], length, cx)
}

/// SPACE.
pub(super) fn spaces(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    let length = constant(args, 0).map_or(u64::MAX, count);
    Ok(ExprType::varchar(u32::try_from(length).unwrap_or(u32::MAX), cx.collation).nullable(true))
}

/// LPAD and RPAD.
pub(super) fn padded(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    text(args, constant(args, 1).map_or(u64::MAX, count), cx)
}

/// INSERT.
pub(super) fn inserted(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    text(args, chars(&args[0]) + chars(&args[3]), cx)
}

/// QUOTE.
pub(super) fn quoted(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    // Bare NULL is the word.
    text(args, (2 * chars(&args[0]) + 2).max(4), cx)
}

/// FORMAT.
pub(super) fn in_groups(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    /// Digits of the largest DOUBLE, which text may be.
    const LARGEST: u64 = 309;
    // Rounding may add a digit.
    let whole = 1 + match args[0].ty.family() {
        Family::Integer | Family::Decimal => chars(&args[0]),
        _ => LARGEST,
    };
    // Groups are of three digits, in some locales of two.
    let groups = whole / if args.len() > 2 { 2 } else { 3 };
    let fraction = constant(args, 1).map_or(30, |n| count(n).min(30));
    let length = 1 + whole + groups + if fraction > 0 { 1 + fraction } else { 0 };
    Ok(ExprType::varchar(u32::try_from(length).unwrap_or(u32::MAX), cx.collation).nullable(true))
}

/// MAKE_SET. The bits are no text of it.
pub(super) fn chosen(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    let texts = &args[1..];
    if texts.iter().all(|e| e.ty.is_null()) {
        return ty::ascii::<0>(texts, cx);
    }
    text(texts, texts.iter().map(chars).sum::<u64>() + texts.len() as u64 - 1, cx)
}

/// EXPORT_SET.
pub(super) fn exported(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    let texts = &args[1..args.len().min(4)];
    if texts.iter().all(|e| e.ty.is_null()) {
        return ty::ascii::<0>(texts, cx);
    }
    let separator = texts.get(2).map_or(1, chars);
    text(texts, 64 * chars(&texts[0]).max(chars(&texts[1])) + 63 * separator, cx)
}

/// TO_BASE64: four characters for three bytes, in lines of 76.
pub(super) fn in_base64(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    let length = u64::from(bytes(&args[0].ty)).div_ceil(3) * 4;
    let lines = length.saturating_sub(1) / 76;
    let length = u32::try_from(length + lines).unwrap_or(u32::MAX);
    Ok(ExprType::varchar(length, cx.collation).nullable(true))
}

/// FROM_BASE64.
pub(super) fn of_base64(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    Ok(ExprType::varchar(bytes(&args[0].ty).div_ceil(4).saturating_mul(3), BINARY).nullable(true))
}

/// UNHEX.
pub(super) fn of_hex(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    Ok(ExprType::varchar(bytes(&args[0].ty).div_ceil(2), BINARY).nullable(true))
}

/// SHA2.
pub(super) fn digest(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    let length = match constant(args, 1) {
        Some(224) => 56,
        Some(0 | 256) => 64,
        Some(384) => 96,
        _ => 128,
    };
    Ok(ExprType::varchar(length, cx.collation).nullable(true))
}

/// DATE_FORMAT and its kin. Names of months and days may be in any language.
pub(super) fn formatted(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    let length = match args[1].as_const() {
        Some(Value::Bytes(format)) => {
            let mut length = 0u32;
            let mut letters = format.iter();
            while let Some(&letter) = letters.next() {
                length =
                    length.saturating_add(if letter == b'%' { width(letters.next().copied()) } else { 1 });
            }
            length
        }
        _ => args[1].ty.display_length().saturating_mul(10),
    };
    Ok(ExprType::varchar(length, cx.collation).nullable(true))
}

/// Characters of one part of a format.
fn width(letter: Option<u8>) -> u32 {
    match letter {
        Some(b'M' | b'W') => 64,
        Some(b'a' | b'b') => 32,
        Some(b'r') => 11,
        Some(b'T') => 8,
        Some(b'H' | b'k') => 7,
        Some(b'f') => 6,
        Some(b'D' | b'X' | b'Y' | b'x') => 4,
        Some(b'j') => 3,
        Some(b'%' | b'w') => 1,
        _ => 2,
    }
}
