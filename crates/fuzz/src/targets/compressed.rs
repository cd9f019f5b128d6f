//! Compressed payloads: zlib blocks of MariaDB, whole transactions of MySQL.

use omnibus_format::{EventType, MAX_EVENT_SIZE};
use omnibus_replication::apply::{Payload, inflate, plain_event};

/// The first byte says what the rest is.
pub(super) fn blocks(input: &[u8]) {
    let [which, rest @ ..] = input else { return };
    match which % 3 {
        0 => drop(inflate(rest, MAX_EVENT_SIZE)),
        1 => payload(rest),
        _ => {
            let [event_type, body @ ..] = rest else { return };
            if let Ok(Some((plain, _))) = plain_event(EventType(*event_type), body, MAX_EVENT_SIZE) {
                assert_ne!(plain, EventType(*event_type));
            }
        }
    }
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
