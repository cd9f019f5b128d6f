//! Number bases and text encodings: HEX, BIN, CONV, TO_BASE64, UUID.

use super::{Def, int_arg, str_arg, text, ty};
use crate::error::{ExecResult, SqlError};
use crate::expr::{Context, Expr, ExprType};
use bytes::Bytes;
use omnibus_value::collation::Collation;
use omnibus_value::{ColumnKind, Value, base64, hex, uuid};

use crate::expr::types::{Family, bytes};

pub(super) const DEFS: &[Def] = &[
    Def::new("HEX", 1, 1, hex_type, hex),
    Def::new("UNHEX", 1, 1, super::text_lengths::of_hex, unhex),
    Def::new("WEIGHT_STRING", 1, 4, weights_type, weight_string),
    Def::new("BIN", 1, 1, ty::ascii::<64>, bin),
    Def::new("OCT", 1, 1, ty::ascii::<64>, oct),
    Def::new("CONV", 3, 3, ty::ascii::<65>, conv),
    Def::new("TO_BASE64", 1, 1, super::text_lengths::in_base64, to_base64),
    Def::new("FROM_BASE64", 1, 1, super::text_lengths::of_base64, from_base64),
    Def::volatile("UUID", 0, 0, ty::utf8mb3::<36>, uuid),
    Def::volatile("UUID_SHORT", 0, 0, ty::ubigint, uuid_short),
    Def::new("IS_UUID", 1, 1, ty::boolean, is_uuid),
    Def::new("UUID_TO_BIN", 1, 2, ty::binary, uuid_to_bin),
    Def::new("BIN_TO_UUID", 1, 2, ty::ascii::<36>, bin_to_uuid),
];

/// The type of WEIGHT_STRING: a character has at most 18 weights of two bytes.
fn weights_type(args: &[Expr], cx: &crate::expr::BindContext<'_>) -> crate::error::SqlResult<ExprType> {
    let padded = args.get(1).and_then(Expr::as_const).map_or(0, |length| match length {
        Value::Int(n) => u32::try_from(*n).unwrap_or(u32::MAX),
        Value::UInt(n) => u32::try_from(*n).unwrap_or(u32::MAX),
        _ => 0,
    });
    if is_number(&args[0], cx.session.settings.mariadb) {
        return Ok(ExprType::varchar(8, crate::expr::types::BINARY).nullable(true));
    }
    let length = args[0].ty.column.length.max(padded).saturating_mul(36);
    Ok(ExprType::varchar(length, crate::expr::types::BINARY).nullable(true))
}

/// Whether MySQL sorts what is weighed as a whole number: times and labels are such.
fn is_number(arg: &Expr, mariadb: bool) -> bool {
    use ColumnKind as K;
    let labels = matches!(arg.ty.column.kind, K::Enum | K::Set);
    let whole = arg.ty.family() == Family::Integer || arg.ty.is_temporal();
    !mariadb && (labels || whole) && !arg.ty.is_null()
}

/// The weight of a time below zero is that of the complement, and all have TIME's offset in the log.
const TIME_WEIGHTS: i64 = 1 << 47;

/// The weights of a whole number: its bytes, of one with a sign from the least on.
fn number_weights(value: &Value) -> Option<Value> {
    let signed = |n: i64| n as u64 ^ 1 << 63;
    let weights = match value {
        Value::Int(n) => signed(*n),
        Value::UInt(n) | Value::Bit(n) => *n,
        Value::Year(n) => u64::from(*n),
        Value::Enum(n) => signed(i64::from(*n)),
        Value::Set(n) => signed(*n as i64),
        Value::Date(date) => signed(i64::from(date.packed())),
        Value::DateTime(at) => signed(at.packed()),
        Value::Time(time) if time.is_negative() => signed(TIME_WEIGHTS + !time.packed().abs()),
        Value::Time(time) => signed(TIME_WEIGHTS + time.packed()),
        _ => return None,
    };
    Some(Value::Bytes(Bytes::copy_from_slice(&weights.to_be_bytes())))
}

fn weight_string(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    if is_number(&args[0], cx.session.settings.mariadb) {
        let value = super::value_arg!(args, 0, cx);
        if let Some(weights) = number_weights(&value) {
            return Ok(weights);
        }
    }
    // Other numbers have no weights.
    if matches!(args[0].ty.family(), Family::Integer | Family::Decimal | Family::Real) {
        return Ok(Value::Null);
    }
    let value = str_arg!(args, 0, cx);
    if args.len() == 4 {
        return some_weights(&value, args, cx);
    }
    let chars = match args.len() {
        1 => None,
        _ => Some(usize::try_from(int_arg!(args, 1, cx)).unwrap_or(0)),
    };
    let collation = omnibus_value::collation::by_id_or_binary(args[0].ty.column.collation);
    let most = cx.session.settings.max_allowed_packet;
    if value.len().max(chars.unwrap_or(0)) > most as usize {
        return Ok(Value::Null);
    }
    Ok(Value::Bytes(weights_of(&value, chars, collation, cx)?.into()))
}

/// Bytes of a text whose weights are made at once to see how long all will be.
const WEIGHED: usize = 4096;
/// The most bytes of a space's weights, on all levels.
const SPACE: usize = 8;

/// The weights of a text. Characters have from none to some dozen: how long they are is found out by making them piece by piece first.
fn weights_of(
    value: &[u8],
    chars: Option<usize>,
    collation: &Collation,
    cx: &mut Context<'_>,
) -> ExecResult<Vec<u8>> {
    let (mut length, mut piece, mut rest) = (0, Vec::new(), value);
    while !rest.is_empty() {
        cx.bytes(WEIGHED)?;
        let continues = |byte: &&u8| **byte & 0xc0 == 0x80;
        let at = rest.len().min(WEIGHED);
        let (weighed, behind) = rest.split_at(at + rest[at..].iter().take(4).take_while(continues).count());
        piece.clear();
        collation.write_weights(weighed, None, &mut piece);
        (length, rest) = (length + piece.len(), behind);
    }
    let length = length + if collation.pad_space { SPACE * chars.unwrap_or(0) } else { 0 };
    cx.ask(length)?;
    let mut weights = Vec::with_capacity(length);
    collation.write_weights(value, chars, &mut weights);
    Ok(weights)
}

/// A flag of `WEIGHT_STRING(text, bytes, characters, flags)`: all bytes are made.
const PAD_TO_LENGTH: u64 = 0x80;

/// The weights of so many characters, in so many bytes; 0 bytes are as many as there are.
fn some_weights(value: &[u8], args: &[Expr], cx: &mut Context<'_>) -> ExecResult<Value> {
    let number = |at: usize| match args[at].as_const() {
        Some(Value::Int(n)) => u64::try_from(*n).unwrap_or(0),
        Some(Value::UInt(n)) => *n,
        _ => 0,
    };
    let most = cx.session.settings.max_allowed_packet;
    let (length, chars, flags) = (number(1), number(2), number(3));
    if value.len() as u64 > most || length > most || chars > most {
        return Ok(Value::Null);
    }
    let (length, chars) = (length as usize, chars as usize);
    cx.ask(length)?;
    let collation = omnibus_value::collation::by_id_or_binary(args[0].ty.column.collation);
    let mut weights = weights_of(value, Some(chars), collation, cx)?;
    if length > 0 {
        let mut space = Vec::new();
        if collation.pad_space {
            collation.write_weights(b" ", None, &mut space);
        }
        if flags & PAD_TO_LENGTH != 0 && !space.is_empty() {
            let missing = length.saturating_sub(weights.len());
            weights.extend(space.iter().copied().cycle().take(missing));
        } else if flags & PAD_TO_LENGTH != 0 {
            weights.resize(weights.len().max(length), 0);
        }
        weights.truncate(length);
    }
    Ok(Value::Bytes(weights.into()))
}

fn hex_type(args: &[Expr], cx: &crate::expr::BindContext<'_>) -> crate::error::SqlResult<ExprType> {
    let length = match args[0].ty.family() {
        Family::Integer | Family::Decimal | Family::Real => 16,
        _ => bytes(&args[0].ty).saturating_mul(2),
    };
    Ok(ExprType::varchar(length, cx.collation).nullable(args[0].ty.nullable))
}

fn hex(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = super::value_arg!(args, 0, cx);
    Ok(match value {
        Value::Int(n) => text(format!("{n:X}")),
        Value::UInt(n) | Value::Bit(n) => text(format!("{n:X}")),
        Value::Year(n) => text(format!("{n:X}")),
        Value::Fixed(v) => text(hex::upper(v.bytes())),
        Value::Float(_) | Value::Double(_) | Value::Decimal(_) => {
            // Half of one is away from zero, unlike where an integer is wanted.
            let n = args[0].to_f64(&value, cx).round();
            let held = n > i64::MIN as f64 && n < u64::MAX as f64;
            let n = if held { n as i128 as u64 } else { u64::MAX };
            text(format!("{n:X}"))
        }
        value => {
            let value = crate::expr::convert::text_in(&args[0], &value, cx);
            if !super::fits(value.len().saturating_mul(2), "hex", cx) {
                return Ok(Value::Null);
            }
            cx.ask(value.len().saturating_mul(2))?;
            text(hex::upper(&value))
        }
    })
}

fn unhex(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    Ok(match hex::parse(&value) {
        Some(bytes) => text(bytes),
        None => super::no_value("string", &args[0], "unhex", cx),
    })
}

/// The text that BIN, OCT and CONV read: that of any argument, of bits that of the number that they are.
fn digits(e: &Expr, cx: &mut Context<'_>) -> ExecResult<Option<Bytes>> {
    match e.eval(cx)? {
        Value::Null => Ok(None),
        Value::Bit(n) => Ok(Some(n.to_string().into())),
        value => Ok(Some(crate::expr::convert::text_in(e, &value, cx))),
    }
}

fn bin(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(value) = digits(&args[0], cx)? else { return Ok(Value::Null) };
    Ok(leading_integer(&value).map_or(Value::Null, |n| text(format!("{n:b}"))))
}

fn oct(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(value) = digits(&args[0], cx)? else { return Ok(Value::Null) };
    Ok(leading_integer(&value).map_or(Value::Null, |n| text(format!("{n:o}"))))
}

/// The digits that a number's text begins with, which is how BIN and OCT read any argument; `None` if it is empty.
fn leading_integer(value: &[u8]) -> Option<u64> {
    let number = crate::expr::convert::text_to_int(value).0;
    (!value.is_empty()).then_some(number as u64)
}

fn conv(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(value) = digits(&args[0], cx)? else { return Ok(Value::Null) };
    let from = int_arg!(args, 1, cx);
    let to = int_arg!(args, 2, cx);
    let base_ok = |b: i128| (2..=36).contains(&b.unsigned_abs());
    if !base_ok(from) || !base_ok(to) || value.is_empty() {
        return Ok(Value::Null);
    }
    let trimmed = value.trim_ascii_start();
    let (negative, digits) = match trimmed.first() {
        Some(b'-') => (true, &trimmed[1..]),
        Some(b'+') => (false, &trimmed[1..]),
        _ => (false, trimmed),
    };
    let radix = from.unsigned_abs() as u32;
    let mut number: u128 = 0;
    for &byte in digits {
        let Some(d) = (byte as char).to_digit(radix) else { break };
        number = (number * u128::from(radix) + u128::from(d)).min(u128::from(u64::MAX));
    }
    // From a negative base come signed numbers.
    let most = match (from < 0, negative) {
        (false, _) => u64::MAX,
        (true, false) => i64::MAX as u64,
        (true, true) => i64::MIN.unsigned_abs(),
    };
    let number = (number as u64).min(most);
    let number = if negative { number.wrapping_neg() } else { number };
    let signed = to < 0 && (number as i64) < 0;
    let magnitude = if signed { (number as i64).unsigned_abs() } else { number };
    let mut out = in_base(magnitude, to.unsigned_abs() as u64);
    if signed {
        out.insert(0, b'-');
    }
    Ok(text(out))
}

fn in_base(mut number: u64, radix: u64) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        out.push(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[(number % radix) as usize]);
        number /= radix;
        if number == 0 {
            break;
        }
    }
    out.reverse();
    out
}

fn to_base64(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    if !super::string::fits(value.len().saturating_mul(4) / 3, "to_base64", cx) {
        return Ok(Value::Null);
    }
    cx.ask(value.len())?;
    Ok(text(base64::encode_lines(&value)))
}

fn from_base64(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    Ok(base64::decode_lines(&value).map_or(Value::Null, text))
}

fn uuid(_: &[Expr], _: &ExprType, _: &mut Context<'_>) -> ExecResult<Value> {
    Ok(text(dashed(&new_uuid())))
}

/// A time-based UUID (version 1): 100 ns ticks since 1582, a random node.
fn new_uuid() -> [u8; 16] {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    static LAST: AtomicU64 = AtomicU64::new(0);
    static NODE: OnceLock<u64> = OnceLock::new();
    let node = *NODE.get_or_init(|| super::numeric::entropy() | 1 << 40);
    let wanted = omnibus_commit::now_us() * 10 + 0x01B2_1DD2_1381_4000;
    let before = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(wanted.max(last + 1)));
    let ticks = wanted.max(before.unwrap_or(0) + 1);
    let mut out = [0; 16];
    out[..4].copy_from_slice(&(ticks as u32).to_be_bytes());
    out[4..6].copy_from_slice(&((ticks >> 32) as u16).to_be_bytes());
    out[6..8].copy_from_slice(&((ticks >> 48) as u16 & 0x0fff | 0x1000).to_be_bytes());
    out[8..10].copy_from_slice(&((node >> 48) as u16 & 0x3fff | 0x8000).to_be_bytes());
    out[10..].copy_from_slice(&node.to_be_bytes()[2..]);
    out
}

fn dashed(bytes: &[u8; 16]) -> Vec<u8> {
    let mut out = Vec::with_capacity(36);
    uuid::write(bytes, &mut out);
    out
}

fn uuid_short(_: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let server = u64::from(cx.session.settings.server_id & 255) << 56;
    let start = (cx.session.statement.now_us / 1_000_000) as u64 & 0xffff_ffff;
    Ok(Value::UInt(server | start << 24 | COUNTER.fetch_add(1, Ordering::Relaxed) & 0xff_ffff))
}

fn is_uuid(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    Ok(super::boolean(uuid::parse(&str_arg!(args, 0, cx)).is_some()))
}

/// Swaps the time fields so that later UUIDs sort later, or back.
fn swapped(bytes: [u8; 16], to_stored: bool) -> [u8; 16] {
    let mut out = bytes;
    if to_stored {
        out[..2].copy_from_slice(&bytes[6..8]);
        out[2..4].copy_from_slice(&bytes[4..6]);
        out[4..8].copy_from_slice(&bytes[..4]);
    } else {
        out[..4].copy_from_slice(&bytes[4..8]);
        out[4..6].copy_from_slice(&bytes[2..4]);
        out[6..8].copy_from_slice(&bytes[..2]);
    }
    out
}

fn uuid_to_bin(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    let swap = args.len() > 1 && args[1].eval_bool(cx)? == Some(true);
    let Some(bytes) = uuid::parse(&value) else { return Err(bad_uuid(&value, "uuid_to_bin").into()) };
    Ok(text(if swap { swapped(bytes, true) } else { bytes }.to_vec()))
}

fn bin_to_uuid(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    let swap = args.len() > 1 && args[1].eval_bool(cx)? == Some(true);
    let Ok(bytes) = <[u8; 16]>::try_from(&value[..]) else {
        return Err(bad_uuid(&value, "bin_to_uuid").into());
    };
    Ok(text(dashed(&if swap { swapped(bytes, false) } else { bytes })))
}

fn bad_uuid(value: &[u8], function: &str) -> SqlError {
    let value = String::from_utf8_lossy(value);
    SqlError::new(1411, b"HY000", format!("Incorrect string value: '{value}' for function {function}"))
}
