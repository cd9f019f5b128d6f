//! Reading whole runs of events, from files and from what the writer keeps in memory.

use super::*;

/// Everything up to the durable end, in pieces of about `wanted` bytes, and the files that were entered.
fn drain(reader: &mut TailReader, wanted: usize) -> Result<(Vec<u8>, Vec<FileSeq>), ReadError> {
    let (mut bytes, mut files, mut run) = (Vec::new(), Vec::new(), Run::default());
    loop {
        let at = reader.position();
        match reader.read_run(wanted, &mut run)? {
            TailRun::Events => {
                assert!(!run.is_empty());
                assert!(reader.rest() == 0 || !reader.file.rules().verify_checksum, "only whole events");
                assert_eq!(reader.position().offset.0, at.offset.0 + run.len() as u64);
                bytes.extend_from_slice(&run);
            }
            TailRun::NextFile(file) => files.push(file),
            TailRun::CaughtUp => return Ok((bytes, files)),
        }
    }
}

fn at(file: u32, offset: u64) -> LogPosition {
    LogPosition::new(FileSeq(file), offset)
}

/// Returns the content of a finished log's files, without magic numbers.
fn in_files(path: &Path, ends: &[u64]) -> Vec<u8> {
    let mut all = Vec::new();
    for (n, end) in ends.iter().enumerate() {
        let file = fs::read(path.join(format!("binlog.{:06}", n + 1))).unwrap();
        all.extend_from_slice(&file[4..*end as usize]);
    }
    all
}

/// Events, with none that says its file is open: that changes when the file is finished.
fn closed(mut events: Vec<u8>) -> Vec<u8> {
    let mut at = 0;
    while at < events.len() {
        if events[at + 4] == EventType::FORMAT_DESCRIPTION.0 {
            events[at + 17] &= !(FLAG_IN_USE as u8);
        }
        at += u32::from_le_bytes(events[at + 9..at + 13].try_into().unwrap()) as usize;
    }
    events
}

#[test]
fn runs_of_any_length_are_the_files_bytes() {
    for method in METHODS {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = start(dir.path(), config(method));
        let log = writer.handle();
        let mut ends = Vec::new();
        for gno in 1..=30 {
            commit(&mut writer, gno, [10, 4000, 70_000][gno as usize % 3]).unwrap();
            if gno % 10 == 0 {
                let name = writer.next_file_name().unwrap();
                ends.push(writer.position().offset.0 + rotate_event(0, &name).len() as u64);
                rotate(&mut writer).unwrap();
            }
        }
        ends.push(writer.position().offset.0);
        let expected = in_files(dir.path(), &ends);
        for wanted in [1, 20, 500, 4096, 100_000, 1 << 22] {
            for trusting in [false, true] {
                let mut reader = TailReader::open(&log, at(1, 4)).unwrap();
                if trusting {
                    reader.trust_checksums();
                }
                let (bytes, files) = drain(&mut reader, wanted).unwrap();
                assert!(bytes == expected, "{wanted} bytes at a time");
                assert_eq!(files, [FileSeq(2), FileSeq(3), FileSeq(4)]);
            }
        }
    }
}

#[test]
fn what_was_just_written_comes_from_memory_and_only_when_it_is_durable() {
    for method in METHODS {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = start(dir.path(), config(method));
        let log = writer.handle();
        let begin = commit(&mut writer, 1, 100).unwrap();
        let mut reader = TailReader::open(&log, begin).unwrap();
        reader.keep_recent();
        let mut expected = Vec::new();
        let file = open(&dir.path().join("binlog.000001"));
        // The first run finds out what the file is like.
        expected.extend(transaction(writer.position().offset.0, 2, 100));
        commit(&mut writer, 2, 100).unwrap();
        let mut got = drain(&mut reader, 1 << 20).unwrap().0;
        for gno in 4..=40 {
            let bytes = transaction(writer.position().offset.0, gno, 3000);
            append(&mut writer, gno, 3000);
            let job = writer.seal();
            let (start, end) = (job.start(), job.end());
            job.run().unwrap();
            if gno % 3 == 1 {
                // COMMIT-2: written, sealed and in memory, and not durable as far as anybody knows.
                assert!(drain(&mut reader, 1 << 20).unwrap().0.is_empty());
            }
            log.durable_end().advance(end);
            expected.extend(&bytes);
            // With the file's bytes spoilt, what comes is not from there.
            if gno > 4 {
                file.write_all_at(&[0xaa; 64], start.offset.0 + 30).unwrap();
            }
            if gno % 3 == 0 {
                got.extend(drain(&mut reader, [100, 1 << 20][gno as usize % 2]).unwrap().0);
            }
        }
        got.extend(drain(&mut reader, 1 << 20).unwrap().0);
        assert!(got == expected, "{method}");
        let mut plain = TailReader::open(&log, begin).unwrap();
        assert!(matches!(drain(&mut plain, 1 << 20), Err(ReadError::Damaged { .. })), "the file is spoilt");
    }
}

#[test]
fn a_follower_that_falls_behind_or_meets_large_pieces_misses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let large = LogConfig { max_size: 1 << 30, ..config(FlushMethod::ODirectDsync) };
    let mut writer = start(dir.path(), large);
    let log = writer.handle();
    let begin = commit(&mut writer, 1, 100).unwrap();
    let mut reader = TailReader::open(&log, begin).unwrap();
    reader.keep_recent();
    let (mut expected, mut got) = (Vec::new(), Vec::new());
    // More than is kept, and pieces that are not kept at all.
    for (gno, payload) in (2..).zip([100, 600_000, 100, 400_000].into_iter().cycle().take(60)) {
        expected.extend(transaction(writer.position().offset.0, gno, payload));
        commit(&mut writer, gno, payload).unwrap();
        if gno % 25 == 0 || gno > 50 {
            got.extend(drain(&mut reader, 256 << 10).unwrap().0);
        }
    }
    got.extend(drain(&mut reader, 256 << 10).unwrap().0);
    assert!(got == expected);
}

#[test]
fn a_follower_goes_through_rotations_and_is_told_of_a_log_that_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = start(dir.path(), config(FlushMethod::ODirectDsync));
    let log = writer.handle();
    let mut reader = TailReader::open(&log, at(1, 4)).unwrap();
    reader.keep_recent();
    let (mut got, mut files, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for gno in 1..=40 {
        commit(&mut writer, gno, 2000).unwrap();
        if gno % 8 == 0 {
            let name = writer.next_file_name().unwrap();
            ends.push(writer.position().offset.0 + rotate_event(0, &name).len() as u64);
            rotate(&mut writer).unwrap();
        }
        if gno % 3 == 0 {
            let (bytes, entered) = drain(&mut reader, 1 << 20).unwrap();
            got.extend(bytes);
            files.extend(entered);
        }
    }
    let (bytes, entered) = drain(&mut reader, 1 << 20).unwrap();
    got.extend(bytes);
    files.extend(entered);
    ends.push(writer.position().offset.0);
    assert!(closed(got) == closed(in_files(dir.path(), &ends)));
    assert_eq!(files, [2, 3, 4, 5, 6].map(FileSeq));
    rotate_alone(&mut writer).unwrap();
    writer.restart_at(FileSeq(1), &head()).unwrap();
    commit(&mut writer, 1, 100_000).unwrap();
    assert!(matches!(drain(&mut reader, 1 << 20), Err(ReadError::NoSuchFile(_))));
}

#[test]
fn damage_is_found_at_its_event_and_what_is_before_it_is_given() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = start(dir.path(), config(FlushMethod::ODirectDsync));
    let log = writer.handle();
    let mut places = Vec::new();
    for gno in 1..=5 {
        places.push(writer.position());
        commit(&mut writer, gno, 500).unwrap();
    }
    let path = dir.path().join("binlog.000001");
    let whole = fs::read(&path).unwrap();
    let end = writer.position().offset.0 as usize;
    let third = places[2].offset.0 as usize;
    let read = |trusting: bool| {
        let mut reader = TailReader::open(&log, at(1, 4)).unwrap();
        if trusting {
            reader.trust_checksums();
        }
        let (mut bytes, mut run) = (4, Run::default());
        loop {
            match reader.read_run(1 << 20, &mut run) {
                Ok(TailRun::Events) => bytes += run.len(),
                Ok(_) => return (bytes, None),
                Err(ReadError::Damaged { position, .. }) => return (bytes, Some(position)),
                Err(error) => panic!("{error}"),
            }
        }
    };
    // In a body: seen by its checksum, or by nobody here.
    let spoil = |at: usize, byte: u8| {
        let mut spoilt = whole.clone();
        spoilt[at] ^= byte;
        fs::write(&path, spoilt).unwrap();
    };
    spoil(third + 25, 1);
    assert_eq!(read(false), (third, Some(places[2])));
    assert_eq!(read(true), (end, None));
    // In a length: always seen, also one that claims a gigabyte.
    for (byte, bits) in [(9, 1), (12, 0x3f), (12, 0xff), (13, 4)] {
        spoil(third + byte, bits);
        assert_eq!(read(false), (third, Some(places[2])), "byte {byte}");
        assert_eq!(read(true), (third, Some(places[2])), "byte {byte}");
    }
    fs::write(&path, &whole[..third + 10]).unwrap();
    assert_eq!(read(true), (third, Some(places[2])), "a file that is cut");
}
