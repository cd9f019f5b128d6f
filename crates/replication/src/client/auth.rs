//! Authentication of this server at a source, from the greeting to OK.
//!
//! AUTH-2 from the client's side: the password itself is sent only inside TLS or under the source's RSA key, and that
//! key is requested over plain TCP only if the channel allows it.

use super::connection::{Connection, Endpoint};
use super::error::ClientError;
use omnibus_wire::ErrPacket;
use omnibus_wire::auth::{AuthSwitch, CACHING_SHA2, NATIVE, caching_sha2, decode_auth_more, native};
use rsa::pkcs8::DecodePublicKey;
use rsa::{Oaep, RsaPublicKey};
use sha1::Sha1;

/// The maximum number of rounds of an exchange.
const MAX_ROUNDS: usize = 8;

/// Returns the first answer to a scramble; `None` for an unsupported plugin.
pub(super) fn answer(plugin: &[u8], password: &[u8], scramble: &[u8]) -> Option<Vec<u8>> {
    match plugin {
        p if p == NATIVE.as_bytes() => Some(native::answer(password, scramble)),
        p if p == CACHING_SHA2.as_bytes() => Some(caching_sha2::answer(password, scramble)),
        _ => None,
    }
}

/// Continues the exchange from the login packet to OK.
pub(super) fn finish(
    connection: &mut Connection,
    endpoint: &Endpoint,
    mut plugin: Vec<u8>,
    mut scramble: Vec<u8>,
) -> Result<(), ClientError> {
    for _ in 0..MAX_ROUNDS {
        let packet = connection.read_packet()?.to_vec();
        match packet.first() {
            Some(0x00) => return Ok(()),
            Some(0xFF) => return Err(ErrPacket::decode(&packet)?.into()),
            Some(0xFE) => {
                let switch = AuthSwitch::decode(&packet)?;
                (plugin, scramble) = (switch.plugin, switch.data);
                let proof = answer(&plugin, endpoint.password.as_bytes(), &scramble).ok_or_else(|| {
                    refuse(
                        &plugin,
                        "not spoken here: give the account mysql_native_password or caching_sha2_password",
                    )
                })?;
                connection.send(|out| out.extend_from_slice(&proof))?;
            }
            Some(0x01) if plugin == CACHING_SHA2.as_bytes() => match decode_auth_more(&packet)?.first() {
                Some(&caching_sha2::FAST_AUTH_OK) => {}
                Some(&caching_sha2::FULL_AUTH) => send_password(connection, endpoint, &scramble)?,
                _ => return Err(ClientError::Malformed("unknown step of caching_sha2_password".into())),
            },
            _ => return Err(ClientError::Malformed("not a packet of a login".into())),
        }
    }
    Err(ClientError::Malformed("the login does not end".into()))
}

fn refuse(plugin: &[u8], reason: &str) -> ClientError {
    ClientError::Auth { plugin: String::from_utf8_lossy(plugin).into_owned(), reason: reason.into() }
}

fn send_password(
    connection: &mut Connection,
    endpoint: &Endpoint,
    scramble: &[u8],
) -> Result<(), ClientError> {
    let mut password = endpoint.password.as_bytes().to_vec();
    password.push(0);
    if connection.is_private() {
        return connection.send(|out| out.extend_from_slice(&password));
    }
    let key = match &endpoint.public_key {
        Some(path) => std::fs::read(path)
            .map_err(|e| refuse(CACHING_SHA2.as_bytes(), &format!("{}: {e}", path.display())))?,
        None if endpoint.ask_public_key => {
            connection.send(|out| out.push(caching_sha2::REQUEST_PUBLIC_KEY))?;
            let packet = connection.read_packet()?;
            if packet.first() == Some(&0xFF) {
                return Err(ErrPacket::decode(packet)?.into());
            }
            decode_auth_more(packet)?.to_vec()
        }
        None => {
            return Err(refuse(
                CACHING_SHA2.as_bytes(),
                "the password is needed and the connection is not private: \
                 use SOURCE_SSL=1, or GET_SOURCE_PUBLIC_KEY=1, or SOURCE_PUBLIC_KEY_PATH",
            ));
        }
    };
    let cipher = encrypt(&key, password, scramble)
        .ok_or_else(|| refuse(CACHING_SHA2.as_bytes(), "the source's RSA key cannot be used"))?;
    connection.send(|out| out.extend_from_slice(&cipher))
}

fn encrypt(key: &[u8], mut password: Vec<u8>, scramble: &[u8]) -> Option<Vec<u8>> {
    let key =
        RsaPublicKey::from_public_key_pem(std::str::from_utf8(key).ok()?.trim_end_matches('\0')).ok()?;
    caching_sha2::mask(&mut password, scramble);
    key.encrypt(&mut rsa::rand_core::OsRng, Oaep::new::<Sha1>(), &password).ok()
}
