//! String functions that build or cut strings: CONCAT, SUBSTRING, LEFT, REPLACE, UPPER... Searching
//! is in `string_search`, padding in `trim_pad`, number bases and digests in `encode`/`encrypt`.

use super::{Def, MANY, int_arg, str_arg, text, text_lengths, ty};
use crate::error::{ExecResult, SqlResult};
use crate::expr::types::BINARY;
use crate::expr::{BindContext, Context, Expr, ExprType, Kind, charset};
use bytes::Bytes;
use omnibus_value::{Value, collation, locale};

pub(super) const DEFS: &[Def] = &[
    Def::strings("CONCAT", 1, MANY, ty::concatenated, concat),
    Def::strings("CONCAT_WS", 2, MANY, text_lengths::separated, concat_ws),
    Def::new("SUBSTRING", 2, 3, text_lengths::middle, substring),
    Def::new("SUBSTR", 2, 3, text_lengths::middle, substring),
    Def::new("MID", 2, 3, text_lengths::middle, substring),
    Def::new("LEFT", 2, 2, text_lengths::end, left),
    Def::new("RIGHT", 2, 2, text_lengths::end, right),
    Def::new("UPPER", 1, 1, ty::like_first, upper),
    Def::new("UCASE", 1, 1, ty::like_first, upper),
    Def::new("LOWER", 1, 1, ty::like_first, lower),
    Def::new("LCASE", 1, 1, ty::like_first, lower),
    Def::new("REVERSE", 1, 1, ty::like_first, reverse),
    Def::new("REPEAT", 2, 2, text_lengths::repeated, repeat),
    Def::strings("REPLACE", 3, 3, text_lengths::replaced, replace),
    Def::strings("INSERT", 4, 4, text_lengths::inserted, insert),
    Def::strings("ELT", 2, MANY, elt_type, elt),
    Def::strings("MAKE_SET", 2, MANY, text_lengths::chosen, make_set),
    Def::strings("EXPORT_SET", 3, 5, text_lengths::exported, export_set),
    Def::strings("SUBSTRING_INDEX", 3, 3, ty::like_first, substring_index),
    Def::new("CHAR", 1, MANY, char_type, char_of),
    Def::new("SOUNDEX", 1, 1, soundex_type, soundex),
    Def::new("QUOTE", 1, 1, text_lengths::quoted, quote),
    Def::new("FORMAT", 2, 3, text_lengths::in_groups, format),
    Def::new("SPACE", 1, 1, text_lengths::spaces, space),
];

/// Whether a result of `length` bytes may be built; a warning and NULL if not.
pub(crate) fn fits(length: usize, name: &str, cx: &mut Context<'_>) -> bool {
    let max = usize::try_from(cx.session.settings.max_allowed_packet).unwrap_or(usize::MAX);
    if length <= max {
        return true;
    }
    let text = format!("Result of {name}() was larger than max_allowed_packet ({max}) - truncated");
    cx.warn(crate::error::SqlError::new(1301, b"HY000", text));
    false
}

fn concat(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    if let [only] = args {
        return Ok(only.eval_str(cx)?.map_or(Value::Null, Value::Bytes));
    }
    // Calls inside each other have their arguments in hand, which are counted, and not a text half made, which is not.
    let mut parts = Vec::with_capacity(args.len());
    let mut length = 0;
    for arg in args {
        let Some(part) = super::text_part(arg, cx)? else { return Ok(Value::Null) };
        length += part.len();
        if !fits(length, "concat", cx) {
            return Ok(Value::Null);
        }
        parts.push(part);
    }
    cx.ask(length)?;
    Ok(text(parts.concat()))
}

fn concat_ws(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let separator = str_arg!(args, 0, cx);
    let mut parts = Vec::with_capacity(args.len());
    let mut length = 0;
    for arg in &args[1..] {
        if let Some(part) = super::text_part(arg, cx)? {
            length += part.len() + if parts.is_empty() { 0 } else { separator.len() };
            if !fits(length, "concat_ws", cx) {
                return Ok(Value::Null);
            }
            parts.push(part);
        }
    }
    cx.ask(length)?;
    Ok(text(parts.join(&separator[..])))
}

/// Start (0-based) of the part that 1-based `position` names, counting from the end if negative.
fn start_of(position: i128, count: usize) -> Option<usize> {
    let start = match position {
        0 => return None,
        p if p > 0 => p - 1,
        p => count as i128 + p,
    };
    usize::try_from(start).ok().filter(|s| *s < count)
}

fn substring(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    let position = int_arg!(args, 1, cx);
    let length = if args.len() > 2 { int_arg!(args, 2, cx) } else { i128::MAX };
    Ok(text(value.slice(part(&value, position, length, ty.column.collation))))
}

/// Where the characters lie that SUBSTRING names.
fn part(value: &[u8], position: i128, length: i128, collation: u16) -> std::ops::Range<usize> {
    let of = |count: usize| {
        let start = start_of(position, count)?;
        Some((start, usize::try_from(length.clamp(0, (count - start) as i128)).unwrap_or(0)))
    };
    // Each byte is a character in most texts.
    if charset::is_single_byte(collation) || value.is_ascii() {
        return of(value.len()).map_or(0..0, |(start, length)| start..start + length);
    }
    let found = of(charset::char_count(value, collation));
    found.map_or(0..0, |(start, length)| charset::char_range(value, start, length, collation))
}

/// A part of a text that does not depend on the row.
#[derive(Clone, Copy)]
pub(in crate::expr) struct FixedPart {
    position: i128,
    length: i128,
}

impl FixedPart {
    /// The part of its first argument that a function gives, if the others are constants.
    #[inline]
    pub(in crate::expr) fn of(def: &Def, args: &[Expr]) -> Option<FixedPart> {
        let number = |e: &Expr| match &e.kind {
            Kind::Const(Value::Int(n)) => Some(i128::from(*n)),
            _ => None,
        };
        Some(match (def.name, args) {
            ("SUBSTRING" | "SUBSTR" | "MID", [_, position, length]) => {
                FixedPart { position: number(position)?, length: number(length)? }
            }
            ("SUBSTRING" | "SUBSTR" | "MID", [_, position]) => {
                FixedPart { position: number(position)?, length: i128::MAX }
            }
            ("LEFT", [_, length]) => FixedPart { position: 1, length: number(length)? },
            _ => return None,
        })
    }

    /// That part of a text.
    pub(in crate::expr) fn cut(self, text: &[u8], collation: u16) -> &[u8] {
        &text[part(text, self.position, self.length, collation)]
    }
}

fn left(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    let length = int_arg!(args, 1, cx).clamp(0, value.len() as i128) as usize;
    Ok(text(charset::slice_chars(&value, 0, length, ty.column.collation)))
}

fn right(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    let count = charset::char_count(&value, ty.column.collation);
    let length = int_arg!(args, 1, cx).clamp(0, count as i128) as usize;
    Ok(text(charset::slice_chars(&value, count - length, length, ty.column.collation)))
}

fn upper(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    Ok(text(charset::to_upper(&value, ty.column.collation)))
}

fn lower(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    Ok(text(charset::to_lower(&value, ty.column.collation)))
}

fn reverse(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    let mut out = vec![0; value.len()];
    let mut rest = &mut out[..];
    for character in charset::chars(&value, ty.column.collation) {
        let at = rest.len() - character.len();
        rest[at..].copy_from_slice(character);
        rest = &mut rest[..at];
    }
    Ok(text(out))
}

fn repeat(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    let count = int_arg!(args, 1, cx);
    if count <= 0 || value.is_empty() {
        return Ok(text(Bytes::new()));
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let length = value.len().saturating_mul(count);
    if !fits(length, "repeat", cx) {
        return Ok(Value::Null);
    }
    cx.ask(length)?;
    Ok(text(value.repeat(count)))
}

fn replace(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    let from = str_arg!(args, 1, cx);
    let to = str_arg!(args, 2, cx);
    if from.is_empty() || value.len() < from.len() {
        return Ok(text(value));
    }
    let mut out = Vec::with_capacity(value.len());
    let mut rest: &[u8] = &value;
    while !rest.is_empty() {
        cx.compared(from.len())?;
        cx.room(&mut out, to.len().max(4))?;
        if rest.starts_with(&from) {
            out.extend_from_slice(&to);
            rest = &rest[from.len()..];
        } else {
            let step = charset::char_width(rest, ty.column.collation);
            out.extend_from_slice(&rest[..step]);
            rest = &rest[step..];
        }
        if !fits(out.len(), "replace", cx) {
            return Ok(Value::Null);
        }
    }
    Ok(text(out))
}

fn insert(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    let position = int_arg!(args, 1, cx);
    let length = int_arg!(args, 2, cx);
    let new = str_arg!(args, 3, cx);
    let collation = ty.column.collation;
    let count = charset::char_count(&value, collation);
    if position < 1 || position > count as i128 {
        return Ok(text(value));
    }
    let start = position as usize - 1;
    let rest = (count - start) as i128;
    let length = if length < 0 || length > rest { rest as usize } else { length as usize };
    let mut out = charset::slice_chars(&value, 0, start, collation).to_vec();
    out.extend_from_slice(&new);
    out.extend_from_slice(&charset::slice_chars(&value, start + length, count, collation));
    if !fits(out.len(), "insert", cx) {
        return Ok(Value::Null);
    }
    Ok(text(out))
}

fn elt_type(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    let length = args[1..].iter().map(|a| a.ty.display_length()).max().unwrap_or(0);
    ty::string_of(&args[1..], length, cx)
}

fn elt(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let number = int_arg!(args, 0, cx);
    match usize::try_from(number) {
        Ok(n) if n >= 1 && n < args.len() => Ok(args[n].eval_str(cx)?.map_or(Value::Null, Value::Bytes)),
        _ => Ok(Value::Null),
    }
}

fn make_set(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let bits = int_arg!(args, 0, cx) as u64;
    let mut parts: Vec<Bytes> = Vec::new();
    for (i, arg) in args[1..].iter().enumerate().take(64) {
        if bits >> i & 1 == 1
            && let Some(part) = super::text_part(arg, cx)?
        {
            parts.push(part);
        }
    }
    let length = parts.iter().map(|part| part.len() + 1).sum();
    if !fits(length, "make_set", cx) {
        return Ok(Value::Null);
    }
    cx.ask(length)?;
    Ok(text(parts.join(&b","[..])))
}

fn export_set(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let bits = int_arg!(args, 0, cx) as u64;
    let on = str_arg!(args, 1, cx);
    let off = str_arg!(args, 2, cx);
    let separator = if args.len() > 3 { str_arg!(args, 3, cx) } else { Bytes::from_static(b",") };
    let count = if args.len() > 4 { int_arg!(args, 4, cx) } else { 64 };
    let count = if (0..64).contains(&count) { count } else { 64 };
    let parts: Vec<&[u8]> = (0..count).map(|i| if bits >> i & 1 == 1 { &on[..] } else { &off[..] }).collect();
    let length = parts.iter().map(|part| part.len() + separator.len()).sum();
    if !fits(length, "export_set", cx) {
        return Ok(Value::Null);
    }
    cx.ask(length)?;
    Ok(text(parts.join(&separator[..])))
}

fn substring_index(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    let delimiter = str_arg!(args, 1, cx);
    let count = int_arg!(args, 2, cx);
    if delimiter.is_empty() || count == 0 || value.is_empty() {
        return Ok(text(Bytes::new()));
    }
    let one_byte = collation::by_id_or_binary(args[0].ty.column.collation).charset.max_len() == 1;
    if one_byte && count < 0 {
        return Ok(text(last_parts(&value, &delimiter, count.unsigned_abs(), cx)?));
    }
    let mut ends = Vec::new();
    let mut at = 0;
    while let Some(found) = super::string_search::find(&value[at..], &delimiter, cx)? {
        if ends.len() == ends.capacity() {
            cx.ask(2 * size_of_val(&ends[..]))?;
        }
        ends.push(at + found);
        at += found + delimiter.len();
    }
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if wanted > ends.len() {
        return Ok(text(value));
    }
    Ok(text(if count > 0 {
        value.slice(..ends[wanted - 1])
    } else {
        value.slice(ends[ends.len() - wanted] + delimiter.len()..)
    }))
}

/// The part behind the delimiter that is so many from the end. In character sets of one byte it is searched from there, which
/// differs where delimiters overlap.
fn last_parts(value: &Bytes, delimiter: &[u8], count: u128, cx: &mut Context<'_>) -> ExecResult<Bytes> {
    cx.ask(value.len() + delimiter.len())?;
    let reversed = |bytes: &[u8]| bytes.iter().rev().copied().collect::<Vec<u8>>();
    let (text, delimiter) = (reversed(value), reversed(delimiter));
    let (mut at, mut length) = (0, 0);
    for _ in 0..count {
        let Some(found) = super::string_search::find(&text[at..], &delimiter, cx)? else {
            return Ok(value.clone());
        };
        length = at + found;
        at = length + delimiter.len();
    }
    Ok(value.slice(value.len() - length..))
}

fn char_type(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    Ok(ExprType::varchar(args.len() as u32 * 4, BINARY).nullable(true))
}

fn char_of(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let mut out = Vec::new();
    for arg in args {
        if let Some(code) = arg.eval_int(cx)? {
            let bytes = (code as u32).to_be_bytes();
            let skip = bytes.iter().take(3).take_while(|b| **b == 0).count();
            out.extend_from_slice(&bytes[skip..]);
        }
    }
    Ok(text(out))
}

/// At least a letter and three digits.
fn soundex_type(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    ty::string_of(args, args[0].ty.display_length().max(4), cx)
}

fn soundex(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    const CODES: &[u8; 26] = b"01230120022455012623010202";
    let value = str_arg!(args, 0, cx);
    let collation = args[0].ty.column.collation;
    // Vowels, H, W and Y have code 0 and do not part two letters of one code; no letter does.
    let code = |character: &[u8]| match character {
        [letter] if letter.is_ascii_alphabetic() => CODES[usize::from(letter.to_ascii_uppercase() - b'A')],
        _ => b'0',
    };
    let mut letters = charset::chars(&value, collation).filter(|c| is_letter(c, collation));
    let Some(first) = letters.next() else { return Ok(text("")) };
    let mut out = first.to_ascii_uppercase();
    let mut last = code(first);
    let mut count = 1;
    for letter in letters {
        let code = code(letter);
        if code != b'0' && code != last {
            out.push(code);
            last = code;
            count += 1;
        }
    }
    out.resize(out.len() + 4usize.saturating_sub(count), b'0');
    Ok(text(out))
}

/// Whether a character is a letter; beyond ASCII every one is taken for one, as in MySQL.
fn is_letter(character: &[u8], collation: u16) -> bool {
    match character {
        [byte] if byte.is_ascii() => byte.is_ascii_alphabetic(),
        _ => collation != crate::expr::types::BINARY,
    }
}

fn quote(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(value) = super::text_arg(&args[0], cx)? else { return Ok(text("NULL")) };
    cx.ask(value.len())?;
    let mut out = Vec::with_capacity(value.len() + 2);
    out.push(b'\'');
    for &byte in value.iter() {
        match byte {
            b'\\' | b'\'' => out.extend_from_slice(&[b'\\', byte]),
            0 => out.extend_from_slice(b"\\0"),
            0x1a => out.extend_from_slice(b"\\Z"),
            _ => out.push(byte),
        }
    }
    out.push(b'\'');
    if !fits(out.len(), "quote", cx) {
        return Ok(Value::Null);
    }
    Ok(text(out))
}

fn format(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let places = int_arg!(args, 1, cx).clamp(0, 30) as u8;
    let value = super::value_arg!(args, 0, cx);
    let printed = super::numeric::print_rounded(&value, &args[0], places, cx)?;
    let locale = match args.get(2).map(|name| name.eval_str(cx)).transpose()? {
        None => Some(&locale::ENGLISH),
        Some(name) => name.as_deref().and_then(|name| locale::by_name(std::str::from_utf8(name).ok()?)),
    };
    let format = locale.unwrap_or_else(|| {
        let name = args[2].as_const().map_or_else(Bytes::new, |name| args[2].to_str(name));
        let name = if name.is_empty() { "NULL".into() } else { String::from_utf8_lossy(&name).into_owned() };
        cx.warn(crate::error::SqlError::new(1649, b"HY000", format!("Unknown locale: '{name}'")));
        &locale::ENGLISH
    });
    let grouped = grouped(&printed, format.number_format());
    Ok(text(charset::from_utf8(&grouped, ty.column.collation)))
}

/// A printed number with a locale's point and groups.
fn grouped(printed: &str, format: locale::NumberFormat) -> String {
    let (sign, digits) = printed.strip_prefix('-').map_or(("", printed), |d| ("-", d));
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(w, f)| (w, Some(f)));
    let mut out = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        let left = whole.len() - at;
        let behind_last = left == 3 || left > 3 && format.group > 1 && (left - 3) % format.group == 0;
        if at > 0 && format.group > 0 && behind_last {
            out.push_str(format.separator);
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push_str(format.point);
        out.push_str(fraction);
    }
    out
}

fn space(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let count = usize::try_from(int_arg!(args, 0, cx).max(0)).unwrap_or(usize::MAX);
    if !fits(count, "space", cx) {
        return Ok(Value::Null);
    }
    cx.ask(count)?;
    Ok(text(vec![b' '; count]))
}
