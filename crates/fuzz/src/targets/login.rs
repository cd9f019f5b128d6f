//! The packets of a login in a row, and what is computed of a client's answer.

use omnibus_wire::auth::{AuthSwitch, caching_sha2, decode_auth_more, native};
use omnibus_wire::{InBuf, LoginPacket};

/// The maximum packet size of a server before a login is complete.
const MAX_LOGIN_PACKET: usize = 64 * 1024;

/// Bytes of a client from its first packet on, then taken for those of a server: a replica reads them.
pub(super) fn exchange(input: &[u8]) {
    let mut buffer = InBuf::new();
    buffer.writable(input.len()).extend_from_slice(input);
    let scramble = [7; 20];
    let mut seq = 1;
    let mut first = true;
    while let Ok(Some(range)) = buffer.next_packet(&mut seq, MAX_LOGIN_PACKET) {
        let packet = buffer.payload(range);
        if std::mem::take(&mut first)
            && let Ok(LoginPacket::Login(login)) = LoginPacket::decode(packet)
        {
            answer(&login.auth, &scramble);
        }
        answer(packet, &scramble);
        let _ = AuthSwitch::decode(packet);
        let _ = decode_auth_more(packet);
    }
}

fn answer(answer: &[u8], scramble: &[u8]) {
    if let Some(hash) = native::parse_hash(answer) {
        assert_eq!(native::parse_hash(answer), Some(hash));
    }
    let hash = native::hash(b"secret");
    let right = native::answer(b"secret", scramble);
    assert_eq!(native::check(&hash, scramble, answer), answer == right, "AUTH-1: only the right answer");
    let cached = caching_sha2::fast_hash(b"secret");
    let right = caching_sha2::answer(b"secret", scramble);
    assert_eq!(caching_sha2::check_fast(&cached, scramble, answer), answer == right);
    let _ = caching_sha2::is_hash(answer);
    let mut masked = answer.to_vec();
    caching_sha2::mask(&mut masked, scramble);
    caching_sha2::mask(&mut masked, scramble);
    assert_eq!(masked, answer);
}
