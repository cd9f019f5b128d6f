//! Reading while writing.

use super::*;
use std::time::Duration;

fn drain(reader: &mut TailReader) -> (Vec<u64>, Vec<FileSeq>) {
    let (mut found, mut files) = (Vec::new(), Vec::new());
    loop {
        match reader.next().unwrap() {
            TailNext::Event(event) if event.header.event_type == EventType::XID => {
                found.push(Xid::decode(event.body).unwrap().0);
            }
            TailNext::Event(_) => {}
            TailNext::NextFile(file) => files.push(file),
            TailNext::CaughtUp => return (found, files),
        }
    }
}

#[test]
fn a_reader_stops_at_the_durable_end_and_goes_on_when_it_moves() {
    for method in METHODS {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = start(dir.path(), config(method));
        let log = writer.handle();
        commit(&mut writer, 1, 100).unwrap();
        let mut reader = TailReader::open(&log, LogPosition::new(FileSeq(1), 4)).unwrap();
        assert_eq!(drain(&mut reader).0, [1]);
        // Written but not acknowledged: it is in the file and must not be seen (COMMIT-2).
        append(&mut writer, 2, 100);
        let job = writer.seal();
        let end = job.end();
        job.run().unwrap();
        assert_eq!(drain(&mut reader).0, [0; 0]);
        assert!(!reader.wait(Duration::from_millis(1)));
        log.durable_end().advance(end);
        assert!(reader.wait(Duration::from_secs(120)));
        assert_eq!(drain(&mut reader).0, [2]);
        rotate(&mut writer).unwrap();
        commit(&mut writer, 3, 100_000).unwrap();
        assert_eq!(drain(&mut reader), (vec![3], vec![FileSeq(2)]));
        assert_eq!(reader.position(), writer.position());
    }
}

#[test]
fn a_reader_can_start_in_the_middle_but_not_behind_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = start(dir.path(), config(FlushMethod::ODirectDsync));
    let log = writer.handle();
    let middle = commit(&mut writer, 1, 100).unwrap();
    let end = commit(&mut writer, 2, 100).unwrap();
    assert_eq!(drain(&mut TailReader::open(&log, middle).unwrap()).0, [2]);
    assert_eq!(drain(&mut TailReader::open(&log, end).unwrap()).0, [0; 0]);
    let behind = LogPosition::new(FileSeq(1), end.offset.0 + 1);
    assert!(matches!(TailReader::open(&log, behind), Err(ReadError::BehindEnd { .. })));
    assert!(matches!(TailReader::open(&log, LogPosition::new(FileSeq(0), 4)), Err(ReadError::NoSuchFile(_))));
    // Not the start of an event: an error, never bytes that look like one.
    let off = LogPosition::new(FileSeq(1), middle.offset.0 + 1);
    assert!(matches!(TailReader::open(&log, off).unwrap().next(), Err(ReadError::Damaged { .. })));
}

#[test]
fn a_reader_on_another_thread_sees_every_transaction_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = start(dir.path(), config(FlushMethod::ODirectDsync));
    let mut reader = TailReader::open(&writer.handle(), LogPosition::new(FileSeq(1), 4)).unwrap();
    let reading = std::thread::spawn(move || {
        let mut found = Vec::new();
        loop {
            found.extend(drain(&mut reader).0);
            if found.len() >= 300 {
                return found;
            }
            assert!(reader.wait(Duration::from_secs(120)), "{} are there", found.len());
        }
    });
    for gno in 1..=300 {
        commit(&mut writer, gno, 5000).unwrap();
        if gno % 100 == 0 {
            rotate(&mut writer).unwrap();
        }
    }
    assert_eq!(reading.join().unwrap(), (1..=300).collect::<Vec<_>>());
}
