//! AES-256 in XTS mode (IEEE 1619), for files that are written in place: a counter's key stream would be used twice where bytes
//! are written over.
//!
//! A data unit is 4 KiB of the file, numbered from its beginning. Within a unit each block of sixteen bytes is encrypted by itself,
//! by way of its number: so any whole blocks can be read and written without their neighbours, and a write that a power cut ends
//! at a sector's border leaves each block old or new.

use crate::key::{BLOCK, Password, is_blank};
use aes::cipher::{BlockDecrypt, BlockEncrypt, KeyInit};
use aes::{Aes256, Block};
use sha2::{Digest, Sha512};
use std::fmt;

/// Bytes of a data unit.
const UNIT: u64 = 4096;
const SIZE: usize = BLOCK as usize;
/// Blocks that are encrypted at once: the processor works on several.
const BATCH: usize = 32;

/// A file's keys, ready to be used at any block of it.
#[derive(Clone)]
pub(crate) struct UnitKey {
    data: Aes256,
    tweak: Aes256,
}

impl fmt::Debug for UnitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnitKey")
    }
}

#[derive(Clone, Copy)]
enum Way {
    Encrypt,
    Decrypt,
}

impl UnitKey {
    /// Both keys of a file with this password.
    pub(crate) fn of(password: &Password) -> UnitKey {
        let keys: [u8; 64] =
            Sha512::new().chain_update(b"omnibus xts").chain_update(password.0).finalize().into();
        UnitKey::new(&keys)
    }

    /// The first half is the data's key, the second one the tweak's.
    fn new(keys: &[u8; 64]) -> UnitKey {
        let (data, tweak) = keys.split_at(32);
        UnitKey { data: Aes256::new(data.into()), tweak: Aes256::new(tweak.into()) }
    }

    /// Encrypts whole blocks; `offset` is a multiple of sixteen.
    pub(crate) fn encrypt(&self, bytes: &mut [u8], offset: u64) {
        self.each_unit(bytes, offset, Way::Encrypt);
    }

    /// Decrypts whole blocks. A block of zeros was never written, and reads as zeros.
    pub(crate) fn decrypt(&self, bytes: &mut [u8], offset: u64) {
        self.each_unit(bytes, offset, Way::Decrypt);
    }

    fn each_unit(&self, mut bytes: &mut [u8], mut offset: u64, way: Way) {
        while !bytes.is_empty() {
            let within = offset % UNIT;
            let (here, rest) = bytes.split_at_mut(bytes.len().min((UNIT - within) as usize));
            self.in_unit(here, offset / UNIT, within / BLOCK, way);
            offset += here.len() as u64;
            bytes = rest;
        }
    }

    fn in_unit(&self, bytes: &mut [u8], unit: u64, first: u64, way: Way) {
        let mut start = Block::default();
        start[..8].copy_from_slice(&unit.to_le_bytes());
        self.tweak.encrypt_block(&mut start);
        let mut tweak = u128::from_le_bytes(start.into());
        for _ in 0..first {
            tweak = doubled(tweak);
        }
        for piece in bytes.chunks_mut(BATCH * SIZE) {
            let (mut blocks, mut tweaks) = ([Block::default(); BATCH], [0; BATCH]);
            let count = piece.len() / SIZE;
            for (at, bytes) in piece.chunks_exact(SIZE).enumerate() {
                tweaks[at] = tweak;
                blocks[at] = mixed(bytes, tweak);
                tweak = doubled(tweak);
            }
            match way {
                Way::Encrypt => self.data.encrypt_blocks(&mut blocks[..count]),
                Way::Decrypt => self.data.decrypt_blocks(&mut blocks[..count]),
            }
            for (at, bytes) in piece.chunks_exact_mut(SIZE).enumerate() {
                if matches!(way, Way::Encrypt) || !is_blank(bytes) {
                    bytes.copy_from_slice(&mixed(&blocks[at], tweaks[at]));
                }
            }
        }
    }
}

fn mixed(bytes: &[u8], tweak: u128) -> Block {
    let mut block = Block::clone_from_slice(bytes);
    block.iter_mut().zip(tweak.to_le_bytes()).for_each(|(byte, other)| *byte ^= other);
    block
}

/// The next block's tweak: twice this one in the field of 2^128 elements.
fn doubled(tweak: u128) -> u128 {
    tweak << 1 ^ if tweak >> 127 == 1 { 0x87 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
    }

    fn key_of_the_standard() -> UnitKey {
        let data = "2718281828459045235360287471352662497757247093699959574966967627";
        let tweak = "3141592653589793238462643383279502884197169399375105820974944592";
        UnitKey::new(&bytes(&format!("{data}{tweak}")).try_into().expect("64 bytes"))
    }

    /// Vector 10 of IEEE 1619 for AES-256, the first half and the last block of its 512 bytes: unit 0xff, bytes 0 to 255 twice.
    #[test]
    fn the_standards_vector_comes_out() {
        let plain: Vec<u8> = (0..512).map(|at| at as u8).collect();
        let mut text = plain.clone();
        let key = key_of_the_standard();
        key.encrypt(&mut text, 0xff * UNIT);
        assert_eq!(text[..32], bytes("1c3b3a102f770386e4836c99e370cf9bea00803f5e482357a4ae12d414a3e63b")[..]);
        assert_eq!(text[496..], bytes("c4f36ffda9fcea70b9c6e693e148c151")[..]);
        key.decrypt(&mut text, 0xff * UNIT);
        assert_eq!(text, plain);
    }

    #[test]
    fn blocks_are_read_and_written_without_their_neighbours() {
        let key = key_of_the_standard();
        let plain: Vec<u8> = (0..3 * UNIT).map(|at| (at * 7 % 251) as u8).collect();
        let mut whole = plain.clone();
        key.encrypt(&mut whole, 5 * UNIT);
        for (from, to) in [(0, 16), (16, 48), (4080, 4112), (4096, 8192), (1008, 12288), (12272, 12288)] {
            let mut part = plain[from..to].to_vec();
            key.encrypt(&mut part, 5 * UNIT + from as u64);
            assert_eq!(part, whole[from..to], "{from}..{to}");
            key.decrypt(&mut part, 5 * UNIT + from as u64);
            assert_eq!(part, plain[from..to], "{from}..{to}");
        }
        let mut elsewhere = plain[..4096].to_vec();
        key.encrypt(&mut elsewhere, 6 * UNIT);
        assert_ne!(elsewhere, whole[..4096], "another unit is encrypted otherwise");
    }

    #[test]
    fn space_that_nothing_was_written_to_is_zeros() {
        let key = key_of_the_standard();
        let mut bytes = vec![0; 64];
        key.encrypt(&mut bytes[16..32], 16);
        assert!(
            bytes[16..32].iter().any(|byte| *byte != 0),
            "zeros that are written are none of the spare ones"
        );
        key.decrypt(&mut bytes, 0);
        assert_eq!(bytes, vec![0; 64]);
    }
}
