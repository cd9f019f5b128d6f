//! Packets there and back, framing at its limits, and random input (WIRE-1, WIRE-2).
#![allow(clippy::unwrap_used)]

use omnibus_wire::consts::{ColumnFlag, FieldType};
use omnibus_wire::frame::MAX_FRAME;
use omnibus_wire::session_state::StateChange;
use omnibus_wire::stmt::{
    Bound, Execute, Param, ParamDateTime, ParamType, PrepareOk, encode_execute, query_attributes,
};
use omnibus_wire::{
    Capability, ColumnDef, Command, ErrPacket, FrameError, Greeting, InBuf, Login, LoginPacket, OkPacket,
    OutBuf, Status, login,
};

fn encoded(f: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    f(&mut out);
    out
}

#[test]
fn greeting_there_and_back() {
    let g = Greeting {
        version: b"8.4.0-omnibus".to_vec(),
        connection_id: 77,
        scramble: std::array::from_fn(|i| i as u8 + 1),
        capabilities: Capability(0x01FF_F7DF),
        collation: 45,
        status: Status::AUTOCOMMIT,
        plugin: b"caching_sha2_password".to_vec(),
    };
    let bytes = encoded(|o| g.encode(o));
    assert_eq!(Greeting::decode(&bytes).unwrap(), g);
    for n in 0..bytes.len() - 22 {
        assert!(Greeting::decode(&bytes[..n]).is_err(), "prefix of {n} bytes");
    }
}

fn sample_login(capabilities: Capability) -> Login {
    Login {
        capabilities,
        max_packet: 1 << 24,
        collation: 45,
        user: b"root".to_vec(),
        auth: vec![1; 32],
        database: capabilities.has(Capability::CONNECT_WITH_DB).then(|| b"test".to_vec()),
        plugin: Some(b"caching_sha2_password".to_vec()),
        zstd_level: if capabilities.has(Capability::ZSTD_COMPRESSION) { 7 } else { 0 },
        attrs: vec![(b"_pid".to_vec(), b"1".to_vec()), (b"program".to_vec(), vec![b'x'; 300])],
    }
}

#[test]
fn login_there_and_back() {
    let base = Capability::PROTOCOL_41
        .with(Capability::SECURE_CONNECTION)
        .with(Capability::PLUGIN_AUTH)
        .with(Capability::CONNECT_ATTRS);
    for caps in [
        base,
        base.with(Capability::PLUGIN_AUTH_LENENC),
        base.with(Capability::CONNECT_WITH_DB),
        base.with(Capability::ZSTD_COMPRESSION),
    ] {
        let l = sample_login(caps);
        let bytes = encoded(|o| l.encode(o));
        assert_eq!(LoginPacket::decode(&bytes).unwrap(), LoginPacket::Login(Box::new(l)));
        for n in 0..bytes.len() {
            let _ = LoginPacket::decode(&bytes[..n]);
        }
    }
    let ssl = encoded(|o| login::encode_ssl_request(o, base, 1 << 24, 45));
    assert!(matches!(LoginPacket::decode(&ssl).unwrap(), LoginPacket::Ssl(_)));
    let old = encoded(|o| o.extend_from_slice(&[0x8d, 0xa6, 0x03, 0, 0, 1, b'r', 0]));
    assert!(LoginPacket::decode(&old).is_err(), "the pre-4.1 protocol is refused, not misread");
}

#[test]
fn ok_err_and_column_there_and_back() {
    let caps = Capability::PROTOCOL_41.with(Capability::DEPRECATE_EOF);
    let ok = OkPacket {
        affected: 70_000,
        last_insert_id: 1 << 40,
        warnings: 3,
        info: b"Rows",
        ..OkPacket::default()
    };
    let bytes = encoded(|o| ok.encode(o, caps, false));
    assert_eq!(OkPacket::decode(&bytes, caps).unwrap(), ok);
    let track = caps.with(Capability::SESSION_TRACK);
    let ok = OkPacket { changes: &[StateChange::Schema(b"db")], ..ok };
    let bytes = encoded(|o| ok.encode(o, track, true));
    let back = OkPacket::decode(&bytes, track).unwrap();
    assert!(bytes[0] == 0xFE && back.status.has(Status::SESSION_STATE_CHANGED) && back.info == b"Rows");

    let err = ErrPacket { code: 1064, state: *b"42000", message: "é".repeat(600).into_bytes().into() };
    let bytes = encoded(|o| err.encode(o, caps));
    let back = ErrPacket::decode(&bytes).unwrap();
    assert_eq!((back.code, back.state), (1064, *b"42000"));
    assert_eq!(std::str::from_utf8(&back.message).unwrap().len(), 510, "cut between characters");

    let col = ColumnDef {
        schema: b"d".into(),
        table: b"t".into(),
        org_table: b"t0".into(),
        name: b"c".into(),
        org_name: b"c0".into(),
        collation: 45,
        length: 80,
        field_type: FieldType::VarString,
        flags: ColumnFlag::NOT_NULL,
        decimals: 31,
    };
    let bytes = encoded(|o| col.encode(o));
    assert_eq!(ColumnDef::decode(&bytes).unwrap(), col);
    let p = PrepareOk { id: 3, columns: 2, params: 1, warnings: 9 };
    assert_eq!(PrepareOk::decode(&encoded(|o| p.encode(o))).unwrap(), p);
}

#[test]
fn frames_split_and_join_at_sixteen_megabytes() {
    for len in [0, 1, MAX_FRAME - 1, MAX_FRAME, MAX_FRAME + 1, 2 * MAX_FRAME, 2 * MAX_FRAME + 5] {
        let payload: Vec<u8> = (0..len).map(|i| (i * 7 % 251) as u8).collect();
        let mut out = OutBuf::new();
        out.set_seq(254);
        out.packet(|o| o.extend_from_slice(&payload));
        out.packet(|o| o.extend_from_slice(b"next"));
        let mut input = InBuf::new();
        let (mut seq, mut got) = (254u8, None);
        for piece in out.bytes().chunks(1 << 20) {
            input.writable(piece.len()).extend_from_slice(piece);
            if got.is_none() {
                got = input.next_packet(&mut seq, 1 << 30).unwrap().map(|r| input.payload(r).to_vec());
            }
        }
        assert_eq!(got.unwrap(), payload, "length {len}");
        let r = input.next_packet(&mut seq, 1 << 30).unwrap().unwrap();
        assert_eq!(input.payload(r), b"next");
        assert_eq!(seq, out.seq());
    }
}

#[test]
fn frames_are_refused_before_they_are_buffered() {
    let mut input = InBuf::new();
    input.writable(4).extend_from_slice(&[0xFF, 0xFF, 0x0F, 0]);
    assert_eq!(input.next_packet(&mut 0, 1024), Err(FrameError::TooBig));
    assert!(input.wanted() <= 1 << 20);
    let mut input = InBuf::new();
    input.writable(5).extend_from_slice(&[1, 0, 0, 3, 0x0E]);
    assert_eq!(input.next_packet(&mut 0, 1024), Err(FrameError::OutOfOrder));
}

#[test]
fn rollback_restores_bytes_and_sequence() {
    let mut out = OutBuf::new();
    out.packet(|o| o.push(1));
    let mark = out.mark();
    let before = (out.bytes().to_vec(), out.seq());
    out.packet(|o| o.extend_from_slice(&vec![0; MAX_FRAME + 1]));
    out.rollback(mark);
    assert_eq!((out.bytes().to_vec(), out.seq()), before);
    let mut input = InBuf::new();
    input.writable(4096).extend_from_slice(&vec![0; 100_000]);
    input.take_pending();
    input.shrink();
    assert_eq!(input.pending(), 0);
}

#[test]
fn parameters_of_every_type() {
    let t = |field_type, unsigned| ParamType { field_type, unsigned };
    let date = [0xE8u8, 0x07, 2, 29];
    let full = [&[11u8][..], &date, &[23, 59, 58], &7u32.to_le_bytes()].concat();
    let time = [&[12u8, 1][..], &2u32.to_le_bytes(), &[3, 4, 5], &6u32.to_le_bytes()].concat();
    let short_date = [&[4u8][..], &date].concat();
    let params: Vec<(ParamType, Option<&[u8]>)> = vec![
        (t(FieldType::Tiny, false), Some(&[0xFF])),
        (t(FieldType::Tiny, true), Some(&[0xFF])),
        (t(FieldType::LongLong, false), Some(&[0xFF; 8])),
        (t(FieldType::LongLong, true), Some(&[0xFF; 8])),
        (t(FieldType::VarString, false), None),
        (t(FieldType::VarString, false), Some(b"text")),
        (t(FieldType::NewDecimal, false), Some(b"1.50")),
        (t(FieldType::DateTime, false), Some(&full)),
        (t(FieldType::Date, false), Some(&short_date)),
        (t(FieldType::Time, false), Some(&time)),
    ];
    let packet = encoded(|o| encode_execute(o, 5, &params));
    let Command::StmtExecute(body) = Command::decode(&packet).unwrap() else { panic!("not an execute") };
    let exec = Execute::decode(body).unwrap();
    let (mut bound, caps) = (Bound::default(), Capability::default());
    let (got, _) = exec.params(params.len(), &mut bound, caps, |_| false).unwrap();
    let day = ParamDateTime { year: 2024, month: 2, day: 29, ..ParamDateTime::default() };
    assert_eq!(
        got,
        [
            Param::Int(-1),
            Param::UInt(255),
            Param::Int(-1),
            Param::UInt(u64::MAX),
            Param::Null,
            Param::Bytes(b"text"),
            Param::Decimal(b"1.50"),
            Param::DateTime(ParamDateTime { hour: 23, minute: 59, second: 58, micros: 7, ..day }),
            Param::Date(day),
            Param::Time { negative: true, days: 2, hour: 3, minute: 4, second: 5, micros: 6 },
        ]
    );
    let again = [&packet[1..10], &[0u8, 0], &[0]].concat();
    let exec = Execute::decode(&again).unwrap();
    let (got, _) = exec.params(10, &mut bound, caps, |_| true).unwrap();
    assert_eq!(got, [Param::LongData; 10], "types are remembered");
    assert!(exec.params(11, &mut bound, caps, |_| true).is_err(), "a count that does not match is refused");
}

/// A client with query attributes sends them in front of a text, and behind the parameters of a statement.
#[test]
fn query_attributes_there() {
    let named = |name: &[u8]| [&[253, 0, name.len() as u8][..], name].concat();
    let attributes = [&[2, 1, 0b10, 1][..], &named(b"trace"), &named(b"none"), b"\x03abc"].concat();
    let packet = [&attributes[..], b"SELECT 1"].concat();
    let text = ParamType { field_type: FieldType::VarString, unsigned: false };
    let want = vec![(b"trace".to_vec(), text, Param::Bytes(b"abc")), (b"none".to_vec(), text, Param::Null)];
    assert_eq!(query_attributes(&packet).unwrap(), (want, &b"SELECT 1"[..]));
    assert_eq!(query_attributes(b"\0\x01SELECT 1").unwrap(), (vec![], &b"SELECT 1"[..]));
    assert!(query_attributes(b"\0\x02SELECT 1").is_err(), "sets of parameters");
    for n in 0..attributes.len() {
        assert!(query_attributes(&packet[..n]).is_err(), "prefix of {n} bytes");
    }
    // One parameter of the statement, one attribute; bound, and then with what was bound.
    let caps = Capability::QUERY_ATTRIBUTES;
    let head = |flags: u8| [&5u32.to_le_bytes()[..], &[flags], &1u32.to_le_bytes()].concat();
    let first = [&head(8)[..], &[2, 0, 1], &named(b""), &named(b"trace"), b"\x01p", b"\x01q"].concat();
    let again = [&head(8)[..], &[2, 0, 0], b"\x01r", b"\x01s"].concat();
    let mut bound = Bound::default();
    for (packet, param, attribute) in [(&first, b"p", b"q"), (&again, b"r", b"s")] {
        let got = Execute::decode(packet).unwrap().params(1, &mut bound, caps, |_| false).unwrap();
        let attribute = (b"trace".to_vec(), text, Param::Bytes(attribute));
        assert_eq!(got, (vec![Param::Bytes(param)], vec![attribute]));
    }
    // A statement without parameters has none unless the client says so.
    let bare = head(0);
    let none = Execute::decode(&bare).unwrap().params(0, &mut Bound::default(), caps, |_| false).unwrap();
    assert_eq!(none, (vec![], vec![]));
}

/// xorshift64*: random bytes without a dependency, repeatable.
struct Random(u64);
impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
    fn bytes(&mut self, max: usize) -> Vec<u8> {
        let n = self.next() as usize % (max + 1);
        (0..n)
            .map(|_| {
                if self.next().is_multiple_of(3) { 0xFB + (self.next() % 5) as u8 } else { self.next() as u8 }
            })
            .collect()
    }
}

#[test]
fn random_bytes_never_panic_a_decoder() {
    let mut random = Random(0x5EED);
    for _ in 0..60_000 {
        let b = random.bytes(90);
        let caps = Capability(random.next() as u32);
        let _ = Greeting::decode(&b);
        let _ = LoginPacket::decode(&b);
        let _ = Login::decode_change_user(&b, caps);
        let _ = OkPacket::decode(&b, caps);
        let _ = ErrPacket::decode(&b);
        let _ = ColumnDef::decode(&b);
        let _ = PrepareOk::decode(&b);
        let _ = omnibus_wire::auth::AuthSwitch::decode(&b);
        let _ = omnibus_wire::text_row::decode_text_row(&b, random.next() as usize % 20);
        let _ = Command::decode(&b);
        if let Ok(exec) = Execute::decode(&b)
            && let Ok((params, _)) =
                exec.params(random.next() as usize % 12, &mut Bound::default(), caps, |i| i == 3)
        {
            for p in params {
                let _ = p.to_value(bytes::Bytes::new);
            }
        }
        let mut input = InBuf::new();
        input.writable(b.len()).extend_from_slice(&b);
        let mut seq = random.next() as u8 % 2;
        while let Ok(Some(r)) = input.next_packet(&mut seq, 64) {
            assert!(input.payload(r).len() <= 64);
        }
    }
}
