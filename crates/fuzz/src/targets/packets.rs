//! Packets of the client/server protocol, both directions.

use bytes::Bytes;
use omnibus_replication::source::{DumpRequest, Registration};
use omnibus_wire::auth::AuthSwitch;
use omnibus_wire::stmt::{Bound, Execute, Param, PrepareOk, query_attributes};
use omnibus_wire::{
    Capability, ColumnDef, Command, ErrPacket, Greeting, InBuf, Login, LoginPacket, OkPacket,
};
use std::fmt::Debug;

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    out
}

/// Compared as text: errors of two decodings need not be equal.
fn same<T: Debug, E: Debug>(first: &T, again: Result<T, E>) {
    assert_eq!(format!("{:?}", Ok::<_, E>(first)), format!("{:?}", again.as_ref()));
}

/// The first byte says which packet, the next four what client and server agreed on.
pub(super) fn any(input: &[u8]) {
    let [which, a, b, c, d, payload @ ..] = input else { return };
    let caps = Capability(u32::from_le_bytes([*a, *b, *c, *d]));
    match which % 10 {
        0 => {
            if let Ok(greeting) = Greeting::decode(payload) {
                same(&greeting, Greeting::decode(&encoded(|out| greeting.encode(out))));
            }
        }
        1 => login(payload),
        2 => drop(Login::decode_change_user(payload, caps)),
        3 => {
            if let Ok(ok) = OkPacket::decode(payload, caps) {
                let caps = caps.with(Capability::PROTOCOL_41);
                let bytes = encoded(|out| ok.encode(out, caps, payload.first() == Some(&0xfe)));
                let _ = OkPacket::decode(&bytes, caps).expect("what was encoded");
            }
        }
        4 => drop(ErrPacket::decode(payload)),
        5 => {
            if let Ok(column) = ColumnDef::decode(payload) {
                same(&column, ColumnDef::decode(&encoded(|out| column.encode(out))));
            }
        }
        6 => {
            if let Ok(prepared) = PrepareOk::decode(payload) {
                same(&prepared, PrepareOk::decode(&encoded(|out| prepared.encode(out))));
            }
        }
        7 => drop(omnibus_wire::text_row::decode_text_row(payload, usize::from(*a))),
        8 => {
            let _ = Command::decode(payload);
        }
        _ => frames(payload, *a),
    }
}

fn login(payload: &[u8]) {
    let Ok(LoginPacket::Login(login)) = LoginPacket::decode(payload) else { return };
    // Clients may leave out the end of the packet, which comes back as empty.
    let first = encoded(|out| login.encode(out));
    let Ok(LoginPacket::Login(again)) = LoginPacket::decode(&first) else { panic!("what was encoded") };
    assert_eq!((&again.user, &again.auth), (&login.user, &login.auth));
    assert_eq!(encoded(|out| again.encode(out)), first);
}

/// However the bytes arrive, the packets are the same.
fn frames(bytes: &[u8], piece: u8) {
    let packets = |piece: usize| {
        let (mut input, mut seq, mut found) = (InBuf::new(), 0, Vec::new());
        for piece in bytes.chunks(piece) {
            input.writable(piece.len()).extend_from_slice(piece);
            loop {
                match input.next_packet(&mut seq, 64) {
                    Ok(Some(range)) => found.push(input.payload(range).to_vec()),
                    Ok(None) => break,
                    Err(error) => return (found, Some(format!("{error:?}"))),
                }
            }
        }
        (found, None)
    };
    let whole = packets(bytes.len().max(1));
    assert!(whole.0.iter().all(|packet| packet.len() <= 64), "not past the limit");
    assert_eq!(packets(usize::from(piece).max(1)), whole);
}

/// COM_STMT_EXECUTE: the first byte is the number of parameters, the second says which came before as long data, and whether the
/// client has query attributes.
pub(super) fn parameters(input: &[u8]) {
    let [count, long, payload @ ..] = input else { return };
    let Ok(execute) = Execute::decode(payload) else { return };
    let is_long = |at: usize| at < 7 && long & (1 << at) != 0;
    let caps = if long & 0x80 == 0 { Capability::default() } else { Capability::QUERY_ATTRIBUTES };
    let mut bound = Bound::default();
    let count = usize::from(*count);
    let _ = query_attributes(payload);
    let Ok((params, attributes)) = execute.params(count, &mut bound, caps, is_long) else { return };
    assert_eq!(params.len(), count);
    for param in &params {
        let _ = param.to_value(|| Bytes::from_static(b"long"));
    }
    if count > 0 {
        assert_eq!(bound.types.len(), count + attributes.len(), "types are kept for the next execution");
        let text = format!("{:?}", (&params, &attributes));
        let again = execute.params(count, &mut bound, caps, is_long).map(|again| format!("{again:?}"));
        assert_eq!(again.ok(), Some(text), "reading has no memory but the types");
    }
    assert!(params.iter().enumerate().all(|(at, param)| !is_long(at) || *param == Param::LongData));
}

/// Decodes the requests that a replica sends before the stream.
pub(super) fn dump_request(input: &[u8]) {
    let [which, payload @ ..] = input else { return };
    match which % 3 {
        0 => drop(Registration::decode(payload)),
        1 => drop(DumpRequest::decode(payload)),
        _ => drop(DumpRequest::decode_gtid(payload)),
    }
    let _ = AuthSwitch::decode(payload);
}
