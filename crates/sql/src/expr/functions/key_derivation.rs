//! Keys that AES_ENCRYPT and AES_DECRYPT derive from a password: HKDF (RFC 5869) and PBKDF2 (RFC 8018), both over HMAC with SHA-512.
//!
//! The cipher itself is in `aes`, which calls this while a statement runs.

use super::text_arg;
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::{Context, Expr};
use sha2::{Digest, Sha512};

/// Bytes that a digest has.
const DIGEST: usize = 64;
/// Bytes that SHA-512 takes in at a time.
const BLOCK: usize = 128;
/// Bytes that an option must be below.
const LONGEST_OPTION: usize = 256;
/// Bytes that their text must be below.
const LONGEST_ITERATIONS: usize = 6;
/// Iterations that are few enough to be answered and enough to be safe.
const ITERATIONS: std::ops::RangeInclusive<u32> = 1000..=65_535;

/// HMAC of a key: the digests that have taken in its inner and its outer block.
struct Mac {
    inner: Sha512,
    outer: Sha512,
}

impl Mac {
    fn new(key: &[u8]) -> Mac {
        let mut block = [0; BLOCK];
        if key.len() > BLOCK {
            block[..DIGEST].copy_from_slice(&Sha512::digest(key));
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        Mac {
            inner: Sha512::new_with_prefix(block.map(|byte| byte ^ 0x36)),
            outer: Sha512::new_with_prefix(block.map(|byte| byte ^ 0x5c)),
        }
    }

    fn of(&self, parts: &[&[u8]]) -> [u8; DIGEST] {
        let mut inner = self.inner.clone();
        parts.iter().for_each(|part| inner.update(part));
        self.outer.clone().chain_update(inner.finalize()).finalize().into()
    }
}

/// No key of AES is longer than one digest, so the first block of either function is enough.
fn hkdf(password: &[u8], salt: &[u8], info: &[u8]) -> [u8; DIGEST] {
    let extracted = Mac::new(salt).of(&[password]);
    Mac::new(&extracted).of(&[info, &[1]])
}

fn pbkdf2(password: &[u8], salt: &[u8], iterations: u32) -> [u8; DIGEST] {
    let mac = Mac::new(password);
    let mut last = mac.of(&[salt, &1u32.to_be_bytes()]);
    let mut key = last;
    for _ in 1..iterations {
        last = mac.of(&[&last]);
        key.iter_mut().zip(last).for_each(|(a, b)| *a ^= b);
    }
    key
}

/// An option, which must be there and shorter than `limit`.
fn option(arg: &Expr, limit: usize, cx: &mut Context<'_>) -> ExecResult<bytes::Bytes> {
    match text_arg(arg, cx)? {
        Some(option) if option.len() < limit => Ok(option),
        _ => {
            let message =
                format!("KDF option size is invalid, please provide valid size < {limit} bytes and not NULL");
            Err(SqlError::new(3238, b"HY000", message).into())
        }
    }
}

fn iterations(arg: Option<&Expr>, cx: &mut Context<'_>) -> ExecResult<u32> {
    let Some(arg) = arg else { return Ok(1000) };
    let text = option(arg, LONGEST_ITERATIONS, cx)?;
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    let given = digits.fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
    Ok(Some(given).filter(|given| ITERATIONS.contains(given)).ok_or_else(|| {
        let message = "For KDF method pbkdf2_hmac iterations value less than 1000 or more than 65535 is not allowed \
                       due to security reasons. Please provide iterations >= 1000 and iterations < 65535";
        SqlError::new(3236, b"HY000", message)
    })?)
}

/// Derives a key of `width` bytes as the arguments behind the initialization vector say: the function, a salt, and HKDF's information or
/// the number of iterations.
pub(super) fn derive(
    password: &[u8],
    options: &[Expr],
    width: usize,
    cx: &mut Context<'_>,
) -> ExecResult<Vec<u8>> {
    let name = option(&options[0], LONGEST_OPTION, cx)?;
    let method = method(&name)?;
    let salt = options.get(1).map(|arg| option(arg, LONGEST_OPTION, cx)).transpose()?.unwrap_or_default();
    let key = match method {
        Method::Hkdf => {
            let info =
                options.get(2).map(|arg| option(arg, LONGEST_OPTION, cx)).transpose()?.unwrap_or_default();
            hkdf(password, &salt, &info)
        }
        Method::Pbkdf2 => {
            let iterations = iterations(options.get(2), cx)?;
            // Two blocks of SHA-512 each, about a microsecond.
            cx.session.budget.spend(iterations)?;
            pbkdf2(password, &salt, iterations)
        }
    };
    Ok(key[..width].to_vec())
}

enum Method {
    Hkdf,
    Pbkdf2,
}

fn method(name: &[u8]) -> SqlResult<Method> {
    match name {
        b"hkdf" => Ok(Method::Hkdf),
        b"pbkdf2_hmac" => Ok(Method::Pbkdf2),
        _ => {
            let message = "KDF method name is not valid. Please use hkdf or pbkdf2_hmac method name";
            Err(SqlError::new(3235, b"HY000", message))
        }
    }
}
