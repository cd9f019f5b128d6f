//! Keys that AES_ENCRYPT and AES_DECRYPT derive from a password: HKDF (RFC 5869) and PBKDF2 (RFC 8018), both over HMAC with SHA-512.
//!
//! The cipher itself is in `aes`, which calls this while a statement runs.

use super::text_arg;
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::{Context, Expr};
use ring::{hkdf, pbkdf2};
use std::num::NonZeroU32;

/// Bytes that an option must be below.
const LONGEST_OPTION: usize = 256;
/// Bytes that their text must be below.
const LONGEST_ITERATIONS: usize = 6;
/// Iterations that are few enough to be answered and enough to be safe.
const ITERATIONS: std::ops::RangeInclusive<u32> = 1000..=65_535;

/// A key's length, in bytes.
struct Width(usize);

impl hkdf::KeyType for Width {
    fn len(&self) -> usize {
        self.0
    }
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

fn iterations(arg: Option<&Expr>, cx: &mut Context<'_>) -> ExecResult<NonZeroU32> {
    let given = match arg {
        None => *ITERATIONS.start(),
        Some(arg) => {
            let text = option(arg, LONGEST_ITERATIONS, cx)?;
            let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
            digits.fold(0, |number, digit| number * 10 + u32::from(digit - b'0'))
        }
    };
    Ok(NonZeroU32::new(given).filter(|given| ITERATIONS.contains(&given.get())).ok_or_else(|| {
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
    let mut key = vec![0; width];
    match method {
        Method::Hkdf => {
            let info =
                options.get(2).map(|arg| option(arg, LONGEST_OPTION, cx)).transpose()?.unwrap_or_default();
            let extracted = hkdf::Salt::new(hkdf::HKDF_SHA512, &salt).extract(password);
            let info: &[&[u8]] = &[&info];
            let filled = extracted.expand(info, Width(width)).and_then(|derived| derived.fill(&mut key));
            filled.map_err(|_| SqlError::internal("a key of AES is longer than HKDF can make"))?;
        }
        Method::Pbkdf2 => {
            let iterations = iterations(options.get(2), cx)?;
            // Two blocks of SHA-512 each, about a microsecond.
            cx.session.budget.spend(iterations.get())?;
            pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA512, iterations, &salt, password, &mut key);
        }
    }
    Ok(key)
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
