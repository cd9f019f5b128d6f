//! Digests and checksums: MD5, SHA1, SHA2, CRC32, RANDOM_BYTES, STATEMENT_DIGEST.

use super::{Def, int_arg, str_arg, text, ty};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::types::BINARY;
use crate::expr::{BindContext, Context, Expr, ExprType};
use crate::state::SessionState;
use md5::Md5;
use omnibus_value::{Value, hex};
use sha1::Digest;

pub(super) const DEFS: &[Def] = &[
    Def::new("MD5", 1, 1, ty::ascii::<32>, |a, _, cx| {
        Ok(text(hex::lower(&Md5::digest(&*str_arg!(a, 0, cx)))))
    }),
    Def::new("SHA1", 1, 1, ty::ascii::<40>, sha1),
    Def::new("SHA", 1, 1, ty::ascii::<40>, sha1),
    Def::new("SHA2", 2, 2, super::text_lengths::digest, sha2),
    Def::new("CRC32", 1, 1, ty::ubigint, |a, _, cx| {
        Ok(Value::UInt(u64::from(crc32fast::hash(&str_arg!(a, 0, cx)))))
    }),
    Def::new("STATEMENT_DIGEST", 1, 1, ty::ascii::<64>, statement_digest),
    Def::new("STATEMENT_DIGEST_TEXT", 1, 1, ty::ascii::<1027>, statement_digest_text),
    Def::volatile("RANDOM_BYTES", 1, 1, random_type, random_bytes),
];

fn sha1(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    Ok(text(hex::lower(&sha1::Sha1::digest(&value))))
}

fn sha2(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    Ok(match int_arg!(args, 1, cx) {
        224 => text(hex::lower(&sha2::Sha224::digest(&value))),
        0 | 256 => text(hex::lower(&sha2::Sha256::digest(&value))),
        384 => text(hex::lower(&sha2::Sha384::digest(&value))),
        512 => text(hex::lower(&sha2::Sha512::digest(&value))),
        _ => Value::Null,
    })
}

fn statement_digest_text(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let sql = str_arg!(args, 0, cx);
    Ok(text(digest_of(&sql, cx)?.into_bytes()))
}

/// STATEMENT_DIGEST: the value that `performance_schema` has as DIGEST.
fn statement_digest(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let sql = str_arg!(args, 0, cx);
    let digest = digest_of(&sql, cx)?;
    Ok(text(hex::lower(&sha2::Sha256::digest(digest.as_bytes()))))
}

fn digest_of(sql: &[u8], cx: &mut Context<'_>) -> SqlResult<String> {
    let options = cx.session.settings.parse_options();
    let SessionState { command, settings, .. } = &mut *cx.session;
    let mut refused = None;
    let mut has_room = |words| {
        refused = command.working.grow(crate::memory::tree(words), settings).err();
        refused.is_none()
    };
    let parsed = omnibus_parser::parse_first_asking(sql, &options, &mut has_room);
    if let Some(refused) = refused {
        return Err(refused);
    }
    match parsed {
        // What is not built is a statement nevertheless.
        Ok(_) | Err(omnibus_parser::ParseError::NotSupported(_)) => {}
        Err(error) => {
            let message = format!("Could not parse argument to digest function: \"{error}\".");
            return Err(SqlError::new(3676, b"HY000", message));
        }
    }
    Ok(omnibus_parser::Digest::of(sql).text(crate::api::is_keyword))
}

/// As many bytes as a constant asks for, else as there may be.
fn random_type(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    let length = match args[0].as_const() {
        Some(Value::Int(n @ 1..=1024)) => *n as u32,
        _ => 1024,
    };
    Ok(ExprType::varchar(length, BINARY).nullable(true))
}

fn random_bytes(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let count = int_arg!(args, 0, cx);
    if !(1..=1024).contains(&count) {
        return Err(SqlError::data_out_of_range("length", "random_bytes").into());
    }
    let mut out = Vec::with_capacity(count as usize + 8);
    while out.len() < count as usize {
        out.extend_from_slice(&super::numeric::entropy().to_le_bytes());
    }
    out.truncate(count as usize);
    Ok(text(out))
}
