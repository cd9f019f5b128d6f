//! Clients that break the protocol, clients that only sit there, and too many of them.
#![allow(clippy::unwrap_used)]

mod common;
use common::{TestServer, start, wide_rows};
use omnibus_wire::auth::native;
use omnibus_wire::{Capability, ErrPacket, Greeting, Login};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

fn connect(server: &TestServer) -> UnixStream {
    let stream = UnixStream::connect(&server.socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    stream
}

/// One packet: its number and payload. `None` at the end of the stream.
fn read(stream: &mut UnixStream) -> Option<(u8, Vec<u8>)> {
    let mut header = [0; 4];
    if let Err(error) = stream.read_exact(&mut header) {
        let silence = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        assert!(!silence, "the server neither says anything nor goes away");
        return None;
    }
    let len = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
    let mut payload = vec![0; len];
    stream.read_exact(&mut payload).ok()?;
    Some((header[3], payload))
}

fn write(stream: &mut UnixStream, seq: u8, payload: &[u8]) {
    let len = (payload.len() as u32).to_le_bytes();
    let _ = stream.write_all(&[&[len[0], len[1], len[2], seq], payload].concat());
}

fn login(stream: &mut UnixStream, user: &str, password: &[u8]) -> Vec<u8> {
    let (_, greeting) = read(stream).unwrap();
    let greeting = Greeting::decode(&greeting).unwrap();
    let capabilities = Capability::PROTOCOL_41
        .with(Capability::SECURE_CONNECTION)
        .with(Capability::PLUGIN_AUTH)
        .with(Capability::MULTI_STATEMENTS)
        .with(Capability::DEPRECATE_EOF);
    let packet = Login {
        capabilities,
        max_packet: 1 << 24,
        collation: 45,
        user: user.into(),
        auth: native::answer(password, &greeting.scramble),
        plugin: Some(b"mysql_native_password".to_vec()),
        ..Login::default()
    };
    let mut out = Vec::new();
    packet.encode(&mut out);
    write(stream, 1, &out);
    let (seq, reply) = read(stream).unwrap();
    if reply.first() == Some(&0xFE) {
        write(stream, seq + 1, b"");
        return read(stream).unwrap().1;
    }
    reply
}

fn root(server: &TestServer) -> UnixStream {
    let mut stream = connect(server);
    assert_eq!(login(&mut stream, "root", b"")[0], 0);
    stream
}

fn error_code(payload: &[u8]) -> u16 {
    ErrPacket::decode(payload).unwrap().code
}

#[test]
fn broken_logins_get_an_error_and_nothing_else() {
    let s = start(&[]);
    for bad in [&b""[..], b"x", &[0xFF; 40], &[0; 36]] {
        let mut stream = connect(&s);
        read(&mut stream).unwrap();
        write(&mut stream, 1, bad);
        assert_eq!(error_code(&read(&mut stream).unwrap().1), 1043, "{bad:?}");
        assert_eq!(read(&mut stream), None);
    }
    let mut stream = connect(&s);
    read(&mut stream).unwrap();
    write(&mut stream, 7, &[0; 40]);
    assert_eq!(error_code(&read(&mut stream).unwrap().1), 1156, "wrong sequence number");
    let mut stream = connect(&s);
    read(&mut stream).unwrap();
    write(&mut stream, 1, &vec![0; 100_000]);
    assert_eq!(error_code(&read(&mut stream).unwrap().1), 1153, "too large before a login");
    assert_eq!(s.ask(&["-uroot"], "SELECT 1"), "1");
}

#[test]
fn broken_commands() {
    let s = start(&["--max-allowed-packet=64K"]);
    for (command, code) in [
        (&b""[..], 1835),
        (&[0xEE], 1047),
        (&[0x0C, 1], 1835),
        (&[0x17, 9, 0, 0, 0, 0, 1, 0, 0, 0], 1243),
        (&[0x17, 9], 1835),
        (&[0x12, 4, 0, 0, 0], 1835),
        (&[0x03, b'S', b'E', 0xFF], 1064),
    ] {
        let mut stream = root(&s);
        write(&mut stream, 0, command);
        assert_eq!(error_code(&read(&mut stream).unwrap().1), code, "{command:?}");
        write(&mut stream, 0, &[0x0E]);
        assert_eq!(read(&mut stream).unwrap().1[0], 0, "the session goes on after {command:?}");
    }
    // A whole request that cannot be met ends its connection: the position is inside the magic number.
    let mut stream = root(&s);
    write(&mut stream, 0, &[0x12, 1, 0, 0, 0, 0, 0, 9, 0, 0, 0]);
    assert_eq!(error_code(&read(&mut stream).unwrap().1), 1236);
    assert!(read(&mut stream).is_none());
    let mut stream = root(&s);
    let _ = stream.write_all(&[0xFF, 0xFF, 0xFF, 0]);
    assert_eq!(error_code(&read(&mut stream).unwrap().1), 1153, "refused by its header alone");
    assert_eq!(read(&mut stream), None);
}

#[test]
fn random_bytes_end_only_their_own_connection() {
    let s = start(&[]);
    let mut seed = 88_172_645_463_325_252u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for round in 0..150 {
        let mut stream = if round % 2 == 0 { connect(&s) } else { root(&s) };
        for _ in 0..4 {
            let len = random() as usize % 60;
            let mut payload: Vec<u8> = (0..len).map(|_| random() as u8).collect();
            if let Some(first) = payload.first_mut().filter(|_| round % 4 == 1) {
                *first = 0x16 + (random() % 5) as u8;
            }
            if payload.first() == Some(&0x08) {
                continue;
            }
            write(&mut stream, if round % 2 == 0 { 1 } else { 0 }, &payload);
        }
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    assert_eq!(s.ask(&["-uroot"], "SELECT 1"), "1");
}

#[test]
fn commands_may_be_sent_ahead() {
    let s = start(&[]);
    let mut stream = root(&s);
    let mut all = Vec::new();
    for _ in 0..50 {
        let query = b"\x03SELECT 7";
        all.extend_from_slice(&[query.len() as u8, 0, 0, 0]);
        all.extend_from_slice(query);
    }
    stream.write_all(&all).unwrap();
    for _ in 0..50 {
        let packets: Vec<_> = (0..4).map(|_| read(&mut stream).unwrap()).collect();
        assert_eq!(packets.iter().map(|p| p.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(packets[2].1, b"\x017");
        assert_eq!(packets[3].1[0], 0xFE);
    }
}

#[test]
fn one_place_is_kept_for_an_administrator() {
    let s = start(&["--max-connections=3"]);
    s.ask(&["-uroot"], "CREATE USER u IDENTIFIED WITH mysql_native_password BY ''");
    let mut held: Vec<_> = Vec::new();
    while s.server.counters.connected.load(std::sync::atomic::Ordering::Relaxed) > 0 {
        std::thread::yield_now();
    }
    for _ in 0..3 {
        let mut stream = connect(&s);
        assert_eq!(login(&mut stream, "u", b"")[0], 0);
        held.push(stream);
    }
    let mut stream = connect(&s);
    assert_eq!(error_code(&login(&mut stream, "u", b"")), 1040);
    assert_eq!(read(&mut stream), None);
    let one_more = loop {
        let mut stream = connect(&s);
        let reply = login(&mut stream, "root", b"");
        if reply[0] == 0 {
            break stream;
        }
    };
    let mut stream = connect(&s);
    assert_eq!(error_code(&read(&mut stream).unwrap().1), 1040, "not even a greeting");
    drop(one_more);
}

#[test]
fn silence_ends_a_connection() {
    let s = start(&["--wait-timeout=1"]);
    let mut stream = root(&s);
    assert_eq!(error_code(&read(&mut stream).unwrap().1), 4031);
    let s = start(&["--connect-timeout=2"]);
    let mut silent = connect(&s);
    read(&mut silent).unwrap();
    assert_eq!(read(&mut silent), None, "no login within connect_timeout");
}

#[test]
fn a_client_that_does_not_read_is_let_go() {
    let s = start(&["--net-write-timeout=1"]);
    let mut stream = root(&s);
    let started = std::time::Instant::now();
    write(&mut stream, 0, format!("\x03{}", wide_rows(200_000)).as_bytes());
    // It never reads; the server must give up by itself, and take no other session with it.
    while s.server.counters.connected.load(std::sync::atomic::Ordering::Relaxed) > 0 {
        assert!(started.elapsed() < Duration::from_secs(120), "still connected");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(s.ask(&["-uroot"], "SELECT 1"), "1");
}

/// Resident memory of this process, in bytes.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn idle_connections_are_cheap() {
    // Memory is the process's, and the other tests of this one have theirs: measured in another one.
    if std::env::var_os("MEASURED_ALONE").is_none() {
        let mut alone = Command::new(std::env::current_exe().unwrap());
        alone.args(["--exact", "idle_connections_are_cheap"]).env("MEASURED_ALONE", "1");
        let run = alone.output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
        return;
    }
    let s = start(&[]);
    let mut held: Vec<_> = (0..10).map(|_| root(&s)).collect();
    let before = resident();
    for _ in 0..400 {
        let mut stream = root(&s);
        write(&mut stream, 0, format!("\x03{}", wide_rows(300)).as_bytes());
        while read(&mut stream).unwrap().1[0] != 0xFE {}
        held.push(stream);
    }
    let each = resident().saturating_sub(before) / 400;
    assert!(each < 60_000, "{each} bytes for an idle connection that had a large result");
}
