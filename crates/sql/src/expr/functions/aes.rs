//! AES_ENCRYPT and AES_DECRYPT: MySQL's, whose key is a text of any length folded into the cipher's, and whose last block is filled as
//! PKCS #7 says. `block_encryption_mode` names the length of the key and the mode.

use super::compress::any_bytes;
use super::{Def, str_arg, text};
use crate::api::VariableScope;
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::{Context, Expr, ExprType};
use aes::cipher::{Block, BlockDecrypt, BlockEncrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256};
use omnibus_value::Value;

pub(super) const DEFS: &[Def] = &[
    Def { traits: super::SESSION, ..Def::new("AES_ENCRYPT", 2, 3, any_bytes, encrypt) },
    Def { traits: super::SESSION, ..Def::new("AES_DECRYPT", 2, 3, any_bytes, decrypt) },
];

const BLOCK: usize = 16;

/// A block is encrypted or decrypted in place.
type InPlace = Box<dyn Fn(&mut [u8])>;

/// How a statement encrypts.
struct Mode {
    key_bits: usize,
    /// Blocks depend on the one before.
    chained: bool,
}

impl Mode {
    /// `block_encryption_mode`.
    fn of(cx: &Context<'_>) -> Mode {
        let named = cx.session.host.variable(VariableScope::Session, "block_encryption_mode");
        let name = match named {
            Ok((Value::Bytes(name), _)) => String::from_utf8_lossy(&name).to_ascii_lowercase(),
            _ => String::new(),
        };
        let key_bits = name.split('-').nth(1).and_then(|bits| bits.parse().ok()).unwrap_or(128);
        Mode { key_bits, chained: name.ends_with("-cbc") }
    }

    /// The cipher in one direction.
    fn cipher(&self, key: &[u8], encrypts: bool) -> InPlace {
        let mut folded = vec![0; self.key_bits / 8];
        let width = folded.len();
        for (at, byte) in key.iter().enumerate() {
            folded[at % width] ^= byte;
        }
        fn made<C: BlockEncrypt + BlockDecrypt + KeyInit + 'static>(key: &[u8], encrypts: bool) -> InPlace {
            let Ok(cipher) = C::new_from_slice(key) else { return Box::new(|_| {}) };
            Box::new(move |bytes| {
                let block = Block::<C>::from_mut_slice(bytes);
                if encrypts { cipher.encrypt_block(block) } else { cipher.decrypt_block(block) }
            })
        }
        match self.key_bits {
            256 => made::<Aes256>(&folded, encrypts),
            192 => made::<Aes192>(&folded, encrypts),
            _ => made::<Aes128>(&folded, encrypts),
        }
    }

    /// The initialization vector, if the mode has one. `None`: it is NULL.
    fn vector(&self, name: &str, args: &[Expr], cx: &mut Context<'_>) -> ExecResult<Option<[u8; BLOCK]>> {
        let Some(given) = args.get(2) else {
            if self.chained {
                return Err(SqlError::wrong_parameter_count_to_native_fct(name).into());
            }
            return Ok(Some([0; BLOCK]));
        };
        if !self.chained {
            cx.warn(SqlError::new(1618, b"HY000", "<IV> option ignored"));
            return Ok(Some([0; BLOCK]));
        }
        let Some(given) = given.eval_str(cx)? else { return Ok(None) };
        Ok(Some(first_block(name, &given)?))
    }
}

fn first_block(name: &str, given: &[u8]) -> SqlResult<[u8; BLOCK]> {
    given.get(..BLOCK).and_then(|block| block.try_into().ok()).ok_or_else(|| {
        let message = format!(
            "The initialization vector supplied to {name} is too short. Must be at least {BLOCK} bytes long"
        );
        SqlError::new(1882, b"HY000", message)
    })
}

fn xor(block: &mut [u8], with: &[u8]) {
    block.iter_mut().zip(with).for_each(|(a, b)| *a ^= b);
}

fn encrypt(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let (plain, key) = (str_arg!(args, 0, cx), str_arg!(args, 1, cx));
    let mode = Mode::of(cx);
    let Some(mut before) = mode.vector("aes_encrypt", args, cx)? else { return Ok(Value::Null) };
    let cipher = mode.cipher(&key, true);
    let fill = BLOCK - plain.len() % BLOCK;
    let mut out = plain.to_vec();
    out.resize(plain.len() + fill, fill as u8);
    for block in out.chunks_exact_mut(BLOCK) {
        if mode.chained {
            xor(block, &before);
        }
        cipher(block);
        before.copy_from_slice(block);
    }
    Ok(text(out))
}

fn decrypt(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let (secret, key) = (str_arg!(args, 0, cx), str_arg!(args, 1, cx));
    let mode = Mode::of(cx);
    let Some(mut before) = mode.vector("aes_decrypt", args, cx)? else { return Ok(Value::Null) };
    if secret.is_empty() || secret.len() % BLOCK != 0 {
        return Ok(Value::Null);
    }
    let cipher = mode.cipher(&key, false);
    let mut out = secret.to_vec();
    for (block, encrypted) in out.chunks_exact_mut(BLOCK).zip(secret.chunks_exact(BLOCK)) {
        cipher(block);
        if mode.chained {
            xor(block, &before);
            before.copy_from_slice(encrypted);
        }
    }
    let fill = usize::from(out.last().copied().unwrap_or(0));
    let whole =
        (1..=BLOCK).contains(&fill) && out[out.len() - fill..].iter().all(|byte| usize::from(*byte) == fill);
    if !whole {
        return Ok(Value::Null);
    }
    out.truncate(out.len() - fill);
    Ok(text(out))
}
