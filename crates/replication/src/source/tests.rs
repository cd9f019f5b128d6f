//! Requests as bytes; the stream against the file it was made from.

#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn requests_are_read_and_cut_ones_refused() {
    let mut dump = vec![4, 0, 0, 0, 1, 0, 7, 0, 0, 0];
    dump.extend_from_slice(b"binlog.000001\0");
    let request = DumpRequest::decode(&dump).unwrap();
    assert_eq!((request.position, request.server_id, &*request.file), (4, 7, "binlog.000001"));
    assert!(request.ends_at_end());
    for cut in 0..10 {
        assert!(DumpRequest::decode(&dump[..cut]).is_err(), "cut at {cut}");
    }
    let mut register = vec![9, 0, 0, 0, 1, b'h', 1, b'u', 1, b'p', 0xea, 0x0c, 0, 0, 0, 0, 3, 0, 0, 0];
    let registration = Registration::decode(&register).unwrap();
    assert_eq!(registration.port, 3306);
    assert_eq!((registration.server_id, registration.source_id), (9, 3));
    register[4] = 255;
    assert!(Registration::decode(&register).is_err());
}

#[test]
fn a_gtid_request_cannot_claim_more_than_it_sends() {
    let mut dump = vec![4, 0, 7, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(DumpRequest::decode_gtid(&dump).unwrap().executed, Some(Default::default()));
    dump.extend_from_slice(&48u32.to_le_bytes());
    assert!(DumpRequest::decode_gtid(&dump).is_err());
    // One server, interval count of 2^60.
    dump.extend_from_slice(&1u64.to_le_bytes());
    dump.extend_from_slice(&[0xaa; 16]);
    dump.extend_from_slice(&(1u64 << 60).to_le_bytes());
    dump.extend_from_slice(&1u64.to_le_bytes());
    dump.extend_from_slice(&5u64.to_le_bytes());
    dump.extend_from_slice(&[0; 8]);
    dump[18] = 56;
    assert!(DumpRequest::decode_gtid(&dump).is_err());
}

#[test]
fn what_a_client_says_about_itself_is_read_under_both_names() {
    let of = |set: &'static [(&str, &str)]| {
        Peer::from_variables(|name| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    };
    let silent = of(&[]);
    assert_eq!(silent.checksum, WantedChecksum::Unsaid);
    assert_eq!(silent.heartbeat, Some(std::time::Duration::from_secs(30)));
    let maria = of(&[
        ("master_binlog_checksum", "crc32"),
        ("master_heartbeat_period", "0"),
        ("mariadb_slave_capability", "4"),
        ("rpl_semi_sync_slave", "1"),
    ]);
    assert!(maria.is_mariadb() && maria.semi_sync);
    assert_eq!((maria.checksum, maria.heartbeat), (WantedChecksum::Crc32, None));
    let mysql = of(&[("replica_uuid", "ABC"), ("source_heartbeat_period", "1500000000")]);
    assert_eq!((mysql.heartbeat, &*mysql.uuid), (Some(std::time::Duration::from_millis(1500)), "abc"));
}

mod tail {
    //! COMMIT-2: bytes that are not durable are not in the hub.

    use super::super::hub::{Found, Hub};
    use omnibus_format::writer::write_final;
    use omnibus_format::{Checksum, EventContext, EventType, FormatDescription};
    use omnibus_log::{LogConfig, LogDir, LogPosition, LogWriter};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    fn event(out: &mut Vec<u8>, kind: EventType, at: u64, body: &[u8]) {
        let context = EventContext { timestamp: 0, server_id: 1 };
        write_final(out, context, kind, 0, at, Checksum::Crc32, |out| out.extend_from_slice(body));
    }

    fn head() -> Vec<u8> {
        let (mut out, mut body) = (Vec::new(), Vec::new());
        FormatDescription::new("8.4.0", 0, Checksum::Crc32).encode(&mut body);
        event(&mut out, EventType::FORMAT_DESCRIPTION, 4, &body);
        out
    }

    /// Appends one event; durable only with `advance`.
    fn append(writer: &mut LogWriter, len: usize, advance: bool) -> LogPosition {
        let mut bytes = Vec::new();
        event(&mut bytes, EventType::QUERY, writer.position().offset.0, &vec![b'x'; len]);
        writer.buffer().extend_from_slice(&bytes);
        let job = writer.seal();
        let end = job.end();
        job.run().unwrap();
        if advance {
            writer.handle().durable_end().advance(end);
        }
        end
    }

    /// Reads from `from` until `to`, only from memory, and returns the number of bytes.
    fn follow(hub: &Hub, from: LogPosition, to: LogPosition) -> u64 {
        let (mut at, mut bytes) = (from, 0);
        let deadline = Instant::now() + Duration::from_secs(120);
        while at < to {
            assert!(Instant::now() < deadline, "stuck at {at}");
            match hub.find(at) {
                Found::Block(block) => {
                    bytes +=
                        block.events_from(at.offset.0).map(|event| event.bytes.len() as u64).sum::<u64>();
                    at = block.end();
                }
                Found::NextFile(file) => at = LogPosition::new(file, 4),
                Found::AtEnd => std::thread::yield_now(),
                Found::Elsewhere => panic!("{at} is not in memory"),
            }
        }
        bytes
    }

    /// Has a thread feed a hub from a new log while `body` runs.
    fn fed(pace: Duration, wake: impl Fn() + Send, body: impl FnOnce(&Hub, LogWriter)) {
        let dir = tempfile::tempdir().unwrap();
        let config = LogConfig { preallocate: false, ..LogConfig::default() };
        let writer = LogWriter::start(LogDir::open(dir.path(), config).unwrap(), &head()).unwrap();
        let (log, hub, stop) = (writer.handle(), Hub::default(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            // A test that fails must end, too.
            let _stop = Stop(&stop);
            scope.spawn(|| hub.feed(&log, || stop.load(Ordering::SeqCst), || pace, wake));
            body(&hub, writer);
        });
    }

    /// Ends the feeder.
    struct Stop<'a>(&'a AtomicBool);

    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    /// Waits for a condition; `otherwise` is the failure's text if it does not come.
    fn until(otherwise: &str, condition: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while !condition() {
            assert!(Instant::now() < deadline, "{otherwise}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_hundred_followers_cost_one_read_of_each_block() {
        fed(
            Duration::ZERO,
            || (),
            |hub, mut writer| {
                let start = writer.handle().durable_end().get();
                until("the feeder does not begin", || matches!(hub.find(start), Found::AtEnd));
                let mut end = start;
                for n in 0..40 {
                    if n == 20 {
                        let mut rotate = Vec::new();
                        let next = [&4u64.to_le_bytes()[..], b"binlog.000002"].concat();
                        event(&mut rotate, EventType::ROTATE, writer.position().offset.0, &next);
                        writer.buffer().extend_from_slice(&rotate);
                        writer.rotate(&head()).unwrap();
                    }
                    end = append(&mut writer, 10_000, true);
                }
                let first = follow(hub, start, end);
                let reads = hub.reads();
                assert!(reads <= 42, "{reads} reads of 40 transactions and a rotation");
                for _ in 0..100 {
                    assert_eq!(follow(hub, start, end), first);
                }
                assert_eq!(hub.reads(), reads, "followers read nothing");
                // Written and not durable: nobody sees it.
                append(&mut writer, 100, false);
                std::thread::sleep(Duration::from_millis(20));
                assert!(matches!(hub.find(end), Found::AtEnd));
            },
        );
    }

    #[test]
    fn followers_are_woken_for_many_commits_at_once() {
        let (woken, pace) = (AtomicUsize::new(0), Duration::from_millis(300));
        let wait = |wanted: usize| until("nobody is woken", || woken.load(Ordering::SeqCst) >= wanted);
        let wake = || {
            woken.fetch_add(1, Ordering::SeqCst);
        };
        fed(pace, wake, |hub, mut writer| {
            wait(1);
            let start = writer.handle().durable_end().get();
            // Before the second time, from which the pace counts.
            let first = Instant::now();
            append(&mut writer, 1000, true);
            wait(2);
            let mut end = start;
            for _ in 0..20 {
                end = append(&mut writer, 1000, true);
            }
            let seen = woken.load(Ordering::SeqCst);
            assert!(seen == 2 || first.elapsed() >= pace, "woken {seen} times within {pace:?}");
            wait(3);
            follow(hub, start, end);
        });
    }

    #[test]
    fn what_is_too_old_is_forgotten() {
        fed(
            Duration::ZERO,
            || (),
            |hub, mut writer| {
                let start = writer.handle().durable_end().get();
                until("the feeder does not begin", || matches!(hub.find(start), Found::AtEnd));
                let mut end = start;
                for _ in 0..12 {
                    end = append(&mut writer, 1 << 20, true);
                }
                until("the feeder does not follow", || matches!(hub.find(end), Found::AtEnd));
                assert!(matches!(hub.find(start), Found::Elsewhere));
                assert!(hub.bytes() <= 9 << 20);
            },
        );
    }
}
