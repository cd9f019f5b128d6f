//! Digests and checksums: MD5, SHA1, SHA2, CRC32, RANDOM_BYTES, STATEMENT_DIGEST.

use super::encode::{LOWER, to_hex};
use super::{Def, int_arg, str_arg, text, ty};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::types::BINARY;
use crate::expr::{BindContext, Context, Expr, ExprType};
use crate::state::SessionState;
use omnibus_value::Value;
use sha1::Digest;

pub(super) const DEFS: &[Def] = &[
    Def::new("MD5", 1, 1, ty::ascii::<32>, |a, _, cx| Ok(text(to_hex(&md5(&str_arg!(a, 0, cx)), LOWER)))),
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
    Ok(text(to_hex(&sha1::Sha1::digest(&value), LOWER)))
}

fn sha2(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    Ok(match int_arg!(args, 1, cx) {
        224 => text(to_hex(&sha2::Sha224::digest(&value), LOWER)),
        0 | 256 => text(to_hex(&sha2::Sha256::digest(&value), LOWER)),
        384 => text(to_hex(&sha2::Sha384::digest(&value), LOWER)),
        512 => text(to_hex(&sha2::Sha512::digest(&value), LOWER)),
        _ => Value::Null,
    })
}

fn statement_digest_text(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let sql = str_arg!(args, 0, cx);
    Ok(text(digest_of(&sql, cx)?.into_bytes()))
}

/// What `performance_schema` has as DIGEST.
fn statement_digest(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let sql = str_arg!(args, 0, cx);
    let digest = digest_of(&sql, cx)?;
    Ok(text(to_hex(&sha2::Sha256::digest(digest.as_bytes()), LOWER)))
}

fn digest_of(sql: &[u8], cx: &mut Context<'_>) -> SqlResult<String> {
    let options = cx.session.settings.parse_options();
    let SessionState { working, settings, .. } = &mut *cx.session;
    let mut refused = None;
    let mut has_room = |words| {
        refused = working.grow(crate::memory::tree(words), settings).err();
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

/// How far each of the 64 steps rotates.
const ROTATIONS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// MD5 (RFC 1321). Here because nothing else needs it, and a dependency would be larger.
fn md5(input: &[u8]) -> [u8; 16] {
    let mut padded = input.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend_from_slice(&(input.len() as u64).wrapping_mul(8).to_le_bytes());
    let mut state = [0x6745_2301u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in padded.chunks_exact(64) {
        md5_block(&mut state, block);
    }
    let mut out = [0; 16];
    for (bytes, word) in out.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    out
}

fn md5_block(state: &mut [u32; 4], block: &[u8]) {
    let mut words = [0u32; 16];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().rev().fold(0, |n, b| n << 8 | u32::from(*b));
    }
    let [mut a, mut b, mut c, mut d] = *state;
    for step in 0..64usize {
        let (mixed, at) = match step / 16 {
            0 => ((b & c) | (!b & d), step),
            1 => ((d & b) | (!d & c), (5 * step + 1) % 16),
            2 => (b ^ c ^ d, (3 * step + 5) % 16),
            _ => (c ^ (b | !d), (7 * step) % 16),
        };
        // The constants are the integer parts of 2^32 |sin(step + 1)|.
        let constant = ((step + 1) as f64).sin().abs() * 4_294_967_296.0;
        let sum = a.wrapping_add(mixed).wrapping_add(constant as u32).wrapping_add(words[at]);
        (a, d, c) = (d, c, b);
        b = b.wrapping_add(sum.rotate_left(ROTATIONS[step / 16][step % 4]));
    }
    for (word, add) in state.iter_mut().zip([a, b, c, d]) {
        *word = word.wrapping_add(add);
    }
}
