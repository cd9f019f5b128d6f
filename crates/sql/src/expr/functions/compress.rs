//! COMPRESS and its kin: the length of the text in four bytes, little-endian, and a zlib stream.

use super::{Def, str_arg, text, ty};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::types::BINARY;
use crate::expr::{BindContext, Context, Expr, ExprType};
use omnibus_value::Value;

pub(super) const DEFS: &[Def] = &[
    Def::new("COMPRESS", 1, 1, any_bytes, compress),
    Def::new("UNCOMPRESS", 1, 1, any_bytes, uncompress),
    Def::new("UNCOMPRESSED_LENGTH", 1, 1, ty::int_or_null, uncompressed_length),
];

/// The level of zlib unless it is asked for another.
const LEVEL: u8 = 6;
/// Bytes of the length in front.
const HEAD: usize = 4;

pub(super) fn any_bytes(_: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    Ok(ExprType::varchar(u32::MAX, BINARY).nullable(true))
}

fn compress(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    if value.is_empty() {
        return Ok(text(Vec::new()));
    }
    let mut out = (value.len() as u32 & 0x3fff_ffff).to_le_bytes().to_vec();
    out.extend(miniz_oxide::deflate::compress_to_vec_zlib(&value, LEVEL));
    // Columns of characters lose spaces at their ends.
    if out.last() == Some(&b' ') {
        out.push(b'.');
    }
    Ok(text(out))
}

/// The length that is in front of a stream.
fn length(value: &[u8]) -> Option<usize> {
    let head: [u8; HEAD] = value.get(..HEAD)?.try_into().ok()?;
    Some((u32::from_le_bytes(head) & 0x3fff_ffff) as usize)
}

fn corrupted(cx: &mut Context<'_>) -> Value {
    cx.warn(SqlError::new(1259, b"HY000", "ZLIB: Input data corrupted"));
    Value::Null
}

fn uncompress(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    if value.is_empty() {
        return Ok(text(Vec::new()));
    }
    let Some(length) = length(&value).filter(|_| value.len() > HEAD) else { return Ok(corrupted(cx)) };
    let most = usize::try_from(cx.session.settings.max_allowed_packet).unwrap_or(usize::MAX);
    if length > most {
        let message = format!(
            "Uncompressed data size too large; the maximum size is {most} (probably, length of uncompressed data was \
             corrupted)"
        );
        cx.warn(SqlError::new(1256, b"HY000", message));
        return Ok(Value::Null);
    }
    cx.ask(length)?;
    match miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(&value[HEAD..], length) {
        Ok(out) => Ok(text(out)),
        Err(_) => Ok(corrupted(cx)),
    }
}

fn uncompressed_length(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    if value.is_empty() {
        return Ok(Value::Int(0));
    }
    if value.len() <= HEAD {
        return Ok(corrupted(cx));
    }
    Ok(Value::Int(length(&value).unwrap_or(0) as i64))
}
