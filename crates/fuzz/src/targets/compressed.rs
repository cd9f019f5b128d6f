//! Compressed payloads: zlib blocks of MariaDB, whole transactions of MySQL, frames of the compressed protocol.

use omnibus_format::{EventType, MAX_EVENT_SIZE};
use omnibus_replication::changes::{Payload, inflate, plain_event};
use omnibus_wire::compressed::{Algorithm, HEAD, Head, Piece};

/// The first byte says what the rest is.
pub(super) fn blocks(input: &[u8]) {
    let [which, rest @ ..] = input else { return };
    match which % 4 {
        0 => drop(inflate(rest, MAX_EVENT_SIZE)),
        1 => payload(rest),
        2 => frame(rest),
        _ => {
            let [event_type, body @ ..] = rest else { return };
            if let Ok(Some((plain, _))) = plain_event(EventType(*event_type), body, MAX_EVENT_SIZE) {
                assert_ne!(plain, EventType(*event_type));
            }
        }
    }
}

/// The first byte is the algorithm, the next seven are the head.
fn frame(input: &[u8]) {
    let [algorithm, rest @ ..] = input else { return };
    let Some((head, payload)) = rest.split_first_chunk::<HEAD>() else { return };
    let algorithm = if algorithm & 1 == 0 { Algorithm::Zlib } else { Algorithm::Zstd };
    let head = Head::decode(head);
    let Ok(mut piece) = Piece::new(head, payload.to_vec(), algorithm) else { return };
    let (mut room, mut all) = ([0; 4096], 0);
    while let Ok(count @ 1..) = piece.read(&mut room) {
        all += count;
    }
    assert!(all <= head.stands_for.max(payload.len()), "no more than the head says");
}

/// Event by event; what there is of them is bounded, because four bytes can stand for 128 KiB.
fn payload(body: &[u8]) {
    let Ok(mut events) = Payload::new(body) else { return };
    for _ in 0..1000 {
        match events.next() {
            Ok(Some((header, body))) => {
                assert_eq!(header.size as usize, omnibus_format::HEADER_LEN + body.len())
            }
            Ok(None) | Err(_) => return,
        }
    }
}
