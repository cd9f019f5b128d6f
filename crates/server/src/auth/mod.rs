//! From a login packet to an account: the exchange of both password plugins.
//!
//! - AUTH-1 A client that fails learns nothing about which accounts exist: an unknown user goes through
//!   the same exchange and gets the same error 1045.
//! - AUTH-2 A clear-text password is taken only inside TLS, over a unix socket, or under RSA.
//!
//! Runs in the connection's task; the slow hash runs in `block_in_place`.

mod cache;
mod exchange;
mod rsa_key;

pub use cache::FastCache;
pub use exchange::{AuthFailure, Authenticated, Authenticator, MAX_LOGIN_PACKET, authenticate};
pub use rsa_key::{FILE as RSA_KEY, RsaKey};

use crate::random::random_bytes;

/// A salt for the greeting: 7-bit, without NUL and `$`, since clients treat it as a C string.
#[must_use]
pub fn new_scramble() -> [u8; 20] {
    let mut salt = [0; 20];
    random_bytes(&mut salt);
    salt.map(|b| match b & 0x7F {
        0 => 1,
        b'$' => b'%',
        b => b,
    })
}
