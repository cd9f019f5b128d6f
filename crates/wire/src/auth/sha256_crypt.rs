//! The sha256-crypt digest (Ulrich Drepper's public specification, "Unix crypt using SHA-256"),
//! except that a salt may be longer than 16 bytes, as MySQL has 20.

use sha2::{Digest, Sha256};

/// crypt's base-64 alphabet.
pub const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Length of the printed digest.
pub const DIGEST_LEN: usize = 43;

fn finish(h: Sha256) -> [u8; 32] {
    h.finalize().into()
}

/// `n` bytes of `block` repeated.
fn stretch(block: &[u8; 32], n: usize) -> Vec<u8> {
    block.iter().copied().cycle().take(n).collect()
}

/// The printed digest of `password`.
#[must_use]
pub fn digest(password: &[u8], salt: &[u8], rounds: u32) -> [u8; DIGEST_LEN] {
    let b = finish(Sha256::new().chain_update(password).chain_update(salt).chain_update(password));
    let mut h = Sha256::new();
    h.update(password);
    h.update(salt);
    h.update(stretch(&b, password.len()));
    let mut n = password.len();
    while n > 0 {
        if n & 1 == 1 {
            h.update(b)
        } else {
            h.update(password)
        }
        n >>= 1;
    }
    let mut a = finish(h);

    let mut h = Sha256::new();
    (0..password.len()).for_each(|_| h.update(password));
    let p = stretch(&finish(h), password.len());
    let mut h = Sha256::new();
    (0..16 + usize::from(a[0])).for_each(|_| h.update(salt));
    let s = stretch(&finish(h), salt.len());

    for i in 0..rounds {
        let mut h = Sha256::new();
        if i % 2 == 1 {
            h.update(&p)
        } else {
            h.update(a)
        }
        if i % 3 != 0 {
            h.update(&s);
        }
        if i % 7 != 0 {
            h.update(&p);
        }
        if i % 2 == 1 {
            h.update(a)
        } else {
            h.update(&p)
        }
        a = finish(h);
    }
    print(&a)
}

/// The specification's order of bytes: triples that start 10 apart, turning by 21.
fn print(d: &[u8; 32]) -> [u8; DIGEST_LEN] {
    let mut out = [0; DIGEST_LEN];
    let mut at = 0;
    let mut put = |value: u32, n: usize| {
        for i in 0..n {
            out[at] = ALPHABET[(value >> (6 * i)) as usize & 63];
            at += 1;
        }
    };
    let (mut x, mut y, mut z) = (0usize, 10usize, 20usize);
    for _ in 0..10 {
        put(u32::from(d[x]) << 16 | u32::from(d[y]) << 8 | u32::from(d[z]), 4);
        (x, y, z) = ((x + 21) % 30, (y + 21) % 30, (z + 21) % 30);
    }
    put(u32::from(d[31]) << 8 | u32::from(d[30]), 3);
    out
}
