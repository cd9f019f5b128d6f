//! AES_ENCRYPT and AES_DECRYPT: MySQL's, whose key is a text of any length folded into the cipher's, or derived from it
//! (`key_derivation`). `block_encryption_mode` names the length of the key and the mode. Where blocks are encrypted as they are (ECB, CBC)
//! the last one is filled as PKCS #7 says; the other modes make a stream of bits and leave the length alone.

use super::compress::any_bytes;
use super::{Def, key_derivation, str_arg, text};
use crate::api::VariableScope;
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::{Context, Expr, ExprType};
use aes::cipher::{Block, BlockDecrypt, BlockEncrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256};
use omnibus_value::Value;

pub(super) const DEFS: &[Def] = &[
    Def { traits: super::SESSION, ..Def::new("AES_ENCRYPT", 2, 6, any_bytes, encrypt) },
    Def { traits: super::SESSION, ..Def::new("AES_DECRYPT", 2, 6, any_bytes, decrypt) },
];

const BLOCK: usize = 16;

/// A block is encrypted or decrypted in place.
type InPlace = Box<dyn Fn(&mut [u8])>;

/// How blocks depend on those before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chaining {
    Ecb,
    Cbc,
    /// Cipher feedback of one bit.
    Cfb1,
    /// Cipher feedback of so many bytes.
    Cfb(usize),
    Ofb,
}

/// How a statement encrypts.
struct Mode {
    key_bits: usize,
    chaining: Chaining,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Encrypt,
    Decrypt,
}

impl Mode {
    /// `block_encryption_mode`.
    fn of(cx: &Context<'_>) -> Mode {
        let named = cx.session.connection.host.variable(VariableScope::Session, "block_encryption_mode");
        let name = match named {
            Ok((Value::Bytes(name), _)) => String::from_utf8_lossy(&name).to_ascii_lowercase(),
            _ => String::new(),
        };
        let mut words = name.split('-').skip(1);
        let key_bits = words.next().and_then(|bits| bits.parse().ok()).unwrap_or(128);
        let chaining = match words.next() {
            Some("cbc") => Chaining::Cbc,
            Some("cfb1") => Chaining::Cfb1,
            Some("cfb8") => Chaining::Cfb(1),
            Some("cfb128") => Chaining::Cfb(BLOCK),
            Some("ofb") => Chaining::Ofb,
            _ => Chaining::Ecb,
        };
        Mode { key_bits, chaining }
    }

    /// The cipher's key. That one is longer than it can be is said where something is encrypted with it.
    fn key(
        &self,
        args: &[Expr],
        given: &[u8],
        direction: Direction,
        cx: &mut Context<'_>,
    ) -> ExecResult<Vec<u8>> {
        let width = self.key_bits / 8;
        if args.len() > 3 {
            return key_derivation::derive(given, &args[3..], width, cx);
        }
        if given.len() > width && direction == Direction::Encrypt && !cx.session.settings.mariadb {
            let message = format!(
                "AES key size should be {width} bytes length or secure KDF methods hkdf or pbkdf2_hmac should be used, please \
                 provide exact AES key size or use KDF methods for better security."
            );
            cx.warn(SqlError::new(3237, b"HY000", message));
        }
        let mut folded = vec![0; width];
        for (at, byte) in given.iter().enumerate() {
            folded[at % width] ^= byte;
        }
        Ok(folded)
    }

    /// The cipher in one direction.
    fn cipher(&self, key: &[u8], direction: Direction) -> InPlace {
        fn made<C: BlockEncrypt + BlockDecrypt + KeyInit + 'static>(
            key: &[u8],
            direction: Direction,
        ) -> InPlace {
            let Ok(cipher) = C::new_from_slice(key) else { return Box::new(|_| {}) };
            Box::new(move |bytes| {
                let block = Block::<C>::from_mut_slice(bytes);
                match direction {
                    Direction::Encrypt => cipher.encrypt_block(block),
                    Direction::Decrypt => cipher.decrypt_block(block),
                }
            })
        }
        match self.key_bits {
            256 => made::<Aes256>(key, direction),
            192 => made::<Aes192>(key, direction),
            _ => made::<Aes128>(key, direction),
        }
    }

    /// The initialization vector, if the mode has one.
    fn vector(&self, name: &str, args: &[Expr], cx: &mut Context<'_>) -> ExecResult<[u8; BLOCK]> {
        let chained = self.chaining != Chaining::Ecb;
        let Some(given) = args.get(2) else {
            if chained {
                return Err(SqlError::wrong_parameter_count_to_native_fct(name).into());
            }
            return Ok([0; BLOCK]);
        };
        if !chained {
            if args.len() == 3 {
                cx.warn(SqlError::new(1618, b"HY000", "<IV> option ignored"));
            }
            return Ok([0; BLOCK]);
        }
        Ok(first_block(name, &given.eval_str(cx)?.unwrap_or_default())?)
    }

    /// Whether the text is filled up to whole blocks.
    fn fills(&self) -> bool {
        matches!(self.chaining, Chaining::Ecb | Chaining::Cbc)
    }

    /// Applies a mode that makes a stream, in either direction: the cipher encrypts in both.
    fn stream(&self, cipher: &InPlace, before: [u8; BLOCK], direction: Direction, out: &mut [u8]) {
        match self.chaining {
            Chaining::Cfb(width) => feedback(cipher, before, direction, out, width),
            Chaining::Cfb1 => bit_feedback(cipher, before, direction, out),
            _ => {
                let mut register = before;
                for block in out.chunks_mut(BLOCK) {
                    cipher(&mut register);
                    xor(block, &register);
                }
            }
        }
    }
}

/// Cipher feedback of `width` bytes.
fn feedback(cipher: &InPlace, before: [u8; BLOCK], direction: Direction, out: &mut [u8], width: usize) {
    let mut register = before;
    for piece in out.chunks_mut(width) {
        let mut key = register;
        cipher(&mut key);
        let mut encrypted = [0; BLOCK];
        encrypted[..piece.len()].copy_from_slice(piece);
        xor(piece, &key);
        if direction == Direction::Encrypt {
            encrypted[..piece.len()].copy_from_slice(piece);
        }
        register.copy_within(width.., 0);
        register[BLOCK - width..].copy_from_slice(&encrypted[..width]);
    }
}

/// Cipher feedback of one bit.
fn bit_feedback(cipher: &InPlace, before: [u8; BLOCK], direction: Direction, out: &mut [u8]) {
    let mut register = u128::from_be_bytes(before);
    for byte in out {
        let mut result = 0;
        for at in (0..8).rev() {
            let mut key = register.to_be_bytes();
            cipher(&mut key);
            let given = *byte >> at & 1;
            let made = given ^ key[0] >> 7;
            let encrypted = if direction == Direction::Encrypt { made } else { given };
            register = register << 1 | u128::from(encrypted);
            result |= made << at;
        }
        *byte = result;
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
    let mut before = mode.vector("aes_encrypt", args, cx)?;
    let cipher = mode.cipher(&mode.key(args, &key, Direction::Encrypt, cx)?, Direction::Encrypt);
    let mut out = plain.to_vec();
    if !mode.fills() {
        mode.stream(&cipher, before, Direction::Encrypt, &mut out);
        return Ok(text(out));
    }
    let fill = BLOCK - plain.len() % BLOCK;
    out.resize(plain.len() + fill, fill as u8);
    for block in out.chunks_exact_mut(BLOCK) {
        if mode.chaining == Chaining::Cbc {
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
    let mut before = mode.vector("aes_decrypt", args, cx)?;
    let key = mode.key(args, &key, Direction::Decrypt, cx)?;
    let mut out = secret.to_vec();
    if !mode.fills() {
        mode.stream(&mode.cipher(&key, Direction::Encrypt), before, Direction::Decrypt, &mut out);
        return Ok(text(out));
    }
    if secret.is_empty() || secret.len() % BLOCK != 0 {
        return Ok(Value::Null);
    }
    let cipher = mode.cipher(&key, Direction::Decrypt);
    for (block, encrypted) in out.chunks_exact_mut(BLOCK).zip(secret.chunks_exact(BLOCK)) {
        cipher(block);
        if mode.chaining == Chaining::Cbc {
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
